"""Features of words: of an encoder a sentence and its pieces, of word vectors the word's own; a vocabulary at once."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import BadInput
from pipeline.models import encoder as encoders
from pipeline.models.encoder import Encoder, encode
from pipeline.models.recam import word_features as work
from pipeline.models.recam.word_features import load_or_make_vectors, make_features, make_static_lookup
from pipeline.models.word_vectors import WordVectors


@pytest.fixture
def requested(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The words of each call of `make_features`."""
    calls: list[list[str]] = []
    features = work.make_features

    def record_words(words: Sequence[str], source: Encoder) -> work.Features:
        calls.append(list(words))
        return features(words, source)

    monkeypatch.setattr(work, "make_features", record_words)
    return calls


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


def test_whole_words(tiny: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single piece and a word of WordNet are whole, other pieces are not; word vectors have only whole words."""
    monkeypatch.setattr(work.wordnet, "has_word", {"hatdoor"}.__contains__)
    assert work.list_whole(["door", "doorhat", "hatdoor", "😀😀"], tiny) == [True, False, True, False]
    assert work.list_whole([], tiny) == []
    assert work.list_whole(["doorhat"], WordVectors(["a"], np.ones((1, 2), np.float32))) == [True]


def test_features_of_word_vectors() -> None:
    """A word's own vector, else that of its lower case, never its letters'; the table of words is made once."""
    source = WordVectors(["a", "b", "ab", "Ba"], np.arange(8, dtype=np.float32).reshape(4, 2))
    features = make_features(["AB", "Ba", "ba", "a"], source)
    assert features.is_known.tolist() == [True, True, False, True]
    assert features.vectors.tolist() == [[4, 5], [6, 7], [0, 0], [0, 1]]
    vectors = make_static_lookup(source)
    source.words.append("c")  # seen only by who reads the list again
    assert vectors(["A", "c", "ba"]).tolist() == [[0, 1], [0, 0], [0, 0]]


def test_a_vocabulary_of_static_vectors(
    tiny: Encoder, tmp_path: Path, requested: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each known word once, in its order, with the features it has alone; made in parts, and once for each list."""
    words = ["door", "hat", "door", "😀", "Hat", "doorhat"]
    monkeypatch.setattr(work, "_ROWS", 2)
    vectors = load_or_make_vectors(tmp_path, tiny, words)
    assert requested == [["door", "hat"], ["😀", "Hat"], ["doorhat"]]
    assert vectors.words == ["door", "hat", "Hat", "doorhat"]
    for word, vector in zip(vectors.words, vectors.vectors, strict=True):
        assert vector == pytest.approx(make_features([word], tiny).vectors[0], abs=1e-6)
    stored = load_or_make_vectors(tmp_path, tiny, words)
    assert (len(requested), stored.words) == (3, vectors.words)
    assert np.array_equal(stored.vectors, vectors.vectors)
    for none in ([], ["😀"]):
        vectors = load_or_make_vectors(tmp_path, tiny, none)
        assert (vectors.words, vectors.vectors.shape) == ([], (0, stored.vectors.shape[1]))
    with pytest.raises(BadInput, match="'characters' has no word pieces"):
        load_or_make_vectors(tmp_path, encoders.load("characters"), ["door"])


def test_static_vectors_are_made_once(tiny: Encoder, requested: list[list[str]]) -> None:
    """Each distinct word is encoded once, as a sentence alone; an unknown word has zeros (REC-13)."""
    vectors = make_static_lookup(tiny)
    first = vectors(["door", "😀", "hat", "door"])
    second = vectors(["hat", "day", "door"])
    assert requested == [["door", "😀", "hat"], ["day"]]
    assert first[0].tolist() == first[3].tolist() == second[2].tolist()
    assert first[2] == pytest.approx(encode(tiny, ["hat"])[0], abs=1e-6)
    assert not first[1].any()
    assert vectors([]).shape == (0, tiny.dim)
