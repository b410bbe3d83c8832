"""Training of the quality scorer: it learns a file by heart, goes through a folder unchanged, and beats length."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from pipeline.errors import BadInput
from pipeline.metrics.commenting.grading import report
from pipeline.models.commenting.quality import Scorer, ranks, scores
from pipeline.models.commenting.quality import load as loaded
from pipeline.models.encoder import Encoder, load
from pipeline.training import registry
from pipeline.training.commenting import quality
from pipeline.training.commenting.quality import PROFILES, Fitted, Recipe, fit, recipe_of

GOOD = ["the reason is the price", "because the report says so", "I think both sides have a point"]
BAD = ["lol first", "boring stuff", "who cares man"]
SMALL = {"buckets": 256, "least": 1}


def graded(articles: int = 12) -> pl.DataFrame:
    """Comments of one length range under articles: those that give reasons have 5, the others 1, some in between 3."""
    rows = []
    for article in range(articles):
        split = ("train", "train", "validation", "test")[article % 4]
        for at in range(3):
            rows += [
                (f"{GOOD[at]} no {article}", f"a{article}", 5.0, split),
                (f"{BAD[at]} no {article}", f"a{article}", 1.0, split),
                (f"{GOOD[at][:9]} {BAD[at]} {article}", f"a{article}", 3.0, split),
            ]
    return pl.DataFrame(rows, schema=["text", "article_id", "target", "split"], orient="row")


def of(fitted: Fitted, encoder: Encoder | None = None) -> Scorer:
    """The scorer that was fitted."""
    return loaded(fitted.tensors, fitted.config, encoder)


@pytest.fixture(scope="module")
def tiny(tiny_folder: object) -> Encoder:
    """An encoder of random weights."""
    return load(str(tiny_folder), device="cpu")


@pytest.mark.parametrize("objective", ["regression", "ranking", "both"])
def test_learns_the_grades_of_comments_it_does_not_know(objective: str) -> None:
    """What makes a grade here is in the words; held-out comments have theirs, in its unit and order."""
    rows = graded()
    fitted = fit(rows, recipe_of("undertone", objective=objective, **SMALL))
    test = rows.filter(pl.col("split") == "test")
    found = scores(of(fitted), test)
    assert np.abs(found - test["target"].to_numpy()).mean() < 0.5  # of a constant 1.33
    assert stats.spearmanr(found, test["target"]).statistic > 0.9
    measured = report(test.with_columns(score=pl.Series(found)), draws=0)
    assert measured.filter(pl.col("metric") == "pairwise_accuracy")["value"][0] == 1


def test_likes_are_learnt_as_logarithms() -> None:
    """Comments of 0, 3 and 999 likes: expected log(1 + likes), within those learnt from, and their ranks."""
    likes = pl.col("target").replace_strict({1.0: 0.0, 3.0: 3.0, 5.0: 999.0})
    rows = graded().with_columns(target=likes)
    fitted = fit(rows, recipe_of("upvotes", **SMALL))
    test = rows.filter(pl.col("split") == "test")
    asked = of(fitted)
    found = scores(asked, test)
    assert np.abs(found - np.log1p(test["target"].to_numpy())).mean() < 1.2  # of a constant 2.8
    assert found.max() <= np.log(1000) + 1e-9
    assert fitted.config["unit"] == "log(1 + likes)"
    where = ranks(asked, found)
    assert where[test["target"].to_numpy() == 999].min() > where[test["target"].to_numpy() == 0].max()


def test_a_scorer_goes_through_a_folder_unchanged(tmp_path: Path, tiny: Encoder) -> None:
    """Kept and read it scores as before, to the last bit, and the same rows give the same scorer again."""
    rows = graded().with_columns(title=pl.lit("the price"), content=pl.lit(None, pl.String))
    recipe = recipe_of("undertone", **SMALL)
    fitted = fit(rows, recipe, tiny)
    name = registry.keep(tmp_path, fitted.tensors, fitted.config)
    model = registry.fetch(tmp_path, name)
    assert (scores(loaded(model.tensors(), model.config, tiny), rows) == scores(of(fitted, tiny), rows)).all()
    again = fit(rows, recipe, tiny)
    assert registry.keep(tmp_path, again.tensors, again.config) == name
    with pytest.raises(BadInput, match="trained with encoder"):
        loaded(model.tensors(), model.config)


def test_embeddings_are_kept(tmp_path: Path, tiny: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a folder the second training encodes nothing, and gives what it gives without one."""
    rows, recipe = graded(), recipe_of("undertone", **SMALL)
    first = fit(rows, recipe, tiny, tmp_path)
    monkeypatch.setattr("pipeline.models.vectors.encode", lambda *_: pytest.fail("encoded again"))
    second = fit(rows, recipe, tiny, tmp_path)
    monkeypatch.undo()
    assert all((first.tensors[name] == second.tensors[name]).all() for name in first.tensors)
    without = scores(of(fit(rows, recipe, tiny), tiny), rows)
    assert scores(of(first, tiny), rows) == pytest.approx(without, abs=1e-3)


