"""The training loop: run epochs, keep the best, and save a state after each from which a killed training resumes.

A training passes `run` a function that trains and evaluates one epoch, and a `Learner` that holds the weights.
"""

import hashlib
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import Tensor, nn

from pipeline.errors import BadInput
from pipeline.progress import iterate
from pipeline.training import checkpoint
from pipeline.training.checkpoint import Weights

log = logging.getLogger(__name__)

_ROWS = 1024  # hashed at a time

Row = tuple[int | float, ...]  # the numbers of an epoch


class Criterion(NamedTuple):
    """The numbers of an epoch, and which of them chooses the best epoch; the first of equal epochs is kept."""

    columns: tuple[str, ...]  # of the history, after `epoch`; `count` is a whole number
    best_by: str
    is_loss: bool = False  # the smallest value is the best
    chance: float | None = None  # value of `best_by` that a guess reaches; the log has it


ACCURACY = Criterion(("value", "loss", "count"), best_by="value")
"""The share of correct answers on the validation part, the mean training loss, and the validation rows."""

LOSSES = Criterion(("train_loss", "validation_loss"), best_by="validation_loss", is_loss=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """The state of a training that the loop updates, saves and restores."""

    optimiser: torch.optim.Optimizer
    generator: torch.Generator  # of batches and all other draws
    weights: Callable[[], Weights]  # the weights kept of the best epoch; the tensors may change later
    restore: Callable[[Weights], object]  # loads the tensors of `weights` and `extra`
    extra: Callable[[], Weights] = dict  # further tensors of a state
    modules: Sequence[nn.Module] = ()  # the gradient of each is clipped
    clip: float = math.inf  # largest norm of the gradient


class TrainingResult(NamedTuple):
    """A trained model (tensors and configuration) and the numbers of its epochs."""

    tensors: Weights
    config: dict[str, Any]  # the recipe, kind, best_epoch, and what the model needs to predict
    history: pl.DataFrame  # epoch, and the columns of the `Criterion`


class Outcome(NamedTuple):
    """The result of a loop."""

    weights: Weights  # of the best epoch; the initial ones if there was no epoch
    best_epoch: int  # from 1; 0 if there was no epoch
    history: pl.DataFrame


def seed_all(seed: int) -> torch.Generator:
    """Return a generator for batches; seed torch's global one too, from which weights and dropout draw."""
    torch.manual_seed(seed)
    return torch.Generator().manual_seed(seed)


def make_learner(
    module: nn.Module, optimiser: torch.optim.Optimizer, generator: torch.Generator, clip: float
) -> Learner:
    """Make a learner of one module, whose frozen parameters are not saved."""
    return Learner(
        optimiser=optimiser,
        generator=generator,
        weights=partial(copy_unfrozen_weights, module),
        restore=partial(module.load_state_dict, strict=False),
        modules=[module],
        clip=clip,
    )


def copy_unfrozen_weights(module: nn.Module) -> Weights:
    """Return the state of a module without its frozen parameters."""
    frozen = {name for name, value in module.named_parameters() if not value.requires_grad}
    return {name: value for name, value in module.state_dict().items() if name not in frozen}


def descend(loss: Tensor, learner: Learner, epoch: int) -> float:
    """Take one optimiser step; return the loss. BadInput if it is not finite."""
    value = loss.item()
    check_loss(value, epoch)
    learner.optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    for module in learner.modules:
        nn.utils.clip_grad_norm_(module.parameters(), learner.clip)
    learner.optimiser.step()
    return value


def check_loss(loss: float, epoch: int) -> None:
    """Raise BadInput if a loss is not finite."""
    if not math.isfinite(loss):
        raise BadInput(f"the loss is {loss} in epoch {epoch}: the learning rate is too high; lower it")


def hash_facts(facts: object, *parts: pl.DataFrame | npt.NDArray[Any]) -> str:
    """Return the SHA-256 of a training's facts (recipe, …) and data, against which its saved state is checked.

    Leave the number of epochs out of the facts if a training may be extended.
    """
    key = hashlib.sha256(repr(facts).encode())
    for part in parts:
        if isinstance(part, np.ndarray):
            key.update(np.ascontiguousarray(part).data)  # not tobytes(): all vectors of GloVe are 2.4 GB
        else:
            for rows in part.iter_slices(_ROWS):
                key.update(rows.write_ndjson().encode())
    return key.hexdigest()


def run(
    epoch: Callable[[int], Row],
    learner: Learner,
    criterion: Criterion,
    epochs: int,
    state: Path | None = None,
    training_id: str | None = None,
) -> Outcome:
    """Run the remaining of so many epochs and keep the best.

    `epoch` trains the epoch with the given number (from 1) and returns its numbers in the order of the criterion.
    `state` is a file for the state after each epoch; an interrupted training resumes from it and ends with the same
    weights on a CPU. BadInput if that state has another `training_id` (`hash_facts`), which is None if the file's name
    contains it.
    """
    position = criterion.columns.index(criterion.best_by) + 1

    def goodness(row: Row) -> float:
        return -row[position] if criterion.is_loss else row[position]

    best, history = _copy(learner.weights()), list[Row]()
    if state and (saved := checkpoint.read(state)):
        tensors, facts = saved
        if facts.get("made_of") != training_id:
            raise BadInput(
                f"{state}: this state is of a training on other data, another model or another recipe; "
                "delete it or choose another file"
            )
        best, current = checkpoint.restore_training(tensors, learner.optimiser, learner.generator)
        learner.restore(current)
        history = [tuple(row) for row in facts["history"]]
        log.info("training resumes after epoch %d", len(history))
    for number in iterate(range(len(history) + 1, epochs + 1), "epochs"):
        row = (number, *epoch(number))
        values = zip(criterion.columns, row[1:], strict=True)
        text = ", ".join(f"{name} {value:.4f}" for name, value in values if name != "count")
        text += "" if criterion.chance is None else f", {criterion.best_by} by chance {criterion.chance:.4f}"
        log.info("epoch %d of %d: %s", number, epochs, text)
        if goodness(row) > max(map(goodness, history), default=-math.inf):
            best = _copy(learner.weights())
        history.append(row)
        if state:
            current = {**learner.weights(), **learner.extra()}
            tensors = checkpoint.pack_training(best, current, learner.optimiser, learner.generator)
            checkpoint.save(state, tensors, {"history": history, "made_of": training_id})
    best_epoch = max(history, key=lambda row: (goodness(row), -row[0]))[0] if history else 0
    schema = {name: pl.Int64 if name in ("epoch", "count") else pl.Float64 for name in ("epoch", *criterion.columns)}
    return Outcome(best, int(best_epoch), pl.DataFrame(history, schema=schema, orient="row"))


def _copy(weights: Weights) -> Weights:
    return {name: value.detach().clone().cpu() for name, value in weights.items()}
