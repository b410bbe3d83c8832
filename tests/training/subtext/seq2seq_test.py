"""Fitting of sequence-to-sequence models: memorising, repeating, and choosing the epoch (CSD-03)."""

from dataclasses import asdict, replace
from pathlib import Path

import polars as pl
import pytest
import torch

from pipeline.errors import BadInput
from pipeline.models.subtext import seq2seq
from pipeline.models.subtext.seq2seq import Seq2Seq
from pipeline.training.subtext.seq2seq import Recipe, fit
from tests.support.killed import equal

COMMENTS = [
    ("又陪老板看月亮", "下班了吗", "我又加班到很晚"), ("散步就是养生嘛", "公交还没来", "公交来得太慢"),
    ("好一个准时", "他到了吗", "他又迟到了"), ("好一个准时", "她到了吗", "她又迟到了"),
    ("钱包在减肥", None, "我快没钱了"), ("真是惜字如金", "他回你了吗", "他不爱理我"),
    ("饭好看极了", "好吃吗", "饭不好吃"), ("雨神来了", None, "他一来就下雨"),
]  # fmt: skip
SMALL = Recipe(epochs=80, batch=8, learning_rate=5e-3, source=24, target=12)
SHORT = replace(SMALL, epochs=4, batch=3)


def rows(validation: int = 0) -> pl.DataFrame:
    """Return the comments above, with the last ones for validation."""
    split = ["train"] * (len(COMMENTS) - validation) + ["validation"] * validation
    names = ("text", "context", "meaning")
    return pl.DataFrame(COMMENTS, schema=names, orient="row").with_columns(split=pl.Series(split))


def make_model(dropout: float = 0.1) -> Seq2Seq:
    texts = [text for row in COMMENTS for text in row if text]
    return seq2seq.make_model(texts, width=32, layers=1, dropout=dropout)


def write_meanings(model: Seq2Seq) -> list[str]:
    texts, contexts, _ = zip(*COMMENTS, strict=True)
    return seq2seq.generate(model, texts, contexts, 2, 12, 24)


def test_eight_comments_are_memorised(tmp_path: Path) -> None:
    """Every meaning is generated exactly, by the model that is saved and loaded too; two differ by context (CSD-01)."""
    model = make_model(0.0)
    result = fit(rows(), model, SMALL)
    assert write_meanings(model) == [meaning for *_, meaning in COMMENTS]
    assert result.history["validation_loss"][-1] < 0.1 < result.history["validation_loss"][0]
    assert not model.module.training
    revision = seq2seq.save(model, tmp_path / "model", result.config)
    loaded = seq2seq.load(tmp_path / "model", device="cpu")
    assert loaded.revision == revision
    assert write_meanings(loaded) == write_meanings(model)


def test_equal_trainings_are_equal() -> None:
    """The same rows, model and recipe give the same weights, with dropout too; another seed gives others."""
    base = make_model()
    result = fit(rows(2), base, SHORT)
    names = {"base": "characters", "base_revision": base.revision, "best_epoch": result.config["best_epoch"]}
    assert result.config == asdict(SHORT) | names
    assert result.history["epoch"].to_list() == [1, 2, 3, 4]
    torch.manual_seed(99)
    assert equal(fit(rows(2), make_model(), SHORT), result)
    assert not equal(fit(rows(2), make_model(), replace(SHORT, seed=7)), result)


def test_test_rows_are_ignored() -> None:
    """Rows of the split `test` change nothing."""
    few_rows = rows(2)
    more_rows = pl.concat([few_rows, few_rows.head(2).with_columns(meaning=pl.lit("他迟到"), split=pl.lit("test"))])
    recipe = replace(SHORT, epochs=1)
    assert equal(fit(few_rows, make_model(), recipe), fit(more_rows, make_model(), recipe))


def test_nothing_to_learn_from_or_a_loss_that_is_no_number() -> None:
    """No training rows, a null meaning or an infinite loss raises BadInput."""
    with pytest.raises(BadInput, match="split 'train': expected at least one"):
        fit(rows().with_columns(split=pl.lit("test")), make_model(), SHORT)
    with pytest.raises(BadInput, match="field 'meaning' is null in 1 of 8"):
        fit(rows().with_columns(meaning=pl.Series([None, *rows()["meaning"][1:]])), make_model(), SHORT)
    with pytest.raises(BadInput, match="in epoch 1: the learning rate is too high"):
        fit(rows(), make_model(), replace(SHORT, learning_rate=float("inf"), epochs=1))
