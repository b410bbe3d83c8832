"""Read data sets of sentence compression, and measure compressions beside the baselines (NDD, section 4)."""

from collections.abc import Callable
from pathlib import Path

import polars as pl

from pipeline.errors import BadInput, check_name
from pipeline.examples.ndd import compression as examples
from pipeline.metrics.ndd import compression as measures

FORMATS: dict[str, Callable[[Path], examples.Read]] = {
    "own": examples.read, "google": examples.read_google, "broadcast": examples.read_broadcast,
    "colloquial": examples.read_colloquial,
}  # fmt: skip

SHOWN_METRICS = ("f1_macro", "ratio", "ratio_macro", "ratio_delta", "length", "rouge_1", "rouge_2", "rouge_l", "bleu_4")
"""CR stands next to F1: on long broadcast sentences a copy has 82.2, and the best compressor 76.5 (NDD-26)."""


def read(path: Path, source: str = "own", split: str | None = None) -> examples.Read:
    """Read a data set of one of `FORMATS`, or one split of it."""
    dataset = FORMATS[check_name("source", source, FORMATS)](path)
    if split is None:
        return dataset
    rows = dataset.rows.filter(pl.col("split") == split)
    if not rows.height:
        splits = ", ".join(dataset.rows["split"].drop_nulls().unique().sort()) or "none"
        raise BadInput(f"{path}: no rows of the part {split!r}; there are {splits}")
    return dataset._replace(rows=rows)


def read_predictions(path: Path, rows: pl.DataFrame) -> list[list[bool]]:
    """Read compressions from a file in our own format; its sentences must be those of `rows`, in their order."""
    dataset = examples.read(path)
    if dataset.dropped.height:
        reason, key = dataset.dropped.select("reason", "row_key").row(0)
        raise BadInput(f"{path}, {key}: {reason}; expected a compression of each sentence")
    if dataset.rows.height != rows.height:
        raise BadInput(f"{path}: expected {rows.height} sentences, as in the data, found {dataset.rows.height}")
    for number, (words, expected) in enumerate(zip(dataset.rows["words"], rows["words"], strict=True), 1):
        if words.to_list() != expected.to_list():
            expected_text, text = " ".join(expected)[:60], " ".join(words)[:60]
            raise BadInput(f"{path}, row {number}: expected the words of {expected_text!r}, found {text!r}")
    labels: list[list[bool]] = dataset.rows["kept"].to_list()
    return labels


def measure(rows: pl.DataFrame, predictions: list[list[bool]] | None = None) -> pl.DataFrame:
    """Measure the predicted compressions, if any, the gold ones and the baselines: `by`, the columns of `evaluate`."""
    by_name = {} if predictions is None else {"answers": predictions}
    by_name |= {"gold": rows["kept"].to_list()}
    by_name |= {name: baseline(rows) for name, baseline in measures.BASELINES.items()}
    parts = (
        measures.evaluate(labels, rows).select(pl.lit(name).alias("by"), pl.all()) for name, labels in by_name.items()
    )
    return pl.concat(parts)


def summarize_measures(numbers: pl.DataFrame) -> pl.DataFrame:
    """Show one row for each compressor."""
    rows = numbers.filter(pl.col("metric").is_in(SHOWN_METRICS)).with_columns(pl.col("value").round(4))
    wide = rows.pivot("metric", index=["by", "n"], values="value", maintain_order=True)
    return wide.select("by", *SHOWN_METRICS, "n")
