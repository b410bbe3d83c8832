"""Calibrate one measure against another, on comments of the tables or columns of a file; read scores as the other."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from pipeline import left_out, logs, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.examples.sources.files import parse_numbers, read_table
from pipeline.io.formats.chunk import list_names
from pipeline.label import simulated
from pipeline.metrics.calibration import comparison
from pipeline.metrics.calibration.comparison import EPSILON, Comparison, Map, Replacement
from pipeline.slices import parse_day
from pipeline.tasks.impscore import references
from pipeline.tasks.labelling import projects
from pipeline.tasks.record import runs
from pipeline.tasks.studies import rows as studies
from pipeline.text.language import detect_language

STUDY = "calibration"
READINGS = ("judged_like", "low", "high")
SCALARS = ("error", "least", "most")  # of a map
CURVE = ("mean_value", "mean_target", "low", "high", "n")


class Calibration(NamedTuple):
    """A comparison of `a` and `b`, and the test of `a` as a rater."""

    comparison: Comparison
    replacement: Replacement | None  # without two raters of b on the same texts: None
    model_id: str | None = None  # of the scorer


def compare_columns(
    path: Path, a: str, b: str, rater_columns: Sequence[str] = (), epsilon: float = EPSILON
) -> Calibration:
    """Calibrate a column of a file against another; text, lang, source and thread_id are used if they are columns."""
    if len(rater_columns) == 1:
        raise BadInput(f"one rater alone, {rater_columns[0]!r}; a test of raters needs the columns of two or more")
    for names in ((a, b), (a, *rater_columns)):
        lowered = [name.lower() for name in names]  # as `read_table` finds columns
        if repeated := next((name for name in names if lowered.count(name.lower()) > 1), ""):
            raise BadInput(f"expected different columns as measures and raters, found {repeated!r} twice")
    columns = {"a": a, "b": b} | {f"rater {name}": name for name in rater_columns}
    optional = {name: (name,) for name in ("text", "lang", "source", "thread_id")}
    rows = read_table([path], {name: (column,) for name, column in columns.items()}, optional)
    for name, column in columns.items():
        rows = parse_numbers(rows, name, name=column)
    valued = rows.drop_nulls(["a", "b"])
    left_out.record_rows("calibrate", {"no_value": rows.height - valued.height}, path.name)
    rows = valued.with_columns(
        thread=pl.coalesce("thread_id", pl.format("line {}", "line")), lang=pl.coalesce("lang", detect_language())
    )
    return _compare(rows, rows.select(pl.col(f"rater {name}").alias(name) for name in rater_columns), a, b, epsilon)


def compare_sides(a: str, b: str, day: str | None = None, days: int = 1, epsilon: float = EPSILON) -> Calibration:
    """Calibrate a side of `sides` against another on the comments of all days, or of some, that have both."""
    if a == b:
        raise BadInput(f"expected two measures, found {a!r} twice")
    of_a, of_b = load_side(a), load_side(b)
    span = (parse_day(day) - timedelta(days=days - 1), parse_day(day)) if day else None
    values = average(of_a, "a").join(average(of_b, "b"), on=COMMENT, how="inner")
    rows = load_comments(values, span).join(values, on=COMMENT, how="inner", maintain_order="left")
    if not rows.height:
        raise Missing(f"no comment has a value of {a!r} and of {b!r}{f' on {days} days until {day}' if day else ''}")
    rows = rows.with_columns(thread=pl.concat_str("source", "thread_id", separator="/"))
    ratings = rows.select(COMMENT).join(of_b, on=COMMENT, how="left", maintain_order="left")
    ratings = ratings.pivot("rater", index=COMMENT, values="value", aggregate_function="mean").drop(COMMENT)
    result = _compare(rows, ratings, a, b, epsilon)
    if not a.startswith("scorer"):
        return result
    model_id = str(of_a.join(rows, on=COMMENT, how="semi")["rater"].mode().sort()[0])
    reference, curve = references.load_reference(model_id), result.comparison.curve
    references.warn_weak(model_id, reference, rows["lang"].unique().to_list())
    readings = references.add_percentiles(rows, reference, "a").sort("a").join_asof(curve, left_on="a", right_on="from")
    means = readings.group_by("from").agg(mean_percentile=pl.col("percentile").mean().round(1))
    curve = curve.join(means, on="from", maintain_order="left")
    return result._replace(comparison=result.comparison._replace(curve=curve), model_id=model_id)


def _compare(rows: pl.DataFrame, ratings: pl.DataFrame, a: str, b: str, epsilon: float) -> Calibration:
    try:
        result = comparison.compare(rows, a, b)
    except ValueError as error:
        raise BadInput(str(error)) from error
    return Calibration(result, _check_replacement(result.mapped, ratings, epsilon))


def _check_replacement(mapped: Any, ratings: pl.DataFrame, epsilon: float) -> Replacement | None:
    """Test the mapped measure against the raters that share two texts or more with another one; None without two.

    A column of ratings is one rater. Those left out are noted, unless there is only one.
    """
    values, omitted = ratings, [""]
    while omitted:  # without a rater, another may share fewer
        is_rated = ~np.isnan(values.to_numpy())
        counts = is_rated[is_rated.sum(axis=1) > 1].sum(axis=0)
        omitted = [name for name, count in zip(values.columns, counts, strict=True) if count < 2]
        values = values.drop(omitted)
    if ratings.width > max(1, values.width):
        names = list_names({*ratings.columns} - {*values.columns})
        effect = "the test leaves them out" if values.width else "there is no test of raters"
        left_out.record_note(f"raters without two texts that another one rated: {names}; {effect}")
    if not values.width:
        return None
    numbers = values.to_numpy()
    return comparison.check_replacement(comparison.choose_levels(mapped, numbers), numbers, epsilon)


def write_study(calibration: Calibration, a: str, b: str, day: str, run_id: str = "cli") -> int:
    """Write a calibration into `studies`, in place of that of the same measures and day; return the number of rows.

    The knots of a map are `map_x` and `map_y`, the points of the curve `curve_x` and `curve`, numbered by `run`. The
    other fields of a map are `map_error`, null without an interval, `map_least` and `map_most`.
    """
    started = runs.start()
    study_rows: list[dict[str, Any]] = []

    def add(metric: str, subset: str, value: float | None, count: int, measure: str = a, **columns: Any) -> None:
        setting, model_id = {"a": measure, "b": b}, calibration.model_id
        row = studies.build_row(STUDY, day, metric, subset, value, count, setting=setting, model_id=model_id, **columns)
        study_rows.append(row)

    result = calibration.comparison
    for row in (*result.measures[1:].to_dicts(), *result.subsets.to_dicts()):
        measure, subset = row.get("by", a), row.get("subset", "all")
        add("spearman", subset, row["spearman"], row["n"], measure, low=row["low"], high=row["high"])
        for metric in {"error", "constant_error", "shift"} & row.keys():
            add(metric, subset, row[metric], row["n"], measure)
    for number, (x, y, low, high, n) in enumerate(result.curve.select(CURVE).iter_rows()):
        add("curve_x", "all", x, n, run=number)
        add("curve", "all", y, n, run=number, low=low, high=high)
    for subset, knots in result.maps.items():
        for number, (x, y) in enumerate(zip(knots.x, knots.y, strict=True)):
            add("map_x", subset, x, len(knots.x), run=number)
            add("map_y", subset, y, len(knots.x), run=number)
        for name in SCALARS:
            value = getattr(knots, name)
            add(f"map_{name}", subset, value if np.isfinite(value) else None, len(knots.x))
    if test := calibration.replacement:
        add("winning_rate", "all", test.winning_rate, max(test.n))
        add("advantage", "all", test.advantage, max(test.n))
    is_same = pl.col("setting").str.json_path_match("$.b") == b
    is_same &= pl.col("setting").is_in({row["setting"] for row in study_rows})
    count = studies.replace_study(STUDY, studies.build_frame(study_rows), day, run_id, is_same)
    runs.record_step(STUDY, day, f"{a} by {b}", "study", len(study_rows), None, {"a": a, "b": b}, run_id, started)
    return count


def load_maps(target: str, model_id: str) -> dict[str, Map]:
    """Load the maps, by language, of a model's newest calibration by a measure such as `judge:gpt-4o`, or Missing."""
    advice = get_advice(target)
    is_ours = (pl.col("study") == STUDY) & (pl.col("model_id") == model_id) & pl.col("metric").str.starts_with("map_")
    rows = warehouse.scan("studies", is_ours).with_columns(b=pl.col("setting").str.json_path_match("$.b")).collect()
    names = rows["b"].unique().sort().to_list()
    rows = rows.filter((pl.col("b") == target) | pl.col("b").str.starts_with(f"{target}:"))
    rows = rows.filter(pl.col("day") == pl.col("day").max())
    rows = exact if (exact := rows.filter(b=target)).height else rows
    if rows["b"].n_unique() > 1:
        targets = ", ".join(rows["b"].unique().sort())
        raise BadInput(f"expected one calibration by {target!r} of {rows['day'][0]}, found {targets}; name one")
    rows = rows.filter(pl.col("setting") == pl.col("setting").max())  # the scorer may have two names
    if not rows.filter(metric="map_error").height:
        problem = f"model {model_id[:12]} has no calibration by {target!r}; found {', '.join(names) or 'none'}"
        command = f"`undertone calibrate scorer {target}`, which needs both on 20 comments"
        raise Missing(f"{problem}; run {command}: {advice}")
    maps = {}
    for (subset,), part in rows.sort("run").partition_by("subset", as_dict=True).items():
        x, y = (part.filter(metric=f"map_{name}")["value"].to_numpy() for name in "xy")
        scalars = {name: part.filter(metric=f"map_{name}")["value"].fill_null(np.nan)[0] for name in SCALARS}
        maps[str(subset).removeprefix("lang ")] = Map(x, y, **scalars)
    return maps


