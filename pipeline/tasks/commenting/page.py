"""The page about article commenting, from the tables."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import polars as pl

from pipeline import warehouse
from pipeline.errors import Missing
from pipeline.examples.commenting import threads as commenting
from pipeline.label import simulated
from pipeline.metrics.commenting import correlation
from pipeline.report.commenting import page
from pipeline.slices import parse_day
from pipeline.tasks.commenting import corpus, correlations, grades, overlap
from pipeline.tasks.commenting.corpus import COMMENT_ID, GENERATED_ID, THREAD
from pipeline.tasks.record import pages

SHOWN = ("bleu_1", "meteor")  # metrics of the examples, plain and weighted


def write(day: str) -> str:
    """Write the page of the current tables, under a day; return its path."""
    parse_day(day)
    return pages.write_page(f"commenting-{day}.html", page.render(day, **read_inputs()))


def read_inputs() -> dict[str, Any]:
    """Read what the page shows; missing parts are None or absent."""
    judged = _read_if_present(correlations.read_judged)
    threads = warehouse.scan("threads").select("category", "split").collect()
    categories = commenting.count_categories(threads).rename({"count": "n"}) if threads["category"].count() else None
    signatures = warehouse.scan("generated_comments").select(pl.col("signature").unique().sort()).collect()
    is_simulated = pl.col("tool").str.contains(simulated.TOOL, literal=True)
    is_reference = pl.col("project") == grades.get_project("references").name
    references = warehouse.scan("comment_grades", is_reference).select(item_id=COMMENT_ID, grade="grades")
    inputs = {
        "statistics": _read_if_present(lambda: corpus.list_statistics(corpus.measure_corpus())),
        "categories": categories, "grades": references.explode("grade").sort("item_id").collect(),
        "kappa": _read_if_present(lambda: grades.measure_agreement("references")),
        "systems": overlap.average_by_system(),
        "errata": warehouse.query("select * from paper_errata"),
        "simulated_count": warehouse.scan("comment_grades", is_simulated).collect().height,
        "signatures": signatures["signature"].to_list(),
    }  # fmt: skip
    if judged is None:
        return inputs
    return inputs | {
        "correlations": correlations.correlate(judged, correlations.read_ratings()),
        "scatter": judged.select("metric", "is_weighted", "value", "grade"),
        "sensitivity": correlations.measure_sensitivity(),
        "examples": _list_examples(judged),
    }


def _read_if_present(read: Callable[[], pl.DataFrame]) -> pl.DataFrame | None:
    with suppress(Missing):
        return read()
    return None


def _list_examples(judged: pl.DataFrame) -> pl.DataFrame:
    """List judged comments with titles, and scores on the scale of grades (tables 5 and 6; AAC-29)."""
    generated = warehouse.scan("generated_comments").select(*THREAD, "text", item_id=GENERATED_ID)
    texts = generated.join(corpus.scan_articles().select(*THREAD, "title"), on=THREAD, how="left").collect()
    examples = judged.filter(pl.col("metric").is_in(SHOWN)).join(texts, on="item_id", maintain_order="left")
    parts = [
        part.with_columns(normalised=pl.Series(correlation.normalise_scores(part["value"], part["grade"])))
        for part in examples.partition_by("metric", "is_weighted", maintain_order=True)
    ]
    columns = ("title", "text", "grade", "metric", "is_weighted", "value", "normalised")
    return pl.concat(parts).select(columns).with_columns(pl.col("title").fill_null("")) if parts else pl.DataFrame()
