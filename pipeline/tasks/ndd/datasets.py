"""Sentence compression as tasks: data sets, and compressions measured beside what reads no word (NDD, section 4)."""

from collections.abc import Callable
from pathlib import Path

import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.ndd import compression as examples
from pipeline.metrics.ndd import compression as measures

SOURCES: dict[str, Callable[[Path], examples.Read]] = {
    "own": examples.read, "google": examples.read_google, "broadcast": examples.read_broadcast,
    "colloquial": examples.read_colloquial,
}  # fmt: skip
"""Formats of data sets by name."""

SHOWN = ("f1_macro", "rouge_1", "rouge_2", "rouge_l", "bleu_4", "ratio", "ratio_delta")


def read(path: Path, source: str = "own", split: str | None = None) -> examples.Read:
    """A data set; of one part, if it has such parts.

    Raises:
        BadInput: no such format or part; or naming file, row and field.
    """
    if source not in SOURCES:
        raise BadInput(f"no source {source!r}; there are {', '.join(SOURCES)}")
    found = SOURCES[source](path)
    if split is None:
        return found
    rows = found.rows.filter(pl.col("split") == split)
    if not rows.height:
        known = ", ".join(found.rows["split"].drop_nulls().unique().sort()) or "none"
        raise BadInput(f"{path}: no rows of the part {split!r}; there are {known}")
    return found._replace(rows=rows)


def predicted(path: Path, rows: pl.DataFrame) -> list[list[bool]]:
    """Compressions of a file in our own format, whose sentences should be those of `rows` in their order.

    Raises:
        BadInput: naming file, row and field.
    """
    found = examples.read(path)
    if found.dropped.height:
        reason, key = found.dropped.select("reason", "row_key").row(0)
        raise BadInput(f"{path}, {key}: {reason}; expected a compression of each sentence")
    if found.rows.height != rows.height:
        raise BadInput(f"{path}: expected {rows.height} sentences, as the data has, found {found.rows.height}")
    for number, (one, other) in enumerate(zip(found.rows["words"], rows["words"], strict=True), 1):
        if one.to_list() != other.to_list():
            told = " ".join(one)[:60], " ".join(other)[:60]
            raise BadInput(f"{path}, row {number}: expected the words of {told[1]!r}, found {told[0]!r}")
    kept: list[list[bool]] = found.rows["kept"].to_list()
    return kept


def measured(rows: pl.DataFrame, predictions: list[list[bool]] | None = None) -> pl.DataFrame:
    """Measures of compressions, if there are some, and of the baselines.

    Returns:
        by (answers first, then the baselines), and the columns of `metrics.ndd.compression.evaluate`.
    """
    every = {"answers": predictions} if predictions is not None else {}
    every |= {name: baseline(rows) for name, baseline in measures.BASELINES.items()}
    return pl.concat(
        [measures.evaluate(kept, rows).select(pl.lit(by).alias("by"), pl.all()) for by, kept in every.items()]
    )


def shown(found: pl.DataFrame) -> pl.DataFrame:
    """The same as people read it: a row a compressor."""
    rows = found.filter(pl.col("metric").is_in(SHOWN)).with_columns(pl.col("value").round(4))
    rows = rows.with_columns(
        pl.col("by").replace({"head": "drop_head", "tail": "drop_tail"})
    )  # as the paper calls them
    wide = rows.pivot("metric", index=["by", "n"], values="value", maintain_order=True)
    return wide.select("by", *SHOWN, "n")
