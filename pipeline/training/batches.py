"""Batches of texts of similar length, so that little is padded."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch

IndexArray = npt.NDArray[np.int64]

_POOL = 16  # batches that are cut from one shuffled pool, sorted by length


def shuffle_batches(
    lengths: IndexArray, rows: IndexArray, size: int, generator: torch.Generator
) -> Iterator[IndexArray]:
    """Yield the rows of an epoch, each once, in shuffled batches of up to `size` texts of similar length.

    `lengths` are of all texts; `rows` are the numbers of the texts to yield.
    """
    order = rows[torch.randperm(len(rows), generator=generator).numpy()]
    batches: list[IndexArray] = []
    for start in range(0, len(order), size * _POOL):
        pool = order[start : start + size * _POOL]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[offset : offset + size] for offset in range(0, len(pool), size)]
    yield from (batches[i] for i in torch.randperm(len(batches), generator=generator).tolist())


def sort_batches(lengths: IndexArray, rows: IndexArray, size: int) -> Iterator[IndexArray]:
    """Yield the rows for evaluation, the shortest first; nothing is drawn."""
    order = rows[np.argsort(lengths[rows], kind="stable")]
    yield from (order[start : start + size] for start in range(0, len(order), size))
