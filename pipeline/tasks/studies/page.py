"""Write the page of a day's studies: what they show about a model and about data sets."""

import polars as pl

from pipeline import warehouse
from pipeline.errors import Missing
from pipeline.metrics.impscore import artefacts, studies
from pipeline.report.impscore import page
from pipeline.slices import parse_day
from pipeline.tasks.impscore import pairs, references, scoring, train
from pipeline.tasks.record.pages import write_page


def write(day: str, model: str | None = None) -> str:
    """Write the page of the newest studies up to a day, about `model` or the one in force; return its path."""
    from pipeline.score import implicitness

    until, model_id = pl.col("day") <= parse_day(day), scoring.load_model(model, day).model_id
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
    # the held-out English groups in both spaces (figures 11 to 13)
    sentences = train.read_shipped_groups("en").filter(pl.col("split") == "test")
    texts, groups = sentences["text"].to_list(), sentences["group"].to_list()
    meanings = implicitness.compute_meanings(texts, scoring.load_heads(model).choose_head("en"))
    vectors = meanings.pragmatic.numpy(), meanings.semantic.numpy()
    silhouettes = studies.silhouettes(*vectors, groups)
    contents["spaces"] = page.Spaces(points=[*map(studies.lay_out, vectors)], groups=groups, silhouettes=silhouettes)
    if not contents["studies"].height and not rows.height:
        raise Missing("nothing to show yet; `undertone study data-sets` or the DAG studies")
    return write_page(f"studies-{parse_day(day)}.html", page.render(contents))
