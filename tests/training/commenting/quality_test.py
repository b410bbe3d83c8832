"""Training of the quality scorer: it learns a file by heart, goes through a folder unchanged, and beats length."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline.errors import BadInput
from pipeline.metrics.commenting.grading import report
from pipeline.models.commenting import quality as models
from pipeline.models.commenting.quality import score_comments
from pipeline.models.encoder import Encoder
from pipeline.training import registry
from pipeline.training.commenting import quality
from pipeline.training.commenting.quality import fit, make_recipe
from pipeline.training.loop import TrainingResult

GOOD = ["the reason is the price", "because the report says so", "I think both sides have a point"]
BAD = ["lol first", "boring stuff", "who cares man"]
SMALL = {"buckets": 256, "least": 1}


def make_comments() -> pl.DataFrame:
    """Make comments of one length range: those that give reasons have 5, the others 1, some in between 3."""
    rows = [
        (text, f"a{article}", grade, ("train", "train", "validation", "test")[article % 4])
        for article in range(12)
        for good, bad in zip(GOOD, BAD, strict=True)
        for text, grade in (
            (f"{good} no {article}", 5.0), (f"{bad} no {article}", 1.0), (f"{good[:9]} {bad} {article}", 3.0),
        )
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=["text", "article_id", "target", "split"], orient="row")


def fit_small(rows: pl.DataFrame, profile: str = "undertone", **changes: Any) -> TrainingResult:
    return fit(rows, make_recipe(profile, **SMALL, **changes))


def score(result: TrainingResult, rows: pl.DataFrame, encoder: Encoder | None = None) -> np.ndarray:
    return score_comments(models.load(result.tensors, result.config, encoder), rows)


def score_test(result: TrainingResult, rows: pl.DataFrame) -> pl.DataFrame:
    test = rows.filter(pl.col("split") == "test")
    return test.with_columns(score=pl.Series(score(result, test)))


def measure(rows: pl.DataFrame, metric: str) -> float:
    return dict(report(rows, draws=0).select("metric", "value").iter_rows())[metric]


@pytest.mark.parametrize("objective", ["regression", "ranking", "both"])
def test_learns_the_grades_of_comments_it_does_not_know(objective: str) -> None:
    """What makes a grade here is in the words; held-out comments have theirs, in its unit and order.

    A line puts the scores of the validation part in place: their mean is that of the grades.
    """
    rows = make_comments()
    result = fit_small(rows, objective=objective)
    test, validation = score_test(result, rows), rows.filter(split="validation")
    assert score(result, validation).mean() == pytest.approx(validation["target"].mean(), abs=0.1)
    assert measure(test, "mae") < 0.5  # of a constant 1.33
    assert measure(test, "spearman") > 0.9
    assert measure(test, "pairwise_accuracy") == 1


def test_likes_are_learnt_as_logarithms() -> None:
    """Comments of 0, 3 and 999 likes: expected log(1 + likes), within those learnt from, and in their order."""
    likes = pl.col("target").replace_strict({1.0: 0.0, 3.0: 3.0, 5.0: 999.0})
    rows = make_comments().with_columns(target=likes)
    result = fit_small(rows, "upvotes")
    test = score_test(result, rows).with_columns(pl.col("target").log1p())
    assert measure(test, "mae") < 1.2  # of a constant 2.8
    assert test["score"].max() <= np.log(1000) + 1e-9  # type: ignore[operator]
    assert result.config["unit"] == "log(1 + likes)"
    by_target = {target: part["score"] for (target,), part in test.partition_by("target", as_dict=True).items()}
    assert by_target[np.log1p(999)].min() > by_target[0].max()  # type: ignore[operator]


def test_a_scorer_goes_through_a_folder_unchanged(
    tmp_path: Path, tiny: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored and read it scores as before, to the last bit, and the same rows give the same scorer again.

    With a folder for embeddings the second training encodes nothing.
    """
    rows = make_comments().with_columns(title=pl.lit("the price"), content=pl.lit(None, pl.String))
    recipe = make_recipe("undertone", **SMALL)
    result = fit(rows, recipe, tiny, tmp_path / "embeddings")
    monkeypatch.setattr("pipeline.models.vectors.encode", lambda *_: pytest.fail("encoded again"))
    repeated = fit(rows, recipe, tiny, tmp_path / "embeddings")
    monkeypatch.undo()
    model_id = registry.add(tmp_path, result.tensors, result.config)
    model = registry.fetch(tmp_path, model_id)
    stored = models.load(model.tensors(), model.config, tiny)
    assert (score_comments(stored, rows) == score(result, rows, tiny)).all()
    assert registry.add(tmp_path, repeated.tensors, repeated.config) == model_id
    with pytest.raises(BadInput, match="trained with encoder"):
        models.load(model.tensors(), model.config)


