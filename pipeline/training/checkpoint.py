"""Training states, each in one safetensors file: tensors, and all other facts in its metadata. Writes are atomic."""

import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from pipeline.errors import refuse_damage

Weights = dict[str, torch.Tensor]


def save(path: Path, tensors: Weights, facts: dict[str, Any]) -> None:
    """Replace the state at `path` in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(prefix=".draft-", dir=path.parent, delete=False) as file:
        draft = Path(file.name)
    copies = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    save_file(copies, draft, metadata={"facts": json.dumps(facts)})
    draft.replace(path)


def read(path: Path) -> tuple[Weights, dict[str, Any]] | None:
    """Read the state at `path`; None if there is none yet."""
    if not path.exists():
        return None
    with refuse_damage(path, "delete it; the training then starts from the beginning"), safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        return tensors, json.loads(file.metadata()["facts"])


def pack_training(
    best: Weights, current: Weights, optimiser: torch.optim.Optimizer, generator: torch.Generator
) -> Weights:
    """Collect what a training needs to resume: best and current weights, optimiser state, random states."""
    tensors = {f"best.{name}": value for name, value in best.items()}
    tensors |= {f"now.{name}": value for name, value in current.items()}
    for index, state in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{index}.{name}": torch.as_tensor(value) for name, value in state.items()}
    tensors |= {"random.generator": generator.get_state(), "random.torch": torch.get_rng_state()}
    return tensors | ({"random.cuda": torch.cuda.get_rng_state()} if torch.cuda.is_available() else {})


def restore_training(
    tensors: Weights, optimiser: torch.optim.Optimizer, generator: torch.Generator
) -> tuple[Weights, Weights]:
    """Restore optimiser and random states of `pack_training`; return the best and the current weights."""
    parts: dict[str, Weights] = {"best": {}, "now": {}, "optimiser": {}, "random": {}}
    for key, value in tensors.items():
        part, _, name = key.partition(".")
        parts[part][name] = value
    state = optimiser.state_dict()
    for key, value in parts["optimiser"].items():
        index, _, name = key.partition(".")
        state["state"].setdefault(int(index), {})[name] = value
    optimiser.load_state_dict(state)
    generator.set_state(parts["random"]["generator"])
    torch.set_rng_state(parts["random"]["torch"])
    if "cuda" in parts["random"] and torch.cuda.is_available():
        torch.cuda.set_rng_state(parts["random"]["cuda"])
    return parts["best"], parts["now"]
