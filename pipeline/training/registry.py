"""Trained models as folders named by their content: `<sha256>/model.safetensors` and `config.json`. No pickle."""

import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save

from pipeline.errors import BadInput, Missing


def content_hash(weights: bytes, config: str) -> str:
    """SHA-256 over the configuration and the serialised weights."""
    return hashlib.sha256(config.encode() + b"\n" + weights).hexdigest()


def keep(folder: Path, tensors: dict[str, torch.Tensor], config: dict[str, Any]) -> str:
    """Write a model below `folder`, complete or not at all; return its id. The same model gives the same id."""
    weights = save({name: tensor.contiguous() for name, tensor in sorted(tensors.items())})
    text = json.dumps(config, sort_keys=True, ensure_ascii=False, indent=1)
    model_id = content_hash(weights, text)
    if (folder / model_id).is_dir():
        return model_id
    folder.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=folder))
    (draft / "model.safetensors").write_bytes(weights)
    (draft / "config.json").write_text(text, encoding="utf-8")
    draft.chmod(0o755)
    try:
        draft.rename(folder / model_id)
    except OSError:
        shutil.rmtree(draft)
        if not (folder / model_id).is_dir():  # otherwise another attempt kept the same content first
            raise
    return model_id


def fetch(folder: Path, model_id: str) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Weights and configuration of a model, checked against its id."""
    path = folder / model_id
    if not path.is_dir():
        raise Missing(f"model {model_id[:12]} is not in {folder}; train it again or copy its folder there")
    weights, text = (path / "model.safetensors").read_bytes(), (path / "config.json").read_text(encoding="utf-8")
    if content_hash(weights, text) != model_id:
        raise BadInput(f"{path}: weights or configuration are not those of this model id; the files were changed")
    return load(weights), json.loads(text)
