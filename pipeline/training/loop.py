"""Training: its recipe, and the loop that runs epochs, keeps the best, and saves a state after each to resume from."""

import hashlib
import json
import logging
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from pipeline.errors import BadInput, check_name, refuse_damage
from pipeline.io.atomic import replace_file
from pipeline.models.encoder import IndexArray
from pipeline.progress import iterate, track

log = logging.getLogger(__name__)
_ROWS = 1024  # hashed at a time
_POOL = 16  # batches that are cut from one shuffled pool, sorted by length
Weights = dict[str, Tensor]
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


@dataclass(frozen=True, slots=True)
class Learner:
    """The state of a training that the loop updates, saves and restores."""

    optimiser: torch.optim.Optimizer
    generator: torch.Generator  # of batches and all other draws
    weights: Callable[[], Weights]  # copies, on the CPU, the weights that are kept of the best epoch
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
    weights, restore = partial(copy_weights, module, is_trained=True), partial(load_weights, module)
    return Learner(optimiser, generator, weights, restore, modules=[module], clip=clip)


def copy_weights(module: nn.Module, *, is_trained: bool = False) -> Weights:
    """Copy all weights by name, or only those that learn; those that are tied once."""
    weights = {name: value for name, value in module.named_parameters() if value.requires_grad or not is_trained}
    return {name: value.detach().clone().cpu().contiguous() for name, value in weights.items()}


def load_weights(module: nn.Module, tensors: Weights) -> None:
    """Load what `copy_weights` copied, or a part of it; BadInput for a weight of another model."""
    parameters = dict(module.named_parameters())
    for name, value in tensors.items():
        if name not in parameters or parameters[name].shape != value.shape:
            raise BadInput(f"the weight {name!r} {list(value.shape)} is of another model")
    module.load_state_dict(tensors, strict=False)


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


def shuffle_batches(
    lengths: IndexArray, rows: IndexArray, size: int, generator: torch.Generator
) -> Iterator[IndexArray]:
    """Yield `rows`, each once, in shuffled batches of up to `size` texts of about one length; `lengths` are of all."""
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


