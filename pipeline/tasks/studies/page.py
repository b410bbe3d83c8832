"""The page of a day's studies: what was found out about a model and about data sets."""

import polars as pl

from pipeline import warehouse
from pipeline.errors import Missing
from pipeline.metrics.impscore import artefacts, spaces
from pipeline.report.impscore import page
from pipeline.slices import parse_day
from pipeline.tasks.impscore import in_force, pairs, scoring, train
from pipeline.tasks.record.pages import write_page


def write(day: str, model: str | None = None) -> str:
    """Write `studies-<day>.html` below the reports folder, complete or not at all; return its path.

    Shown are the newest studies up to the day; the numbers, artefacts and spaces are of `model`, or of the one in
    force for the day.
    """
    found = contents(day, model or in_force.model_for(day))
    return write_page(f"studies-{parse_day(day)}.html", page.render(found))


def contents(day: str, model: str) -> page.Contents:
    """What the page shows. `model` is what `in_force.load_model` takes."""
    at, model_id = parse_day(day), in_force.load_model(model).model_id
    rows = pairs.every()
    found = page.Contents(day=day, model_id=model_id, studies=warehouse.scan("studies", pl.col("day") <= at).collect())
    numbers = warehouse.scan("evaluations", pl.col("model_id") == model_id).filter(pl.col("epoch") == 0).collect()
    if numbers.height:
        found["evaluations"] = numbers.filter(pl.col("day") == pl.col("day").max())
    if rows.height:
        found["triples"] = scoring.score_triples(rows, model)
        known = train.evaluate_triples(rows, found["triples"])
        right = known.filter((pl.col("metric") == "implicitness_accuracy") & (pl.col("split") == "test"))
        found["audit"] = artefacts.audit(rows).join(right.select("subset", model="value"), on="subset", how="left")
    found["spaces"] = _spaces(model)
    if not found["studies"].height and not rows.height:
        raise Missing("nothing to show yet; `undertone study data-sets` or the DAG studies")
    return found


def _spaces(model: str) -> page.Spaces:
    """The held-out English groups in both spaces (figures 11 to 13)."""
    sentences = train.shipped_groups("en").filter(pl.col("split") == "test")
    said = scoring.embed_meanings(sentences["text"].to_list(), "en", model)
    pragmatic, semantic = said.pragmatic.numpy(), said.semantic.numpy()
    groups = sentences["group"].to_list()
    return page.Spaces(
        points=[spaces.lay_out(pragmatic), spaces.lay_out(semantic)],
        groups=groups,
        silhouettes=list(spaces.silhouettes(pragmatic, semantic, groups)),
    )
