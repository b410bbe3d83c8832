"""Training the relevance of comments: the loss by hand, what is drawn, learning, resuming, and what is refused."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from torch import Tensor

from pipeline.errors import BadInput
from pipeline.training.commenting import relevance
from pipeline.training.commenting.relevance import Recipe, batches, chance, fit, loss, recipe_of
from pipeline.training.loop import Fitted
from tests.support.thread_topics import ARTICLES, BRIEF, COMMENTS, SMALL, topics


def equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """The same names and the same bits."""
    return one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())


def pairs(recipe: Recipe = BRIEF, **changes: Any) -> relevance._Pairs:
    """What the topics are to a training."""
    return relevance._paired(*topics(), replace(recipe, **changes))


@pytest.fixture(scope="module")
def learnt() -> Fitted:
    """The topics, learnt."""
    return fit(*topics(), SMALL)


def test_the_loss_is_negative_samplings() -> None:
    """-ln σ(2) - ln σ(1) - ln σ(-0.5) = 0.126928 + 0.313262 + 0.974077; of zeros (1 + k) ln 2 (AAC-25)."""
    found = loss(torch.tensor([[2.0, -1.0, 0.5], [0.0, 0.0, 0.0]]))
    assert found.tolist() == pytest.approx([1.414267, 3 * np.log(2)], abs=1e-6)


def test_chance_by_hand() -> None:
    """Of two the right one is first or second: (1 + 1/2) / 2; lots drawn among eleven come to the same as the sum."""
    assert chance(1) == 0.75
    drawn = np.random.default_rng(0).integers(1, 12, 100_000)
    assert chance(10) == pytest.approx((1 / drawn).mean(), abs=5e-3)


def test_ranking_rises_from_chance_to_near_one(learnt: Fitted) -> None:
    """Held-out articles share words with their comments and no sentence with those learnt (AAC-25).

    Each topic has one held-out article, so that no foreign comment is of its topic.
    """
    assert learnt.history["count"].to_list() == [32] * SMALL.epochs
    before = relevance._Training(
        relevance.Relevance(relevance.shape(SMALL, len(learnt.config["words"]))), SMALL, pairs(SMALL),
        torch.Generator().manual_seed(0),
    )._judged()  # fmt: skip
    assert before == pytest.approx(chance(SMALL.foreign), abs=0.15)
    assert learnt.history["mrr"].max() > 0.95  # type: ignore[operator]
    assert learnt.history["loss"][-1] < 2 < learnt.history["loss"][0]


def test_an_interrupted_training_ends_as_an_uninterrupted_one(tmp_path: Path) -> None:
    """Stopped after one epoch and begun anew, with dropout, it ends with the same bits; the seed decides all."""
    articles, comments = topics()
    whole = fit(articles, comments, BRIEF)
    state = tmp_path / "state.safetensors"
    fit(articles, comments, replace(BRIEF, epochs=1), state)
    torch.manual_seed(99)
    again = fit(articles, comments, BRIEF, state)
    assert equal(again.tensors, whole.tensors)
    assert again.history.equals(whole.history)
    assert again.config == whole.config
    assert not equal(fit(articles, comments, replace(BRIEF, seed=7)).tensors, whole.tensors)


@pytest.mark.parametrize("change", ["rows", "recipe"])
def test_a_state_of_something_else_is_refused(tmp_path: Path, change: str) -> None:
    """A state goes on with the rows and the recipe it was made of."""
    articles, comments = topics(3)
    state, brief = tmp_path / "state.safetensors", replace(BRIEF, epochs=1, foreign=2)
    fit(articles, comments, brief, state)
    with pytest.raises(BadInput, match=r"state\.safetensors: the state of a training on other data"):
        fit(articles, comments[1:] if change == "rows" else comments,
            replace(brief, negatives=2) if change == "recipe" else brief, state)  # fmt: skip


def test_a_comment_that_tells_nothing_is_last() -> None:
    """A model to which all comments are alike gets 1 / (1 + N), not 1."""
    drawn = pairs()
    model = relevance.Relevance(relevance.shape(BRIEF, len(drawn.words)))
    with torch.no_grad():
        model.look_for.weight.zero_()
        model.look_for.bias.zero_()
    judged = relevance._Training(model, BRIEF, drawn, torch.Generator().manual_seed(0))._judged()
    assert judged == pytest.approx(1 / (1 + BRIEF.foreign))


def test_negatives_are_others_comments_by_their_counts() -> None:
    """None is the article's own, in another article's name neither; counts count to the power 3/4 (Mikolov, 2013)."""
    said = [("a", "own"), ("a", "both")] + [("b", "both")] + [("c", "often")] * 16 + [("d", "once")]
    articles = pl.DataFrame([(name, [name], [], "train") for name in "abcd"], ARTICLES, orient="row")
    comments = pl.DataFrame(
        [(name, f"c{i}", word, [word]) for i, (name, word) in enumerate(said)], COMMENTS, orient="row"
    )
    found = relevance._paired(articles, comments, BRIEF)
    model = relevance.Relevance(relevance.shape(BRIEF, len(found.words)))
    training = relevance._Training(model, replace(BRIEF, foreign=1), found, torch.Generator().manual_seed(0))
    drawn = training.negatives.drawn(np.zeros(4000, np.int64), 5, torch.Generator().manual_seed(1))
    counts = Counter(found.words[row - 2] for row in found.comments.rows[drawn.ravel()])
    assert set(counts) == {"often", "once"}
    assert counts["often"] / counts["once"] == pytest.approx(8, rel=0.1)


def test_batches_hold_each_pair_once() -> None:
    """A pass is every pair once, in runs of one article's of at most `together`, in another order each time."""
    articles = np.repeat(np.arange(6), [1, 9, 4, 4, 2, 8])
    recipe, generator = replace(BRIEF, batch=8, together=4), torch.Generator().manual_seed(3)
    one, other = (list(batches(articles, recipe, generator)) for _ in range(2))
    assert [len(batch) for batch in one] == [8, 8, 8, 4]
    for found in (one, other):
        assert sorted(np.concatenate(found)) == list(range(28))
    assert not np.array_equal(np.concatenate(one), np.concatenate(other))
    changes = (np.diff(articles[np.concatenate(one)]) != 0).sum() + 1
    assert 6 < changes <= 9  # there are nine runs: of 9 comments 4, 4, 1; of 8 twice 4; two of which may meet
    alone = list(batches(articles, replace(recipe, together=1), generator))
    assert sorted(np.concatenate(alone)) == list(range(28))


