"""W-METEOR: equal to nltk's with all weights 1, by hand with fractions, against the METEOR 1.5 jar, by properties."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate import meteor_score

from pipeline.metrics.overlap.meteor import PRESETS, count_fewest_chunks, meteor
from pipeline.metrics.overlap.segments import read_batches
from tests.support.oracles.overlap_cases import draw_case, score_case, score_text, seeds

# meteor-1.5.jar -l other -m exact, a reference each: with the parameters of `other`, and with -p "0.7 1.4 0.3 0.7". The
# texts have no English function words, which the jar counts in any language.
JAR = [
    ("w x y z", "w x z y", 0.5320668547839242, 0.7994572234788247),
    ("x y w z", "x y w z", 1.0, 1.0),
    ("z y x", "x y", 0.2666666666666667, 0.6086956521739131),
    (
        "这 部 电影 的 演员 ， 演技 真 的 好",
        "电影 的 演员 真 的 好 ， 演技 也 好",
        0.6581491959553356,
        0.7392067982665724,
    ),
    ("他 说 的 对 ， 我 说 的 也 对", "我 说 的 对 ， 他 说 的 不 对", 0.6975652693764295, 0.8132422583041841),
    ("1 2 1 2 3 1 2", "2 1 2 3 1 2 1 4", 0.7937800025888351, 0.8618809844191171),
]
JAR_TOGETHER = {"1.5-other": 0.7138936657121906, "1.5-universal": 0.8172326236510892}
"""Its final scores of all six."""


class Identity:
    """A stemmer that leaves words as they are, and a WordNet that knows none."""

    def stem(self, word: str) -> str:
        return word

    def synsets(self, _: str) -> list[object]:
        return []


@settings(max_examples=40)
@given(seeds)
def test_with_all_weights_one_it_is_nltks(seed: int) -> None:
    """40 examples of 100 segments: nltk's METEOR without stems and synonyms, to 1e-12 (AAC-19)."""
    case, plain = draw_case(seed, kinds=7), Identity()
    expected = [
        meteor_score.meteor_score(references, candidate, stemmer=plain, wordnet=plain)
        for candidate, references in zip(*case[:2], strict=True)
    ]
    assert score_case(meteor(), *case[:2]) == pytest.approx(expected, abs=1e-12, rel=0)


def test_the_paper_s_metric_on_a_known_example() -> None:
    """P = 6/7, R = 1, two chunks: F .9836, penalty .0185, score .9654 (AAC-14)."""
    actual = score_text(meteor("2005"), "the cat was sat on the mat", ["the cat sat on the mat"])
    mean, penalty = 10 * 6 / 7 / (1 + 9 * 6 / 7), 0.5 * (2 / 6) ** 3
    assert (mean, penalty) == pytest.approx((0.9836, 0.0185), abs=5e-5)
    assert actual == pytest.approx(mean * (1 - penalty), abs=1e-15)
    assert round(actual, 4) == 0.9654
    assert PRESETS["2005"] == PRESETS["1.0"]


def test_weights_by_hand() -> None:
    """A good reference that matches less beats a bad one that matches all; `argmax` takes its penalty.

    c = a b c d. r_1 = a b, s .8: P 1/2, R 1, F 10/11, one chunk of two matches, penalty 1/16. r_2 = a b c d, s .4: F 1,
    penalty 1/128. r_3 = c b a x y, s .9: P 3/4, R 3/5, F 4.5/7.35, three chunks of three matches, penalty 1/2.
    """
    references, weights = ["a b", "a b c d", "c b a x y"], [0.8, 0.4, 0.9]
    first = 0.8 * (10 * 0.5 / (1 + 9 * 0.5)) * (1 - 1 / 16)
    third = 0.9 * (10 * 0.75 * 0.6 / (0.6 + 9 * 0.75)) * (1 - 1 / 2)
    assert score_text(meteor(), "a b c d", references[:2], weights[:2]) == pytest.approx(first)
    assert score_text(meteor(), "a b c d", references, weights) == pytest.approx(max(first, third))
    # .9 F_3 = .551 is above .5 F_2, but after the penalties .276 is below .496
    other = ("a b c d", references[1:], [0.5, 0.9])
    assert score_text(meteor(), *other) == pytest.approx(0.5 * (1 - 1 / 128))
    assert score_text(meteor(penalty="argmax"), *other) == pytest.approx(third)


