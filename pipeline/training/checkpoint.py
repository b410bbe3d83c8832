"""Training states in one file: tensors in safetensors, everything else as its metadata. Complete or not at all."""

import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from pipeline.errors import refuse_damage


def save(path: Path, tensors: dict[str, torch.Tensor], facts: dict[str, Any]) -> None:
    """Replace the state at `path` in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(prefix=".draft-", dir=path.parent, delete=False) as file:
        draft = Path(file.name)
    held = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    save_file(held, draft, metadata={"facts": json.dumps(facts)})
    draft.replace(path)


def read(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]] | None:
    """The state at `path`, or None if training has not come that far."""
    if not path.exists():
        return None
    with refuse_damage(path, "delete it; the training begins again"), safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        return tensors, json.loads(file.metadata()["facts"])


Weights = dict[str, torch.Tensor]


def of_training(best: Weights, now: Weights, optimiser: torch.optim.Optimizer, generator: torch.Generator) -> Weights:
    """All that a training goes on from: its best and its newest weights, its optimiser, its sources of chance."""
    tensors = {f"best.{name}": value for name, value in best.items()}
    tensors |= {f"now.{name}": value for name, value in now.items()}
    tensors |= of_optimiser(optimiser)
    tensors |= {"random.generator": generator.get_state(), "random.torch": torch.get_rng_state()}
    return tensors | ({"random.cuda": torch.cuda.get_rng_state()} if torch.cuda.is_available() else {})


def into_training(
    tensors: Weights, optimiser: torch.optim.Optimizer, generator: torch.Generator
) -> tuple[Weights, Weights]:
    """Put back what `of_training` took, but for the weights, which are returned: the best and the newest."""
    parts: dict[str, Weights] = {"best": {}, "now": {}}
    for key, value in tensors.items():
        part, _, name = key.partition(".")
        if part in parts:
            parts[part][name] = value
    into_optimiser(optimiser, tensors)
    generator.set_state(tensors["random.generator"])
    torch.set_rng_state(tensors["random.torch"])
    if "random.cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["random.cuda"])
    return parts["best"], parts["now"]


def of_optimiser(optimiser: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """An optimiser's state as named tensors, by parameter number."""
    return {
        f"optimiser.{index}.{name}": torch.as_tensor(value)
        for index, state in optimiser.state_dict()["state"].items()
        for name, value in state.items()
    }


def into_optimiser(optimiser: torch.optim.Optimizer, tensors: dict[str, torch.Tensor]) -> None:
    """Put back what `of_optimiser` took."""
    whole = optimiser.state_dict()
    for key, value in tensors.items():
        if key.startswith("optimiser."):
            _, index, name = key.split(".", 2)
            whole["state"].setdefault(int(index), {})[name] = value
    optimiser.load_state_dict(whole)
