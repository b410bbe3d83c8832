"""W-CIDEr and CIDEr-D: the formula written with dictionaries, hand arithmetic, the coco code where it is there."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.metrics.overlap.cider import cider
from pipeline.metrics.overlap.frequencies import count_documents
from pipeline.metrics.overlap.metric import Metric
from pipeline.metrics.overlap.segments import read_batches
from tests.support.overlap_cases import Case, drawn, seeds, whole
from tests.support.plain_cider import plainly


def scores(metric: Metric, case: Case, *, weighted: bool = True) -> list[float]:
    """Of every segment."""
    values: list[float] = metric.score(metric.stats(whole(case, weighted=weighted))).tolist()
    return values


@settings(max_examples=100)
@given(seeds, st.booleans(), st.integers(1, 4), st.booleans())
def test_it_is_the_plain_one(seed: int, is_d: bool, order: int, has_weights: bool) -> None:
    """Both variants are the formula within 1e-12, 100 segments at a time, with weights and with all one (AAC-19)."""
    case = drawn(seed)
    if not has_weights:
        case = case._replace(weights=[[1.0] * len(row) for row in case.weights])
    metric = cider(count_documents(case.references, order, buckets=1 << 10), order, "d" if is_d else "plain")
    expected = plainly(case, order, is_d=is_d)
    np.testing.assert_allclose(scores(metric, case), expected, rtol=0, atol=1e-12)
    assert float(metric.score(metric.stats(whole(case)).sum(axis=0))) == pytest.approx(np.mean(expected), abs=1e-12)


@settings(max_examples=20)
@given(seeds)
def test_with_weights_of_one_it_is_the_coco_code(seed: int) -> None:
    """CIDEr-D scores as pycocoevalcap 1.2 does within 1e-12 (AAC-17, AAC-19)."""
    reason = "pycocoevalcap is no dependency (100 MB); pip install --no-deps pycocoevalcap==1.2"
    scorer = pytest.importorskip("pycocoevalcap.cider.cider_scorer", reason=reason).CiderScorer()
    case = drawn(seed)
    for candidate, references in zip(case.candidates, case.references, strict=True):
        scorer += (" ".join(candidate), [" ".join(reference) for reference in references])
    _, expected = scorer.compute_score()
    actual = scores(cider(count_documents(case.references), variant="d"), case, weighted=False)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)


def test_cosines_by_hand() -> None:
    """Words of one document of two weigh log 2, those of both nothing: a b and a c have no word that counts.

    x y meets x y at cosine 1 in words, and x z at 1 / 2; bigrams are 1 and 0. With weights 0.5 and 1 of K = 2:
    (0.5 · 1 + 1 · 0.5) / 2 in words, 0.5 / 2 in bigrams, and their mean.
    """
    references = [[["x", "y"], ["x", "z"]], [["a", "b"], ["a", "c"]]]
    case = Case([["x", "y"], ["a", "d"]], references, [[0.5, 1.0], [1.0, 1.0]])
    frequencies = count_documents(references, 2)
    assert scores(cider(frequencies, 1), case)[0] == pytest.approx(0.5)
    assert scores(cider(frequencies, 2), case)[0] == pytest.approx((0.5 + 0.25) / 2)
    # of the second, a (log 2) is one of two words in each text
    assert scores(cider(frequencies, 1), case)[1] == pytest.approx(0.5)


def test_what_d_adds_by_hand() -> None:
    """Of x x and x y: 2 clipped to 1 gives 10 / (2 √2), plain 2 / (2 √2); one bigram more costs exp(-1 / 72)."""
    references = [[["x", "y"]], [["o"]]]
    frequencies = count_documents(references, 1)
    metric, plain = cider(frequencies, 1, "d"), cider(frequencies, 1)
    case = Case([["x", "x"], ["p"]], references, [[1.0], [1.0]])
    assert scores(metric, case) == pytest.approx([10 / (2 * math.sqrt(2)), 0])
    assert scores(plain, case) == pytest.approx([2 / (2 * math.sqrt(2)), 0])
    longer = case._replace(candidates=[["x", "x", "x"], ["p"]])
    assert scores(metric, longer)[0] == pytest.approx(10 / (3 * math.sqrt(2)) * math.exp(-1 / 72))
    assert scores(cider(frequencies, 1, "d", sigma=1), longer)[0] == pytest.approx(
        10 / (3 * math.sqrt(2)) * math.exp(-0.5)
    )


def test_one_document_knows_no_rare_words() -> None:
    """Of one document every word is in all: log 1 is 0, and so is every score."""
    case = Case([["x"]], [[["x"]]], [[1.0]])
    for variant in ("plain", "d"):
        assert scores(cider(count_documents(case.references), variant=variant), case) == [0]


@settings(max_examples=50)
@given(seeds, st.booleans())
def test_properties(seed: int, is_d: bool) -> None:
    """No reference order, monotone in weights, 0 with weights of 0; batches do not matter; within the scale."""
    case = drawn(seed, 40)
    metric = cider(count_documents(case.references), variant="d" if is_d else "plain")
    before = np.array(scores(metric, case))
    turned = case._replace(
        references=[owned[::-1] for owned in case.references], weights=[row[::-1] for row in case.weights]
    )
    np.testing.assert_allclose(scores(metric, turned), before, atol=1e-12)
    raised = case._replace(weights=[[min(1.0, weight + 0.3) for weight in row] for row in case.weights])
    assert (np.array(scores(metric, raised)) >= before - 1e-12).all()
    assert not any(scores(metric, case._replace(weights=[[0.0] * len(row) for row in case.weights])))
    parts = [metric.stats(batch) for batch in read_batches(*case, size=7)]
    np.testing.assert_allclose(np.concatenate(parts)[:, 0], before, rtol=0, atol=1e-12)
    assert ((before >= 0) & (before <= (10 if is_d else 1) + 1e-12)).all()


def test_a_candidate_that_is_its_only_reference_has_one() -> None:
    """Five words that stand in no other document: 1, or 10 with CIDEr-D."""
    references = [[["今天", "的", "雪", "真", "大"]], [["早起", "赶", "地铁"]]]
    case = Case([references[0][0], []], references, [[1.0], [1.0]])
    frequencies = count_documents(references)
    assert scores(cider(frequencies), case) == pytest.approx([1, 0])
    assert scores(cider(frequencies, variant="d"), case) == pytest.approx([10, 0])


def test_signatures() -> None:
    """The documents are part of the metric, and so is sigma where it is used."""
    first, second = (count_documents([[[word]], [[word]]]) for word in "ab")
    assert cider(first).signature.startswith(f"documents:2@{first.digest()}|order:4|")
    metrics = [
        cider(first),
        cider(second),
        cider(first, 3),
        cider(first, variant="d"),
        cider(first, variant="d", sigma=5),
    ]
    assert len({metric.signature for metric in metrics}) == len(metrics)
    assert [metric.name for metric in metrics] == ["CIDEr", "CIDEr", "CIDEr", "CIDEr-D", "CIDEr-D"]


def test_what_is_no_cider() -> None:
    """Longer n-grams than were counted, an unknown variant, and a penalty without width are errors."""
    frequencies = count_documents([[["a"]]], 2)
    with pytest.raises(ValueError, match="between 1 and 2"):
        cider(frequencies)
    with pytest.raises(ValueError, match="plain or d, not 'D'"):
        cider(frequencies, 2, "D")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="sigma should be above 0"):
        cider(frequencies, 2, "d", sigma=0)
