"""The registry: models in folders named by content hash."""

import json
from pathlib import Path

import pytest
import torch

from pipeline.errors import BadInput, Missing
from pipeline.training import registry

CONFIG = {"kind": "impscore", "heads": {}, "recipe": {"seed": 42}, "note": "样例"}
BERT = '{"architectures": ["BertModel"]}'


def tensors(value: float = 1.0) -> dict[str, torch.Tensor]:
    return {"one": torch.full((2, 3), value), "two": torch.arange(4.0).reshape(2, 2).T}


def test_add_and_fetch(tmp_path: Path) -> None:
    """A fetched model has the weights and configuration that were added, transposed views included."""
    model_id = registry.add(tmp_path, tensors(), CONFIG)
    model = registry.fetch(tmp_path, model_id)
    weights = model.tensors()
    assert (model.model_id, model.config) == (model_id, CONFIG)
    assert model.weights == (tmp_path / model_id / "model.safetensors").read_bytes()
    assert weights.keys() == {"one", "two"}
    assert all(torch.equal(weights[name], tensor) for name, tensor in tensors().items())


def test_same_content_same_id(tmp_path: Path) -> None:
    """The id does not depend on the order of names or the folder, but on every weight and the configuration."""
    model_id = registry.add(tmp_path / "a", tensors(), CONFIG)
    reversed_tensors = dict(reversed(tensors().items()))
    assert registry.add(tmp_path / "b", reversed_tensors, dict(reversed(CONFIG.items()))) == model_id
    assert registry.add(tmp_path / "a", tensors(), CONFIG) == model_id
    assert [p.name for p in (tmp_path / "a").iterdir()] == [model_id]
    for contents in ((tensors(1.0000001), CONFIG), (tensors(), {**CONFIG, "recipe": {"seed": 43}})):
        assert registry.add(tmp_path / "a", *contents) != model_id


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_tampered_files_are_refused(tmp_path: Path, name: str) -> None:
    """A model with one changed byte in its weights or configuration is not loaded; an absent one has a remedy."""
    model_id = registry.add(tmp_path, tensors(), CONFIG)
    path = tmp_path / model_id / name
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"the files were changed|not a model of Undertone"):
        registry.fetch(tmp_path, model_id)
    with pytest.raises(Missing, match="train it again, or copy its folder"):
        registry.fetch(tmp_path, "0" * 64)


def test_no_pickle(tmp_path: Path) -> None:
    """A model is a safetensors and a JSON file, readable by all users, and no draft remains."""
    model_id = registry.add(tmp_path, tensors(), CONFIG)
    files = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file())
    assert files == [f"{model_id}/config.json", f"{model_id}/model.safetensors"]
    weights = (tmp_path / model_id / "model.safetensors").read_bytes()
    header = json.loads(weights[8 : 8 + int.from_bytes(weights[:8], "little")])
    assert header["one"]["dtype"] == "F32"
    assert (tmp_path / model_id).stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("has_folder", [False, True])
def test_write_to_a_folder(tmp_path: Path, has_folder: bool) -> None:
    """A model is written to a folder that is absent or empty; by force alone it replaces another model."""
    out = tmp_path / "deep" / "model"
    if has_folder:
        out.mkdir(parents=True)
    for value in (1.0, 2.0):
        model_id = registry.write(out, tensors(value), CONFIG, force=value > 1)
        assert registry.read(out).model_id == model_id
        assert registry.read(out).tensors()["one"][0, 0] == value
        assert sorted(p.name for p in out.iterdir()) == ["config.json", "model.safetensors"]
    assert [p.name for p in out.parent.iterdir()] == ["model"]
    with pytest.raises(BadInput, match="there is a model already; choose another folder, or replace it by --force"):
        registry.write(out, tensors(3.0), CONFIG)
    assert model_id == registry.add(tmp_path / "registry", tensors(2.0), CONFIG)


@pytest.mark.parametrize(
    "files",
    [
        {"thesis.txt": "ten years of work", "config.json": "{}"},
        {"config.json": BERT, "model.safetensors": BERT},
        {"config.json": BERT},
    ],
)
def test_what_is_no_model_is_not_overwritten(tmp_path: Path, files: dict[str, str]) -> None:
    """A file, and a folder with other contents, also of the same names, are refused and unchanged."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    for path in (tmp_path, tmp_path / "config.json"):
        with pytest.raises(BadInput, match="exists and is not a model of Undertone; choose another folder"):
            registry.write(path, tensors(), CONFIG)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == files


def test_a_model_folder_with_another_file_is_not_overwritten(tmp_path: Path) -> None:
    """A model's folder with another file, such as notes, is refused by `write` and `check_writable`."""
    out = tmp_path / "model"
    registry.write(out, tensors(), CONFIG)
    registry.check_writable(out, force=True)
    registry.check_writable(tmp_path / "absent")
    (out / "notes.txt").write_text("of last year")
    for refuse in (
        registry.check_writable,
        lambda path, force: registry.write(path, tensors(2.0), CONFIG, force=force),
    ):
        with pytest.raises(BadInput, match="exists and is not a model of Undertone; choose another folder"):
            refuse(out, force=True)
    assert (out / "notes.txt").read_text() == "of last year"
    assert registry.read(out).tensors()["one"][0, 0] == 1.0


def test_a_folder_that_holds_no_model(tmp_path: Path) -> None:
    """Reading a folder without a model names the expected files, and damaged files are reported."""
    with pytest.raises(BadInput, match=r"no model here; expected config\.json and model\.safetensors"):
        registry.read(tmp_path)
    (tmp_path / "config.json").write_text("{")
    (tmp_path / "model.safetensors").write_bytes(b"not a model at all")
    with pytest.raises(BadInput, match="not a model of Undertone"):
        registry.read(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(BadInput, match=r"model\.safetensors: damaged"):
        registry.read(tmp_path).tensors()
