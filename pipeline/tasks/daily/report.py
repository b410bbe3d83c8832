"""Report: run the checks, and write the pages of a day and of the health of the last days."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from pipeline import settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.metrics import weeks
from pipeline.slices import parse_day
from pipeline.tables import empty
from pipeline.tasks.impscore import references
from pipeline.tasks.record import pages

EXAMPLES = 10
WEEK_EXAMPLES = 5
MOST_SOURCES = 3  # sources with examples of a change between weeks
HEALTH_DAYS = 14
_EXPLAINED = ["source", "day", "thread_id", "comment_id", "model_id"]


def check(name: str, day: str) -> None:
    """Run a check on a day; raise BadInput with the first violations."""
    if rows := warehouse.run_check(name, day):
        raise BadInput(f"check {name} does not hold; first rows: {rows}")


def select_extremes(day: str | None, count: int = EXAMPLES) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Select the most and the least implicit comments of a day, or of all; `words` has word and change if explained."""
    condition, values = ("where day = ?", [parse_day(day)]) if day else ("", [])
    query = f"select * from most_implicit {condition} order by rank"  # noqa: S608
    most = warehouse.query(f"{query} limit {int(count)}", values)
    least = warehouse.query(f"{query} desc limit {int(count)}", values)
    explained = warehouse.scan("scores_explained", pl.col("day") == parse_day(day) if day else None)
    words = explained.sort("position").group_by(_EXPLAINED).agg(words=pl.struct("word", "change")).collect()
    most, least = (rows.join(words, on=_EXPLAINED, how="left", maintain_order="left") for rows in (most, least))
    return most, least


def select_judged(day: str, judge: str) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Select the comments of a day that a judge graded most and least implicit, by likes, and measure its agreement.

    The third frame has a row a language: Spearman's correlation of the model's scores and the grades, and how many of
    the comments with the lowest scores have a grade of 2 or more.
    """
    judged = warehouse.query(
        "select j.value as judged, c.* from comments_scored as c join scores as j "
        "using (source, day, thread_id, comment_id) where day = ? and j.metric = 'implicitness_judged' "
        "and j.model_id = ? order by judged desc, like_count desc nulls last, thread_id, comment_id",
        [parse_day(day), f"{judge}:scale"],
    )
    lowest = f"graded_2_or_more_of_lowest_{EXAMPLES}"
    agreement = judged.group_by("lang").agg(
        (pl.col("judged").sort_by("implicitness").head(EXAMPLES) >= 2).sum().alias(lowest),
        n=pl.len(),
        spearman=pl.corr("implicitness", "judged", method="spearman").round(2),
    )
    return judged.head(EXAMPLES), judged.sort("judged", maintain_order=True).head(EXAMPLES), agreement.sort("lang")


def locate_page(day: str) -> Path:
    """Return the path of the day's page, written or not."""
    return settings.reports() / f"{parse_day(day)}.html"


def write(day: str) -> str:
    """Write the day's page below the reports folder, complete or not at all; return its path."""
    from pipeline.report.daily import page

    return pages.write_page(locate_page(day).name, page.render(_collect_contents(day)))


def _describe_shipped(model_id: str) -> dict[str, Any] | None:
    """Describe the shipped model as a row of `models`; return None for another model."""
    from pipeline.tasks.impscore import scoring, train
    from pipeline.training import registry

    shipped = registry.read(scoring.SHIPPED)
    if shipped.model_id != model_id:
        return None
    row = train.describe_model({}, shipped.config, empty("evaluations")).build_row({"is_promoted": True})
    day, writers = "any day: the model ships with Undertone", ["language models, for the sample"]
    return {**row, "model_id": model_id, "day": day, "config": shipped.config["profile"], "completion_models": writers}


def _collect_contents(day: str) -> Any:
    values = [parse_day(day)]
    scores = warehouse.query(
        "select source, lang, implicitness, percentile, signature, model_id from comments_scored where day = ?", values
    )
    if not scores.height:
        command = f"`undertone score implicitness --day {day}`"
        raise Missing(f"no comment of {day} has a score; run {command} or the DAG score")
    model_id = scores["model_id"].mode().sort()[0]
    models = warehouse.scan("models", pl.col("model_id") == model_id).sort("day").collect()
    most, least = select_extremes(day)
    is_final = (pl.col("model_id") == model_id) & (pl.col("epoch") == 0)
    is_final &= ~pl.col("metric").str.starts_with("implicitness_of_")  # they have no percentile
    is_first_day = pl.col("day") == models["day"].min() if models.height else pl.lit(value=False)
    evaluations = warehouse.scan("evaluations", is_final).filter(is_first_day).sort("metric", "split", "subset")
    by_source = warehouse.query("select * from implicitness_by_source_day where day = ? order by source, lang", values)
    reference = references.load_reference(model_id)
    return {
        "day": day, "scores": scores, "reference": reference.name if reference else None,
        "weakness": references.describe_weakness(reference, scores["lang"].unique().to_list()),
        "weeks": compare_weeks(day, model_id), "by_source": by_source, "most": most, "least": least,
        "funnel": warehouse.query("select * from funnel where day = ? and step = 'collect' order by all", values),
        "model": models.row(0, named=True) if models.height else _describe_shipped(model_id),
        "evaluations": evaluations.collect(), "signatures": sorted(scores["signature"].unique()),
    }  # fmt: skip


