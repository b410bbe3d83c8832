"""Training the commenters: they learn by heart, attention counts, they go on where they were stopped (AAC-21 to 23)."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
import torch

from pipeline.errors import BadInput
from pipeline.models.commenting.commenters import Comment, Commenter, generate_candidates, load
from pipeline.models.decoding import Decoding
from pipeline.training import loop
from pipeline.training.commenting import commenters
from pipeline.training.commenting.commenters import PROFILES, Recipe, fit, make_recipe
from pipeline.training.loop import TrainingResult
from tests.support.killed import check_resuming, equal

PAIRS = [
    ("新 地铁 今天 通车", "早班 车 六点 开出", "终于 不用 挤 公交 了"),
    ("新 地铁 今天 通车", "末班 车 十点 收班", "加班 的 人 又 赶不上 了"),
    ("暴雨 淹 了 菜场", "摊主 搬 走 了 货物", "菜价 明天 肯定 要 涨"),
    ("小学 免费 午餐", "家长 都 说 好", "孩子 吃饱 最 要紧"),
    ("City plants ten thousand trees", "volunteers dug all day", "now please water them too"),
    ("City plants ten thousand trees", "half of them died", "who pays for the dead ones ?"),
    ("Library opens at night", "students asked for it", "finally a warm place to read"),
    ("Team loses final again", "fans left early", "there is always next year"),
]
TINY = make_recipe(
    "att_tc", hidden=16, embedding=16, dropout=0.0, learning_rate=0.02, batch=8, epochs=60, vocabulary=200
)
SHORT = replace(TINY, dropout=0.3, epochs=4, batch=3)
BEAM = Decoding(beams=3, longest=8)


class Data(NamedTuple):
    """What `fit` takes, and what `generate_candidates` takes."""

    articles: pl.DataFrame
    comments: pl.DataFrame

    @property
    def texts(self) -> tuple[list[list[str]], list[list[str]]]:
        """Titles and contents of the articles."""
        return self.articles["title"].to_list(), self.articles["content"].to_list()


def make_data(pairs: Sequence[tuple[str, str, str]] = PAIRS, validation: int = 0) -> Data:
    """Make words of pairs, the last ones for validation; an article for each pair."""
    split = ["train"] * (len(pairs) - validation) + ["validation"] * validation
    rows = pl.DataFrame(pairs, schema=["title", "content", "words"], orient="row").with_columns(pl.all().str.split(" "))
    rows = rows.with_row_index("article_id").cast({"article_id": pl.String}).with_columns(split=pl.Series(split))
    return Data(rows.drop("words"), rows.select("article_id", "words"))


def generate(model: Commenter, texts: tuple[Any, Any], decoding: Decoding = BEAM) -> list[Comment]:
    return [comments[0] for comments in generate_candidates(model, *texts, decoding)]


def load_result(result: TrainingResult) -> Commenter:
    """Load the commenter of a training by a configuration that went through JSON."""
    return load(result.tensors, json.loads(json.dumps(result.config)))


def write_comments(result: TrainingResult, pairs: Sequence[tuple[str, str, str]] = PAIRS) -> list[str]:
    return [" ".join(comment.words) for comment in generate(load_result(result), make_data(pairs).texts)]


@pytest.fixture(scope="module")
def result() -> TrainingResult:
    """Eight pairs learnt by heart, from title and content; comments come in any order."""
    articles, comments = make_data()
    return fit(articles, comments.reverse(), TINY)


def test_eight_pairs_are_learnt_by_heart(result: TrainingResult) -> None:
    """Beam search writes every comment word for word; two articles of one title get theirs by content alone."""
    assert write_comments(result) == [comment for *_, comment in PAIRS]
    assert result.history["validation_loss"][-1] < 0.1 < result.history["validation_loss"][0]
    assert result.history["epoch"].to_list() == list(range(1, 61))
    assert asdict(TINY).items() <= result.config.items()


@pytest.mark.parametrize(("profile", "unit"), [("seq2seq", "gru"), ("att", "lstm")])
def test_titles_alone_are_learnt_by_heart(profile: str, unit: str) -> None:
    """Both commenters that read titles write the comments; of two that share a title, neither can be told apart."""
    setting = PROFILES[profile]
    recipe = replace(TINY, epochs=40, unit=unit, source=setting.source, has_attention=setting.has_attention)
    pairs = list({title: (title, content, comment) for title, content, comment in PAIRS}.values())
    result = fit(*make_data(pairs), recipe)
    assert write_comments(result, pairs) == [comment for *_, comment in pairs]
    assert len(set(write_comments(result))) == len(pairs) < len(PAIRS)


def test_the_vocabulary_is_what_is_most_frequent() -> None:
    """An article's words count once, however many comments it has; ties go by code; test articles are not looked at.

    The order of articles and of comments does not matter (AAC-22).
    """
    articles, comments = make_data([("甲 乙", "丙", "丁 丁 丁"), ("乙", "戊", "己"), ("庚 庚", "庚", "庚 庚")])
    articles = articles.with_columns(split=pl.Series(["train", "train", "test"]))
    comments = pl.concat([comments, comments.head(1).with_columns(words=pl.lit(["丁"]))])
    recipe = replace(TINY, vocabulary=4, epochs=1)
    for order in (articles, articles.reverse()):
        result = fit(order, comments.sample(fraction=1.0, shuffle=True, seed=len(order)), recipe)
        assert result.config["words"] == ["<pad>", "<unk>", "<s>", "</s>", "丁", "乙", "丙", "己"]
    assert result.tensors["heard.weight"].shape[0] == 8
    titles = fit(articles, comments, replace(recipe, source="title")).config["words"]
    assert titles[4:] == ["丁", "乙", "己", "甲"]  # contents are not read


def test_too_long_comments_are_cut_or_discarded() -> None:
    """Appendix C.1 cuts them and section 5 discards them (errata E12); which, and how many, is told."""
    frames = make_data([("甲", "乙", "一 二 三"), ("甲", "乙", "一 二 三 四"), ("甲", "乙", "二")])
    recipe = replace(TINY, comment_words=3, epochs=1)
    cut, discarded = (fit(*frames, replace(recipe, long_comments=rule)).config for rule in ("cut", "discard"))
    assert (cut["too_long"], cut["pairs"], "四" in cut["words"]) == (1, 3, False)
    assert (discarded["too_long"], discarded["pairs"], "四" in discarded["words"]) == (1, 2, False)
    beyond = replace(recipe, comment_words=1, long_comments="discard")
    assert fit(*frames, beyond).config["words"][4:] == ["乙", "二", "甲"]


def test_words_of_long_comments_count_as_those_of_short_ones() -> None:
    """Two comments of different length, a batch each, are learnt from as they are in one batch."""
    frames = make_data([("甲", "乙", "一"), ("甲", "乙", "一 二 三 四 五 六")])
    result = fit(*frames, replace(TINY, epochs=1))
    model = load_result(result)
    pairs, still = commenters._make_pairs(*frames, model), torch.optim.SGD(model.network.parameters(), lr=0.0)
    learner = loop.make_learner(model.network, still, torch.Generator(), math.inf)
    descend = partial(loop.descend, learner=learner, epoch=1)

    def gradient(*rows: int) -> torch.Tensor:
        commenters._measure_loss(model, pairs, [np.array(rows)], "float32", descend)
        return torch.cat([value.grad.flatten() for value in model.network.parameters() if value.grad is not None])

    assert torch.allclose(gradient(0) + gradient(1), 2 * gradient(0, 1), atol=1e-6)


def test_the_loss_is_of_words_and_ends(result: TrainingResult) -> None:
    """It is the mean cross entropy a word and </s>: the same in any batches, and by the probability of a comment."""
    model, pairs = load_result(result), make_data()
    data = commenters._make_pairs(*pairs, model)
    losses = [commenters._measure_loss(model, data, np.array_split(np.arange(8), count), "float32") for count in (1, 3)]
    assert losses == pytest.approx([result.history["validation_loss"].min()] * 2, rel=1e-3)
    comment = generate(model, pairs.texts)[0]
    by_hand = -comment.log_probability / (len(comment.words) + 1)
    assert commenters._measure_loss(model, data, [np.array([0])], "float32") == pytest.approx(by_hand, rel=1e-3)


@pytest.mark.parametrize("has_attention", [True, False])
def test_resuming_equals_not_stopping(tmp_path: Path, has_attention: bool) -> None:
    """Killed after an epoch and begun again, with dropout, it ends with the same bits as one that was not."""
    recipe = replace(SHORT, has_attention=has_attention)
    frames, state = make_data(validation=2), tmp_path / "state"
    uninterrupted = fit(*frames, recipe)
    check_resuming(lambda: fit(*frames, recipe, state), uninterrupted)
    assert not equal(fit(*frames, replace(recipe, seed=7, epochs=1)), uninterrupted)
    with pytest.raises(BadInput, match="state: this state is of a training on other data"):
        fit(*make_data(validation=3), recipe, state)


def test_hyperparameters_of_the_paper() -> None:
    """Appendix C.1: hidden size 256, Adam, 30,000 words, comments of 50; what the three read (section 5)."""
    for recipe in PROFILES.values():
        numbers = {"hidden": 256, "vocabulary": 30_000, "comment_words": 50, "long_comments": "cut"}
        assert asdict(recipe) | numbers == asdict(recipe)
    settings = {name: (profile.source, profile.has_attention) for name, profile in PROFILES.items()}
    assert settings == {"seq2seq": ("title", False), "att": ("title", True), "att_tc": ("title_and_content", True)}
    assert make_recipe("att", hidden=7, batch=None) == Recipe(hidden=7)
    with pytest.raises(BadInput, match="one of cut, discard"):
        make_recipe("att", long_comments="keep")


def test_rows_that_cannot_be_learnt_from() -> None:
    """No training part is bad input, as is a broken loss; `relevance_test` has what frames may lack."""
    articles, comments = make_data()
    for message, rows, recipe in (
        ("split 'train': expected at least one", articles.with_columns(split=pl.lit("test")), SHORT),
        ("there is no column content", articles.drop("content"), SHORT),
        ("in epoch 1: the learning rate is too high", articles, replace(SHORT, learning_rate=float("inf"))),
    ):
        with pytest.raises(BadInput, match=message):
            fit(rows, comments, recipe)
