"""Batches of texts of similar length."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from pipeline.training.batches import shuffle_batches


def test_lengths_in_a_batch_are_near_and_passes_differ() -> None:
    """Texts of a batch have similar lengths, and the next epoch has other batches."""
    lengths = np.arange(60) % 7
    generator = torch.Generator().manual_seed(1)
    first_epoch, second_epoch = (list(shuffle_batches(lengths, np.arange(60), 8, generator)) for _ in range(2))
    assert [batch.tolist() for batch in first_epoch] != [batch.tolist() for batch in second_epoch]
    assert max(np.ptp(lengths[batch]) for batch in first_epoch) <= 2


@given(st.lists(st.integers(1, 50), max_size=80), st.integers(1, 9), st.integers(0, 5))
def test_every_row_is_seen_once(lengths: list[int], size: int, seed: int) -> None:
    """An epoch has each of the given rows once, in batches up to the given size."""
    rows = np.arange(0, len(lengths), 2)
    batches = list(shuffle_batches(np.array(lengths, np.int64), rows, size, torch.Generator().manual_seed(seed)))
    assert all(1 <= len(batch) <= size for batch in batches)
    assert sorted(int(row) for batch in batches for row in batch) == rows.tolist()
