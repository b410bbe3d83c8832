"""Training of the quality scorer: it learns a file by heart, goes through a folder unchanged, and beats length."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from pipeline.errors import BadInput
from pipeline.metrics.commenting.grading import report
from pipeline.models.commenting import quality as models
from pipeline.models.commenting.quality import Scorer, score_comments
from pipeline.models.encoder import Encoder, load
from pipeline.training import registry
from pipeline.training.commenting import quality
from pipeline.training.commenting.quality import PROFILES, Recipe, fit, make_recipe
from pipeline.training.loop import TrainingResult

GOOD = ["the reason is the price", "because the report says so", "I think both sides have a point"]
BAD = ["lol first", "boring stuff", "who cares man"]
SMALL = {"buckets": 256, "least": 1}


def graded(articles: int = 12) -> pl.DataFrame:
    """Comments of one length range under articles: those that give reasons have 5, the others 1, some in between 3."""
    rows = []
    for article in range(articles):
        split = ("train", "train", "validation", "test")[article % 4]
        for i in range(3):
            rows += [
                (f"{GOOD[i]} no {article}", f"a{article}", 5.0, split),
                (f"{BAD[i]} no {article}", f"a{article}", 1.0, split),
                (f"{GOOD[i][:9]} {BAD[i]} {article}", f"a{article}", 3.0, split),
            ]
    return pl.DataFrame(rows, schema=["text", "article_id", "target", "split"], orient="row")


def load_scorer(result: TrainingResult, encoder: Encoder | None = None) -> Scorer:
    """The scorer that was fitted."""
    return models.load(result.tensors, result.config, encoder)


@pytest.fixture(scope="module")
def tiny(tiny_folder: object) -> Encoder:
    """An encoder of random weights."""
    return load(str(tiny_folder), device="cpu")


@pytest.mark.parametrize("objective", ["regression", "ranking", "both"])
def test_learns_the_grades_of_comments_it_does_not_know(objective: str) -> None:
    """What makes a grade here is in the words; held-out comments have theirs, in its unit and order."""
    rows = graded()
    result = fit(rows, make_recipe("undertone", objective=objective, **SMALL))
    test = rows.filter(pl.col("split") == "test")
    scores = score_comments(load_scorer(result), test)
    assert np.abs(scores - test["target"].to_numpy()).mean() < 0.5  # of a constant 1.33
    assert stats.spearmanr(scores, test["target"]).statistic > 0.9
    metrics = report(test.with_columns(score=pl.Series(scores)), draws=0)
    assert metrics.filter(pl.col("metric") == "pairwise_accuracy")["value"][0] == 1


def test_likes_are_learnt_as_logarithms() -> None:
    """Comments of 0, 3 and 999 likes: expected log(1 + likes), within those learnt from, and in their order."""
    likes = pl.col("target").replace_strict({1.0: 0.0, 3.0: 3.0, 5.0: 999.0})
    rows = graded().with_columns(target=likes)
    result = fit(rows, make_recipe("upvotes", **SMALL))
    test = rows.filter(pl.col("split") == "test")
    scores = score_comments(load_scorer(result), test)
    assert np.abs(scores - np.log1p(test["target"].to_numpy())).mean() < 1.2  # of a constant 2.8
    assert scores.max() <= np.log(1000) + 1e-9
    assert result.config["unit"] == "log(1 + likes)"
    assert scores[test["target"].to_numpy() == 999].min() > scores[test["target"].to_numpy() == 0].max()


def test_a_scorer_goes_through_a_folder_unchanged(tmp_path: Path, tiny: Encoder) -> None:
    """Kept and read it scores as before, to the last bit, and the same rows give the same scorer again."""
    rows = graded().with_columns(title=pl.lit("the price"), content=pl.lit(None, pl.String))
    recipe = make_recipe("undertone", **SMALL)
    result = fit(rows, recipe, tiny)
    name = registry.add(tmp_path, result.tensors, result.config)
    model = registry.fetch(tmp_path, name)
    stored = models.load(model.tensors(), model.config, tiny)
    assert (score_comments(stored, rows) == score_comments(load_scorer(result, tiny), rows)).all()
    repeated = fit(rows, recipe, tiny)
    assert registry.add(tmp_path, repeated.tensors, repeated.config) == name
    with pytest.raises(BadInput, match="trained with encoder"):
        models.load(model.tensors(), model.config)


def test_embeddings_are_kept(tmp_path: Path, tiny: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a folder the second training encodes nothing, and gives what it gives without one."""
    rows, recipe = graded(), make_recipe("undertone", **SMALL)
    first = fit(rows, recipe, tiny, tmp_path)
    monkeypatch.setattr("pipeline.models.vectors.encode", lambda *_: pytest.fail("encoded again"))
    second = fit(rows, recipe, tiny, tmp_path)
    monkeypatch.undo()
    assert all((first.tensors[name] == second.tensors[name]).all() for name in first.tensors)
    without = score_comments(load_scorer(fit(rows, recipe, tiny), tiny), rows)
    assert score_comments(load_scorer(first, tiny), rows) == pytest.approx(without, abs=1e-3)


def test_the_configuration_names_the_features() -> None:
    """Families that are there, by name; without an article the relation is not, and that is said."""
    config = fit(graded(), make_recipe("undertone", **SMALL)).config
    assert list(config["features"]) == ["ngrams of characters", "ngrams of words", "surface"]
    assert (config["has_relation"], config["encoder"], config["unit"]) == (False, None, "grade")
    assert (config["low"], config["high"]) == (1, 5)
    titled = fit(graded().with_columns(title=pl.lit("the price")), make_recipe("undertone", **SMALL)).config
    assert titled["features"]["relation"] == ["words_in_title", "words_in_content"]