def add_intervals(scores: pl.DataFrame, column: str, maps: Mapping[str, Map]) -> pl.DataFrame:
    """Add `judged_like`, `low` and `high`, by the map of each text's language (`all` if it has none); null without."""
    taken = [name for name in READINGS if name in scores.columns]
    if 0 < len(taken) < len(READINGS):  # all come from an earlier scoring
        raise BadInput(f"column {taken[0]!r}: the interval has a column of this name; rename yours")
    langs = pl.DataFrame({"text": scores[column]}).select(detect_language()).to_series().replace("und", "all")
    values = scores["implicitness"].cast(pl.Float64).to_numpy()
    readings = np.full((len(READINGS), scores.height), np.nan)
    for lang, knots in maps.items():
        mask = (langs == lang).fill_null(value=False).to_numpy()
        readings[:, mask] = knots.predict(values[mask])
    without = {*langs.drop_nulls()} - {lang for lang, knots in maps.items() if np.isfinite(knots.error)}
    if names := ", ".join(sorted(without)):
        text = f"calibration: too few texts or threads in {names}, so no intervals there"
        logs.log_answer(text, text)
    return scores.with_columns(
        pl.Series(name, numbers.round(3)).fill_nan(None) for name, numbers in zip(READINGS, readings, strict=True)
    )


