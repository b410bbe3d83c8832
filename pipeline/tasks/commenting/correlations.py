"""Metrics compared with people's grades as tasks: correlations of the tables and of files (commenting, section 5)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from pipeline import left_out, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.io.rows import read_chunks
from pipeline.metrics.commenting import correlation
from pipeline.metrics.overlap import scoring
from pipeline.tables import empty
from pipeline.tasks.commenting import grades, overlap
from pipeline.tasks.commenting.corpus import COMMENT, COMMENT_ID, GENERATED_ID, THREAD, THREAD_ID
from pipeline.tasks.record import runs
from pipeline.tasks.studies.rows import DECIMALS, build_frame, build_rows

STUDY, HUMAN = "correlation", "human"
MIN_ARTICLES = 10  # for an interval over them
COEFFICIENTS = ("spearman", "pearson")
_DIFFERENCE = ("difference", "difference_low", "difference_high")
_NUMBERS = ("value", "low", "high")
CORRELATED = {
    "metric": pl.String, "is_weighted": pl.Boolean, "coefficient": pl.String,
    **dict.fromkeys((*_NUMBERS, "p"), pl.Float64), "n": pl.Int64, **dict.fromkeys(_DIFFERENCE, pl.Float64),
}  # fmt: skip
SENSITIVITY = {
    **dict.fromkeys(("preset", "metric", "coefficient"), pl.String),
    **dict.fromkeys(("value", "ratio"), pl.Float64),
}


def read_judged() -> pl.DataFrame:
    """Read the scores of graded comments: item_id, group, grade, metric, is_weighted, value."""
    key = [*THREAD, "generated_id"]
    mean_grades = _read_generated_grades().group_by(key).agg(pl.col("grade").mean()).lazy()
    rows = warehouse.scan("metric_scores").join(mean_grades, on=key, how="inner")
    rows = rows.select("grade", "metric", "is_weighted", "value", item_id=GENERATED_ID, group=THREAD_ID)
    if not (judged := rows.sort("metric", "is_weighted", "item_id").collect()).height:
        raise Missing("no measured comment was graded; see `undertone commenting rate candidates` and `measure`")
    weighted = judged.filter("is_weighted").select("item_id").unique()
    return judged.join(weighted, on="item_id", how="semi", maintain_order="left") if weighted.height else judged


def read_ratings() -> pl.DataFrame:
    """Read the single grades of the commenters' comments: item_id, rater_id, grade."""
    rows = _read_generated_grades().select("project", "grades", "raters", item_id=GENERATED_ID)
    rater_id = pl.concat_str("project", "raters", separator="/")
    return rows.explode("grades", "raters").select("item_id", rater_id=rater_id, grade="grades")


def _read_generated_grades() -> pl.DataFrame:
    """Read the grades of the commenters' comments; a human comment has also its grades as a comment of the table."""
    generated = warehouse.scan("generated_comments").select(*THREAD, "generated_id", "system", "found_in").collect()
    all_grades = grades.scan_grades().collect()
    graded = generated.join(all_grades, left_on=[*THREAD, "generated_id"], right_on=COMMENT, coalesce=False)
    by_place = all_grades.with_columns(found_in=COMMENT_ID).drop(THREAD)
    human = generated.filter(pl.col("system") == "human").join(by_place, on="found_in", how="inner")
    columns = [*THREAD, "generated_id", "project", "grade", "grades", "raters"]
    return pl.concat([graded.select(columns), human.select(columns)])


