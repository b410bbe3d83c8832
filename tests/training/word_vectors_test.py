"""Word vectors from texts: words of like company are alike, the same texts give the same bits."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import BadInput
from pipeline.models.word_vectors import WordVectors
from pipeline.training import word_vectors
from pipeline.training.word_vectors import Recipe, fit

TINY = Recipe(dim=8, window=3, least=2, sample=1.0, batch=256, epochs=8)


@pytest.fixture(scope="module")
def texts() -> list[list[str]]:
    """Cats and dogs are fed and pet, cars and trucks are driven and parked; each in the same frames."""
    rng = np.random.default_rng(4)
    themes = ((["猫", "狗"], ["喂", "抱", "毛茸茸"]), (["汽车", "卡车"], ["开", "停", "加油"]))
    made = []
    for _ in range(400):
        things, doings = themes[rng.integers(2)]
        made.append([str(rng.choice(doings)), "了", str(rng.choice(things)), str(rng.choice(doings))])
    return made


@pytest.fixture(scope="module")
def found(texts: list[list[str]]) -> WordVectors:
    """Their vectors."""
    return fit(texts, TINY)


def cosine(found: WordVectors, one: str, other: str) -> float:
    """Of two words."""
    a, b = (found.vectors[found.words.index(word)] for word in (one, other))
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_words_of_like_company_are_alike(found: WordVectors) -> None:
    """Cat is nearer to dog than to car or truck, and car to truck than to cat or dog."""
    assert cosine(found, "猫", "狗") > max(cosine(found, "猫", "汽车"), cosine(found, "猫", "卡车")) + 0.2
    assert cosine(found, "汽车", "卡车") > max(cosine(found, "狗", "汽车"), cosine(found, "狗", "卡车")) + 0.2


def test_the_same_texts_give_the_same_bits(texts: list[list[str]], found: WordVectors) -> None:
    """Words and vectors repeat under a seed, also from an iterator; another seed gives other vectors."""
    again = fit(iter(texts), TINY)
    assert again.words == found.words
    assert np.array_equal(again.vectors, found.vectors)
    assert not np.array_equal(fit(texts, replace(TINY, seed=1, epochs=1)).vectors, found.vectors)


def test_frequent_words_come_first_and_rare_ones_not_at_all(texts: list[list[str]]) -> None:
    """Words in order of their counts, ties in order of code points; what occurs less often than `least` has none."""
    made = fit([*texts, ["罕见", "猫"], ["甲", "乙"], ["乙", "甲"]], replace(TINY, epochs=1))
    assert made.words[0] == "了"
    assert made.words[-2:] == ["乙", "甲"]
    assert "罕见" not in made.words
    assert made.vectors.shape == (len(made.words), TINY.dim)
    assert made.vectors.dtype == np.float32
    assert np.isfinite(made.vectors).all()


def test_pairs_stay_within_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pair reaches over a text's end or further than the window, and those within are all drawn at some time."""
    import torch

    texts = [["a", "b", "c", "d"], ["e", "f"]] * 50
    words, tokens, text_of = word_vectors._numbered(texts, 1)
    generator = torch.Generator().manual_seed(1)
    recipe = replace(TINY, window=2)
    seen = set()
    for one, other in word_vectors._pairs(tokens, text_of, torch.ones(len(words)), recipe, generator):
        seen |= {(words[i], words[j]) for i, j in zip(one.tolist(), other.tolist(), strict=True)}
    near = {("a", "b"), ("a", "c"), ("b", "c"), ("b", "d"), ("c", "d"), ("e", "f")}
    assert seen == near | {(j, i) for i, j in near}


def test_memory_is_bounded_by_spans(texts: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs are laid out a span at a time: with short spans no batch holds more than a span's pairs."""
    monkeypatch.setattr(word_vectors, "_SPAN", 40)
    import torch

    words, tokens, text_of = word_vectors._numbered(texts, 1)
    sizes = [
        len(one)
        for one, _ in word_vectors._pairs(
            tokens, text_of, torch.ones(len(words)), TINY, torch.Generator().manual_seed(1)
        )
    ]
    assert max(sizes) <= 40 * 2 * TINY.window
    assert sum(sizes) > 1000


def test_frequent_words_are_thinned_out(texts: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """With word2vec's sampling, the word of every text stands in fewer pairs than without."""
    import torch

    counted = {}
    step = word_vectors._pairs

    def spy(tokens: torch.Tensor, text_of: torch.Tensor, keep: torch.Tensor, *rest: object) -> object:
        counted[len(counted)] = keep.min().item()
        return step(tokens, text_of, keep, *rest)

    monkeypatch.setattr(word_vectors, "_pairs", spy)
    fit(texts, replace(TINY, epochs=1))
    fit(texts, replace(TINY, epochs=1, sample=0.01))
    # 了 is a quarter of the tokens: √(0.01 / 0.25) + 0.01 / 0.25
    assert counted == {0: 1.0, 1: pytest.approx(0.2 + 0.04)}


def test_too_few_words() -> None:
    """Texts in which no two words occur often enough are BadInput."""
    for some in ([], [[]], [["a", "a", "b"]]):
        with pytest.raises(BadInput, match="occur 2 times"):
            fit(some, TINY)