@pytest.mark.parametrize(("candidate", "reference", "other", "universal"), JAR)
def test_meteor_1_5(candidate: str, reference: str, other: float, universal: float) -> None:
    """The presets of METEOR 1.5 give what its jar gives, among it no penalty for the reference itself."""
    for preset, expected in (("1.5-other", other), ("1.5-universal", universal)):
        actual = score_text(meteor(preset, alignment="fewest_chunks"), candidate, [reference])
        assert actual == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("preset", "expected"), [*JAR_TOGETHER.items()])
def test_aggregate_is_meteor_1_5_s(preset: str, expected: float) -> None:
    """Of the sums over all segments, with all weights 1, comes the jar's final score."""
    metric = meteor(preset, alignment="fewest_chunks", corpus="aggregate")
    [batch] = read_batches([c.split() for c, *_ in JAR], [[r.split()] for _, r, *_ in JAR])
    assert metric.score(metric.stats(batch).sum(axis=0)) == pytest.approx(expected, abs=1e-12)


def count_by_trial(candidate: str, reference: str) -> int:
    """Count the fewest chunks by trying every alignment."""
    most = (Counter(candidate) & Counter(reference)).total()

    def after(place: int, used: frozenset[int], last: int, chunks: int) -> float:
        if place == len(candidate):
            return chunks if len(used) == most else np.inf
        free = [i for i, word in enumerate(reference) if word == candidate[place] and i not in used]
        matched = (after(place + 1, used | {i}, i, chunks + (i != last + 1)) for i in free)
        return min([after(place + 1, used, -2, chunks), *matched])

    return int(after(0, frozenset(), -2, 0))


@given(st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_fewest_chunks_is_exact(candidate: str, reference: str) -> None:
    """No alignment with as many matches has fewer chunks; a beam of one never claims fewer."""
    candidate_words, reference_words = ([ord(letter) for letter in text] for text in (candidate, reference))
    expected = count_by_trial(candidate, reference)
    assert count_fewest_chunks(candidate_words, reference_words) == expected
    assert count_fewest_chunks(candidate_words, reference_words, states=1) >= expected


@settings(max_examples=15)
@given(seeds)
def test_fewest_chunks_of_the_references_that_matter(seed: int) -> None:
    """Searching only where it may help gives the best over all references of the exact number of chunks."""
    case = draw_case(seed, 20, kinds=7)
    expected = []
    for candidate, references, weights in zip(*case, strict=True):
        values = [0.0]
        for reference, weight in zip(references, weights, strict=True):
            if matches := (Counter(candidate) & Counter(reference)).total():
                precision, recall = matches / len(candidate), matches / len(reference)
                fragments = count_fewest_chunks([*map(ord, candidate)], [*map(ord, reference)]) / matches
                mean = precision * recall / (0.9 * precision + 0.1 * recall)
                values.append(weight * mean * (1 - 0.5 * fragments**3))
        expected.append(max(values))
    actual = score_case(meteor(alignment="fewest_chunks"), *case)
    assert actual == pytest.approx(expected, abs=1e-12)
    assert (actual >= score_case(meteor(), *case) - 1e-12).all()


def test_aggregate_by_hand() -> None:
    """Sums of the best references: 4 + 2 matches, 5 + 2 and 4 + 4 words, 1 + 2 chunks, weights .5 and 1."""
    metric = meteor(corpus="aggregate", preset="1.0")
    segments = [list("abcdx"), list("ab")], [[list("abcd"), list("zz")], [list("bxax")]], [[0.5, 1.0], [1.0]]
    [batch] = read_batches(*segments)
    rows = metric.stats(batch)
    assert rows.tolist() == [[4, 5, 4, 1, 2], [2, 2, 4, 2, 2]]
    precision, recall = 6 / 7, 6 / 8
    mean = 10 * precision * recall / (recall + 9 * precision)
    assert metric.score(rows.sum(axis=0)) == pytest.approx(4 / 6 * mean * (1 - 0.5 * (3 / 6) ** 3))
    assert metric.score(rows) == pytest.approx(score_case(meteor(), *segments))


def test_the_signature_holds_every_parameter() -> None:
    """Also those that a preset brings, as METEORs differ widely (AAC-15)."""
    actual = dict(part.split(":") for part in meteor("1.5-other", beta=2.0, penalty="argmax").signature.split("|"))
    actual.pop("undertone")
    numbers = {"preset": "1.5-other", "alpha": "0.75", "beta": "2", "gamma": "0.7", "spares_equal": "yes"}
    assert actual == {**numbers, "penalty": "argmax", "alignment": "greedy", "corpus": "mean"}
