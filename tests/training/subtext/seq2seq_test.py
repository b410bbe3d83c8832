"""Fitting sequence-to-sequence models: learning by heart, resuming, and what chooses the epoch (CSD-03)."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import torch

from pipeline.errors import BadInput
from pipeline.models.decoding import Decoding
from pipeline.models.subtext import seq2seq
from pipeline.models.subtext.seq2seq import Seq2Seq
from pipeline.training.subtext.seq2seq import Fitted, Recipe, fit

COMMENTS = [
    ("又陪老板看月亮", "下班了吗", "我又加班到很晚"),
    ("散步就是养生嘛", "公交还没来", "公交来得太慢"),
    ("好一个准时", "他到了吗", "他又迟到了"),
    ("好一个准时", "她到了吗", "她又迟到了"),
    ("钱包在减肥", None, "我快没钱了"),
    ("真是惜字如金", "他回你了吗", "他不爱理我"),
    ("饭好看极了", "好吃吗", "饭不好吃"),
    ("雨神来了", None, "他一来就下雨"),
]
SMALL = Recipe(epochs=80, batch=8, learning_rate=5e-3, source=24, target=12)
BRIEF = replace(SMALL, epochs=4, batch=3)


def rows(validation: int = 0) -> pl.DataFrame:
    """The comments above, the last ones for validation."""
    split = ["train"] * (len(COMMENTS) - validation) + ["validation"] * validation
    names = ("text", "context", "meaning")
    return pl.DataFrame(COMMENTS, schema=names, orient="row").with_columns(split=pl.Series(split))


def model(dropout: float = 0.1) -> Seq2Seq:
    """A model of random weights that knows all their characters."""
    texts = [text for row in COMMENTS for text in row if text]
    return seq2seq.fresh(texts, width=32, layers=1, dropout=dropout)


def written(fitted: Fitted) -> list[str]:
    """What a model writes of the comments."""
    texts, contexts, _ = zip(*COMMENTS, strict=True)
    return seq2seq.generate(fitted.model, texts, contexts, 2, 12, longest=24)


def equal(one: Fitted, other: Fitted) -> bool:
    """The same weights to the bit, and the same numbers."""
    weights, others = one.model.module.state_dict(), other.model.module.state_dict()
    return one.history.equals(other.history) and all(torch.equal(v, others[name]) for name, v in weights.items())


@pytest.fixture(scope="module")
def learnt() -> Fitted:
    """Eight comments learnt by heart."""
    return fit(rows(), model(0.0), SMALL)


def test_eight_comments_are_learnt_by_heart(learnt: Fitted) -> None:
    """Every meaning is written word for word; two comments alike get theirs by context alone (CSD-01)."""
    assert written(learnt) == [meaning for *_, meaning in COMMENTS]
    assert learnt.history["validation_loss"][-1] < 0.1 < learnt.history["validation_loss"][0]
    assert not learnt.model.module.training


def test_a_reloaded_model_writes_the_same(learnt: Fitted, tmp_path: Path) -> None:
    """A fitted model as a folder writes what it wrote before."""
    revision = seq2seq.save(learnt.model, tmp_path / "model", learnt.recipe)
    loaded = seq2seq.load(tmp_path / "model", device="cpu")
    assert loaded.revision == revision
    assert written(Fitted(loaded, {}, learnt.history)) == written(learnt)


def test_resuming_equals_not_stopping(tmp_path: Path) -> None:
    """Stopped after two epochs and begun anew, with dropout, it ends with the same weights and numbers."""
    whole = fit(rows(2), model(), BRIEF)
    state = tmp_path / "state.safetensors"
    fit(rows(2), model(), replace(BRIEF, epochs=2), state)
    torch.manual_seed(99)
    assert equal(fit(rows(2), model(), BRIEF, state), whole)
    assert equal(fit(rows(2), model(), BRIEF, state), whole)  # nothing is left to do
    assert equal(fit(rows(2), model(), BRIEF), whole)
    assert not equal(fit(rows(2), model(), replace(BRIEF, seed=7)), whole)


@pytest.mark.parametrize("change", ["rows", "model", "recipe"])
def test_a_state_of_something_else_is_refused(tmp_path: Path, change: str) -> None:
    """A state goes on with the rows, model and recipe it was made of, and with no others."""
    state = tmp_path / "state.safetensors"
    brief = replace(BRIEF, epochs=1)
    fit(rows(), model(), brief, state)
    with pytest.raises(BadInput, match=r"state\.safetensors: the state of a training on other data"):
        fit(
            rows(1 if change == "rows" else 0),
            model(0.5 if change == "model" else 0.1),
            replace(brief, batch=2) if change == "recipe" else brief,
            state,
        )


def test_test_rows_are_let_be() -> None:
    """Rows of the split `test` change nothing."""
    known = rows(2)
    more = pl.concat([known, known.head(2).with_columns(meaning=pl.lit("他迟到"), split=pl.lit("test"))])
    brief = replace(BRIEF, epochs=1)
    assert equal(fit(known, model(), brief), fit(more, model(), brief))


def test_what_came_of_it_is_told() -> None:
    """The recipe names the model it began with, and the history has a row an epoch."""
    began = model()
    found = fit(rows(2), began, BRIEF)
    assert found.recipe | {"best_epoch": 0} == {
        "learning_rate": 5e-3, "weight_decay": 0.01, "clip": 1.0, "batch": 3, "epochs": 4, "source": 24, "target": 12,
        "keep": "end", "seed": 42, "base": "characters", "base_revision": began.revision, "best_epoch": 0,
    }  # fmt: skip
    assert found.history["epoch"].to_list() == [1, 2, 3, 4]
    assert found.history.columns == ["epoch", "train_loss", "validation_loss"]


def test_comments_on_articles_are_learnt_by_heart() -> None:
    """Title and the start of a content in, comment out (AAC-21): what tells two articles apart is at the start.

    Of the same contents the end would tell nothing, and nothing can be learnt by it.
    """
    tail = "，本报记者从现场发回报道" * 3
    articles = [
        ("地铁通车", "早班开出", "不用挤了"),
        ("地铁通车", "末班收车", "又赶不上"),
        ("菜场淹了", "货物搬走", "要涨价了"),
    ]
    names = ("text", "context", "meaning")
    told = pl.DataFrame(articles, schema=names, orient="row").with_columns(
        pl.col("context") + tail, split=pl.lit("train")
    )
    texts = [text for name in names for text in told[name]]
    recipe = replace(SMALL, epochs=60, keep="start")
    found = fit(told, seq2seq.fresh(texts, width=32, layers=1, dropout=0.0), recipe)
    read, decoding = (told["text"].to_list(), told["context"].to_list()), Decoding(beams=3, longest=8)
    best = [row[0] for row in seq2seq.candidates(found.model, *read, decoding, longest=24, keep="start")]
    assert [one.text for one in best] == told["meaning"].to_list()
    assert min(one.log_probability for one in best) > -0.5
    assert seq2seq.generate(found.model, *read, 3, 8, longest=24, keep="start") == told["meaning"].to_list()
    ends = seq2seq.candidates(found.model, *read, decoding, longest=24, keep="end")
    assert ends[0] == ends[1]
    drawn = seq2seq.candidates(found.model, *read, Decoding(method="sample", longest=8), longest=24, keep="start")
    assert sum(row[0].text == one.text for row, one in zip(drawn, best, strict=True)) >= 2


def test_nothing_to_learn_from_or_a_loss_that_is_no_number() -> None:
    """No training rows, and a learning rate that breaks the weights, are bad input."""
    with pytest.raises(BadInput, match="split 'train': expected at least one"):
        fit(rows().with_columns(split=pl.lit("test")), model(), BRIEF)
    with pytest.raises(BadInput, match="field 'meaning' is null in 1 of 8"):
        fit(rows().with_columns(meaning=pl.Series([None, *rows()["meaning"][1:]])), model(), BRIEF)
    with pytest.raises(BadInput, match="in epoch 1: the learning rate is too high"):
        fit(rows(), model(), replace(BRIEF, learning_rate=float("inf"), epochs=1))
