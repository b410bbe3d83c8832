"""Features of words: of an encoder a sentence and its pieces, of word vectors the word's own; a vocabulary at once."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import BadInput
from pipeline.models import encoder as encoders
from pipeline.models.encoder import Encoder, encode
from pipeline.models.recam import word_features as work
from pipeline.models.recam.word_features import make_features, make_static_lookup, make_vectors
from pipeline.models.word_vectors import WordVectors


@pytest.fixture(scope="module")
def tiny(tiny_folder: Path) -> Encoder:
    """The encoder of random weights."""
    return encoders.load(str(tiny_folder), device="cpu")


def test_features_of_an_encoder(tiny: Encoder) -> None:
    """The word as a sentence, and the mean of its pieces' input embeddings; nothing for what holds no known piece."""
    words = ["door", "doorhat", "Door", "😀", "", "door"]
    features = make_features(words, tiny)
    table = tiny.module[0].model.embeddings.word_embeddings.weight.detach().numpy()
    cut = tiny.module.tokenizer
    for row in (0, 1, 2):
        ids = cut(words[row], add_special_tokens=False)["input_ids"]
        assert features.vectors[row, tiny.dim :] == pytest.approx(table[ids].mean(axis=0), abs=1e-6)
        assert features.vectors[row, : tiny.dim] == pytest.approx(encode(tiny, [words[row]])[0], abs=1e-6)
    assert len(cut("doorhat", add_special_tokens=False)["input_ids"]) > 1  # or the mean was not tested
    assert features.is_known.tolist() == [True, True, True, False, False, True]
    assert not features.vectors[3:5].any()
    assert make_features([], tiny).vectors.shape == (0, features.vectors.shape[1])


def test_features_of_word_vectors() -> None:
    """A word's own vector, else that of its lower case, never its letters'."""
    source = WordVectors(["a", "b", "ab", "Ba"], np.arange(8, dtype=np.float32).reshape(4, 2))
    features = make_features(["AB", "Ba", "ba", "a"], source)
    assert features.is_known.tolist() == [True, True, False, True]
    assert features.vectors.tolist() == [[4, 5], [6, 7], [0, 0], [0, 1]]


def test_a_vocabulary_of_static_vectors(tiny: Encoder) -> None:
    """Each known word once, in its order, with the features it has alone; a word without a known piece is left out."""
    words = ["door", "hat", "door", "😀", "Hat", "doorhat"]
    vectors = make_vectors(tiny, words)
    assert vectors.words == ["door", "hat", "Hat", "doorhat"]
    for word, vector in zip(vectors.words, vectors.vectors, strict=True):
        assert vector == pytest.approx(make_features([word], tiny).vectors[0], abs=1e-6)
    none = make_vectors(tiny, [])
    assert (none.words, none.vectors.shape) == ([], (0, vectors.vectors.shape[1]))
    assert make_vectors(tiny, ["😀"]).vectors.shape == (0, vectors.vectors.shape[1])


def test_a_vocabulary_is_encoded_in_parts(tiny: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The vectors are those of one go, though no more words than a part holds are encoded at a time."""
    words = ["hat", "😀", "door", "🙂", "😶", "a", "b", "dog", "house", "door"]
    expected = make_vectors(tiny, words)
    sizes: list[int] = []
    features = work.make_features

    def count_words(part: Sequence[str], source: Encoder) -> work.Features:
        sizes.append(len(part))
        return features(part, source)

    monkeypatch.setattr(work, "_ROWS", 2)
    monkeypatch.setattr(work, "make_features", count_words)
    vectors = make_vectors(tiny, words)
    assert max(sizes) == 2
    assert sum(sizes) == 9
    assert vectors.words == expected.words
    assert vectors.vectors == pytest.approx(expected.vectors, abs=1e-6)


def test_the_list_of_characters_has_no_pieces() -> None:
    """An encoder without word pieces is refused by name."""
    with pytest.raises(BadInput, match="'characters' has no word pieces"):
        make_vectors(encoders.load("characters"), ["door"])


def test_static_vectors_are_made_once(tiny: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each distinct word is encoded once, as a sentence alone; an unknown word has zeros (REC-13)."""
    requested: list[list[str]] = []
    features = work.make_features

    def record_words(words: Sequence[str], source: Encoder) -> work.Features:
        requested.append(list(words))
        return features(words, source)

    monkeypatch.setattr(work, "make_features", record_words)
    vectors = make_static_lookup(tiny)
    first = vectors(["door", "😀", "hat", "door"])
    second = vectors(["hat", "day", "door"])
    assert requested == [["door", "😀", "hat"], ["day"]]
    assert first[0].tolist() == first[3].tolist() == second[2].tolist()
    assert first[2] == pytest.approx(encode(tiny, ["hat"])[0], abs=1e-6)
    assert not first[1].any()
    assert vectors([]).shape == (0, tiny.dim)


def test_static_vectors_forget_when_they_are_many(tiny: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more words are kept than said, nor one without an end; what was forgotten is made again, the same."""
    requested: list[str] = []
    features = work.make_features

    def record_words(words: Sequence[str], source: Encoder) -> work.Features:
        requested.extend(words)
        return features(words, source)

    monkeypatch.setattr(work, "make_features", record_words)
    vectors = make_static_lookup(tiny, capacity=3)
    long = "z" * 65
    before = vectors(["door", "hat", long])
    vectors(["day", "house"])
    repeated = vectors(["door", "hat", long, "day"])
    assert requested == ["door", "hat", long, "day", "house", "door", "hat", long]
    assert repeated[:3] == pytest.approx(before, abs=1e-6)


def test_static_word_vectors() -> None:
    """Of word vectors the same as their features; the table of words is made once."""
    source = WordVectors(["a", "b"], np.eye(2, dtype=np.float32))
    vectors = make_static_lookup(source)
    source.words.append("c")  # seen only by who reads the list again
    assert vectors(["A", "c", "b"]).tolist() == [[1, 0], [0, 0], [0, 1]]
    assert vectors([]).shape == (0, 2)
