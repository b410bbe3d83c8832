"""Training the relevance of comments: the loss by hand, what is drawn, learning, resuming, and what is refused."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from pipeline.errors import BadInput
from pipeline.training.commenting import relevance
from pipeline.training.commenting.relevance import Recipe, compute_loss, draw_batches, fit, make_recipe
from pipeline.training.loop import TrainingResult
from tests.support.killed import equal, equal_weights
from tests.support.rows.thread_topics import ARTICLES, COMMENTS, SHORT, SMALL, topics


def make_pairs(recipe: Recipe = SHORT) -> relevance._Pairs:
    return relevance._make_pairs(*topics(), recipe)


@pytest.fixture(scope="module")
def result() -> TrainingResult:
    return fit(*topics(), SMALL)


def test_the_loss_is_negative_samplings() -> None:
    """-ln σ(2) - ln σ(1) - ln σ(-0.5) = 0.126928 + 0.313262 + 0.974077; of zeros (1 + k) ln 2 (AAC-25)."""
    losses = compute_loss(torch.tensor([[2.0, -1.0, 0.5], [0.0, 0.0, 0.0]]))
    assert losses.tolist() == pytest.approx([1.414267, 3 * np.log(2)], abs=1e-6)


def test_ranking_rises_from_chance_to_near_one(result: TrainingResult) -> None:
    """Held-out articles share words with their comments and no sentence with those learnt (AAC-25).

    Each topic has one held-out article, so that no foreign comment is of its topic.
    """
    assert result.history["count"].to_list() == [32] * SMALL.epochs
    model = relevance.Relevance(len(result.config["words"]), SMALL)
    before = relevance._Training(model, SMALL, make_pairs(SMALL), torch.Generator().manual_seed(0)).rank()
    chance = np.mean(1 / np.arange(1, SMALL.foreign + 2))  # H(n + 1) / (n + 1) among n others
    assert relevance.compute_chance(SMALL) == chance
    assert (1 / before).mean() == pytest.approx(chance, abs=0.15)
    model.load_state_dict(result.tensors)
    articles, comments = topics()
    articles = articles.filter(split="validation")
    comments = comments.join(articles, on="article_id", how="semi", maintain_order="left")
    ranks = relevance.rank_comments(model.eval(), result.config["words"], SMALL, articles, comments)
    assert (1 / ranks).mean() > 0.9
    assert result.history["mrr"].max() > 0.95  # type: ignore[operator]
    assert result.history["loss"][-1] < 2 < result.history["loss"][0]


def test_an_interrupted_training_ends_as_an_uninterrupted_one(tmp_path: Path) -> None:
    """Stopped after one epoch and begun again, with dropout, it ends with the same bits; other inputs are refused."""
    articles, comments = topics()
    uninterrupted = fit(articles, comments, SHORT)
    state = tmp_path / "state.safetensors"
    fit(articles, comments, replace(SHORT, epochs=1), state)  # the recipe may have more epochs later
    torch.manual_seed(99)
    assert equal(fit(articles, comments, SHORT, state), uninterrupted)
    assert not equal_weights(fit(articles, comments, replace(SHORT, seed=7, epochs=1)).tensors, uninterrupted.tensors)
    for other_comments, recipe in ((comments[1:], SHORT), (comments, replace(SHORT, negatives=2))):
        with pytest.raises(BadInput, match=r"state\.safetensors: this state is of a training on other data"):
            fit(articles, other_comments, recipe, state)


def test_negatives_are_others_comments_by_their_counts() -> None:
    """None is the article's own, in another article's name neither; counts count to the power 3/4 (Mikolov, 2013).

    A model to which all comments are alike gets 1 / (1 + N), not 1.
    """
    rows = [("a", "own"), ("a", "both")] + [("b", "both")] + [("c", "often")] * 16 + [("d", "once")]
    articles = pl.DataFrame([(name, [name], [], "train") for name in "abcd"], ARTICLES, orient="row")
    comments = pl.DataFrame(
        [(name, f"c{i}", word, [word]) for i, (name, word) in enumerate(rows)], COMMENTS, orient="row"
    )
    made_pairs = relevance._make_pairs(articles, comments, SHORT)
    model = relevance.Relevance(len(made_pairs.words), SHORT)
    training = relevance._Training(model, replace(SHORT, foreign=1), made_pairs, torch.Generator().manual_seed(0))
    samples = training.negatives.draw(np.zeros(4000, np.int64), 5, torch.Generator().manual_seed(1))
    counts = Counter(made_pairs.words[row - 2] for row in made_pairs.comments.rows[samples.ravel()])
    assert set(counts) == {"often", "once"}
    with torch.no_grad():  # to a model to which all comments are alike the right one is the last
        model.look_for.weight.zero_()
        model.look_for.bias.zero_()
    assert set(training.rank()) == {2}
    assert counts["often"] / counts["once"] == pytest.approx(8, rel=0.1)


def test_batches_hold_each_pair_once() -> None:
    """A pass is every pair once, in runs of one article's of at most `together`, in another order each time."""
    articles = np.repeat(np.arange(6), [1, 9, 4, 4, 2, 8])
    recipe, generator = replace(SHORT, batch=8, together=4), torch.Generator().manual_seed(3)
    first_epoch, second_epoch = (list(draw_batches(articles, recipe, generator)) for _ in range(2))
    assert [len(batch) for batch in first_epoch] == [8, 8, 8, 4]
    for epoch in (first_epoch, second_epoch):
        assert sorted(np.concatenate(epoch)) == list(range(28))
    assert not np.array_equal(np.concatenate(first_epoch), np.concatenate(second_epoch))
    changes = (np.diff(articles[np.concatenate(first_epoch)]) != 0).sum() + 1
    assert 6 < changes <= 9  # there are nine runs: of 9 comments 4, 4, 1; of 8 twice 4; two of which may meet
    alone = list(draw_batches(articles, replace(recipe, together=1), generator))
    assert sorted(np.concatenate(alone)) == list(range(28))