def hash_facts(facts: object, *parts: pl.DataFrame | npt.NDArray[Any]) -> str:
    """Hash a training's facts (recipe, …; without the number of epochs if it may be extended) and data: SHA-256."""
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

    `epoch` trains the epoch with the given number (from 1) and returns its numbers in the order of the criterion. From
    the file `state` an interrupted training resumes, and ends with the same weights on a CPU. BadInput if that state
    has another `training_id` (`hash_facts`), which is None if the file's name contains it.
    """
    position = criterion.columns.index(criterion.best_by) + 1

    def goodness(row: Row) -> float:
        return -row[position] if criterion.is_loss else row[position]

    best, history = learner.weights(), list[Row]()
    if state and state.exists():
        best, history = _resume(state, learner, training_id)
        log.info("training resumes after epoch %d", len(history))
    with track("updates") as on_update:
        hook = learner.optimiser.register_step_post_hook(lambda *_: on_update(1))
        for number in iterate(range(len(history) + 1, epochs + 1), "epochs"):
            row = (number, *epoch(number))
            values = zip(criterion.columns, row[1:], strict=True)
            text = ", ".join(f"{name} {value:.4f}" for name, value in values if name != "count")
            text += "" if criterion.chance is None else f", {criterion.best_by} by chance {criterion.chance:.4f}"
            log.info("epoch %d of %d: %s", number, epochs, text)
            if goodness(row) > max(map(goodness, history), default=-math.inf):
                best = learner.weights()
            history.append(row)
            if state:
                save_state(state, learner, best, history, training_id)
        hook.remove()
    best_epoch = max(history, key=lambda row: (goodness(row), -row[0]))[0] if history else 0
    schema = {name: pl.Int64 if name in ("epoch", "count") else pl.Float64 for name in ("epoch", *criterion.columns)}
    return Outcome(best, int(best_epoch), pl.DataFrame(history, schema=schema, orient="row"))


def save_state(path: Path, learner: Learner, best: Weights, history: list[Row], training_id: str | None) -> None:
    """Replace the state at `path` in one step: weights, optimiser and random states, and the epochs as metadata."""
    tensors = {f"best.{name}": value for name, value in best.items()}
    tensors |= {f"now.{name}": value for name, value in (learner.weights() | learner.extra()).items()}
    for index, state in learner.optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{index}.{name}": torch.as_tensor(value) for name, value in state.items()}
    tensors |= {"random.generator": learner.generator.get_state(), "random.torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        tensors["random.cuda"] = torch.cuda.get_rng_state()
    facts = json.dumps({"history": history, "made_of": training_id})
    with replace_file(path) as draft:
        save_file({name: value.cpu().contiguous() for name, value in tensors.items()}, draft, {"facts": facts})


def _resume(path: Path, learner: Learner, training_id: str | None) -> tuple[Weights, list[Row]]:
    """Restore what `save_state` saved; return the best weights and the numbers of the epochs."""
    with refuse_damage(path, "delete it; the training then starts from the beginning"), safe_open(path, "pt") as file:
        facts = json.loads(file.metadata()["facts"])
        parts: dict[str, Weights] = {"best": {}, "now": {}, "optimiser": {}, "random": {}}
        for key in file.keys():  # noqa: SIM118 - not a dict
            part, _, name = key.partition(".")
            parts[part][name] = file.get_tensor(key)
    if facts.get("made_of") != training_id:
        problem = f"{path}: this state is of a training on other data, another model or another recipe;"
        raise BadInput(f"{problem} delete it or choose another file")
    state = learner.optimiser.state_dict()
    for key, value in parts["optimiser"].items():
        index, _, name = key.partition(".")
        state["state"].setdefault(int(index), {})[name] = value
    learner.optimiser.load_state_dict(state)
    learner.generator.set_state(parts["random"]["generator"])
    torch.set_rng_state(parts["random"]["torch"])
    if "cuda" in parts["random"] and torch.cuda.is_available():
        torch.cuda.set_rng_state(parts["random"]["cuda"])
    learner.restore(parts["now"])
    return parts["best"], [tuple(row) for row in facts["history"]]


R = TypeVar("R")


def replace_numbers(
    profiles: Mapping[str, R],
    profile: str,
    *,
    from_zero: Collection[str] = (),
    above_zero: Collection[str] = (),
    below_one: Collection[str] = (),
    **changes: Any,
) -> R:
    """Return a profile with the given fields changed; a change to None is ignored.

    The type of a field states its values: a Literal lists them, int is from 1, float is finite and from 0, a tuple has
    its length. The seed and int fields in `from_zero` may be 0; float fields in `above_zero` may not. Those in
    `below_one` are below 1, and so is a dropout rate (`dropout` in the name). BadInput for an unknown profile or field,
    or another value.
    """
    kinds = get_type_hints(type(profiles[check_name("profile", profile, profiles)]))
    values = {name: value for name, value in changes.items() if value is not None}
    if unknown := sorted(set(values) - set(kinds)):
        raise BadInput(f"a recipe has no field {', '.join(unknown)}; its fields are {', '.join(kinds)}")
    for name, value in values.items():
        is_share = "dropout" in name or name in below_one
        expected, accepts = _make_rule(kinds[name], is_share, name in {"seed", *from_zero}, name in above_zero)
        if not accepts(value):
            raise BadInput(f"{name} should be {expected}; found {value!r}")
        if isinstance(value, list):
            values[name] = tuple(value)
    return replace(profiles[profile], **values)  # type: ignore[type-var]


def read_recipe(kind: type[R], config: Mapping[str, Any]) -> R:
    """Read a recipe from a model's configuration, where tuples are lists of JSON."""
    values = {field.name: config[field.name] for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def _make_rule(kind: Any, is_share: bool, is_from_zero: bool, is_above_zero: bool) -> tuple[str, Callable[[Any], bool]]:
    """Return the values that a field accepts, in words and as a test."""
    items = get_args(kind)
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, items))}", lambda value: value in items
    if get_origin(kind) is tuple:
        expected, accepts = _make_rule(items[0], is_share, is_from_zero, is_above_zero)
        return (
            f"{len(items)} times {expected}",
            lambda value: isinstance(value, list | tuple) and len(value) == len(items) and all(map(accepts, value)),
        )
    if kind is bool:
        return "true or false", lambda value: isinstance(value, bool)
    if kind is int:
        least = 0 if is_from_zero else 1
        expected = f"a whole number from {least} of at most 18 digits"  # torch takes a seed of 64 bits
        return expected, lambda value: _is_a(int, value) and least <= value < 10**18
    end, end_text = (1.0, " to below 1") if is_share else (math.inf, "")
    if is_above_zero:
        return f"a number above 0{end_text}", lambda value: _is_a(int | float, value) and 0 < value < end
    return f"a number from 0{end_text}", lambda value: _is_a(int | float, value) and 0 <= value < end


def _is_a(kind: Any, value: object) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
