"""Training states: a saved state is read back, and a killed write leaves the previous state."""

from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.training import checkpoint


def adam(weights: torch.Tensor) -> torch.optim.Adam:
    """Make an optimiser over one parameter and an empty second group, as with a frozen encoder."""
    return torch.optim.Adam([{"params": [weights], "lr": 0.1}, {"params": [], "lr": 0.2}])


def step(weights: torch.Tensor, optimiser: torch.optim.Adam, aim: float) -> None:
    optimiser.zero_grad()
    ((weights - aim) ** 2).sum().backward()
    optimiser.step()


def test_a_state_comes_back(tmp_path: Path) -> None:
    """Tensors keep type, shape and bits, and facts keep order and numbers."""
    tensors = {
        "view": torch.arange(6.0).reshape(2, 3).T,
        "random": torch.get_rng_state(),
        "step": torch.tensor(7),
        "half": torch.tensor([1.5], dtype=torch.bfloat16),
    }
    facts = {"history": [[1, 0.1 + 0.2, 24]], "note": "样例"}
    checkpoint.save(tmp_path / "deep" / "state", tensors, facts)
    state = checkpoint.read(tmp_path / "deep" / "state")
    assert state is not None
    assert state[1] == facts
    assert state[0].keys() == tensors.keys()
    for name, value in tensors.items():
        assert state[0][name].dtype == value.dtype
        assert torch.equal(state[0][name], value)


def test_one_tensor_under_two_names(tmp_path: Path) -> None:
    """The best and the current weights may be the same tensor; a state that was never saved reads as None."""
    assert checkpoint.read(tmp_path / "state") is None
    tensor = torch.ones(3)
    checkpoint.save(tmp_path / "state", {"best": tensor, "now": tensor}, {})
    assert checkpoint.read(tmp_path / "state") is not None


def test_a_killed_write_leaves_the_state_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that is killed leaves the previous state unchanged."""
    checkpoint.save(tmp_path / "state", {"w": torch.ones(2)}, {"epoch": 1})

    def write_half(_: Any, path: Path, **__: Any) -> None:
        Path(path).write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, "save_file", write_half)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.save(tmp_path / "state", {"w": torch.zeros(2)}, {"epoch": 2})
    state = checkpoint.read(tmp_path / "state")
    assert state is not None
    assert (state[0]["w"].tolist(), state[1]) == ([1.0, 1.0], {"epoch": 1})


def test_an_optimiser_goes_on(tmp_path: Path) -> None:
    """Adam restored with its moments and step count takes the same steps as without the interruption."""
    uninterrupted = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    first = adam(uninterrupted)
    for aim in (0.0, 5.0, -1.0):
        step(uninterrupted, first, aim)
    generator = torch.Generator()
    checkpoint.save(tmp_path / "state", checkpoint.pack_training({}, {"w": uninterrupted}, first, generator), {})
    state = checkpoint.read(tmp_path / "state")
    assert state is not None
    resumed = uninterrupted.detach().clone().requires_grad_()
    second = adam(resumed)
    _, current = checkpoint.restore_training(state[0], second, generator)
    assert torch.equal(current["w"], resumed)
    for aim in (2.0, 0.5):
        step(uninterrupted, first, aim)
        step(resumed, second, aim)
    assert torch.equal(uninterrupted, resumed)
    assert [group["lr"] for group in second.param_groups] == [0.1, 0.2]