def correlate(judged: pl.DataFrame, ratings: pl.DataFrame | None = None) -> pl.DataFrame:
    """Correlate metrics with grades, plain and weighted, with intervals over articles (tables 3 and 4; AAC-26).

    Ratings of `read_ratings` add rows of the metric `human`, one half of the raters with the other (AAC-27). Returns
    `CORRELATED`; `difference` is how much higher a weighted metric correlates than the plain one. With fewer than
    `MIN_ARTICLES` articles there are no intervals but that of `human`, which is over the divisions of the raters.
    """
    scores = judged.with_columns(pl.struct("metric", "is_weighted").alias("key"), overlap.format_name())
    keys = dict(scores.select("metric", "key").unique().iter_rows())
    metric_scores = {str(name): rows for (name,), rows in scores.partition_by("metric", as_dict=True).items()}
    rows: list[dict[str, Any]] = []
    for row in correlation.tabulate(scores).iter_rows(named=True):
        key = keys[row["metric"]]
        difference: dict[str, Any] = {}
        if key["is_weighted"] and key["metric"] in metric_scores:
            plain = metric_scores[key["metric"]].select("item_id", plain="value")
            pairs = metric_scores[row["metric"]].join(plain, on="item_id", maintain_order="left")
            columns = (pairs[name] for name in ("value", "plain", "grade", "group"))
            difference = correlation.compare(*columns)._asdict()
        for coefficient in COEFFICIENTS:
            names = (coefficient, f"{coefficient}_low", f"{coefficient}_high")
            numbers = {column: row[name] for column, name in zip(_NUMBERS, names, strict=True)}
            numbers |= {column: difference.get(name) for column, name in zip(_DIFFERENCE, names, strict=True)}
            rows.append({**key, "coefficient": coefficient, **numbers, "p": row[f"{coefficient}_p"], "n": row["n"]})
    if ratings is not None and ratings.height:
        halves = correlation.split_half(ratings)._asdict()
        for name in COEFFICIENTS:
            numbers = {"value": halves[name], "low": halves[f"{name}_low"], "high": halves[f"{name}_high"]}
            rows.append({"metric": HUMAN, "is_weighted": False, "n": halves["n"], "coefficient": name, **numbers})
    correlations = pl.DataFrame(rows, schema=CORRELATED, orient="row")
    if judged["group"].n_unique() >= MIN_ARTICLES:
        return correlations
    bounds = [name for name in CORRELATED if name.endswith(("low", "high"))]
    return correlations.with_columns(pl.when(metric=HUMAN).then(name).alias(name) for name in bounds)


def correct_halves(correlations: pl.DataFrame) -> pl.DataFrame:
    """Correct the row `human` from half the raters to all, by Spearman and Brown's 2r / (1 + r) (AAC-27)."""
    value = pl.col(_NUMBERS)
    return correlations.with_columns(pl.when(metric=HUMAN).then(value * 2 / (value + 1)).otherwise(value))


def write_correlations(day: str, run_id: str = "cli") -> pl.DataFrame:
    """Write the correlations of the tables to `studies`; return those with a value, rounded; none without grades."""
    timer = runs.start()
    partition = warehouse.make_slice(study=STUDY, day=day)
    try:
        correlations = correlate(read_judged(), read_ratings())
    except Missing:
        warehouse.overwrite("studies", partition, empty("studies"), run_id)
        return pl.DataFrame(schema=CORRELATED)
    parts = {"": _NUMBERS, "_p": ("p",), "_difference": _DIFFERENCE}
    setting, rows = {"weights": find_preset()}, []
    for row in correlations.with_columns(subset=overlap.format_name()).iter_rows(named=True):
        for suffix, names in parts.items():
            numbers = {column: row[name] for column, name in zip(_NUMBERS, names, strict=False)}
            if numbers["value"] is not None:
                metric = {"metric": f"{row['coefficient']}{suffix}", "n": row["n"]}
                rows += build_rows(STUDY, day, row["subset"], setting, [metric | numbers])
    count = warehouse.overwrite("studies", partition, build_frame(rows), run_id)
    runs.record_step(STUDY, day, "studies", "study", count, None, {}, run_id, timer)
    rounded = correlations.drop_nulls("value").with_columns(pl.col(pl.Float64).round(DECIMALS))
    return rounded.sort("coefficient", "metric", "is_weighted", descending=[True, False, False])


def find_preset() -> str:
    """Find the preset that made weights of grades for the current scores, in their signature."""
    rows = warehouse.scan("metric_scores", pl.col("is_weighted")).select(pl.col("signature").first()).collect()
    signature = next(iter(rows["signature"]), None) or ""
    return signature.partition("|weights:")[2].partition("|")[0] or "none"


