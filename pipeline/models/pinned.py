"""The files of a pretrained model, found and checked before anything opens them.

A model is a folder, or a hub name with its commit; a branch or tag could change under us. Of a hub's model only weights
in safetensors, vocabularies and configurations are fetched: no pickle, no code. They are compared with the hashes under
which the hub keeps them, and with a hash of one's own where the name has one, and then loaded from the folder as any
other model: what was checked is what is loaded.
"""

import hashlib
import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import BadInput, Missing, Retry
from pipeline.io.hashes import hash_file

READ = (".safetensors", ".json", ".txt", ".model")  # weights, configurations, vocabularies

REMEDY = "expected a model of transformers with its tokenizer; copy its folder again"


class Files(NamedTuple):
    """Where a model's files are, and what they are."""

    folder: Path
    revision: str  # the commit of a hub's model, else the hash of the folder


def located(name: str | Path) -> Files:
    """The files of a model, checked.

    Args:
        name: a folder; or a hub name and commit, `NAME@COMMIT`, which are fetched unless HF_HUB_OFFLINE is set; or with
            the `folder_hash` that its files must have, `NAME@COMMIT:SHA256`.

    Raises:
        BadInput: a hub name without its commit, no safetensors, or files that are not what was pinned.
        Missing: they are not on this machine, and HF_HUB_OFFLINE is set.
        Retry: the hub does not answer.
    """
    if Path(name).is_dir():
        return Files(Path(name), folder_hash(Path(name)))
    hub, _, pin = str(name).partition("@")
    told = re.fullmatch(r"([0-9a-f]{40})(?::([0-9a-f]{64}))?", pin)
    if told is None:
        raise BadInput(
            f"model {str(name)!r} is no folder, and a hub name needs a pinned revision: {hub}@<commit>, which is "
            "40 hexadecimal digits"
        )
    commit, content = told[1], told[2]
    folder = _fetched(hub, commit)
    found = folder_hash(folder)
    if content is None:
        _check_blobs(folder, hub, commit, found)
    elif found != content:
        raise BadInput(f"{hub}@{commit}: its files have the hash {found}, expected {content}; they are not loaded")
    return Files(folder, commit)


def _fetched(hub: str, commit: str) -> Path:
    from huggingface_hub import errors, snapshot_download

    try:
        return Path(snapshot_download(hub, revision=commit, allow_patterns=[f"*{suffix}" for suffix in READ]))
    except errors.LocalEntryNotFoundError as why:
        raise Missing(
            f"{hub}@{commit} is not on this machine; fetch it once without HF_HUB_OFFLINE, or give a folder"
        ) from why
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.HFValidationError) as why:
        raise BadInput(f"the hub has no {hub}@{commit}, or not for you") from why
    except (errors.HfHubHTTPError, OSError) as why:
        raise Retry(f"{hub}@{commit} could not be fetched: {type(why).__name__}") from why


def _check_blobs(folder: Path, hub: str, commit: str, content: str) -> None:
    """The hub's cache names a file's content by its SHA-256, or a small file's by git's own hash."""
    for path in _files(folder):
        named = path.resolve().name
        if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", named):
            raise BadInput(
                f"{path}: the cache does not say which content it must have; name the model with its hash, "
                f"{hub}@{commit}:{content}, once you know that it is right"
            )
        if (_git_hash(path) if len(named) == 40 else file_hash(path)) != named:
            raise BadInput(f"{path}: its content is not that of {hub}@{commit} any more; remove it from the cache")


def _git_hash(path: Path) -> str:
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).hexdigest()


def file_hash(path: Path) -> str:
    """SHA-256 of a file, read again only when it was written to."""
    status = path.stat()
    return _hash_of_state(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=64)
def _hash_of_state(path: Path, _size: int, _changed_at: int) -> str:
    return hash_file(path)


def folder_hash(folder: Path) -> str:
    """SHA-256 over a model's weights, vocabularies and configurations: its revision where it has no other.

    Raises:
        BadInput: there are no weights in safetensors, or a part of the model has pickled weights alone.
    """
    files = _files(folder)
    weighted = {path.parent for path in files if path.suffix == ".safetensors"}
    if not weighted:
        raise BadInput(f"{folder}: no .safetensors weights; other formats are not loaded")
    if pickled := [path for path in sorted(folder.rglob("pytorch_model*.bin")) if path.parent not in weighted]:
        raise BadInput(f"{pickled[0]}: pickled weights without .safetensors beside them are not loaded")
    lines = [f"{path.relative_to(folder)} {file_hash(path)}" for path in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in READ and path.is_file())
