"""The training loop: it keeps the best epoch, and a killed training resumes to the same result."""

import logging
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pipeline import progress
from pipeline.errors import BadInput
from pipeline.training import loop
from pipeline.training.loop import ACCURACY, LOSSES, Criterion, Outcome, hash_facts, run, shuffle_batches
from tests.support.killed import killed_after


class Line:
    """A small regression whose weights, dropout and data draw from both random generators."""

    def __init__(self, clip: float = math.inf) -> None:
        self.generator = loop.seed_all(7)
        self.module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Dropout(0.5), torch.nn.Linear(3, 1))
        self.module[0].bias.requires_grad_(requires_grad=False)
        optimiser = torch.optim.Adam([value for value in self.module.parameters() if value.requires_grad], lr=0.1)
        self.learner = loop.make_learner(self.module, optimiser, self.generator, clip)

    def descend(self, number: int) -> float:
        points = torch.rand(8, 2, generator=self.generator)
        return loop.descend((self.module(points).squeeze() - points.sum(dim=1)).square().mean(), self.learner, number)


def train(
    criterion: Criterion, values: Sequence[float], state: Path | None = None, training_id: str | None = None
) -> Outcome:
    """Train one epoch for each value, which is the number that the criterion compares."""
    line = Line()

    def epoch(number: int) -> tuple[float, ...]:
        loss, value = line.descend(number), values[number - 1]
        return (value, loss, 8) if criterion is ACCURACY else (loss, value)

    return run(epoch, line.learner, criterion, len(values), state, training_id)


def equal(outcome: Outcome, other_outcome: Outcome) -> bool:
    same = all(torch.equal(value, other_outcome.weights[name]) for name, value in outcome.weights.items())
    return same and outcome.best_epoch == other_outcome.best_epoch and outcome.history.equals(other_outcome.history)


def test_epochs_and_updates_are_logged(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The log has a line for each optimiser step, and one for each epoch with its number and results."""
    monkeypatch.setattr(progress, "_display", progress.show_lines)
    monkeypatch.setattr(progress, "INTERVAL", -1.0)  # a line after each
    with caplog.at_level(logging.INFO, logger="pipeline"):
        train(ACCURACY, [0.5, 0.25])
    assert [line.split(",")[0] for line in caplog.messages if "updates" in line] == ["updates: 1", "updates: 2"]
    lines = [line[:32] for line in caplog.messages if line.startswith("epoch ")]
    assert lines == ["epoch 1 of 2: value 0.5000, loss", "epoch 2 of 2: value 0.2500, loss"]


@pytest.mark.parametrize(
    ("criterion", "values", "best"),
    [(ACCURACY, [0.2, 0.9, 0.4, 0.9], 2), (ACCURACY, [0.0, 0.0], 1), (LOSSES, [0.9, 0.2, 0.4, 0.2], 2)],
)
def test_the_first_of_the_best_epochs_is_kept(criterion: Criterion, values: list[float], best: int) -> None:
    """The highest accuracy or the lowest loss chooses the epoch, and the weights are those after it."""
    outcome = train(criterion, values)
    assert outcome.best_epoch == best
    assert outcome.history[criterion.best_by].equals(pl.Series(criterion.best_by, values), check_names=False)
    shorter = train(criterion, values[:best])
    assert all(torch.equal(value, shorter.weights[name]) for name, value in outcome.weights.items())


def test_a_killed_write_leaves_the_state_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write of the second state that is killed half-way leaves the first one, and nothing beside it."""

    def write_half(_: object, path: Path, *__: object) -> None:
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    state, values = tmp_path / "deep" / "state", [0.2, 0.9]
    with killed_after(1):
        train(ACCURACY, values, state)
    content = state.read_bytes()
    monkeypatch.setattr(loop, "save_file", write_half)
    with pytest.raises(KeyboardInterrupt):
        train(ACCURACY, values, state)
    assert list(state.parent.iterdir()) == [state]
    assert state.read_bytes() == content
    state.write_bytes(b"damaged")
    with pytest.raises(BadInput, match=r"state: damaged .* delete it; the training then starts from the beginning"):
        train(ACCURACY, values, state)


@pytest.mark.parametrize("epoch", [1, 3])
def test_a_killed_training_ends_as_one_that_was_not(tmp_path: Path, epoch: int) -> None:
    """A training killed after any epoch resumes to the same bits, and refuses the state of another training."""
    values = [0.2, 0.9, 0.4, 0.5]
    uninterrupted = train(ACCURACY, values)
    with killed_after(epoch):
        train(ACCURACY, values, tmp_path / "state", "these")
    torch.manual_seed(99)
    assert equal(train(ACCURACY, values, tmp_path / "state", "these"), uninterrupted)
    assert equal(train(ACCURACY, values, tmp_path / "state", "these"), uninterrupted)  # no epoch remains
    with pytest.raises(BadInput, match="state: this state is of a training on other data"):
        train(ACCURACY, values, tmp_path / "state", "others")


def test_what_a_learner_keeps_beside_its_weights_comes_back(tmp_path: Path) -> None:
    """A state contains the extra tensors, and `restore` gets them with the current weights."""
    weights, restored = {"w": torch.zeros(1, requires_grad=True)}, []
    learner = loop.Learner(
        optimiser=torch.optim.SGD(weights.values(), lr=1.0),
        generator=torch.Generator(),
        weights=lambda: {"w": weights["w"].detach().clone()},
        restore=restored.append,
        extra=lambda: {"mean.w": torch.full((1,), 5.0)},
    )

    def epoch(number: int) -> tuple[float, float]:
        return loop.descend(weights["w"].sum(), learner, number), float(number)

    run(epoch, learner, LOSSES, 2, tmp_path / "state")
    run(epoch, learner, LOSSES, 2, tmp_path / "state")
    assert {name: value.item() for name, value in restored[0].items()} == {"w": -2.0, "mean.w": 5.0}


def test_gradients_are_clipped() -> None:
    """The gradient norm of a module is at most the learner's limit, and the loss before the step is returned."""
    line = Line(clip=1e-3)
    assert line.descend(1) > 0
    gradients = [value.grad for value in line.module.parameters() if value.grad is not None]
    assert torch.cat([value.flatten() for value in gradients]).norm().item() == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_no_number_ends_the_training(loss: float) -> None:
    """An infinite or NaN loss raises BadInput with the epoch, and no step is taken."""
    line = Line()
    with pytest.raises(BadInput, match=f"the loss is {loss} in epoch 3: the learning rate is too high"):
        loop.descend(line.module[2].bias.sum() * 0 + loss, line.learner, 3)
    assert line.module[2].bias.grad is None


def test_a_fingerprint_is_of_all_that_is_given() -> None:
    """A fingerprint depends on facts, rows, their order and arrays, but not on their memory layout."""
    rows, array = pl.DataFrame({"text": ["a", "b", "c"]}), np.arange(6.0).reshape(2, 3)
    facts = [(1, rows, array), (2, rows, array), (1, rows[::-1], array), (1, rows), (1, rows, array + 1)]
    fingerprints = [hash_facts(*parts) for parts in facts]
    assert len(set(fingerprints)) == len(fingerprints)
    assert hash_facts(1, pl.concat([rows[:1], rows[1:]], rechunk=False), np.asfortranarray(array)) == fingerprints[0]


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
