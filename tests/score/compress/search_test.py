"""Compression by search."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.score.compress import scorers
from pipeline.score.compress.search import Search, compress
from tests.support.rows.masked import Drawn

WORDS = st.lists(st.sampled_from("abcdef"), max_size=9)


def by_letter(sentences: list[list[str]], candidates: list[np.ndarray], limits: object = None) -> list[np.ndarray]:
    """Score a span by the sum of the digits that its words are."""
    return [
        np.array([float(sum(map(int, words[s:e]))) for s, e in word_spans.tolist()])
        for words, word_spans in zip(sentences, candidates, strict=True)
    ]


def plain(words: list[str], search: Search, scorer: scorers.Scorer) -> list[bool]:
    """Search as section 4.1 says, without any batch: pairs of overlapping spans, one after another."""
    positions, longest = list(range(len(words))), search.longest or 5
    for _ in range(search.rounds):
        now = [words[place] for place in positions]
        ends = [(s, e) for s in range(len(now)) for e in range(s + 1, min(s + longest, len(now)) + 1)]
        all_spans = [span for span in ends if span != (0, len(now))]
        if not all_spans:
            break
        costs = dict(zip(all_spans, scorer([now], [np.array(all_spans)])[0].tolist(), strict=True))
        cheap = [span for span in all_spans if costs[span] <= search.threshold]
        stay: list[tuple[int, int]] = []
        for span in sorted(cheap, key=lambda entry: (costs[entry], entry[0] - entry[1], entry)):
            if all(span[1] <= start or end <= span[0] for start, end in stay):
                stay.append(span)
        dropped, room = set(), len(now) - 1
        for start, end in sorted(stay, key=lambda span: costs[span]):
            if end - start <= room:
                dropped |= set(range(start, end))
                room -= end - start
        if not dropped:
            break
        positions = [place for k, place in enumerate(positions) if k not in dropped]
    return [place in positions for place in range(len(words))]


def test_selected_spans_equal_a_plain_search() -> None:
    """60 sentences of drawn words, with NDD of a model that looks at every word (NDD-14 to 16)."""
    rng = np.random.default_rng(0)
    sentences = [[str(w) for w in rng.choice(list("abcdefgh"), rng.integers(1, 9))] for _ in range(60)]
    search = Search(longest=3, threshold=4.0)
    actual = compress(sentences, scorers.ndd(Drawn()), search)
    expected = [plain(words, search, scorers.ndd(Drawn())) for words in sentences]
    assert [span.is_kept.tolist() for span in actual] == expected
    assert 0 < sum(map(sum, expected)) < sum(map(len, sentences))


@settings(max_examples=25, deadline=None)
@given(st.lists(WORDS, max_size=4), st.floats(0, 9), st.integers(1, 5))
def test_a_compression_keeps_a_word_and_shrinks_by_the_round(
    sentences: list[list[str]], threshold: float, rounds: int
) -> None:
    """Each intermediate output is a part of the one before, down to the last, and never empty (NDD-16)."""
    search = Search(longest=3, threshold=threshold, rounds=rounds)
    for words, actual in zip(sentences, compress(sentences, scorers.ndd(Drawn()), search), strict=True):
        steps = [actual.after(number) for number in range(rounds + 1)]
        assert steps[0].all()
        assert all((after <= before).all() for before, after in pairwise(steps))
        assert steps[-1].tolist() == actual.is_kept.tolist()
        assert actual.is_kept.any() == bool(words)
        assert actual.rounds.max(initial=0) <= rounds
        dropped = {place: span.round for span in actual.dropped for place in span.places}
        assert dropped == {place: number for place, number in enumerate(actual.rounds.tolist()) if number}
        assert all(span.cost <= threshold for span in actual.dropped)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(WORDS, max_size=4),
    st.sampled_from([{"threshold": 1.0}, {"threshold": 9.0}, {"ratio": 0.4}, {"threshold": 9.0, "spans": "released"}]),
    st.sampled_from(["balanced", "exponential"]),
)
def test_costs_that_are_left_unfinished_change_nothing(
    sentences: list[list[str]], numbers: dict[str, Any], weighting: str
) -> None:
    """Spans left as soon as they cannot be selected give the same compressions as all costs, from fewer questions."""
    models = Drawn(), Drawn()
    lazy, full = (scorers.ndd(model, weighting=weighting) for model in models)
    search = Search(longest=3, **numbers)
    actual = compress(sentences, lazy, search)
    expected = compress(sentences, lambda texts, spans, _: full(texts, spans), search)
    assert [(c.rounds.tolist(), c.dropped) for c in actual] == [(c.rounds.tolist(), c.dropped) for c in expected]
    assert models[0].ask_count <= models[1].ask_count


def test_rounds_go_on_until_nothing_is_cheap_enough() -> None:
    """What costs at most the threshold goes, in so many rounds at most; a ratio takes the cheapest first."""
    words = list("0120")
    assert compress([words], by_letter, Search(threshold=99, spans="released"))[0].is_kept[-1]  # NDD-14
    assert compress([words], by_letter, Search(threshold=0.5))[0].is_kept.tolist() == [False, True, True, False]
    assert compress([words], by_letter, Search(threshold=-1))[0].is_kept.all()
    assert compress([words], by_letter, Search(threshold=99, longest=1))[0].is_kept.sum() == 1
    words = list("58361724")
    actual = compress([words], by_letter, Search(ratio=0.5, longest=1, threshold=0.1))[0]
    assert [word for word, stays in zip(words, actual.is_kept, strict=True) if stays] == list("5867")


@settings(max_examples=30, deadline=None)
@given(st.lists(WORDS.filter(bool), min_size=1, max_size=4), st.floats(0.05, 1))
def test_a_ratio_is_met_to_the_word(sentences: list[list[str]], ratio: float) -> None:
    """Each sentence keeps ratio · n of its words, rounded, and at least one."""
    compressions = compress(sentences, scorers.ndd(Drawn()), Search(ratio=ratio, longest=3))
    for words, actual in zip(sentences, compressions, strict=True):
        assert actual.is_kept.sum() == max(1, round(ratio * len(words)))


def test_a_ratio_does_not_hang_on_the_scale_of_the_scorer() -> None:
    """Costs a thousand times as high, or as low, drop the same words in the same rounds."""
    words = [list("58361724"), list("10293847")]

    def scaled(factor: float) -> list[list[int]]:
        compressions = compress(words, lambda *args: [factor * cost for cost in by_letter(*args)], Search(ratio=0.4))
        return [compression.rounds.tolist() for compression in compressions]

    assert scaled(1) == scaled(1000) == scaled(0.001)


@st.composite
def sentences_with_heads(draw: st.DrawFn) -> tuple[list[str], list[int]]:
    """A sentence of digits and a random tree over it."""
    length = draw(st.integers(1, 9))
    heads, order = [-1] * length, draw(st.permutations(range(length)))
    for number, index in enumerate(order[1:], 1):
        heads[index] = order[draw(st.integers(0, number - 1))]
    return [str(draw(st.integers(0, 3))) for _ in range(length)], heads


@settings(max_examples=60, deadline=None)
@given(sentences_with_heads(), st.floats(0, 9))
def test_with_trees_only_whole_subtrees_are_dropped(case: tuple[list[str], list[int]], threshold: float) -> None:
    """What is kept after each round is closed under heads, and so is the root (section 4.2, SC; NDD-21)."""
    words, heads = case
    actual = compress([words], by_letter, Search(threshold=threshold), [heads])[0]
    for number in range(1, actual.rounds.max(initial=0) + 1):
        is_kept = actual.after(number)
        assert all(is_kept[head] for word, head in enumerate(heads) if is_kept[word] and head >= 0)


def test_longest_span_is_nine_with_trees_and_five_without() -> None:
    """Section 4.2 (NDD-17): a subtree of seven words goes in the first round, of ten words none."""
    lengths: list[int] = []

    def score_high(sentences: object, candidates: list[np.ndarray], limits: object = None) -> list[np.ndarray]:
        lengths.append(int((candidates[0][:, 1] - candidates[0][:, 0]).max()))
        return [np.full(len(candidates[0]), 99.0)]

    chain = list(range(-1, 11))
    compress([["0"] * 12], score_high)
    compress([["0"] * 12], score_high, None, [chain])
    assert lengths == [5, 9]


@pytest.mark.parametrize(
    "numbers",
    [{"ratio": 0.0}, {"ratio": 1.5}, {"rounds": 0}, {"longest": 0}, {"threshold": float("nan")}, {"spans": "all"}],
)
def test_numbers_that_cannot_be_are_refused(numbers: dict[str, float]) -> None:
    """A ratio is in (0, 1], rounds and spans have at least one, a threshold is a number."""
    (name,) = numbers
    with pytest.raises(ValueError, match=f"{name}.* should be"):
        compress([["a"]], by_letter, Search(**numbers))  # type: ignore[arg-type]
