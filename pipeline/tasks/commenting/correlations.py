"""Metrics held against people's grades as tasks: correlations of the tables and of files (commenting, section 5)."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from pipeline import warehouse
from pipeline.errors import BadInput, Missing
from pipeline.io.rows import read_chunks
from pipeline.metrics.commenting import correlation
from pipeline.metrics.overlap import weights
from pipeline.slices import parse_day
from pipeline.tables import TABLES, empty
from pipeline.tasks.commenting import grades as grading
from pipeline.tasks.commenting import overlap
from pipeline.tasks.commenting.corpus import COMMENT, THREAD
from pipeline.tasks.commenting.overlap import DECIMALS, NAMES, format_name
from pipeline.tasks.record import runs

STUDY = "correlation"
MIN_ARTICLES = 10  # articles that an interval over them stands on
COEFFICIENTS = ("spearman", "pearson")
CORRELATED = {
    "metric": pl.String, "is_weighted": pl.Boolean, "coefficient": pl.String,
    **dict.fromkeys(("value", "low", "high", "p"), pl.Float64), "n": pl.Int64,
    **dict.fromkeys(("difference", "difference_low", "difference_high"), pl.Float64),
}  # fmt: skip
SENSITIVITY = dict.fromkeys(("preset", "metric", "coefficient"), pl.String) | dict.fromkeys(
    ("value", "ratio"), pl.Float64
)


def read_judged() -> pl.DataFrame:
    """Metric scores of comments that people graded; where there are weighted ones, of those that have them.

    Returns:
        item_id, group (the article), grade, metric, is_weighted, value.

    Raises:
        Missing: there are none.
    """
    key = [*THREAD, "generated_id"]
    grades = _read_generated_grades().group_by(key).agg(pl.col("grade").mean()).lazy()
    rows = warehouse.scan("metric_scores").join(grades, on=key, how="inner")
    found = rows.select(
        "grade", "metric", "is_weighted", "value", item_id=pl.concat_str(*THREAD, "generated_id", separator="/"),
        group=pl.concat_str(THREAD, separator="/"),
    ).sort("metric", "is_weighted", "item_id").collect()  # fmt: skip
    if not found.height:
        raise Missing("no measured comment was graded; see `undertone commenting rate candidates` and `measure`")
    weighed = found.filter("is_weighted").select("item_id").unique()
    return found.join(weighed, on="item_id", how="semi", maintain_order="left") if weighed.height else found


def read_ratings() -> pl.DataFrame:
    """Single grades of what commenters made: item_id, rater_id, grade."""
    item_id = pl.concat_str(*THREAD, "generated_id", separator="/").alias("item_id")
    told = _read_generated_grades().select(item_id, "project", "grades", "raters").explode("grades", "raters")
    return told.select("item_id", rater_id=pl.concat_str("project", "raters", separator="/"), grade="grades")


def _read_generated_grades() -> pl.DataFrame:
    """Grades of what commenters made; a real comment has those of the comment that it is too."""
    made = warehouse.scan("generated_comments").select(*THREAD, "generated_id", "system", "found_in").collect()
    grades = grading.scan_grades().collect()
    own = made.join(grades, left_on=[*THREAD, "generated_id"], right_on=COMMENT, how="inner", coalesce=False)
    told = grades.with_columns(found_in=pl.concat_str(COMMENT, separator="/")).drop(THREAD)
    of_real = made.filter(pl.col("system") == "human").join(told, on="found_in", how="inner")
    columns = [*THREAD, "generated_id", "project", "grade", "grades", "raters"]
    return pl.concat([own.select(columns), of_real.select(columns)])


def correlate(rows: pl.DataFrame, graded: pl.DataFrame | None = None) -> pl.DataFrame:
    """How far metrics go with grades, weighted beside plain, with intervals over articles (tables 3 and 4; AAC-26).

    Args:
        rows: of `read_judged`.
        graded: of `read_ratings`; with them there is a row `human`, one half of the raters with the other (AAC-27).

    Returns:
        metric, is_weighted, coefficient, value, low, high, p, n; and of weighted ones how much more they correlate than
        the plain: difference, difference_low, difference_high. Of fewer than `MIN_ARTICLES` there are no intervals.
    """
    named = correlation.tabulate(rows.with_columns(format_name()))
    keys = dict(rows.select(format_name().alias("key"), pl.struct("metric", "is_weighted")).unique().iter_rows())
    by = {key[0]: part for key, part in rows.with_columns(format_name()).partition_by("metric", as_dict=True).items()}
    found: list[dict[str, Any]] = []
    for row in named.iter_rows(named=True):
        key = keys[row["metric"]]
        plain = key["metric"]
        gap = None
        if key["is_weighted"] and plain in by:
            both = by[row["metric"]].join(
                by[plain].select("item_id", plain="value"), on="item_id", maintain_order="left"
            )
            gap = correlation.compare(both["value"], both["plain"], both["grade"], both["group"])._asdict()
        for coefficient in COEFFICIENTS:
            more = {"difference": coefficient, "difference_low": f"{coefficient}_low",
                    "difference_high": f"{coefficient}_high"}  # fmt: skip
            found.append({
                **key, "coefficient": coefficient, "value": row[coefficient], "low": row[f"{coefficient}_low"],
                "high": row[f"{coefficient}_high"], "p": row[f"{coefficient}_p"], "n": row["n"],
                **{format_name: gap[field] if gap else None for format_name, field in more.items()},
            })  # fmt: skip
    if graded is not None and graded.height:
        half = correlation.split_half(graded)
        found += [
            {"metric": "human", "is_weighted": False, "coefficient": coefficient, "n": half.n,
             "value": getattr(half, coefficient)} for coefficient in COEFFICIENTS
        ]  # fmt: skip
    told = pl.DataFrame(found, schema=CORRELATED, orient="row")
    ends = [
        pl.lit(None, pl.Float64).alias(format_name)
        for format_name in CORRELATED
        if format_name.endswith(("low", "high"))
    ]
    return told if rows["group"].n_unique() >= MIN_ARTICLES else told.with_columns(ends)


def write_correlations(day: str, run_id: str = "cli") -> int:
    """Put the correlations of the tables into `studies`; how many rows. Without grades there are none."""
    when, began = parse_day(day), runs.start()
    where = warehouse.slice_of(study=STUDY, day=day)
    try:
        found = correlate(read_judged(), read_ratings())
    except Missing:
        return warehouse.overwrite("studies", where, empty("studies"), run_id)
    parts = [_make_study_rows(found, "", "value", "low", "high"), _make_study_rows(found, "_p", "p")]
    parts.append(_make_study_rows(found, "_difference", "difference", "difference_low", "difference_high"))
    rows = pl.concat(parts).with_columns(
        study=pl.lit(STUDY), day=pl.lit(when), model_id=pl.lit(None, pl.String), run=pl.lit(0, pl.Int64),
        setting=pl.lit(json.dumps({"weights": find_preset()})), effective_count=pl.lit(None, pl.Int64),
    )  # fmt: skip
    count = warehouse.overwrite("studies", where, rows.select(TABLES["studies"].schema.column_names()), run_id)
    runs.record_step(STUDY, day, "studies", "study", count, None, {}, run_id, began)
    return count


def _make_study_rows(
    found: pl.DataFrame, tail: str, value: str, low: str | None = None, high: str | None = None
) -> pl.DataFrame:
    ends = {name: pl.col(column).round(DECIMALS) if column else pl.lit(None, pl.Float64)
            for name, column in (("low", low), ("high", high))}  # fmt: skip
    return found.filter(pl.col(value).is_not_null()).select(
        subset=format_name(), metric=pl.format("{}{}", "coefficient", pl.lit(tail)),
        value=pl.col(value).round(DECIMALS),
        row_count="n", **ends,
    )  # fmt: skip


def find_preset() -> str:
    """How grades became the weights of the scores that there are."""
    found = warehouse.scan("metric_scores", pl.col("is_weighted")).select(pl.col("signature").first()).collect()
    told = next(iter(found["signature"]), None) or ""
    return told.partition("|weights:")[2].partition("|")[0] or "none"


def read_correlations(day: str) -> pl.DataFrame:
    """The correlations of a day as `correlate` tells them.

    Raises:
        Missing: there are none.
    """
    where = (pl.col("study") == STUDY) & (pl.col("day") == parse_day(day))
    rows = warehouse.scan("studies", where).select("subset", "metric", "value", "low", "high", n="row_count").collect()
    if not rows.height:
        raise Missing(f"there are no correlations of {day}; nothing that was measured was graded")
    parts = pl.col("metric").str.splitn("_", 2).struct
    told = rows.with_columns(coefficient=parts.field("field_0"), part=parts.field("field_1"))
    key = ["subset", "coefficient"]
    whole = told.filter(pl.col("part").is_null()).select(*key, "value", "low", "high", "n")
    p = told.filter(pl.col("part") == "p").select(*key, p="value")
    gap = told.filter(pl.col("part") == "difference").select(
        *key, difference="value", difference_low="low", difference_high="high"
    )
    found = (
        whole.join(p, on=key, how="left")
        .join(gap, on=key, how="left")
        .with_columns(
            metric=pl.col("subset").str.strip_prefix("w_"), is_weighted=pl.col("subset").str.starts_with("w_")
        )
    )
    return found.select(list(CORRELATED)).sort("coefficient", "metric", "is_weighted", descending=[True, False, False])


def format_table_4(rows: pl.DataFrame) -> pl.DataFrame:
    """Correlations as people read them: a row a metric."""
    shown = pl.format("{} [{}, {}]", *(pl.col(c).round(3) for c in ("value", "low", "high")))
    gap = pl.format("{} [{}, {}]", *(pl.col(c).round(3) for c in ("difference", "difference_low", "difference_high")))
    bare = pl.col("value").round(3).cast(pl.String)
    told = rows.select(format_name(), "coefficient", "n", value=pl.coalesce(shown, bare), more=gap)
    wide = told.pivot("coefficient", index=["metric", "n"], values=["value", "more"], maintain_order=True)
    wide = wide.rename({f"value_{c}": c for c in COEFFICIENTS} | {f"more_{c}": f"{c} over plain" for c in COEFFICIENTS})
    return wide.select(format_name for format_name in wide.columns if wide[format_name].null_count() < wide.height)


def measure_sensitivity(names: Sequence[str] = NAMES) -> pl.DataFrame:
    """What the correlations are by each way of making weights of grades, which the paper does not tell (AAC-18, E11).

    Returns:
        preset, metric, coefficient, value, ratio (mean of the weighted scores over that of the plain).
    """
    graded = read_judged().select("item_id", "group", "grade").unique()
    found = []
    for preset in weights.PRESETS:
        rows, metrics = overlap.read_material(preset, names)
        rows = rows.filter(pl.col("weights").is_not_null())
        item_id = pl.concat_str(*THREAD, "generated_id", separator="/").alias("item_id")
        rows = rows.with_columns(item_id).join(graded, on="item_id", how="semi", maintain_order="left")
        if not rows.height:
            return pl.DataFrame(schema=SENSITIVITY)
        plain, weighed = (overlap.score(metrics, rows, weighted).with_columns(item_id) for weighted in (False, True))
        told = weighed.join(graded, on="item_id")
        ratios = _divide_means(weighed, plain)
        for row in correlation.tabulate(told, draws=1).iter_rows(named=True):
            found += [(preset, row["metric"], c, row[c], ratios[row["metric"]]) for c in COEFFICIENTS]
    return pl.DataFrame(found, schema=SENSITIVITY, orient="row")


def _divide_means(one: pl.DataFrame, other: pl.DataFrame) -> dict[str, float | None]:
    """Mean value of one by that of the other, by metric; None where the other has none."""
    means = [rows.group_by("metric").agg(pl.col("value").mean()) for rows in (one, other)]
    both = means[0].join(means[1], on="metric", suffix="_other")
    ratio = pl.when(pl.col("value_other") > 0).then(pl.col("value") / pl.col("value_other"))
    return dict(both.select("metric", ratio).iter_rows())


def correlate_table(path: Path, grade: str = "grade", group: str | None = None) -> pl.DataFrame:
    """Correlations of the number columns of a table with its grades; of `w_x` beside `x` also how much more it has.

    Args:
        path: csv, tsv, jsonl, json, parquet or xlsx; each row is a comment.
        grade: column of the grades.
        group: column that names the article; each row is drawn alone by default.

    Raises:
        BadInput: naming file and field.
    """
    rows = pl.concat(
        [pl.DataFrame(chunk.rows, infer_schema_length=None, strict=False) for chunk in read_chunks(path)],
        how="diagonal_relaxed",
    )
    for column in filter(None, (grade, group)):
        if column not in rows.columns:
            raise BadInput(f"{path}: no column {column!r}; there are {', '.join(rows.columns)}")
    if grade == group:
        raise BadInput(f"{path}: grades and articles should be in two columns, not both in {grade!r}")
    given = {column: rows[column].cast(pl.Float64, strict=False) for column in rows.columns if column != group}
    metrics = {
        column: values for column, values in given.items() if column != grade and values.count() * 2 > len(values)
    }
    if not metrics:
        raise BadInput(f"{path}: expected columns of numbers beside {grade!r}, found none")
    for column, values in {grade: given[grade], **metrics}.items():
        wrong = (~values.is_finite().fill_null(value=False)).arg_true()
        if len(wrong):
            found = f"{rows[column][wrong[0]]!r:.40}"
            raise BadInput(f"{path}, row {wrong[0] + 1}, field {column!r}: expected a number, found {found}")
    groups = (
        rows[group].cast(pl.String).fill_null("") if group else pl.int_range(rows.height, eager=True).cast(pl.String)
    )
    items = {"item_id": pl.int_range(rows.height, eager=True), "group": groups, "grade": given[grade]}
    long = pl.concat([
        pl.DataFrame({**items, "value": values}).with_columns(
            metric=pl.lit(column.removeprefix("w_")), is_weighted=pl.lit(column.startswith("w_"))
        ) for column, values in metrics.items()
    ])  # fmt: skip
    return correlate(long)
