"""Trained models as folders named by their content: `<sha256>/model.safetensors` and `config.json`. No pickle."""

import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline.errors import BadInput, Missing

if TYPE_CHECKING:
    import torch


def content_hash(weights: bytes, config: str) -> str:
    """SHA-256 over the configuration and the serialised weights."""
    return hashlib.sha256(config.encode() + b"\n" + weights).hexdigest()


class Model(NamedTuple):
    """A model read from a folder; its weights are made tensors when asked for, so that reading needs no torch."""

    model_id: str
    config: dict[str, Any]
    weights: bytes

    def tensors(self) -> "dict[str, torch.Tensor]":
        """The weights by name."""
        from safetensors import SafetensorError
        from safetensors.torch import load

        try:
            return load(self.weights)
        except SafetensorError as why:
            raise BadInput(f"model {self.model_id[:12]}: not a safetensors file: {why}") from why


def keep(folder: Path, tensors: "dict[str, torch.Tensor]", config: dict[str, Any]) -> str:
    """Write a model below `folder`, complete or not at all; return its id. The same model gives the same id."""
    weights, text = _serialised(tensors, config)
    model_id = content_hash(weights, text)
    if not (folder / model_id).is_dir():
        _write(folder / model_id, weights, text)
    return model_id


def write(path: Path, tensors: "dict[str, torch.Tensor]", config: dict[str, Any]) -> str:
    """Write a model as the folder `path`, which should not exist, hold nothing or hold a model; return its id."""
    writable(path)
    weights, text = _serialised(tensors, config)
    fresh = Path(tempfile.mkdtemp(prefix=".draft-", dir=_made(path.parent)))
    _write(fresh / "new", weights, text)
    if path.exists():
        path.rename(fresh / "old")  # a kill between the two renames leaves both beside the place, complete
    (fresh / "new").rename(path)
    shutil.rmtree(fresh)
    return content_hash(weights, text)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def writable(path: Path) -> None:
    """BadInput if a model cannot be written as the folder `path`: what is there is not ours to delete."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if path.is_dir() and {p.name for p in path.iterdir()} == _FILES and "kind" in read(path).config:
        return
    raise BadInput(f"{path}: is there and is no model of ours; choose another folder")


_FILES = {"model.safetensors", "config.json"}


def _serialised(tensors: "dict[str, torch.Tensor]", config: dict[str, Any]) -> tuple[bytes, str]:
    from safetensors.torch import save

    weights = save({name: tensor.cpu().contiguous() for name, tensor in sorted(tensors.items())})
    return weights, json.dumps(config, sort_keys=True, ensure_ascii=False, indent=1)


def _write(path: Path, weights: bytes, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=path.parent))
    (draft / "model.safetensors").write_bytes(weights)
    (draft / "config.json").write_text(text, encoding="utf-8")
    draft.chmod(0o755)
    try:
        draft.rename(path)
    except OSError:
        shutil.rmtree(draft)
        if not path.is_dir():  # otherwise another attempt wrote it first
            raise


def fetch(folder: Path, model_id: str) -> Model:
    """A model of the registry below `folder`, checked against its id."""
    path = folder / model_id
    if not path.is_dir():
        raise Missing(f"model {model_id[:12]} is not in {folder}; train it again or copy its folder there")
    model = read(path)
    if model.model_id != model_id:
        raise BadInput(f"{path}: weights or configuration are not those of this model id; the files were changed")
    return model


def read(path: Path) -> Model:
    """The model in a folder, whatever the folder's name."""
    try:
        weights, text = (path / "model.safetensors").read_bytes(), (path / "config.json").read_text(encoding="utf-8")
        config = json.loads(text)
    except FileNotFoundError as why:
        raise BadInput(f"{path}: no model here; expected {' and '.join(sorted(_FILES))}") from why
    except (json.JSONDecodeError, UnicodeDecodeError) as why:
        raise BadInput(f"{path}: not a model of ours: {why}") from why
    if not isinstance(config, dict):
        raise BadInput(f"{path}: not a model of ours: config.json holds no object")
    return Model(content_hash(weights, text), config, weights)
