"""Cloze items to learn by heart."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from pipeline.examples.recam import items as cloze


def make_items(readings: Mapping[str, str], others: Sequence[str], article: str, ending: str) -> pl.DataFrame:
    """Twelve items whose answer only the passage tells; the question is always the same."""
    rng, rows = np.random.default_rng(0), []
    for i in range(12):
        thing = list(readings)[i % 3]
        options = rng.permutation([*readings.values(), *others]).tolist()
        text = article.format(thing) + ending * (i // 3)
        rows.append((f"i{i}", text, "It was a @placeholder day.", options, options.index(readings[thing])))
    return pl.DataFrame(rows, schema=cloze.SCHEMA, orient="row")


def duplicate_items(items: pl.DataFrame) -> pl.DataFrame:
    """The same items to learn and to choose the epoch by."""
    return pl.concat([items.with_columns(split=pl.lit(part)) for part in ("train", "validation")])