COMMENT = ("source", "thread_id", "comment_id")
_COLUMNS = pl.Schema({name: pl.Float64 if name == "value" else pl.String for name in (*COMMENT, "rater", "value")})


def load_side(name: str) -> pl.DataFrame:
    """Load the ratings of a side: source, thread_id, comment_id, rater (a model, a judge, a person), value.

    Missing if there are none; BadInput for no such side, several judges or models that fit, and values of no numbers.
    """
    advice = get_advice(name)
    kind, _, detail = name.partition(":")
    ratings = _SIDES[kind][0](detail)
    if not ratings.height:
        raise Missing(f"there are no values of {name!r}; {advice}")
    return ratings.select(pl.col(name).cast(kind) for name, kind in _COLUMNS.items())


def get_advice(name: str) -> str:
    """Return the command that makes values of a side; BadInput if there is no such side."""
    if (kind := name.partition(":")[0]) in _SIDES:
        return _SIDES[kind][1]
    raise BadInput(f"{name!r} is no measure; expected {', '.join(_SIDES)}, or columns of --file by -c")


def load_comments(ratings: pl.DataFrame, days: tuple[date, date] | None = None) -> pl.DataFrame:
    """Load the rated comments of some days, or all: day, lang, text, once for each comment."""
    keys = ratings.lazy().select(COMMENT).unique()
    comments = warehouse.scan("comments", pl.col("day").is_between(*days) if days else None)
    rows = comments.join(keys, on=COMMENT, how="semi").select(*COMMENT, "day", "lang", "text")
    return rows.sort(*COMMENT, "day").unique(COMMENT, keep="last", maintain_order=True).collect()


