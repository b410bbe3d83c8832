"""Trainings that are compared to the bit, and one that is killed once the state after an epoch is written."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from pipeline.training import loop
from pipeline.training.loop import TrainingResult


def equal_weights(tensors: dict[str, torch.Tensor], other_tensors: dict[str, torch.Tensor]) -> bool:
    """Compare names and bits."""
    pairs = [(value, other_tensors.get(name)) for name, value in tensors.items()]
    return tensors.keys() == other_tensors.keys() and all(torch.equal(*pair) for pair in pairs)


def equal(result: TrainingResult, other_result: TrainingResult) -> bool:
    """Compare weights to the bit, the numbers of the epochs, and the configurations."""
    is_same = result.history.equals(other_result.history) and result.config == other_result.config
    return is_same and equal_weights(result.tensors, other_result.tensors)


def check_resuming(train: Callable[[], TrainingResult], expected: TrainingResult) -> None:
    """Check that a training killed after its first epoch and started again ends with the bits of one that was not."""
    with killed_after(1):
        train()
    torch.manual_seed(99)  # whatever happens between the two
    assert equal(train(), expected)


@contextmanager
def killed_after(epochs: int) -> Iterator[None]:
    """Kill the training within once so many epochs are in its state."""
    save_state = loop.save_state

    def save_and_kill(*state: Any) -> None:
        save_state(*state)
        if len(state[3]) == epochs:  # the history
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "save_state", save_and_kill)
        with pytest.raises(KeyboardInterrupt):
            yield