def format_table_4(correlations: pl.DataFrame) -> pl.DataFrame:
    """Format correlations for display: a row for each metric."""
    value, difference = (
        pl.format("{} [{}, {}]", *(pl.col(column).round(3) for column in columns))
        for columns in (_NUMBERS, _DIFFERENCE)
    )
    texts = {"value": pl.coalesce(value, pl.col("value").round(3).cast(pl.String)), "difference": difference}
    rows = correlations.select(overlap.format_name(), "coefficient", "n", **texts)
    wide = rows.pivot("coefficient", index=["metric", "n"], values=list(texts), maintain_order=True)
    names = {f"value_{name}": name for name in COEFFICIENTS}
    wide = wide.rename(names | {f"difference_{name}": f"{name} over plain" for name in COEFFICIENTS})
    return wide.select(column for column in wide.columns if wide[column].null_count() < wide.height)


def measure_sensitivity(names: Sequence[str] = overlap.NAMES) -> pl.DataFrame:
    """Correlate by each preset of weights (AAC-18, E11); `ratio` is of the mean weighted and plain scores."""
    graded = read_judged().select("item_id", "group", "grade").unique()
    results = []
    for preset in scoring.PRESETS:
        rows, metrics = overlap.read_material(preset, names)
        rows = rows.filter(pl.col("weights").is_not_null()).with_columns(item_id=GENERATED_ID)
        rows = rows.join(graded, on="item_id", how="semi", maintain_order="left")
        if not rows.height:
            break
        scores = [overlap.score(metrics, rows, flag).with_columns(item_id=GENERATED_ID) for flag in (False, True)]
        plain, weighted = scores
        means, plain_means = (part.group_by("metric").agg(pl.col("value").mean()) for part in (weighted, plain))
        ratio = pl.when(pl.col("plain") > 0).then(pl.col("value") / pl.col("plain"))
        all_means = means.join(plain_means.rename({"value": "plain"}), on="metric")
        ratios = dict(all_means.select("metric", ratio).iter_rows())
        for row in correlation.tabulate(weighted.join(graded, on="item_id"), draws=1).iter_rows(named=True):
            results += [(preset, row["metric"], name, row[name], ratios[row["metric"]]) for name in COEFFICIENTS]
    return pl.DataFrame(results, schema=SENSITIVITY, orient="row")


def correlate_table(path: Path, grade: str = "grade", group: str | None = None) -> pl.DataFrame:
    """Correlate number columns of a table with its grades, by the column `group` of articles; `w_x` is against `x`."""
    frames = [pl.DataFrame(chunk.rows, infer_schema_length=None, strict=False) for chunk in read_chunks(path)]
    rows = pl.concat(frames, how="diagonal_relaxed")
    for column in filter(None, (grade, group)):
        if column not in rows.columns:
            raise BadInput(f"{path}: no column {column!r}; there are {', '.join(rows.columns)}")
    if grade == group:
        raise BadInput(f"{path}: grades and articles should be in two columns, not both in {grade!r}")
    numbers = {column: rows[column].cast(pl.Float64, strict=False) for column in rows.columns if column != group}
    grade_values = numbers.pop(grade)
    metrics = {column: values for column, values in numbers.items() if values.count() * 2 > len(values)}
    for column, values in numbers.items():
        if values.count() and column not in metrics:
            left_out.record_note(f"{path}: ignored column {column!r}; cells without a number", values.null_count())
    if not metrics:
        raise BadInput(f"{path}: expected columns of numbers besides {grade!r}, found none")
    for column, values in {grade: grade_values, **metrics}.items():
        if len(invalid := (~values.is_finite().fill_null(value=False)).arg_true()):
            value = f"{rows[column][invalid[0]]!r:.40}"
            raise BadInput(f"{path}, row {invalid[0] + 1}, field {column!r}: expected a number, found {value}")
    numbering = pl.int_range(rows.height, eager=True)
    groups = (rows[group] if group else numbering).cast(pl.String)
    if len(blank := groups.fill_null("").str.strip_chars().eq("").arg_true()):
        raise BadInput(f"{path}, row {blank[0] + 1}, field {group!r}: expected an article, found none")
    items = pl.DataFrame({"item_id": numbering, "group": groups, "grade": grade_values})
    parts = []
    for column, values in metrics.items():
        metric, is_weighted = pl.lit(column.removeprefix("w_")), pl.lit(column.startswith("w_"))
        parts.append(items.with_columns(metric=metric, is_weighted=is_weighted, value=values))
    return correlate(pl.concat(parts))