def average(ratings: pl.DataFrame, name: str) -> pl.DataFrame:
    """Average the raters of each comment; `name` is the column of the mean."""
    return ratings.group_by(COMMENT).agg(pl.col("value").mean().alias(name))


def _load_scorer(model: str) -> pl.DataFrame:
    if model:
        return _load_scores("implicitness", model, "scorer")
    sql = "select source, thread_id, comment_id, model_id as rater, implicitness as value from comments_scored"
    return warehouse.query(f"{sql} order by all")


def _load_scores(metric: str, name: str, kind: str) -> pl.DataFrame:
    scores = warehouse.scan("scores", pl.col("metric") == metric)
    model_id = pl.col("model_id")
    is_named = model_id.str.starts_with(name)
    if kind == "judge" and name:  # by its whole name, perhaps without the mode: gpt-4o is not gpt-4o-mini
        is_named = (model_id == name) | (model_id.str.replace(":[a-z]+$", "") == name)
    rows = scores.filter(is_named).select(*COMMENT, "value", rater="model_id").collect()
    names = rows["rater"].unique().sort().to_list()
    if len(names) > 1:
        raise BadInput(f"expected one {kind}, found {', '.join(names)}; name it, such as {kind}:{names[0]}")
    return rows.sort(COMMENT)


def _load_labels(field: str) -> pl.DataFrame:
    field = field or "subtext"
    labels = warehouse.scan("labels", (pl.col("field") == field) & (pl.col("stage") == 1))
    labels = labels.sort("round").unique(("project", "task_id", "rater_id"), keep="last")
    counted, made_up = projects.prefer_people(labels.collect())
    left_out.record_rows("calibrate", {simulated.TOOL: made_up.height}, field)
    tasks = warehouse.scan("label_tasks").select("project", "task_id", *COMMENT)
    rows = (
        counted.lazy().join(tasks, on=("project", "task_id"), how="inner").select(*COMMENT, "value", rater="rater_id")
    )
    ratings = rows.with_columns(number=pl.col("value").cast(pl.Float64, strict=False)).collect()
    if words := ratings.filter(pl.col("number").is_null())["value"].unique().sort().to_list():
        raise BadInput(f"labels of {field!r} are no numbers but {', '.join(words[:3])}; name another as people:FIELD")
    return ratings.drop("value").rename({"number": "value"}).sort(*COMMENT, "rater")


def _load_grades(_: str) -> pl.DataFrame:
    rows = warehouse.scan("comment_grades").select(*COMMENT, rater="raters", value="grades").collect()
    return rows.explode("rater", "value").sort(*COMMENT, "rater")


_SIDES: dict[str, tuple[Callable[[str], pl.DataFrame], str]] = {
    "scorer": (_load_scorer, "`undertone score implicitness --day DAY`"),
    "judge": (partial(_load_scores, "implicitness_judged", kind="judge"), "`undertone judge --day DAY --llm MODEL`"),
    "people": (_load_labels, "`undertone label import`"),
    "grades": (_load_grades, "`undertone commenting ratings`"),
}
