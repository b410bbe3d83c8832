"""Batches of about one length."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from pipeline.training.batches import by_length


def test_lengths_in_a_batch_are_near_and_passes_differ() -> None:
    """Lengths in a batch are near to each other, and the next pass has other batches."""
    lengths = np.arange(60) % 7
    generator = torch.Generator().manual_seed(1)
    one, other = (list(by_length(lengths, np.arange(60), 8, generator)) for _ in range(2))
    assert [batch.tolist() for batch in one] != [batch.tolist() for batch in other]
    assert max(np.ptp(lengths[batch]) for batch in one) <= 2


@given(st.lists(st.integers(1, 50), max_size=80), st.integers(1, 9), st.integers(0, 5))
def test_every_row_is_seen_once(lengths: list[int], size: int, seed: int) -> None:
    """A pass holds every second row, the rows asked for, each once, in batches no larger than asked."""
    rows = np.arange(0, len(lengths), 2)
    found = list(by_length(np.array(lengths, np.int64), rows, size, torch.Generator().manual_seed(seed)))
    assert all(1 <= len(batch) <= size for batch in found)
    assert sorted(int(row) for batch in found for row in batch) == rows.tolist()
