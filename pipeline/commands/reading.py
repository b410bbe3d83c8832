"""Commands by which a score can be read: references, the words that carry it, and a test of the installation."""

from pathlib import Path
from typing import Annotated

import polars as pl
from typer import Argument, Exit, Option

from pipeline.commands.terminal import console, files
from pipeline.commands.terminal.options import Encoding, Json, Model, Texts
from pipeline.progress import track
from pipeline.tasks.impscore import references
from pipeline.tasks.impscore import selftest as work


def build_reference(
    file: Annotated[
        Path | None, Argument(help="Texts, as for `score implicitness`; our own sample by default.")
    ] = None,
    name: Annotated[str, Option(help="What `score implicitness --reference` calls it.")] = "sample",
    text_column: Texts = None,
    model: Model = None,
    encoding: Encoding = "utf-8-sig",
    as_json: Json = False,
) -> None:
    """Build a reference: the scores of a corpus of yours, among which `score implicitness` gives percentiles.

    Without a file it is the shipped sample, for a model that has none yet. A language needs at least 100 texts.

    Examples: `undertone reference build comments.csv -c body --name forum`; `undertone reference build --model model/`
    """
    texts = None
    if file is not None:
        texts = [text for frame, column in files.texts(file, text_column, encoding) for text in frame[column]]
    source = {"source": f"{len(texts or ()):,} texts of {file.name}"} if file else {}
    with track(f"scoring {file.name if file else 'the sample'}") as on_progress:
        reference = references.build_reference(texts, name, model, on_progress, **source)
    path = references.write_reference(reference)
    rows = [{"lang": lang, **scale._asdict()} for lang, scale in reference.scales.items()]
    medians = [scale.quantiles[50] for scale in reference.scales.values()]
    frame = pl.DataFrame(rows).drop("quantiles", "thresholds").insert_column(2, pl.Series("median", medians))
    console.print_result(frame, {"name": reference.name, "model_id": reference.model_id, "path": path}, as_json)
    console.report(f"wrote {path}")


def selftest(as_json: Json = False) -> None:
    """Compare scores of the shipped models with those that they should give. Exit code 1 if one is outside.

    Examples: `undertone selftest`; `undertone selftest --json`
    """
    rows = work.compare_scores()
    outside = rows.filter(~pl.col("is_within"))
    versions = dict(work.list_versions())
    if as_json:
        console.print_result(rows, {"is_right": outside.is_empty(), "versions": versions}, as_json)
    else:
        console.out.print(work.summarise(rows), markup=False, soft_wrap=True)
        console.out.print(", ".join(map(" ".join, versions.items())), markup=False, soft_wrap=True)
        if outside.height:
            console.table(outside.drop("is_within"))
            console.report("scores are not as expected: install the versions of constraints.txt")
    raise Exit(1 if outside.height else 0)


def print_words(frame: pl.DataFrame, column: str) -> None:
    """Print the score, percentile and band of each text, and its words with their changes."""
    for row in frame.iter_rows(named=True):
        words = [(part["word"], part["change"]) for part in row["words"] or ()]
        percentile = "" if row["percentile"] is None else f"percentile {row['percentile']:.0f}"
        value = "no text" if row["implicitness"] is None else f"{row['implicitness']:.3f}"
        like = row.get("judged_like")
        judged = "" if like is None else f"judged like {like:.1f}"
        judged += f" ({row['low']:.1f} to {row['high']:.1f})" if judged and row["low"] is not None else ""
        facts = [value, percentile, row["band"], judged, None if words else row[column]]
        console.print_changes("  ".join(fact for fact in facts if fact), words)