def test_the_configuration_names_the_features() -> None:
    """Families that are there, by name; without an article the relation is not, and that is said."""
    config = fit(graded(), recipe_of("undertone", **SMALL)).config
    assert list(config["features"]) == ["ngrams of characters", "ngrams of words", "surface"]
    assert (config["has_relation"], config["encoder"], config["unit"]) == (False, None, "grade")
    assert (config["low"], config["high"]) == (1, 5)
    titled = fit(graded().with_columns(title=pl.lit("the price")), recipe_of("undertone", **SMALL)).config
    assert titled["features"]["relation"] == ["words_in_title", "words_in_content"]


def test_relation_to_the_article_is_learnt() -> None:
    """Where comments are good if they speak of their article, only its text tells, and a scorer without it guesses."""
    rng = np.random.default_rng(2)
    topics = ["snow on the northern roads", "a museum opens for children", "prices of rice and bread", "night trains"]
    rows = []
    for article in range(120):
        own, other = rng.permutation(4)[:2]
        split = "test" if article % 3 == 0 else "train"
        rows += [(topics[t], topics[own], f"{article}", float(t == own), split) for t in (own, other)]
    frame = pl.DataFrame(rows, schema=["text", "title", "article_id", "target", "split"], orient="row")
    test = frame.filter(pl.col("split") == "test")
    right = []
    for has_relation in (True, False):
        fitted = fit(frame, recipe_of("undertone", has_relation=has_relation, objective="ranking", **SMALL))
        found = scores(of(fitted), test)
        measured = report(test.with_columns(score=pl.Series(found)), draws=0)
        right.append(measured.filter(pl.col("metric") == "pairwise_accuracy")["value"][0])
    assert right[0] == 1
    assert right[1] < 0.75


def test_the_penalty_is_chosen_on_the_validation_part() -> None:
    """The one with the least loss there; without such a part it is the recipe's, and nothing is compared."""
    fitted = fit(graded(), recipe_of("undertone", **SMALL))
    best = fitted.history.sort("validation_loss")["penalty"][0]
    assert fitted.config["penalty"] == best
    alone = fit(graded().filter(pl.col("split") == "train"), recipe_of("undertone", penalty=0.5, **SMALL))
    assert alone.config["penalty"] == 0.5
    assert alone.history["validation_loss"].to_list() == [None]


def test_of_many_comments_some_are_drawn(caplog: pytest.LogCaptureFixture) -> None:
    """No more of a part than the recipe takes, so that memory is bounded; how many is said and kept."""
    caplog.set_level("INFO", logger="pipeline")
    config = fit(graded(), recipe_of("undertone", most=30, **SMALL)).config
    assert config["row_counts"] == {"train": 30, "validation": 27}
    assert "30 of 54 comments of the train part are drawn" in caplog.text


@pytest.mark.parametrize("objective", ["regression", "ranking", "both"])
def test_a_validation_part_that_tells_nothing_does_no_harm(objective: str) -> None:
    """With one comment in it, there is no order to see and no scale to read: the scorer still tells good from bad."""
    rows = graded().with_row_index("at")
    is_held = pl.col("split") == "validation"
    rows = rows.filter(~is_held | (pl.col("at") == rows.filter(is_held)["at"].min())).drop("at")
    test = rows.filter(pl.col("split") == "test")
    found = scores(of(fit(rows, recipe_of("undertone", objective=objective, penalty=0.01, **SMALL))), test)
    target = test["target"].to_numpy()
    assert found[target == 5].min() > found[target == 1].max()