def test_relation_to_the_article_is_learnt() -> None:
    """Where comments are good if they speak of their article, only its text tells, and a scorer without it guesses."""
    rng = np.random.default_rng(2)
    topics = ["snow on the northern roads", "a museum opens for children", "prices of rice and bread", "night trains"]
    rows = []
    for article in range(120):
        topic, other_topic = rng.permutation(4)[:2]
        split = "test" if article % 3 == 0 else "train"
        rows += [(topics[t], topics[topic], f"{article}", float(t == topic), split) for t in (topic, other_topic)]
    frame = pl.DataFrame(rows, schema=["text", "title", "article_id", "target", "split"], orient="row")
    test = frame.filter(pl.col("split") == "test")
    right = []
    for has_relation in (True, False):
        result = fit(frame, make_recipe("undertone", has_relation=has_relation, objective="ranking", **SMALL))
        scores = score_comments(load_scorer(result), test)
        metrics = report(test.with_columns(score=pl.Series(scores)), draws=0)
        right.append(metrics.filter(pl.col("metric") == "pairwise_accuracy")["value"][0])
    assert right[0] == 1
    assert right[1] < 0.75


def test_the_penalty_is_chosen_on_the_validation_part() -> None:
    """The one with the least loss there; without such a part it is the recipe's, and nothing is compared."""
    result = fit(graded(), make_recipe("undertone", **SMALL))
    best = result.history.sort("validation_loss")["penalty"][0]
    assert result.config["penalty"] == best
    alone = fit(graded().filter(pl.col("split") == "train"), make_recipe("undertone", penalty=0.5, **SMALL))
    assert alone.config["penalty"] == 0.5
    assert alone.history["validation_loss"].to_list() == [None]


def test_of_many_comments_some_are_drawn(caplog: pytest.LogCaptureFixture) -> None:
    """No more of a part than the recipe takes, so that memory is bounded; how many is said and kept."""
    caplog.set_level("INFO", logger="pipeline")
    config = fit(graded(), make_recipe("undertone", most=30, **SMALL)).config
    assert config["row_counts"] == {"train": 30, "validation": 27}
    assert "30 of 54 comments of the train part are drawn" in caplog.text


@pytest.mark.parametrize("objective", ["regression", "ranking", "both"])
def test_a_validation_part_that_tells_nothing_does_no_harm(objective: str) -> None:
    """With one comment in it, there is no order to see and no scale to read: the scorer still tells good from bad."""
    rows = graded()
    is_held = rows["split"] == "validation"
    rows = pl.concat([rows.filter(~is_held), rows.filter(is_held).head(1)])
    test = rows.filter(pl.col("split") == "test")
    recipe = make_recipe("undertone", objective=objective, penalty=0.01, **SMALL)
    scores, target = score_comments(load_scorer(fit(rows, recipe)), test), test["target"].to_numpy()
    assert scores[target == 5].min() > scores[target == 1].max()


def test_gradient_is_that_of_the_loss() -> None:
    """By finite differences, for both losses and both targets."""
    rows = graded().with_columns(pl.col("target").cast(pl.Float64))
    for target, rank in (("grade", 0.5), ("upvotes", 0.5), ("grade", 0.0), ("upvotes", 1.0)):
        recipe = make_recipe("undertone", target=target, objective="both", **SMALL)
        design = models.Design(2, 0, 256, "jieba", has_surface=True, has_relation=False, dim=0)
        features = models.make_features(rows, design)
        data = quality._Data(features, rows, models.measure_scale(features), design, recipe)
        scaled_target = data.scale_target(data)
        rng = np.random.default_rng(0)
        weights, step = rng.normal(size=(2, data.grams.shape[1] + data.numbers.shape[1] + 1)) * 0.01
        (_, slopes), (high, _), (low, _) = (
            data.loss(data.compute_scores(weights + distance * step), scaled_target, rank)
            for distance in (0, 1e-5, -1e-5)
        )
        assert (high - low) / 2e-5 == pytest.approx(data.gradient(slopes) @ step, rel=1e-5)


def _changed(**columns: Any) -> pl.DataFrame:
    return graded().with_columns(**columns)


@pytest.mark.parametrize(
    ("rows", "changes", "message"),
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
def test_what_cannot_be_learnt_is_an_error(rows: pl.DataFrame, changes: dict[str, Any], message: str) -> None:
    """A missing column, one grade for all, no number, likes below 0, no text, no pairs, no features."""
    with pytest.raises(BadInput, match=message):
        fit(rows, make_recipe("undertone", **changes))


def test_profiles_are_recipes() -> None:
    """Every profile can be changed by name, and a value that is none is refused."""
    assert all(isinstance(recipe, Recipe) for recipe in PROFILES.values())
    assert make_recipe("upvotes").target == "upvotes"
    with pytest.raises(BadInput, match="objective should be one of regression, ranking, both"):
        make_recipe("undertone", objective="order")


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
    result = fit(rows, make_recipe("undertone", characters=0, words=1, buckets=16_384))
    test = rows.filter(pl.col("split") == "test")
    scored = test.with_columns(score=pl.Series(score_comments(load_scorer(result), test)))
    length = test.with_columns(score=pl.col("text").str.len_chars().log1p())
    metrics, baseline = (
        dict(report(frame, draws=0).select("metric", "value").iter_rows()) for frame in (scored, length)
    )
    assert metrics["pearson"] > 0.9 > baseline["pearson"]
    assert metrics["mae"] < 0.13
