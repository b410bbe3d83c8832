"""The registry: models as folders named by their content."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from pipeline.errors import BadInput, Missing
from pipeline.training import registry

CONFIG = {"kind": "impscore", "recipe": {"seed": 42}, "note": "样例"}


def tensors(value: float = 1.0) -> dict[str, torch.Tensor]:
    """Weights of a tiny model."""
    return {"one": torch.full((2, 3), value), "two": torch.arange(4.0).reshape(2, 2).T}


def test_kept_and_fetched(tmp_path: Path) -> None:
    """Weights and configuration come back as they were, transposed views included."""
    weights, config = registry.fetch(tmp_path, registry.keep(tmp_path, tensors(), CONFIG))
    assert config == CONFIG
    assert weights.keys() == {"one", "two"}
    assert all(torch.equal(weights[name], tensor) for name, tensor in tensors().items())


def test_same_content_same_id(tmp_path: Path) -> None:
    """The order of names does not matter, the folder does not matter; keeping twice leaves one folder."""
    one = registry.keep(tmp_path / "a", tensors(), CONFIG)
    turned = dict(reversed(tensors().items()))
    assert registry.keep(tmp_path / "b", turned, dict(reversed(CONFIG.items()))) == one
    assert registry.keep(tmp_path / "a", tensors(), CONFIG) == one
    assert [p.name for p in (tmp_path / "a").iterdir()] == [one]


def test_other_content_other_id(tmp_path: Path) -> None:
    """Another weight or another number in the configuration is another model."""
    ids = {
        registry.keep(tmp_path, tensors(), CONFIG),
        registry.keep(tmp_path, tensors(1.0000001), CONFIG),
        registry.keep(tmp_path, tensors(), {**CONFIG, "recipe": {"seed": 43}}),
    }
    assert len(ids) == 3


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_tampered_files_are_refused(tmp_path: Path, name: str) -> None:
    """One changed byte in the weights or the configuration, and the model is not loaded."""
    model_id = registry.keep(tmp_path, tensors(), CONFIG)
    path = tmp_path / model_id / name
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)
    with pytest.raises(BadInput, match="the files were changed"):
        registry.fetch(tmp_path, model_id)


def test_absent_model(tmp_path: Path) -> None:
    """A model that is not in the folder is Missing, and the message says what to do."""
    with pytest.raises(Missing, match="train it again or copy its folder"):
        registry.fetch(tmp_path, "0" * 64)


def test_no_pickle(tmp_path: Path) -> None:
    """A model is two files, safetensors and JSON, readable by all; no draft stays behind."""
    model_id = registry.keep(tmp_path, tensors(), CONFIG)
    files = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file())
    assert files == [f"{model_id}/config.json", f"{model_id}/model.safetensors"]
    weights = (tmp_path / model_id / "model.safetensors").read_bytes()
    header = json.loads(weights[8 : 8 + int.from_bytes(weights[:8], "little")])
    assert header["one"]["dtype"] == "F32"
    assert (tmp_path / model_id).stat().st_mode & 0o777 == 0o755


def test_concurrent_keep(tmp_path: Path) -> None:
    """Several attempts that keep the same model at once all succeed, and one whole folder remains."""
    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(lambda _: registry.keep(tmp_path, tensors(), CONFIG), range(24)))
    assert [p.name for p in tmp_path.iterdir()] == list(ids)
    assert registry.fetch(tmp_path, ids.pop())[1] == CONFIG


def test_losing_the_race_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If another attempt's folder appears just before the rename, ours is dropped and the id is the same."""
    rename = Path.rename

    def late(self: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "rename", rename)
        registry.keep(tmp_path, tensors(), CONFIG)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", late)
    model_id = registry.keep(tmp_path, tensors(), CONFIG)
    assert [p.name for p in tmp_path.iterdir()] == [model_id]
    assert registry.fetch(tmp_path, model_id)[1] == CONFIG


def test_a_failed_rename_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the folder cannot be put in place for another reason, the error comes out and no draft stays."""

    def refuse(self: Path, target: Path) -> Path:
        raise PermissionError(f"no {target}")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(PermissionError):
        registry.keep(tmp_path, tensors(), CONFIG)
    assert list(tmp_path.iterdir()) == []
