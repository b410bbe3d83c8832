"""Trained models in folders named by content hash: `<sha256>/model.safetensors` and `config.json`. No pickle."""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from pipeline.errors import BadInput, Missing, refuse_damage
from pipeline.io.atomic import create_folder
from pipeline.private import make_draft

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
_REMEDY = "copy the model's folder again, or train the model again"
_FILES = {"model.safetensors", "config.json"}

CONTENTS: dict[str, Literal["words", "numbers"]] = {
    "abstractness": "numbers",  # a head over vectors; its training words are from a public list
    "commenter": "words",  # a vocabulary, and weights that can reproduce training texts
    "count": "words",  # words and their neighbours
    "impscore": "numbers",  # heads over an unchanged encoder
    "masked_lm": "words",  # it predicts words of the training texts
    "pretrained_reader": "words",  # the same
    "quality": "words",  # hashed n-grams, each with its rarity
    "reader": "words",  # a vocabulary
    "recovery": "words",  # weights that can reproduce training texts
    "relevance": "words",  # a vocabulary
    "retrieval": "words",  # the comments themselves
    "subtext": "words",  # vocabularies of words and n-grams
    "upvotes": "words",  # as quality
}
"""What the files of each kind of model contain of its training texts."""


def classify_contents(config: Mapping[str, Any]) -> Literal["words", "numbers"]:
    """Return what a model's files reveal: words of single texts, or only numbers over many texts.

    A kind that is not listed counts as `words`, as does ImpScore with a fine-tuned encoder, having seen its pieces.
    """
    heads = config.get("heads")
    for head in heads.values() if isinstance(heads, dict) else ():
        if head.get("recipe", {}).get("tune", "none") != "none":
            return "words"
    return CONTENTS.get(str(config.get("kind")), "words")


def hash_content(weights: bytes, config: str) -> str:
    """Return the SHA-256 of the configuration and the serialised weights."""
    return hashlib.sha256(config.encode() + b"\n" + weights).hexdigest()


class Fields(dict[str, Any]):
    """An object of a model's config.json; reading a missing field raises BadInput."""

    def __missing__(self, name: str) -> Any:
        raise BadInput(f"config.json of the model has no field {name!r}; {_REMEDY}")


class Model(NamedTuple):
    """A model read from a folder. Weights stay bytes until `tensors` is called, so that reading needs no torch."""

    model_id: str
    config: dict[str, Any]
    weights: bytes

    def tensors(self) -> "dict[str, torch.Tensor]":
        """Return the weights by name."""
        from safetensors.torch import load

        with refuse_damage(f"model {self.model_id[:12]}, model.safetensors", _REMEDY):
            return load(self.weights)

    def build(self, load: Callable[..., T], *options: Any) -> T:
        """Return `load(tensors, config, *options)`; raise BadInput if the model's files do not fit together."""
        with refuse_damage(f"model {self.model_id[:12]}, config.json", _REMEDY):
            return load(self.tensors(), self.config, *options)


def add(folder: Path, tensors: "dict[str, torch.Tensor]", config: dict[str, Any]) -> str:
    """Write a model atomically below `folder`; return its id. The same model gives the same id."""
    weights, text = _serialise(tensors, config)
    model_id = hash_content(weights, text)
    if not (folder / model_id).is_dir():
        _write(folder / model_id, weights, text)
    return model_id


def write(path: Path, tensors: "dict[str, torch.Tensor]", config: dict[str, Any], *, force: bool = False) -> str:
    """Write a model as the folder `path`, which must be absent, empty or with `force` a model; return its id."""
    check_writable(path, force=force)
    weights, text = _serialise(tensors, config)
    draft = make_draft(path.parent)
    _write(draft / "new", weights, text)
    if path.exists():
        path.rename(draft / "old")  # a kill between the two renames leaves both models complete in the draft folder
    (draft / "new").rename(path)
    shutil.rmtree(draft)
    return hash_content(weights, text)


def check_writable(path: Path, *, force: bool = False) -> None:
    """Raise BadInput if `path` is not empty; with `force` only if it holds anything but a model."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if path.is_dir() and {p.name for p in path.iterdir()} == _FILES and "kind" in read(path).config:
        if force:
            return
        raise BadInput(f"{path}: there is a model already; choose another folder, or replace it by --force")
    raise BadInput(f"{path}: exists and is not a model of Undertone; choose another folder")


def _serialise(tensors: "dict[str, torch.Tensor]", config: dict[str, Any]) -> tuple[bytes, str]:
    from safetensors.torch import save

    weights = save({name: tensor.cpu().contiguous() for name, tensor in sorted(tensors.items())})
    return weights, json.dumps(config, sort_keys=True, ensure_ascii=False, indent=1)


def _write(path: Path, weights: bytes, text: str) -> None:
    with create_folder(path, may_exist=True) as draft:
        (draft / "model.safetensors").write_bytes(weights)
        (draft / "config.json").write_text(text, encoding="utf-8")


def fetch(folder: Path, model_id: str) -> Model:
    """Read a model of the registry below `folder` and check it against its id."""
    path = folder / model_id
    if not path.is_dir():
        remedy = "train it again, or copy its folder there unless an erasure removed it"
        raise Missing(f"model {model_id[:12]} is not in {folder}; {remedy}")
    model = read(path)
    if model.model_id != model_id:
        raise BadInput(f"{path}: weights or configuration do not match the model id; the files were changed")
    return model


def read(path: Path) -> Model:
    """Read the model in a folder of any name."""
    try:
        weights, text = (path / "model.safetensors").read_bytes(), (path / "config.json").read_text(encoding="utf-8")
        config = json.loads(text, object_hook=Fields)
    except FileNotFoundError as error:
        raise BadInput(f"{path}: no model here; expected {' and '.join(sorted(_FILES))}") from error
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{path}: not a model of Undertone: config.json is not valid JSON: {error}") from error
    if not isinstance(config, dict):
        raise BadInput(f"{path}: not a model of Undertone: config.json is not a JSON object")
    return Model(hash_content(weights, text), config, weights)
