"""Training states: what is saved comes back, and a state is whole or the one before."""

from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.training import checkpoint


def adam(weights: torch.Tensor) -> torch.optim.Adam:
    """An optimiser over one parameter and a second group without any, as with a frozen encoder."""
    return torch.optim.Adam([{"params": [weights], "lr": 0.1}, {"params": [], "lr": 0.2}])


def step(weights: torch.Tensor, optimiser: torch.optim.Adam, aim: float) -> None:
    """One step towards an aim."""
    optimiser.zero_grad()
    ((weights - aim) ** 2).sum().backward()
    optimiser.step()


def test_a_state_comes_back(tmp_path: Path) -> None:
    """Tensors keep type, shape and bits, views and random states included; facts keep their order and numbers."""
    tensors = {
        "view": torch.arange(6.0).reshape(2, 3).T,
        "random": torch.get_rng_state(),
        "step": torch.tensor(7),
        "half": torch.tensor([1.5], dtype=torch.bfloat16),
    }
    facts = {"history": [[1, 0.1 + 0.2, 24]], "note": "样例"}
    checkpoint.save(tmp_path / "deep" / "state", tensors, facts)
    found = checkpoint.read(tmp_path / "deep" / "state")
    assert found is not None
    assert found[1] == facts
    assert found[0].keys() == tensors.keys()
    for name, value in tensors.items():
        assert found[0][name].dtype == value.dtype
        assert torch.equal(found[0][name], value)


def test_no_state_yet(tmp_path: Path) -> None:
    """Before the first epoch there is none."""
    assert checkpoint.read(tmp_path / "state") is None


def test_one_tensor_under_two_names(tmp_path: Path) -> None:
    """Best and present weights may be one and the same tensor."""
    one = torch.ones(3)
    checkpoint.save(tmp_path / "state", {"best": one, "now": one}, {})
    assert checkpoint.read(tmp_path / "state") is not None


def test_a_killed_write_leaves_the_state_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed while writing, the state that was there stays whole."""
    checkpoint.save(tmp_path / "state", {"w": torch.ones(2)}, {"epoch": 1})

    def half(_: Any, path: Path, **__: Any) -> None:
        Path(path).write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, "save_file", half)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.save(tmp_path / "state", {"w": torch.zeros(2)}, {"epoch": 2})
    found = checkpoint.read(tmp_path / "state")
    assert found is not None
    assert (found[0]["w"].tolist(), found[1]) == ([1.0, 1.0], {"epoch": 1})


def test_an_optimiser_goes_on(tmp_path: Path) -> None:
    """Adam with its moments and step count back makes the steps it would have made."""
    straight = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    first = adam(straight)
    for aim in (0.0, 5.0, -1.0):
        step(straight, first, aim)
    checkpoint.save(tmp_path / "state", {"w": straight, **checkpoint.of_optimiser(first)}, {})
    found = checkpoint.read(tmp_path / "state")
    assert found is not None
    resumed = found[0]["w"].clone().requires_grad_()
    second = adam(resumed)
    checkpoint.into_optimiser(second, found[0])
    for aim in (2.0, 0.5):
        step(straight, first, aim)
        step(resumed, second, aim)
    assert torch.equal(straight, resumed)
    assert [group["lr"] for group in second.param_groups] == [0.1, 0.2]
