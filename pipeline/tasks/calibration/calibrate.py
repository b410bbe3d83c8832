"""Calibrate one measure against another: on comments of the tables, into `studies`, or on columns of a file."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from pipeline import warehouse
from pipeline.errors import BadInput, Missing
from pipeline.io.rows import read_chunks
from pipeline.metrics.calibration import comparison, raters
from pipeline.metrics.calibration.comparison import Comparison
from pipeline.metrics.calibration.estimates import Estimate, estimate_mean, explain_refusal
from pipeline.metrics.calibration.isotonic import Map
from pipeline.metrics.calibration.raters import EPSILON, Replacement
from pipeline.slices import parse_day
from pipeline.tasks.calibration import sides
from pipeline.tasks.calibration.sides import COMMENT
from pipeline.tasks.record import runs
from pipeline.tasks.studies import rows as studies

STUDY = "calibration"
CURVE = ("mean_value", "mean_target", "low", "high", "n")


class Calibration(NamedTuple):
    """A comparison of `a` and `b`, the test of a as a rater, and the mean of the scored comments as `b` gives it."""

    comparison: Comparison
    replacement: Replacement | None  # without two raters of b on the same texts: None
    model_id: str | None = None  # of the scorer
    corrected: Estimate | None = None  # only for a scorer and a judge on a scale
    reason: str | None = None  # why it is None nevertheless


def compare_columns(
    path: Path, a: str, b: str, rater_columns: Sequence[str] = (), epsilon: float = EPSILON
) -> Calibration:
    """Calibrate a column of a file against another; text, lang, source and thread_id are used if they are columns."""
    rows = pl.concat(
        [pl.DataFrame(chunk.rows, infer_schema_length=None, strict=False) for chunk in read_chunks(path)],
        how="diagonal_relaxed",
    )
    names = (a, b, *rater_columns)
    if absent := [name for name in names if name not in rows.columns]:
        raise BadInput(f"{path}: no column {', '.join(map(repr, absent))}; there are {', '.join(rows.columns)}")
    for name in names:
        text = pl.col(name).cast(pl.String).str.strip_chars()
        numbers = rows.select(text=text.replace("", None), number=text.cast(pl.Float64, strict=False))
        if words := numbers.filter(pl.col("number").is_null())["text"].drop_nulls().to_list():
            raise BadInput(f"{path}, column {name!r}: expected numbers, found {words[0]!r:.40}")
        rows = rows.with_columns(numbers["number"].fill_nan(None).alias(name))
    optional = [
        pl.col(name) if name in rows.columns else pl.lit(None).alias(name) for name in ("text", "lang", "source")
    ]
    thread = pl.col("thread_id") if "thread_id" in rows.columns else pl.lit(None)
    rows = rows.with_row_index("_row").select(
        *(column.cast(pl.String) for column in optional),
        pl.coalesce(thread.cast(pl.String), pl.format("row {}", "_row")).alias("thread"),
        pl.col(a).alias("a"), pl.col(b).alias("b"), *(pl.col(name).alias(f"rater {name}") for name in rater_columns),
    )  # fmt: skip
    rows = rows.drop_nulls(["a", "b"])
    ratings = rows.select(f"rater {name}" for name in rater_columns).to_numpy() if rater_columns else None
    return _compare(rows, ratings, a, b, epsilon)


def compare_sides(a: str, b: str, day: str | None = None, days: int = 1, epsilon: float = EPSILON) -> Calibration:
    """Calibrate a side of `sides` against another on the comments of all days, or of some, that have both.

    Where `a` is a scorer and `b` a judge on a scale, whose comments are drawn at random, the mean is corrected too.
    """
    if a == b:
        raise BadInput(f"expected two measures, found {a!r} twice")
    all_a, all_b = sides.load_side(a), sides.load_side(b)
    span = (parse_day(day) - timedelta(days=days - 1), parse_day(day)) if day else None
    joined = sides.average(all_a, "a").join(sides.average(all_b, "b"), on=COMMENT, how="inner")
    comments = sides.load_comments(joined, span)
    thread = pl.concat_str("source", "thread_id", separator="/").alias("thread")
    rows = comments.join(joined, on=COMMENT, how="inner", maintain_order="left").with_columns(thread)
    if not rows.height:
        raise Missing(f"no comment has a value of {a!r} and of {b!r}{f' on {days} days until {day}' if day else ''}")
    pivoted = (
        rows.select(COMMENT)
        .join(all_b, on=COMMENT, how="inner")
        .pivot("rater", index=COMMENT, values="value", aggregate_function="mean")
    )
    ratings = rows.select(COMMENT).join(pivoted, on=COMMENT, how="left", maintain_order="left").drop(COMMENT).to_numpy()
    result = _compare(rows, ratings, a, b, epsilon)
    if not a.startswith("scorer"):
        return result
    models = all_a.join(rows, on=COMMENT, how="semi")["rater"]
    is_scale = b.startswith("judge") and all_b["rater"].str.ends_with(":scale").all()
    if is_scale:
        corpus = (
            sides.load_comments(all_a, span).join(sides.average(all_a, "a"), on=COMMENT, how="inner")["a"].to_numpy()
        )
        if not (reason := explain_refusal(judged := rows["b"].to_numpy())):
            result = result._replace(corrected=estimate_mean(corpus, judged, rows["a"].to_numpy()))
        result = result._replace(reason=reason)
    return result._replace(model_id=models.mode().sort()[0])


def _compare(rows: pl.DataFrame, ratings: Any, a: str, b: str, epsilon: float) -> Calibration:
    try:
        result = comparison.compare(rows, a, b)
    except ValueError as error:
        raise BadInput(str(error)) from error
    return Calibration(result, _check_replacement(result.mapped, ratings, epsilon))


def _check_replacement(mapped: Any, ratings: Any, epsilon: float) -> Replacement | None:
    """Test the mapped measure against the raters that share two texts or more with another one; None without two."""
    if ratings is None:
        return None
    is_shared = (~np.isnan(ratings)).sum(axis=1) > 1
    ratings = ratings[:, (~np.isnan(ratings[is_shared])).sum(axis=0) > 1]
    if ratings.shape[1] < 2:
        return None
    return raters.check_replacement(raters.choose_levels(mapped, ratings), ratings, epsilon)


def write_study(calibration: Calibration, a: str, b: str, day: str, run_id: str = "cli") -> int:
    """Write a calibration into `studies`, in place of that of the same measures and day; return the number of rows.

    The knots of a map are `map_x` and `map_y`, the points of the curve `curve_x` and `curve`, numbered by `run`.
    """
    started = runs.start()
    study_rows: list[dict[str, Any]] = []

    def add(metric: str, subset: str, value: float | None, count: int, by: str = a, **columns: Any) -> None:
        setting, model_id = {"a": by, "b": b}, calibration.model_id
        row = studies.build_row(STUDY, day, metric, subset, value, count, setting=setting, model_id=model_id, **columns)
        study_rows.append(row)

    result = calibration.comparison
    for row in (*result.measures[1:].to_dicts(), *result.subsets.to_dicts()):
        by, subset = row.get("by", a), row.get("subset", "all")
        add("spearman", subset, row["spearman"], row["n"], by, low=row["low"], high=row["high"])
        for metric in {"error", "constant_error", "shift"} & row.keys():
            add(metric, subset, row[metric], row["n"], by)
    for number, (x, y, low, high, n) in enumerate(result.curve.select(CURVE).iter_rows()):
        add("curve_x", "all", x, n, run=number)
        add("curve", "all", y, n, run=number, low=low, high=high)
    for subset, knots in result.maps.items():
        for number, (x, y) in enumerate(zip(*knots, strict=True)):
            add("map_x", subset, x, len(knots.x), run=number)
            add("map_y", subset, y, len(knots.x), run=number)
    if test := calibration.replacement:
        add("winning_rate", "all", test.winning_rate, max(test.n))
        add("advantage", "all", test.advantage, max(test.n))
    if mean := calibration.corrected:
        add("corrected_mean", "all", mean.value, mean.n, low=mean.low, high=mean.high)
    is_same = pl.col("setting").str.json_path_match("$.b") == b
    is_same &= pl.col("setting").is_in({row["setting"] for row in study_rows})
    count = studies.replace_study(STUDY, studies.build_frame(study_rows), day, run_id, is_same)
    runs.record_step(STUDY, day, f"{a} by {b}", "study", len(study_rows), None, {"a": a, "b": b}, run_id, started)
    return count


def load_map(model_id: str, lang: str, b: str = "judge") -> Map | None:
    """Load the newest map of a model's scores to a side whose name begins with `b`, of the language if there is one."""
    is_map = (pl.col("study") == STUDY) & (pl.col("model_id") == model_id) & pl.col("metric").is_in(["map_x", "map_y"])
    rows = warehouse.scan("studies", is_map).collect()
    rows = rows.filter(pl.col("setting").str.json_path_match("$.b").str.starts_with(b))
    rows = rows.filter(pl.col("day") == pl.col("day").max(), pl.col("setting") == pl.col("setting").min())
    for subset in (f"lang {lang}", "all"):
        knots = rows.filter(pl.col("subset") == subset).pivot("metric", index="run", values="value").sort("run")
        if knots.height:
            return Map(knots["map_x"].to_numpy(), knots["map_y"].to_numpy())
    return None
