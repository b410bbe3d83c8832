"""Batches of texts of about one length: little is padded, and chance decides all the same."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch

IndexArray = npt.NDArray[np.int64]

_POOL = 16  # batches that are cut from one shuffled heap, sorted by length


def by_length(lengths: IndexArray, rows: IndexArray, size: int, generator: torch.Generator) -> Iterator[IndexArray]:
    """The rows of a pass, each once, in batches of about one length, newly shuffled.

    Args:
        lengths: [n], of all texts.
        rows: numbers of the texts that are seen.
        size: rows of a batch, at most.
        generator: source of chance.
    """
    order = rows[torch.randperm(len(rows), generator=generator).numpy()]
    batches: list[IndexArray] = []
    for start in range(0, len(order), size * _POOL):
        heap = order[start : start + size * _POOL]
        heap = heap[np.argsort(lengths[heap], kind="stable")]
        batches += [heap[at : at + size] for at in range(0, len(heap), size)]
    yield from (batches[i] for i in torch.randperm(len(batches), generator=generator).tolist())


def in_order(lengths: IndexArray, rows: IndexArray, size: int) -> Iterator[IndexArray]:
    """The same rows when nothing is learnt: the shortest first, so that little is padded and nothing is drawn."""
    order = rows[np.argsort(lengths[rows], kind="stable")]
    yield from (order[start : start + size] for start in range(0, len(order), size))
