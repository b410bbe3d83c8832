"""Embeddings in a file: made once, mapped, never half."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.models import vectors
from pipeline.models.encoder import Encoder, encode, load
from pipeline.models.vectors import load_or_encode

TEXTS = ["nice hat", "close the door, please.", "what a day it was, as he said", "今天自然是好的", "cold", "cold"]


@pytest.fixture
def encoder(tiny_folder: Path) -> Encoder:
    return load(str(tiny_folder), device="cpu")


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that is encoded while the test runs, in chunks of two."""
    encoded_texts: list[str] = []

    def record_texts(encoder: Encoder, texts: list[str], *rest: Any) -> Any:
        encoded_texts.extend(texts)
        return encode(encoder, texts, *rest)

    monkeypatch.setattr(vectors, "encode", record_texts)
    monkeypatch.setattr(vectors, "CHUNK", 2)
    return encoded_texts


def list_suffixes(folder: Path) -> list[str]:
    return sorted(path.suffix for path in folder.iterdir())


def test_made_once_and_mapped(tmp_path: Path, encoder: Encoder, encoded: list[str]) -> None:
    """The second call encodes nothing and reads the same rows from the file, which is mapped and cannot be changed."""
    counts: list[int] = []
    first = load_or_encode(tmp_path / "new", encoder, TEXTS, counts.append)
    assert sorted(encoded) == sorted(TEXTS)
    second = load_or_encode(tmp_path / "new", encoder, TEXTS, counts.append)
    assert len(encoded) == len(TEXTS)
    assert sum(counts) == 2 * len(TEXTS)  # progress goes to its end either way
    for mapped in (first, second):
        assert isinstance(mapped, np.memmap)
        assert not mapped.flags.writeable
    assert np.array_equal(first, second)
    assert encoded != TEXTS  # chunks are cut by lengths, and rows stand in the order of the texts all the same
    assert np.abs(first - encode(encoder, TEXTS)).max() < 1e-6
    assert load_or_encode(tmp_path / "new", encoder, []).shape == (0, 32)
    assert list_suffixes(tmp_path / "new") == [".npy"]


def test_other_texts_orders_and_poolings_are_other_files(tmp_path: Path, tiny_folder: Path, encoder: Encoder) -> None:
    """A file is for these texts in this order by this encoder: anything else makes another one."""
    layers = load(str(tiny_folder), device="cpu", pooling="layers")
    assert load_or_encode(tmp_path, encoder, TEXTS).shape == (6, 32)
    assert load_or_encode(tmp_path, encoder, TEXTS[::-1]).shape == (6, 32)
    assert load_or_encode(tmp_path, encoder, TEXTS[:-1]).shape == (5, 32)
    assert load_or_encode(tmp_path, encoder, ["ab", "c"]).shape == (2, 32)
    assert load_or_encode(tmp_path, encoder, ["a", "bc"]).shape == (2, 32)
    assert load_or_encode(tmp_path, layers, TEXTS).shape == (6, 96)
    assert list_suffixes(tmp_path) == [".npy"] * 6


def test_an_attempt_that_failed_leaves_nothing(
    tmp_path: Path, encoder: Encoder, encoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an attempt wrote that was stopped half-way is not taken for embeddings; the next attempt makes all rows."""
    encode_all = vectors.encode

    def killed(*options: Any) -> Any:
        if len(encoded) >= 4:
            raise KeyboardInterrupt
        return encode_all(*options)

    monkeypatch.setattr(vectors, "encode", killed)
    with pytest.raises(KeyboardInterrupt):
        load_or_encode(tmp_path, encoder, TEXTS)
    assert list_suffixes(tmp_path) == []
    monkeypatch.setattr(vectors, "encode", encode_all)
    assert np.abs(load_or_encode(tmp_path, encoder, TEXTS) - encode(encoder, TEXTS)).max() < 1e-6
    assert list_suffixes(tmp_path) == [".npy"]
