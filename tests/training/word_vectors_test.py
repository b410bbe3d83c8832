"""Word vectors from texts: words with similar neighbours have similar vectors; the same texts give the same bits."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pipeline.models.word_vectors import WordVectors
from pipeline.training import word_vectors
from pipeline.training.word_vectors import Recipe, fit

TINY = Recipe(dim=8, window=3, least=2, sample=1.0, batch=256, epochs=8)


@pytest.fixture(scope="module")
def texts() -> list[list[str]]:
    """Make sentences about pets and about vehicles, of the same structure."""
    rng = np.random.default_rng(4)
    themes = ((["猫", "狗"], ["喂", "抱", "毛茸茸"]), (["汽车", "卡车"], ["开", "停", "加油"]))
    texts = []
    for _ in range(400):
        things, verbs = themes[rng.integers(2)]
        texts.append([str(rng.choice(verbs)), "了", str(rng.choice(things)), str(rng.choice(verbs))])
    return texts


@pytest.fixture(scope="module")
def vectors(texts: list[list[str]]) -> WordVectors:
    return fit(texts, TINY)


def cosine(vectors: WordVectors, *words: str) -> float:
    a, b = (vectors.vectors[vectors.words.index(word)] for word in words)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_words_of_like_company_are_alike(vectors: WordVectors, texts: list[list[str]]) -> None:
    """Cat is closer to dog than to car or truck; equal texts and seed give equal vectors, another seed others."""
    assert cosine(vectors, "猫", "狗") > max(cosine(vectors, "猫", "汽车"), cosine(vectors, "猫", "卡车")) + 0.2
    assert cosine(vectors, "汽车", "卡车") > max(cosine(vectors, "狗", "汽车"), cosine(vectors, "狗", "卡车")) + 0.2
    repeated = fit(iter(texts), TINY)
    assert repeated.words == vectors.words
    assert np.array_equal(repeated.vectors, vectors.vectors)
    assert not np.array_equal(fit(texts, replace(TINY, seed=1, epochs=1)).vectors, vectors.vectors)


def test_frequent_words_come_first_and_rare_ones_not_at_all(texts: list[list[str]]) -> None:
    """Words are sorted by count, then by code point, and words below `least` are absent."""
    vectors = fit([*texts, ["罕见", "猫"], ["甲", "乙"], ["乙", "甲"]], replace(TINY, epochs=1))
    assert vectors.words[0] == "了"
    assert vectors.words[-2:] == ["乙", "甲"]
    assert "罕见" not in vectors.words
    assert vectors.vectors.shape == (len(vectors.words), TINY.dim)
    assert vectors.vectors.dtype == np.float32
    assert np.isfinite(vectors.vectors).all()


def test_pairs_stay_within_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pairs are exactly those within a text and within the window."""
    texts = [["y", "z"], *[["a", "b", "c", "d"], ["e", "f"]] * 50]
    words, tokens, text_of = word_vectors._number_tokens(texts, 1)
    generator = torch.Generator().manual_seed(1)
    recipe = replace(TINY, window=2)
    pairs = set()
    for centers, neighbours in word_vectors._draw_pairs(tokens, text_of, torch.ones(len(words)), recipe, generator):
        pairs |= {(words[i], words[j]) for i, j in zip(centers.tolist(), neighbours.tolist(), strict=True)}
    near = {("a", "b"), ("a", "c"), ("b", "c"), ("b", "d"), ("c", "d"), ("e", "f"), ("y", "z")}
    assert pairs == near | {(j, i) for i, j in near}


def test_frequent_words_are_thinned_out(texts: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """With word2vec's subsampling, the most frequent word is kept with a lower probability."""
    least_keep = []
    draw_pairs = word_vectors._draw_pairs

    def record_keep(tokens: torch.Tensor, text_of: torch.Tensor, keep: torch.Tensor, *rest: object) -> object:
        least_keep.append(keep.min().item())
        return draw_pairs(tokens, text_of, keep, *rest)

    monkeypatch.setattr(word_vectors, "_draw_pairs", record_keep)
    fit(texts, replace(TINY, epochs=1))
    fit(texts, replace(TINY, epochs=1, sample=0.01))
    # 了 is a quarter of the tokens: √(0.01 / 0.25) + 0.01 / 0.25
    assert least_keep == pytest.approx([1.0, 0.2 + 0.04])
