"""Models are pinned, and what is loaded is what was pinned."""

import hashlib
import subprocess
from pathlib import Path

import pytest
from huggingface_hub import constants, errors

from pipeline.errors import BadInput, Missing, Retry
from pipeline.io.hashes import hash_file
from pipeline.models import pinned
from pipeline.models.pinned import hash_model_folder, locate_files

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAME = f"somebody/small@{COMMIT}"
FILES = {"model.safetensors": b"weights", "config.json": b"{}", "spiece.model": b"pieces", "notes.md": b"# read me"}


@pytest.fixture
def snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model in the hub's cache as its client lays it out: links to blobs named by the hash of their content."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    place = tmp_path / "models--somebody--small"
    folder = place / "snapshots" / COMMIT
    (place / "blobs").mkdir(parents=True)
    folder.mkdir(parents=True)
    for name, content in FILES.items():
        if name.endswith(".safetensors"):
            blob = hashlib.sha256(content).hexdigest()
        else:
            process = subprocess.run(["git", "hash-object", "--stdin"], input=content, capture_output=True, check=True)
            blob = process.stdout.decode().strip()
        (place / "blobs" / blob).write_bytes(content)
        (folder / name).symlink_to(Path("../../blobs") / blob)
    return folder


def test_a_pinned_model_is_found_and_checked(snapshot: Path) -> None:
    """A name with its commit is found without asking anybody; git's own hash-object says what small files must be.

    Content without the hash that was asked for is refused, and a model that was never fetched is named with a remedy.
    """
    assert locate_files(NAME) == (snapshot, COMMIT)
    assert locate_files(f"{NAME}:{hash_model_folder(snapshot)}") == (snapshot, COMMIT)
    with pytest.raises(BadInput, match=r"expected 0{64}; they are not loaded"):
        locate_files(f"{NAME}:{'0' * 64}")
    with pytest.raises(Missing, match="fetch it once without HF_HUB_OFFLINE"):
        locate_files(f"somebody/else@{COMMIT}")


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "spiece.model"])
def test_what_was_changed_is_not_loaded(snapshot: Path, name: str) -> None:
    """A blob whose content is not what it is named for is refused, and named."""
    (snapshot / name).resolve().write_bytes(b"another")
    with pytest.raises(BadInput, match=rf"{name}: its content is not that of {NAME} any more"):
        locate_files(NAME)


def test_a_cache_without_blobs_wants_a_hash(snapshot: Path) -> None:
    """Where files are no links nothing can be compared; with the hash that the message tells they are taken."""
    weights = snapshot / "model.safetensors"
    weights.unlink()
    weights.write_bytes(b"weights")
    with pytest.raises(BadInput, match=f"name the model with its hash, {NAME}:{hash_model_folder(snapshot)}"):
        locate_files(NAME)
    assert locate_files(f"{NAME}:{hash_model_folder(snapshot)}").folder == snapshot


@pytest.mark.parametrize(
    "name", ["bert-base-cased", "a/b@main", f"a/b@{COMMIT[1:]}", f"a/b@{COMMIT.upper()}", f"{NAME}:1"]
)
def test_a_name_needs_its_commit(name: str) -> None:
    """A branch, a tag or half a hash can mean something else tomorrow."""
    with pytest.raises(BadInput, match="a hub name needs a pinned revision"):
        locate_files(name)


def test_a_hub_that_fails_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that breaks is a Retry, and what it said is not repeated: it may hold a token."""

    def broken(*_: object, **__: object) -> str:
        raise ConnectionError("token hf_abc")

    monkeypatch.setattr("huggingface_hub.snapshot_download", broken)
    with pytest.raises(Retry, match=r"could not be fetched: ConnectionError$"):
        locate_files(NAME)
    assert issubclass(errors.LocalEntryNotFoundError, OSError)  # so that it must be asked for first


def test_only_what_is_read_is_fetched(monkeypatch: pytest.MonkeyPatch, snapshot: Path) -> None:
    """Neither pickles nor code are asked for."""
    options: dict[str, object] = {}

    def download(*_: object, **more: object) -> str:
        options.update(more)
        return str(snapshot)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    locate_files(NAME)
    assert options == {"revision": COMMIT, "allow_patterns": ["*.safetensors", "*.json", "*.txt", "*.model"]}


def test_hashes_of_large_files_are_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next process hashes a large file again only if its size or time changed."""
    weights, hashed = tmp_path / "model.safetensors", []
    monkeypatch.setattr(pinned, "cache", lambda: tmp_path / "hashes")
    monkeypatch.setattr(pinned, "LARGE", 4)
    monkeypatch.setattr(pinned, "hash_file", lambda path: hashed.append(path) or hash_file(path))
    for content, count in ((b"weights", 1), (b"weights", 1), (b"others", 2), (b"few", 3), (b"few", 4)):
        pinned._hash_of_state.cache_clear()
        if not weights.exists() or weights.read_bytes() != content:
            weights.write_bytes(content)
        assert pinned.hash_model_file(weights) == hashlib.sha256(content).hexdigest()
        assert len(hashed) == count


def test_a_part_with_pickled_weights(tmp_path: Path) -> None:
    """A module without safetensors of its own is refused although the model has some: its library would unpickle it."""
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "pytorch_model.bin").write_bytes(b"the same, which nothing reads")
    assert locate_files(tmp_path).revision == hash_model_folder(tmp_path)
    (tmp_path / "2_Dense").mkdir()
    (tmp_path / "2_Dense" / "pytorch_model.bin").write_bytes(b"cos\nsystem\n")
    with pytest.raises(BadInput, match=r"2_Dense.pytorch_model\.bin: pickled weights"):
        locate_files(tmp_path)