def test_titles_alone_or_contents_too() -> None:
    """IR-T reads no content, IR-TC both, and of each the first words; comments are cut at 50 (AAC-21, AAC-22)."""
    articles, comments = topics(2)
    recipe = make_recipe("ir_t", title=1)
    titles = articles["title"].to_list()
    assert relevance.list_first_words(articles, recipe).to_list() == [title[:1] for title in titles]
    texts = relevance.list_first_words(articles, make_recipe("ir_tc", content=2))
    assert texts.to_list() == [[*title, "it", "is"] for title in titles]
    short_recipe = replace(SHORT, epochs=1, foreign=2, reads="title")
    other = articles.with_columns(content=pl.lit(["what", "else"]))
    assert equal(fit(articles, comments, short_recipe), fit(other, comments, short_recipe))
    long = comments.with_columns(pl.col("words").list.concat(pl.lit(["x"] * 60)))
    made_pairs = relevance._make_pairs(articles, long, short_recipe)
    assert set(np.diff(made_pairs.comments.starts)) == {50}
    assert make_recipe("ir_t").comment == 50
    assert make_recipe("ir_t").vocabulary == 30_000


def test_test_articles_are_ignored() -> None:
    """Articles of the split `test`, and articles without comments, change nothing; unknown words come from no other.

    Without a validation part comments that were learnt are held out, at most as many as are to be judged.
    """
    articles, comments = topics(3)
    more = pl.DataFrame([("t", ["new"], ["words"], "test"), ("u", ["bare"], [], "train")], ARTICLES, orient="row")
    on_them = pl.DataFrame([("t", "t0", "never read", ["never", "read"])], COMMENTS, orient="row")
    recipe = replace(SHORT, epochs=1, foreign=2)
    result = fit(articles, comments, recipe)
    other_result = fit(pl.concat([more, articles]), pl.concat([on_them, comments]), recipe)
    assert equal(result, other_result)
    only = articles.with_columns(split=pl.lit("train"))
    assert fit(only, comments, replace(recipe, judged=20)).history["count"].to_list() == [20]


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
        (r"article 'a0\.0': expected comments of other articles", articles[:1], comments[:4]),
        (r"article 'a0\.3': expected comments of other articles of its split", articles[:7], comments[:28]),
    ]
    for message, bad_articles, bad_comments in bad:
        with pytest.raises(BadInput, match=message):
            fit(bad_articles, bad_comments, replace(SHORT, epochs=1))
    with pytest.raises(BadInput, match="hidden should be a multiple of 4"):
        fit(articles, comments, replace(SHORT, hidden=10))
    with pytest.raises(BadInput, match="in epoch 1: the learning rate is too high"):
        fit(articles, comments, replace(SHORT, learning_rate=float("inf")))
    with pytest.raises(BadInput, match="negatives should be a whole number from 1"):
        make_recipe("ir_t", negatives=0)