def test_titles_alone_or_contents_too() -> None:
    """IR-T reads no content, IR-TC both, and of each the first words; comments are cut at 50 (AAC-21, AAC-22)."""
    articles, comments = topics(2)
    recipe = recipe_of("ir_t", title=1)
    assert relevance.read(articles, recipe).to_list() == [title[:1] for title in articles["title"].to_list()]
    both = relevance.read(articles, recipe_of("ir_tc", content=2))
    assert both.to_list() == [[*title, "it", "is"] for title in articles["title"].to_list()]
    brief = replace(BRIEF, epochs=1, foreign=2, reads="title")
    other = articles.with_columns(content=pl.lit(["what", "else"]))
    assert equal(fit(articles, comments, brief).tensors, fit(other, comments, brief).tensors)
    long = comments.with_columns(pl.col("words").list.concat(pl.lit(["x"] * 60)))
    found = relevance._paired(articles, long, brief)
    assert set(np.diff(found.comments.starts)) == {50}
    assert recipe_of("ir_t").comment == 50
    assert recipe_of("ir_t").vocabulary == 30_000


def test_test_articles_are_let_be() -> None:
    """Articles of the split `test`, and articles without comments, change nothing; unknown words come from no other."""
    articles, comments = topics(3)
    more = pl.DataFrame([("t", ["new"], ["words"], "test"), ("u", ["bare"], [], "train")], ARTICLES, orient="row")
    on_them = pl.DataFrame([("t", "t0", "never read", ["never", "read"])], COMMENTS, orient="row")
    brief = replace(BRIEF, epochs=1, foreign=2)
    one, other = fit(articles, comments, brief), fit(pl.concat([more, articles]), pl.concat([on_them, comments]), brief)
    assert equal(one.tensors, other.tensors)
    assert one.config == other.config


def test_without_validation_the_training_part_decides() -> None:
    """Held-out comments are then those learnt, at most as many as are to be judged."""
    articles, comments = topics(3)
    only = articles.with_columns(split=pl.lit("train"))
    assert fit(only, comments, replace(BRIEF, epochs=1, judged=20)).history["count"].to_list() == [20]


def test_what_cannot_be_learnt_is_refused() -> None:
    """A column, a value, an article is missing or there twice, nothing is foreign, the loss is no number."""
    articles, comments = topics(2)
    bad = [
        ("articles to train on: there is no column title", articles.drop("title"), comments),
        ("field 'split' is null in 8 of 8", articles.with_columns(split=pl.lit(None, pl.String)), comments),
        ("field 'words' should be lists of words, found String", articles, comments.with_columns(words=pl.lit("雨"))),
        ("field 'title' should be lists of words", articles.with_columns(title=pl.lit(["a", None])), comments),
        ("'article_id' should be String as of articles", articles, comments.with_columns(article_id=pl.lit(1))),
        (r"'a0\.0' is there more than once", pl.concat([articles, articles]), comments),
        (r"28 are of articles that are not there, as 'a0\.1'", articles[:1], comments),
        ("split 'train': expected at least one", articles.with_columns(split=pl.lit("test")), comments),
        (r"article 'a0\.0': expected comments of others", articles[:1], comments[:4]),
        (r"article 'a0\.3': expected comments of others of its split", articles[:7], comments[:28]),
    ]
    for message, some, said in bad:
        with pytest.raises(BadInput, match=message):
            fit(some, said, replace(BRIEF, epochs=1))
    with pytest.raises(BadInput, match="hidden should be a multiple of 4"):
        fit(articles, comments, replace(BRIEF, hidden=10))
    with pytest.raises(BadInput, match="in epoch 1: the learning rate is too high"):
        fit(articles, comments, replace(BRIEF, learning_rate=float("inf")))
    assert recipe_of("ir_tc", **relevance.SMALL).hidden == 48
    with pytest.raises(BadInput, match="negatives should be a whole number from 1"):
        recipe_of("ir_t", negatives=0)
