"""The loop of a training: epochs, of which the best is kept, and a state after each, from which a killed one goes on.

A training gives `run` a function that learns for an epoch and judges it, and a `Learner`: whose weights are kept.
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
from pipeline.training import checkpoint
from pipeline.training.checkpoint import Weights

log = logging.getLogger(__name__)

_ROWS = 1024  # hashed at a time

Row = tuple[int | float, ...]  # the numbers of an epoch


class Judge(NamedTuple):
    """The numbers of an epoch, and which of them chooses the best epoch; of equals the first is kept."""

    columns: tuple[str, ...]  # of the history, after `epoch`; `count` is a whole number
    by: str
    is_loss: bool = False  # the least is the best


ACCURACY = Judge(("value", "loss", "count"), by="value")
"""A share of right answers on the validation part, the mean loss of the training part, rows of the validation part."""

LOSSES = Judge(("train_loss", "validation_loss"), by="validation_loss", is_loss=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """What learns in a training."""

    optimiser: torch.optim.Optimizer
    generator: torch.Generator  # of batches and whatever else is drawn
    weights: Callable[[], Weights]  # what the best epoch is kept as; they may change later
    restore: Callable[[Weights], object]  # puts such weights back, and what `extra` gave
    extra: Callable[[], Weights] = dict  # what else a state keeps
    modules: Sequence[nn.Module] = ()  # each has its gradient clipped
    clip: float = math.inf  # longest gradient


class Fitted(NamedTuple):
    """What training gives: tensors and configuration, which together are the model, and the epochs' numbers."""

    tensors: Weights
    config: dict[str, Any]  # the recipe; kind, best_epoch and what the model needs to be asked
    history: pl.DataFrame  # epoch, and the columns of the `Judge`


class Outcome(NamedTuple):
    """What a loop comes to."""

    weights: Weights  # of the best epoch; without any epoch those at the beginning
    best_epoch: int  # from 1; 0 without any
    history: pl.DataFrame


def seed_all(seed: int) -> torch.Generator:
    """A generator for batches; torch's own source, which weights and dropout draw from, is seeded as well."""
    torch.manual_seed(seed)
    return torch.Generator().manual_seed(seed)


def learner_of(module: nn.Module, optimiser: torch.optim.Optimizer, generator: torch.Generator, clip: float) -> Learner:
    """A learner of one module, whose frozen parameters are not kept."""
    restore = partial(module.load_state_dict, strict=False)
    weights = partial(unfrozen_weights, module)
    return Learner(
        optimiser=optimiser, generator=generator, weights=weights, restore=restore, modules=[module], clip=clip
    )


def unfrozen_weights(module: nn.Module) -> Weights:
    """The state of a module but for its frozen parameters."""
    frozen = {name for name, value in module.named_parameters() if not value.requires_grad}
    return {name: value for name, value in module.state_dict().items() if name not in frozen}


def descend(loss: Tensor, learner: Learner, epoch: int) -> float:
    """Take one step down the gradient of a loss; return the loss.

    Raises:
        BadInput: the loss is no number.
    """
    value = loss.item()
    check_loss(value, epoch)
    learner.optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    for module in learner.modules:
        nn.utils.clip_grad_norm_(module.parameters(), learner.clip)
    learner.optimiser.step()
    return value


def check_loss(loss: float, epoch: int) -> None:
    """BadInput if a loss is no number."""
    if not math.isfinite(loss):
        raise BadInput(f"the loss is {loss} in epoch {epoch}: the learning rate is too high for what is learnt")


def fingerprint(facts: object, *parts: pl.DataFrame | npt.NDArray[Any]) -> str:
    """SHA-256 of what a training is made of, which its state is checked against.

    Args:
        facts: the recipe and all else that is small; where a training may be given more epochs, without their number.
        parts: what it learns from.
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
    epoch: Callable[[int], Row], learner: Learner, judge: Judge, epochs: int, state: Path | None = None,
    made_of: str | None = None,
) -> Outcome:  # fmt: skip
    """Go through the epochs that are left and keep the best.

    Args:
        epoch: learns for the epoch of a number from 1 and gives its numbers, in the order of the judge's columns.
        learner: what learns.
        judge: what an epoch is judged by.
        epochs: in all, those of the state included.
        state: file that keeps the state after each epoch; an interrupted training goes on from it and ends with the
            same weights on a CPU.
        made_of: `fingerprint` of the training; None where the name of the state has it.

    Raises:
        BadInput: the state is of another training.
    """
    place = judge.columns.index(judge.by) + 1

    def goodness(row: Row) -> float:
        return -row[place] if judge.is_loss else row[place]

    best, history = _copy(learner.weights()), list[Row]()
    if state and (saved := checkpoint.read(state)):
        tensors, facts = saved
        if facts.get("made_of") != made_of:
            raise BadInput(f"{state}: the state of a training on other data, another model or another recipe")
        best, now = checkpoint.into_training(tensors, learner.optimiser, learner.generator)
        learner.restore(now)
        history = [tuple(row) for row in facts["history"]]
        log.info("training goes on after epoch %d", len(history))
    for number in range(len(history) + 1, epochs + 1):
        row = (number, *epoch(number))
        numbers = (f"{name} {value:.4f}" for name, value in zip(judge.columns, row[1:], strict=True) if name != "count")
        log.info("epoch %d of %d: %s", number, epochs, ", ".join(numbers))
        if goodness(row) > max(map(goodness, history), default=-math.inf):
            best = _copy(learner.weights())
        history.append(row)
        if state:
            now = {**learner.weights(), **learner.extra()}
            tensors = checkpoint.of_training(best, now, learner.optimiser, learner.generator)
            checkpoint.save(state, tensors, {"history": history, "made_of": made_of})
    best_epoch = max(history, key=lambda row: (goodness(row), -row[0]))[0] if history else 0
    schema = {name: pl.Int64 if name in ("epoch", "count") else pl.Float64 for name in ("epoch", *judge.columns)}
    return Outcome(best, int(best_epoch), pl.DataFrame(history, schema=schema, orient="row"))


def _copy(weights: Weights) -> Weights:
    return {name: value.detach().clone().cpu() for name, value in weights.items()}