def test_gradient_is_that_of_the_loss() -> None:
    """By finite differences, for both losses and both targets."""
    rows = graded().with_columns(pl.col("target").cast(pl.Float64))
    for target, rank in (("grade", 0.5), ("upvotes", 0.5), ("grade", 0.0), ("upvotes", 1.0)):
        recipe = recipe_of("undertone", target=target, objective="both", **SMALL)
        design = quality.Design(2, 0, 256, "jieba", has_surface=True, has_relation=False, dim=0)
        features = quality.seen(rows, design)
        data = quality._Data(features, rows, quality.scale_of(features), design, recipe)
        wanted = data.target_on(data)
        rng = np.random.default_rng(0)
        weights, step = rng.normal(size=(2, data.grams.shape[1] + data.numbers.shape[1] + 1)) * 0.01
        value = partial(lambda at, data, wanted, rank: data.loss(data.scores(at), wanted, rank), data=data,
                        wanted=wanted, rank=rank)  # fmt: skip
        slope = data.gradient(value(weights)[1]) @ step
        near = (value(weights + 1e-5 * step)[0] - value(weights - 1e-5 * step)[0]) / 2e-5
        assert near == pytest.approx(slope, rel=1e-5)


def _changed(**columns: Any) -> pl.DataFrame:
    return graded().with_columns(**columns)


@pytest.mark.parametrize(
    ("rows", "changes", "said"),
    [
        (graded().drop("article_id"), {}, "missing article_id"),
        (_changed(target=pl.lit(2.0)), {}, "fewer than two targets"),
        (_changed(split=pl.lit("test")), {}, "0 comments to train on"),
        (_changed(target=pl.when(pl.int_range(pl.len()) == 4).then(None).otherwise("target")), {},
         "row 5: field 'target' is None; expected a number"),
        (_changed(target=-pl.col("target")), {"target": "upvotes"}, "row 1: field 'target' is -5.0; expected likes"),
        (_changed(text=pl.when(pl.int_range(pl.len()) == 6).then(None).otherwise("text")), {}, "row 7: field 'text'"),
        (_changed(article_id=pl.lit(None, pl.String)), {"objective": "ranking"}, "order cannot be learnt"),
        (graded(), {"characters": 0, "words": 0, "has_surface": False}, "leaves no features"),
    ],
)  # fmt: skip
def test_what_cannot_be_learnt_is_an_error(rows: pl.DataFrame, changes: dict[str, Any], said: str) -> None:
    """A missing column, one grade for all, no number, likes below 0, no text, no pairs, no features."""
    with pytest.raises(BadInput, match=said):
        fit(rows, recipe_of("undertone", **changes))


def test_profiles_are_recipes() -> None:
    """Every profile can be changed by name, and a value that is none is refused."""
    assert all(isinstance(recipe, Recipe) for recipe in PROFILES.values())
    assert recipe_of("upvotes").target == "upvotes"
    with pytest.raises(BadInput, match="objective should be one of regression, ranking, both"):
        recipe_of("undertone", objective="order")


def test_constructive_comments_beyond_length(data: Path) -> None:
    """Learnt from 600 comments of C3, other articles' grades are told better than by length, in bins of it too.

    Length alone is strong there: Spearman 0.87 over all 12,000.
    """
    path = data / "c3_constructive_comments_en" / "c3_12000_selected_columns.csv"
    rows = pl.read_csv(path, infer_schema_length=None).select(
        pl.col("article_id").cast(pl.String), text="comment_text", target="constructive"
    )
    part = pl.col("article_id").rank("dense") % 20
    rows = rows.with_columns(split=pl.when(part == 1).then(pl.lit("train")).when(part == 2).then(pl.lit("validation"))
                             .when(part == 3).then(pl.lit("test")))  # fmt: skip
    fitted = fit(rows, recipe_of("undertone", characters=0, words=1, buckets=16_384))
    test = rows.filter(pl.col("split") == "test")
    scored = test.with_columns(score=pl.Series(scores(of(fitted), test)))
    length = test.with_columns(score=pl.col("text").str.len_chars().log1p())
    ours, theirs = (dict(report(frame, draws=0).select("metric", "value").iter_rows()) for frame in (scored, length))
    assert ours["pearson"] > 0.9 > theirs["pearson"]
    assert ours["mae"] < 0.13
