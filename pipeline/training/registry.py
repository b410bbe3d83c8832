"""Trained models as folders named by their content: `<sha256>/model.safetensors` and `config.json`. No pickle."""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from pipeline.errors import BadInput, Missing, refuse_damage
from pipeline.private import make_draft

if TYPE_CHECKING:
    import torch

T = TypeVar("T")


HOLDS: dict[str, Literal["words", "numbers"]] = {
    "abstractness": "numbers",  # a head over vectors; it learns from rated words, which are nobody's
    "commenter": "words",  # a vocabulary, and weights that write what they have read
    "count": "words",  # words, and which stand side by side
    "impscore": "numbers",  # heads over an encoder as it was
    "masked_lm": "words",  # guesses the words it has read
    "pretrained_reader": "words",  # the same
    "quality": "words",  # n-grams by their hashes, with how rare each is
    "reader": "words",  # a vocabulary
    "recovery": "words",  # weights that write what they have read
    "relevance": "words",  # a vocabulary
    "retrieval": "words",  # the comments themselves
    "subtext": "words",  # vocabularies of words and n-grams
    "upvotes": "words",  # as quality
}
"""What the files of each kind of model hold of the texts it learnt from."""


def holds(config: Mapping[str, Any]) -> Literal["words", "numbers"]:
    """What can be read from a model's files: words of single texts, or numbers over many texts alone.

    A kind that is not listed counts as `words`, and so does ImpScore where its encoder was trained along: which
    vectors of word pieces have moved tells which pieces it has read.
    """
    heads = config.get("heads")
    if isinstance(heads, dict) and any(head.get("recipe", {}).get("tune", "none") != "none" for head in heads.values()):
        return "words"
    return HOLDS.get(str(config.get("kind")), "words")


def content_hash(weights: bytes, config: str) -> str:
    """SHA-256 over the configuration and the serialised weights."""
    return hashlib.sha256(config.encode() + b"\n" + weights).hexdigest()


class Fields(dict[str, Any]):
    """An object of a model's config.json; a field that it lacks is BadInput, wherever it is read."""

    def __missing__(self, name: str) -> Any:
        raise BadInput(f"config.json of the model has no field {name!r}; {_REMEDY}")


_REMEDY = "copy the model's folder again, or train the model again"


class Model(NamedTuple):
    """A model read from a folder; its weights are made tensors when asked for, so that reading needs no torch."""

    model_id: str
    config: dict[str, Any]
    weights: bytes

    def tensors(self) -> "dict[str, torch.Tensor]":
        """The weights by name."""
        from safetensors.torch import load

        with refuse_damage(f"model {self.model_id[:12]}, model.safetensors", _REMEDY):
            return load(self.weights)

    def build(self, load: Callable[..., T], *options: Any) -> T:
        """What `load(tensors, config, ...)` makes of the model; BadInput where its files do not fit together."""
        with refuse_damage(f"model {self.model_id[:12]}, config.json", _REMEDY):
            return load(self.tensors(), self.config, *options)


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
    fresh = make_draft(path.parent)
    _write(fresh / "new", weights, text)
    if path.exists():
        path.rename(fresh / "old")  # a kill between the two renames leaves both beside the place, complete
    (fresh / "new").rename(path)
    shutil.rmtree(fresh)
    return content_hash(weights, text)


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
    draft = make_draft(path.parent)
    (draft / "model.safetensors").write_bytes(weights)
    (draft / "config.json").write_text(text, encoding="utf-8")
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
        raise Missing(
            f"model {model_id[:12]} is not in {folder}; train it again, or copy its folder there unless an erasure "
            "removed it"
        )
    model = read(path)
    if model.model_id != model_id:
        raise BadInput(f"{path}: weights or configuration are not those of this model id; the files were changed")
    return model


def read(path: Path) -> Model:
    """The model in a folder, whatever the folder's name."""
    try:
        weights, text = (path / "model.safetensors").read_bytes(), (path / "config.json").read_text(encoding="utf-8")
        config = json.loads(text, object_hook=Fields)
    except FileNotFoundError as why:
        raise BadInput(f"{path}: no model here; expected {' and '.join(sorted(_FILES))}") from why
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as why:
        raise BadInput(f"{path}: not a model of ours: config.json is no JSON: {why}") from why
    if not isinstance(config, dict):
        raise BadInput(f"{path}: not a model of ours: config.json holds no object")
    return Model(content_hash(weights, text), config, weights)