_THREADS = Path(__file__).with_name("weeks.sql").read_text(encoding="utf-8")
_CORRECTED = """
select source, lang, day > ? as is_now, case when day > ? then day else day + 7 end as weekday,
    comment_count, corrected_mean, corrected_low, corrected_high,
    regexp_replace(correction, ', \\d+ judged comments$', '') as judge
from implicitness_by_source_day
where day > ? and day <= ? and (source, lang, day) in (select source, lang, day from comments_scored where model_id = ?)
"""
_EXAMPLES = """
select ? as way, source, lang, implicitness, percentile, text, title, like_count from comments_scored
where source = ? and lang = ? and day = ? and model_id = ? and ? * (implicitness - ?) > 0
order by like_count desc nulls last, thread_id, comment_id limit ?
"""


def compare_weeks(day: str, model_id: str) -> dict[str, pl.DataFrame]:
    """Compare the week until a day with the week before, by the scores of a model; empty without a day that both have.

    Returns:
        changes: of `metrics.weeks`, with day_count and what a judge corrected, the clearest and largest first.
        examples: comments of the day that show them, with most likes: more implicit than three quarters of the week
            before where a mean rose (way is 1), more explicit where it fell (-1). There are none of other days, since
            an erasure removes the pages of the day of a comment.
    """
    last = parse_day(day)
    middle = last - timedelta(days=7)
    values = [middle, middle, last - timedelta(days=14), last, model_id]
    threads = warehouse.query(_THREADS, values)
    if not threads.height:
        return {}
    quarters = threads.select(*weeks.GROUP, "day_count", "first_quarter", "last_quarter").unique()
    days = warehouse.query(_CORRECTED, values).filter(pl.col("is_now").n_unique().over(*weeks.GROUP, "weekday") == 2)
    is_clear = ((pl.col("low") > 0) | (pl.col("high") < 0)) & pl.col("low").is_not_nan()
    changes = weeks.measure_changes(threads).join(quarters, on=weeks.GROUP).with_columns(is_clear=is_clear)
    changes = changes.join(weeks.combine_corrected(days), on=weeks.GROUP, how="left")
    changes = changes.sort(~pl.col("is_clear"), -pl.col("change").abs(), *weeks.GROUP)
    examples = []  # of the sources that changed clearly, or of the one with the largest change, in turns
    for row in changes.head(max(1, min(MOST_SOURCES, changes.filter("is_clear").height))).to_dicts():
        way, edge = (1, row["last_quarter"]) if row["change"] > 0 else (-1, row["first_quarter"])
        rows = warehouse.query(_EXAMPLES, [way, row["source"], row["lang"], last, model_id, way, edge, WEEK_EXAMPLES])
        examples.append(rows.with_row_index("turn"))
    return {"changes": changes, "examples": pl.concat(examples).sort("turn", maintain_order=True).head(WEEK_EXAMPLES)}


def build_health(day: str, days: int = HEALTH_DAYS) -> pl.DataFrame:
    """Select the rows of `pipeline_health` of the last days; add later days as missing, which it lacks, and reports."""
    first, last = _parse_span(day, days)
    steps = warehouse.query("select * from pipeline_health where day between ? and ?", [first, last])
    newest = warehouse.query("select max(day) as day from runs where step = 'collect' and day <= ?", [last])["day"][0]
    due = min(last, datetime.now(UTC).date() - timedelta(days=2))  # as for late days: a day is collected after its end
    next_day = (newest or last) + timedelta(days=1)
    start = max(first, next_day) if newest else next_day
    missing = pl.DataFrame({"day": pl.date_range(start, due, eager=True) if start <= due else []}, {"day": pl.Date})
    values = {"family": "collect", "step": "collect", "status": "missing", "why": "nothing collected"}
    missing = missing.with_columns(**{name: pl.lit(value) for name, value in values.items()})
    missing = missing.join(steps, on=["day", "step"], how="anti")  # a later day was collected: the view has the gap
    reports = pl.DataFrame({"day": pl.date_range(first, last, eager=True)})
    reports = reports.filter(pl.Series([locate_page(f"{day}").is_file() for day in reports["day"]]))
    reports = reports.with_columns(family=pl.lit("report"), step=pl.lit("report"), status=pl.lit("ok"))
    return pl.concat([steps, missing, reports], how="diagonal").sort("day", "step", "family")


def _parse_span(day: str, days: int) -> list[date]:
    last = parse_day(day)
    if not 1 <= days <= last.toordinal():
        raise BadInput(f"days: expected 1 to {last.toordinal():,}, found {days:,}")
    return [last - timedelta(days=days - 1), last]


def write_health(day: str, days: int = HEALTH_DAYS) -> str:
    """Write the page of the last `days` days up to a day below the reports folder; return its path."""
    from pipeline.report.daily import health

    span = _parse_span(day, days)
    dropped = warehouse.query(
        "select step, dropped_at, reason, sum(row_count)::bigint as row_count from funnel "
        "where reason is not null and day between ? and ? group by all",
        span,
    )
    sources = warehouse.query(
        "select source, day, sum(kept_count)::bigint as row_count from runs where step = 'collect' and day <= ? "
        "group by source, day qualify day = max(day) over (partition by source) order by day, source",
        span[1:],
    )
    models = warehouse.query(
        "select kind, max(day) as day, arg_max(model_id, day) as model_id, max(day) filter (is_promoted) as promoted "
        "from models where day <= ? group by kind order by kind",
        span[1:],
    )
    schedules = {name: settings.schedule(name) for name in health.FAMILIES}
    page = health.render(span[1], days, build_health(day, days), dropped, sources, models, schedules)
    return pages.write_page(f"health-{day}.html", page)
