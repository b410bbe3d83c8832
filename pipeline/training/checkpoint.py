"""Training states in one file: tensors in safetensors, everything else as its metadata. Complete or not at all."""

import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file


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
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        return tensors, json.loads(file.metadata()["facts"])


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
