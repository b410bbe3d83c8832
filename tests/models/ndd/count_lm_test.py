"""The masked language model of counts: against a plain dictionary one, by hand, kept and loaded, at all borders."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.models.ndd.count_lm import CountLM, fit, load, measure_cross_entropy
from pipeline.training import registry

CORPUS = [
    ["the", "cold", "soup", "is", "cold"], ["the", "soup", "is", "warm", "again"],
    ["今天", "的", "汤", "又", "凉", "了"], ["the", "hat"], [],
]  # fmt: skip
END, UNKNOWN = "</s>", "<unk>"
letters = st.sampled_from("abcdeA")
corpora = st.lists(st.lists(letters, max_size=8), min_size=1, max_size=8).filter(any)


def predict(
    model: CountLM, sentences: Sequence[Sequence[str]], asks: Sequence[tuple[int, int]]
) -> npt.NDArray[np.float64]:
    """Probabilities [asks, size] in the order of the asks, each answered once."""
    sentence, place = np.array(asks, np.int64).reshape(-1, 2).T
    distributions = np.full((len(asks), model.size), np.nan)
    for rows, logs in model.distributions(sentences, sentence, place):
        assert logs.dtype == torch.float32
        assert np.isnan(distributions[rows]).all()
        distributions[rows] = logs.double().exp().numpy()
    return distributions


def list_places(sentences: Sequence[Sequence[str]]) -> list[tuple[int, int]]:
    """All places of sentences, those around them too."""
    return [(row, place) for row, words in enumerate(sentences) for place in range(-1, len(words) + 1)]


def textbook(corpus: Sequence[Sequence[str]], vocabulary: int) -> Callable[[str | None, str | None], dict[str, float]]:
    """Witten and Bell's estimate by dictionaries, written from the formula (Chen and Goodman 1998, section 2.4)."""
    times = Counter(word for words in corpus for word in words)
    vocabulary_words = sorted(times, key=lambda word: (-times[word], word))[:vocabulary]
    names = [*vocabulary_words, UNKNOWN]

    def name(word: str | None) -> str | None:
        return word if word in (None, END) or word in vocabulary_words else UNKNOWN

    contexts: dict[object, Counter[str]] = {}
    for words in corpus:
        full = [END, *(str(name(word)) for word in words), END]
        for before, word, behind in zip(full, full[1:], full[2:], strict=False):
            for context in ("alone", ("left", before), ("right", behind), ("both", before, behind)):
                contexts.setdefault(context, Counter())[word] += 1

    def smoothed(context: object, lower: dict[str, float]) -> dict[str, float]:
        count = contexts.get(context, Counter())
        total, types = sum(count.values()), len(count)
        return {word: (count[word] + types * lower[word]) / (total + types) for word in names} if total else lower

    def estimate(before: str | None, behind: str | None) -> dict[str, float]:
        before, behind = name(before), name(behind)
        alone = smoothed("alone", dict.fromkeys(names, 1 / len(names)))
        left_share, right_share = smoothed(("left", before), alone), smoothed(("right", behind), alone)
        if before is None or behind is None:
            return right_share if before is None else left_share
        mean = {word: (left_share[word] + right_share[word]) / 2 for word in names}
        return smoothed(("both", before, behind), mean)

    return estimate


@settings(max_examples=20)
@given(corpora, st.lists(st.lists(st.sampled_from("abcdeAxy"), max_size=5), min_size=1, max_size=3), st.integers(1, 7))
def test_equals_the_textbook(corpus: list[list[str]], sentences: list[list[str]], vocabulary: int) -> None:
    """Each distribution is that of the plain dictionaries, around the sentence with one neighbour only."""
    model, estimate = fit(corpus, vocabulary), textbook(corpus, vocabulary)
    places = list_places(sentences)
    for (row, place), distribution in zip(places, predict(model, sentences, places), strict=True):
        full = [None, END, *sentences[row], END, None]
        expected = estimate(full[place + 1], full[place + 3])
        assert [*expected] == [*model.words, UNKNOWN]
        assert distribution == pytest.approx([*expected.values()], abs=1e-6)


