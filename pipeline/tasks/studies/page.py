"""Write the page of a day's studies: what they show about a model and about data sets."""

import polars as pl

from pipeline import warehouse
from pipeline.errors import Missing
from pipeline.metrics.impscore import artefacts, spaces
from pipeline.report.impscore import page
from pipeline.slices import parse_day
from pipeline.tasks.impscore import in_force, pairs, references, scoring, train
from pipeline.tasks.record.pages import write_page


def write(day: str, model: str | None = None) -> str:
    """Write the page of the newest studies up to a day, about `model` or the one in force; return its path."""
    until, model_id = pl.col("day") <= parse_day(day), in_force.load_model(model, day).model_id
    model = model or model_id
    rows = pairs.load_all_pairs()
    contents = page.Contents(day=day, model_id=model_id, studies=warehouse.scan("studies", until).collect())
    reference = references.load_reference(model)
    contents["weakness"] = references.describe_weakness(reference)
    evaluations = warehouse.scan("evaluations", pl.col("model_id") == model_id).filter(pl.col("epoch") == 0).collect()
    if evaluations.height:
        contents["evaluations"] = evaluations.filter(pl.col("day") == pl.col("day").max())
    if rows.height:
        contents["triples"] = scoring.score_triples(rows, model)
        numbers = train.evaluate_triples(rows, contents["triples"])
        accuracies = numbers.filter((pl.col("metric") == "implicitness_accuracy") & (pl.col("split") == "test"))
        accuracies = accuracies.select("subset", model="value")
        triples = contents["triples"].join(rows.select("pair_id", "lang"), on="pair_id", how="left")
        for place in "123":
            triples = references.add_percentiles(triples, reference, f"i{place}", f"p{place}")
        contents["triples"] = triples
        contents["audit"] = artefacts.audit(rows).join(accuracies, on="subset", how="left")
    contents["spaces"] = _build_spaces(model)
    if not contents["studies"].height and not rows.height:
        raise Missing("nothing to show yet; `undertone study data-sets` or the DAG studies")
    return write_page(f"studies-{parse_day(day)}.html", page.render(contents))


def _build_spaces(model: str) -> page.Spaces:
    sentences = train.read_shipped_groups("en").filter(pl.col("split") == "test")
    meanings = scoring.embed_meanings(sentences["text"].to_list(), "en", model)
    pragmatic, semantic = meanings.pragmatic.numpy(), meanings.semantic.numpy()
    groups = sentences["group"].to_list()
    return page.Spaces(
        points=[spaces.lay_out(pragmatic), spaces.lay_out(semantic)],
        groups=groups,
        silhouettes=list(spaces.silhouettes(pragmatic, semantic, groups)),
    )
