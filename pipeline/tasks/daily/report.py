"""Report: run the checks, and write the HTML page of a day."""

from pathlib import Path
from typing import Any

import polars as pl

from pipeline import __version__, settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.slices import parse_day
from pipeline.tasks.impscore import references
from pipeline.tasks.record import pages

EXAMPLES = 10
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
    from pipeline.tasks.impscore import scoring
    from pipeline.training import registry

    shipped = registry.read(scoring.SHIPPED)
    if shipped.model_id != model_id:
        return None
    heads = shipped.config["heads"].values()
    encoders = {name: ", ".join(head[name] for head in heads) for name in ("encoder", "encoder_revision")}
    return encoders | {
        "model_id": model_id, "day": "any day: the model ships with Undertone", "config": shipped.config["profile"],
        "data_hash": shipped.config["data_hash"], "completion_models": ["language models, for the sample"],
        "code_version": __version__,
    }  # fmt: skip


def _collect_contents(day: str) -> Any:
    from pipeline.tasks.daily import weeks  # it needs scipy, which `undertone tables` does not

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
        "weeks": weeks.compare_weeks(day, model_id), "by_source": by_source, "most": most, "least": least,
        "funnel": warehouse.query("select * from funnel where day = ? and step = 'collect' order by all", values),
        "model": models.row(0, named=True) if models.height else _describe_shipped(model_id),
        "evaluations": evaluations.collect(), "signatures": sorted(scores["signature"].unique()),
    }  # fmt: skip