def test_relation_to_the_article_is_learnt() -> None:
    """Where comments are good if they speak of their article, only its text helps, and a scorer without it guesses."""
    rng = np.random.default_rng(2)
    topics = ["snow on the northern roads", "a museum opens for children", "prices of rice and bread", "night trains"]
    rows = []
    for article in range(120):
        topic, other_topic = rng.permutation(4)[:2]
        split = "test" if article % 3 == 0 else "train"
        rows += [(topics[t], topics[topic], f"{article}", float(t == topic), split) for t in (topic, other_topic)]
    frame = pl.DataFrame(rows, schema=["text", "title", "article_id", "target", "split"], orient="row")
    related, unrelated = (
        measure(score_test(fit_small(frame, has_relation=flag, objective="ranking"), frame), "pairwise_accuracy")
        for flag in (True, False)
    )
    assert related == 1
    assert unrelated < 0.75


def test_the_penalty_is_chosen_on_the_validation_part(caplog: pytest.LogCaptureFixture) -> None:
    """The one with the least loss there; without such a part it is the recipe's, and nothing is compared.

    Of a large part so many comments are drawn as the recipe takes. The configuration names the families of features.
    """
    caplog.set_level("INFO", logger="pipeline")
    rows = make_comments()
    result = fit_small(rows, most=30)
    assert result.config["penalty"] == result.history.sort("validation_loss")["penalty"][0]
    assert result.config["row_counts"] == {"train": 30, "validation": 27}
    assert "30 of 54 comments of the train part are drawn" in caplog.text
    assert list(result.config["features"]) == ["ngrams of characters", "ngrams of words", "surface"]
    unvalidated = fit_small(rows.filter(split="train").with_columns(title=pl.lit("the price")), penalty=0.5)
    assert unvalidated.config["penalty"] == 0.5
    assert unvalidated.history["validation_loss"].to_list() == [None]
    assert unvalidated.config["features"]["relation"] == ["words_in_title", "words_in_content"]
    assert (unvalidated.config["low"], unvalidated.config["high"], unvalidated.config["unit"]) == (1, 5, "grade")


def test_gradient_is_that_of_the_loss() -> None:
    """By finite differences, for both losses and both targets."""
    rows = make_comments()
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


def test_without_ranks_the_weights_are_those_of_a_ridge_regression() -> None:
    """Likes without ranks are a least-squares problem, whose solution has a closed form; the bias is free."""
    rows, recipe = make_comments(), make_recipe("undertone", target="upvotes", **SMALL)
    design = models.Design(0, 0, 256, "jieba", has_surface=True, has_relation=False, dim=0)
    features = models.make_features(rows, design)
    data = quality._Data(features, rows, models.measure_scale(features), design, recipe)
    target = data.scale_target(data)
    inputs = np.column_stack([data.numbers, np.ones(len(target))])
    penalties = np.diag([*[0.1] * (inputs.shape[1] - 1), 0.0])
    expected = np.linalg.solve(inputs.T @ inputs / len(target) + penalties, inputs.T @ target / len(target))
    is_common, start = np.ones(len(expected), np.bool_), np.zeros(len(expected))
    assert quality._minimise(data, target, 0.0, 0.1, start, is_common) == pytest.approx(expected, abs=5e-3)


def set_null(column: str, row: int) -> pl.Expr:
    return pl.when(pl.int_range(pl.len()) != row).then(column).alias(column)


@pytest.mark.parametrize(
    ("change", "numbers", "message"),
    [
        (pl.lit(2.0).alias("target"), {}, "fewer than two targets"),
        (pl.lit("test").alias("split"), {}, "0 comments to train on"),
        (set_null("target", 4), {}, "row 5: field 'target' is None; expected a number"),
        (-pl.col("target"), {"target": "upvotes"}, "row 1: field 'target' is -5.0; expected likes"),
        (set_null("text", 6), {}, "row 7: field 'text'"),
        (pl.lit(None, pl.String).alias("article_id"), {"objective": "ranking"}, "order cannot be learnt"),
        ("text", {"characters": 0, "words": 0, "has_surface": False}, "leaves no features"),
    ],
)
def test_what_cannot_be_learnt_is_an_error(change: pl.Expr, numbers: dict[str, Any], message: str) -> None:
    """One grade for all, no number, likes below 0, no text, no pairs, no features."""
    with pytest.raises(BadInput, match=message):
        fit(make_comments().with_columns(change), make_recipe("undertone", **numbers))
    with pytest.raises(BadInput, match="missing article_id"):
        fit_small(make_comments().drop("article_id"))


def test_constructive_comments_beyond_length(data: Path) -> None:
    """Learnt from 600 comments of C3, other articles' grades are predicted better than by length.

    Length alone is strong there: Spearman 0.87 over all 12,000.
    """
    path = data / "c3_constructive_comments_en" / "c3_12000_selected_columns.csv"
    rows = pl.read_csv(path, infer_schema_length=None).select(
        pl.col("article_id").cast(pl.String), text="comment_text", target="constructive"
    )
    splits = {1: "train", 2: "validation", 3: "test"}
    part = (pl.col("article_id").rank("dense") % 20).replace_strict(splits, default=None)
    rows = rows.with_columns(split=part)
    test = score_test(fit(rows, make_recipe("undertone", characters=0, words=1, buckets=16_384)), rows)
    length = test.with_columns(score=pl.col("text").str.len_chars().log1p())
    assert measure(test, "pearson") > 0.9 > measure(length, "pearson")
    assert measure(test, "mae") < 0.13
