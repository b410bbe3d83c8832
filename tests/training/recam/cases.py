"""Cloze items to learn by heart."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

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


def check_company(answer: Callable[..., np.ndarray], reader: Any, items: pl.DataFrame, abs_error: float) -> np.ndarray:
    """Check that an item has the same answer alone and in another order, and an option takes its own along."""
    expected = answer(reader, items)
    assert expected.sum(axis=1) == pytest.approx(np.ones(len(items)))
    assert answer(reader, items.reverse())[::-1] == pytest.approx(expected, abs=abs_error)
    assert answer(reader, items[3:4]) == pytest.approx(expected[3:4], abs=abs_error)
    turned = items.with_columns(pl.col("options").list.reverse())  # the published code's head fails this (errata E14)
    assert answer(reader, turned)[:, ::-1] == pytest.approx(expected, abs=abs_error)
    assert answer(reader, items.clear()).shape == (0, cloze.OPTIONS)
    return expected
