"""Cloze items to learn by heart, and the comparison of trained weights."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl
import torch

from pipeline.examples.recam import items as cloze
from pipeline.training.loop import TrainingResult
from tests.support.killed import killed_after


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


def equal(tensors: dict[str, torch.Tensor], other_tensors: dict[str, torch.Tensor]) -> bool:
    """The same names and the same bits."""
    return tensors.keys() == other_tensors.keys() and all(
        torch.equal(value, other_tensors[name]) for name, value in tensors.items()
    )


def check_resuming(train: Callable[[], TrainingResult], expected: TrainingResult) -> None:
    """Check that a training killed after its first epoch and started again ends with the bits of one that was not."""
    with killed_after(1):
        train()
    resumed = train()
    assert equal(resumed.tensors, expected.tensors)
    assert resumed.history.equals(expected.history)
    assert resumed.config == expected.config