@settings(max_examples=20)
@given(corpora, st.lists(st.lists(st.sampled_from("abcdeAxy"), max_size=6), min_size=1, max_size=4), st.booleans())
def test_distributions_are_ones(corpus: list[list[str]], sentences: list[list[str]], is_cached: bool) -> None:
    """Every row sums to one and no word is impossible; a word's surprisal is its entry of the row."""
    model = replace(fit(corpus, 4), cache=0.25 if is_cached else 0.0)
    distributions = predict(model, sentences, list_places(sentences))
    assert distributions.sum(axis=1) == pytest.approx(np.ones(len(distributions)), abs=1e-5)
    assert (distributions > 0).all()
    inner = [(row, place) for row, words in enumerate(sentences) for place in range(len(words))]
    number = [model.number.get(sentences[row][place], len(model.words)) for row, place in inner]
    chance = predict(model, sentences, inner)[np.arange(len(inner)), number]
    surprisal = model.surprisals(sentences)
    assert [len(values) for values in surprisal] == [len(words) for words in sentences]
    assert np.exp(-np.concatenate([np.empty(0), *surprisal])) == pytest.approx(chance, abs=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_one_by_one_equals_a_batch(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asks together, one at a time, in small batches and with little kept have the same answers to the last digit."""
    sentences = [*CORPUS, ["the", "warm", "hat", "is", "cold"]]
    model, asks = replace(fit(CORPUS, 6), cache=share), list_places(sentences) * 2
    batch = predict(model, sentences, asks)
    assert np.array_equal(batch, np.concatenate([predict(model, sentences, [ask]) for ask in asks]))
    assert np.array_equal(batch[: len(asks) // 2], batch[len(asks) // 2 :])
    monkeypatch.setattr("pipeline.models.ndd.count_lm._ROWS", 3)
    assert np.array_equal(batch, predict(replace(model, cache=share), sentences, asks))
    together = np.concatenate(model.surprisals(sentences))
    assert np.array_equal(together, np.concatenate([model.surprisals([words])[0] for words in sentences]))
    assert model.surprisals([]) == []
    assert predict(model, [], []).shape == (0, model.size)


def test_the_cache_lets_far_words_count() -> None:
    """A share for the sentence's other words: "hat" is likelier where it stood before, the masked word not counted."""
    model = replace(fit(CORPUS), cache=0.4)
    far, none = ["hat", "cold", "hat", "is", "x", "warm"], ["again", "cold", "the", "is", "x", "warm"]
    plain = predict(replace(model, cache=0), [far], [(0, 4)])[0]
    with_hat, without = predict(model, [far, none], [(0, 4), (1, 4)])
    hat = model.number["hat"]
    assert with_hat[hat] == pytest.approx(0.6 * plain[hat] + 0.4 * 2 / 5)
    assert without[hat] == pytest.approx(0.6 * plain[hat])
    assert predict(model, [["hat"]], [(0, 0)]) == pytest.approx(predict(replace(model, cache=0), [["hat"]], [(0, 0)]))
    behind = predict(model, [["hat", "soup"]], [(0, 2)])[0]  # all words are others of what stands behind them
    assert behind[hat] >= 0.4 / 2
    assert model.signature != replace(model, cache=0).signature


def test_words_not_known_are_one() -> None:
    """Beyond the vocabulary and outside the corpus words share the last entry; ties go by code point.

    Case is kept unless it is folded, then in what is asked as well.
    """
    assert fit([["Soup", "soup"]]).words == ["Soup", "soup"]
    folded = fit([["Soup", "soup"]], is_folded=True)
    assert folded.words == ["soup"]
    assert folded.signature != fit([["soup", "soup"]]).signature
    assert np.array_equal(folded.surprisals([["SOUP"]])[0], folded.surprisals([["soup"]])[0])
    model = fit([["b", "a", "c", "c"]], 2)
    assert model.words == ["c", "a"]
    first, second = model.surprisals([["c", "b"], ["c", "宇"]])
    assert np.array_equal(first, second)
    assert predict(model, [["c", "b"]], [(0, 1)])[0, -1] == pytest.approx(math.exp(-first[1]))
    literal = fit([["<unk>", "</s>", "{0}", ""]])
    assert len(set(literal.words)) == 4  # words that look like marks are words
    model, sentences = fit([["the", "soup", "is"]] * 5), [["the", "soup", "is"], ["hat"]]
    surprisals = np.concatenate(model.surprisals(sentences))  # of three words it knows and one it does not
    assert measure_cross_entropy(model, sentences) == (pytest.approx(surprisals.mean()), 0.75, 4)


def test_rare_contexts_are_left_out_over_the_limit() -> None:
    """Neighbours seen once as a pair are pruned and counted; those seen twice stay, and one-sided counts all do."""
    corpus = [["a", "b", "c"], ["a", "d", "c"], ["d", "d"]]
    complete, pruned = fit(corpus), fit(corpus, limit=5)
    assert (complete.pruned, len(complete.both)) == (0, 8)
    assert (pruned.pruned, len(pruned.both)) == (2, 6)
    assert complete.number["b"] not in pruned.both[:, :2]
    assert np.array_equal(complete.left, pruned.left)
    assert predict(pruned, corpus, list_places(corpus)).sum(axis=1) == pytest.approx(1)
    none = fit([["a"]], limit=0)
    assert (none.pruned, none.both.shape) == (1, (0, 4))
    loaded = load(none.tensors(), none.config())
    assert predict(loaded, [["a"]], [(0, 0)]) == pytest.approx(predict(none, [["a"]], [(0, 0)]))


def test_kept_and_loaded(tmp_path: Path) -> None:
    """Through safetensors and JSON the same model comes back: answers, signature and options."""
    model = replace(fit(CORPUS, 7, is_folded=True, limit=3), cache=0.2)
    stored = registry.fetch(tmp_path, registry.add(tmp_path, model.tensors(), model.config()))
    loaded = load(stored.tensors(), stored.config)
    assert (loaded.signature, loaded.pruned, loaded.cache) == (model.signature, model.pruned, 0.2)
    assert np.array_equal(predict(loaded, CORPUS, list_places(CORPUS)), predict(model, CORPUS, list_places(CORPUS)))


@pytest.mark.parametrize(
    ("tensors", "config", "message"),
    [
        ({}, {"kind": "impscore"}, "no model of kind 'count'.*impscore"),
        ({}, {"words": [1]}, "no model of kind"),
        ({"left": torch.zeros(2, 3)}, {}, r"'left'.*found float32 \[2, 3\]"),
        ({"both": torch.zeros(2, 3, dtype=torch.int32)}, {}, r"'both': expected int32 \[k, 4\]"),
        ({"right": torch.tensor([[0, 9, 1]], dtype=torch.int32)}, {}, "'right': counts below 1, or numbers that none"),
        ({"right": torch.tensor([[0, 0, 0]], dtype=torch.int32)}, {}, "'right': counts below 1"),
    ],
)
def test_what_is_no_model(tensors: dict[str, torch.Tensor], config: dict[str, object], message: str) -> None:
    """Another kind, words that are none, tables of another form or with numbers of no word are refused."""
    model = fit([["a", "b"]])
    with pytest.raises(BadInput, match=message):
        load({**model.tensors(), **tensors}, {**model.config(), **config})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fit([[], []]), "nothing to count"),
        (lambda: fit(CORPUS, 0), "expected 1 to 1,000,000 words, found 0"),
        (lambda: replace(fit(CORPUS), cache=1.0), "a share from 0 to below 1, found 1.0"),
        (lambda: replace(fit(CORPUS), cache=-0.1), "found -0.1"),
        (lambda: measure_cross_entropy(fit(CORPUS), [[]]), "nothing to predict"),
    ],
)
def test_bad_input(call: Callable[[], object], message: str) -> None:
    """A corpus without words, a vocabulary of none and a share of all are refused, and asks beyond a sentence."""
    with pytest.raises(BadInput, match=message):
        call()
    for place in (-2, 3):
        with pytest.raises(ValueError, match=f"ask 1: expected a place from -1 to 2, found {place}"):
            predict(fit(CORPUS), [["the", "soup"], ["the", "hat"]], [(0, 0), (0, place)])
