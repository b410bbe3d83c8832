"""The files of a pretrained model, found, checked, and loaded.

A model is a folder, or a hub name with its commit. Only safetensors weights, vocabularies and configurations are
fetched: no pickle, no code. They are checked against the hashes of the hub, and the hash in the name if it has one.
"""

import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.errors import BadInput, Missing, Retry, refuse_damage
from pipeline.io.atomic import write_text
from pipeline.io.hashes import hash_file

READ = (".safetensors", ".json", ".txt", ".model")  # weights, configurations, vocabularies
LARGE = 1 << 27  # bytes of a file whose hash is cached between processes
cache: Callable[[], Path] | None = None  # returns the folder of cached hashes, which `pipeline.tasks` names
REMEDY = "expected a model of transformers with its tokenizer; copy its folder again"


class Files(NamedTuple):
    """The files of a model."""

    folder: Path
    revision: str  # the commit of a hub's model, else the hash of the folder


def locate_files(name: str | Path) -> Files:
    """Find the files of a model and check them.

    `name` is a folder; or a hub name and commit, `NAME@COMMIT`, which is fetched unless HF_HUB_OFFLINE is set; or also
    the hash that its folder must have, `NAME@COMMIT:SHA256`. BadInput for a hub name without its commit, no
    safetensors, or files that are not what was pinned; Missing if they are not here and HF_HUB_OFFLINE is set; Retry if
    the hub does not answer.
    """
    if Path(name).is_dir():
        return Files(Path(name), hash_model_folder(Path(name)))
    hub, _, pin = str(name).partition("@")
    if not re.fullmatch(r"[0-9a-f]{40}(:[0-9a-f]{64})?", pin):
        problem = f"model {str(name)!r} is not a folder, and a hub name needs a pinned revision"
        raise BadInput(f"{problem}: {hub}@<commit>, which is 40 hexadecimal digits")
    commit, _, expected = pin.partition(":")
    folder = _fetch(hub, commit)
    content = hash_model_folder(folder)
    if not expected:
        _check_blobs(folder, hub, commit, content)
    elif content != expected:
        raise BadInput(f"{hub}@{commit}: its files have the hash {content}, expected {expected}; they are not loaded")
    return Files(folder, commit)


def load_pretrained(folder: Path, kind: Any) -> tuple[Any, Any, set[str]]:
    """Load the tokenizer and a float32 model of a class of transformers; only safetensors, no foreign code.

    Returns with them the names of the weights that the folder lacks. BadInput for a folder that cannot be read.
    """
    import torch
    from transformers import AutoTokenizer
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    level = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()  # weights that a task does not need, or that are new to it, are no news
    try:
        with refuse_damage(folder, REMEDY):
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
            module, loading_info = kind.from_pretrained(
                folder,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                dtype=torch.float32,
                output_loading_info=True,
            )
    finally:
        transformers_logging.set_verbosity(level)
    return tokenizer, module, loading_info["missing_keys"]


def strip_path(name: str | Path) -> str:
    """Return the last part of a folder's path, which states nothing about the model; a hub name as it is."""
    return Path(name).resolve().name if Path(name).is_dir() else str(name)


def _fetch(hub: str, commit: str) -> Path:
    from huggingface_hub import errors, snapshot_download

    try:
        return Path(snapshot_download(hub, revision=commit, allow_patterns=[f"*{suffix}" for suffix in READ]))
    except errors.LocalEntryNotFoundError as error:
        remedy = "fetch it once without HF_HUB_OFFLINE, or give a folder"
        raise Missing(f"{hub}@{commit} is not on this machine; {remedy}") from error
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.HFValidationError) as error:
        raise BadInput(f"the hub has no {hub}@{commit}, or not for you") from error
    except (errors.HfHubHTTPError, OSError) as error:
        raise Retry(f"{hub}@{commit} could not be fetched: {type(error).__name__}") from error


def _check_blobs(folder: Path, hub: str, commit: str, content: str) -> None:
    """Check files against their names in the hub's cache: the SHA-256, or the git hash of a small file."""
    for path in _list_files(folder):
        blob_name = path.resolve().name
        if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", blob_name):
            problem = f"{path}: the cache has no hash of its content; name the model with its hash,"
            raise BadInput(f"{problem} {hub}@{commit}:{content}, once you know that it is right")
        if len(blob_name) == 40:
            data = path.read_bytes()
            content_hash = hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()
        else:
            content_hash = hash_model_file(path)
        if content_hash != blob_name:
            raise BadInput(f"{path}: its content is not that of {hub}@{commit} any more; remove it from the cache")


def hash_model_file(path: Path) -> str:
    """Return the SHA-256 of a file, cached until its size or time changes, for large files also on disk.

    All bytes count: models tuned from one base differ neither in size nor in the header of their weights.
    """
    status = path.stat()
    return _hash_of_state(path.resolve(), status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=64)
def _hash_of_state(path: Path, size: int, changed_at: int) -> str:
    if cache is None or size < LARGE:
        return hash_file(path)
    record = cache() / hashlib.sha256(f"{path}\n{size}\n{changed_at}".encode()).hexdigest()
    with suppress(OSError):
        if re.fullmatch("[0-9a-f]{64}", cached := record.read_text(encoding="utf-8")):
            return cached
    content = hash_file(path)
    with suppress(OSError):  # the home may be read-only
        write_text(record, content)
    return content


def hash_model_folder(folder: Path) -> str:
    """Return the revision of a folder: the SHA-256 of its files; BadInput if a part has no weights in safetensors."""
    files = _list_files(folder)
    weight_folders = {path.parent for path in files if path.suffix == ".safetensors"}
    if not weight_folders:
        raise BadInput(f"{folder}: no .safetensors weights; other formats are not loaded")
    for path in sorted(folder.rglob("pytorch_model*.bin")):
        if path.parent not in weight_folders:
            raise BadInput(f"{path}: pickled weights without .safetensors next to them are not loaded")
    lines = [f"{path.relative_to(folder)} {hash_model_file(path)}" for path in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _list_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in READ and path.is_file())
