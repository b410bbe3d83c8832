"""What every overlap metric has: a range, weights that count, errors of its options; references are a set."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings

from pipeline.metrics.overlap.bleu import bleu
from pipeline.metrics.overlap.cider import cider, count_documents
from pipeline.metrics.overlap.meteor import meteor
from pipeline.metrics.overlap.metric import Metric, mean, signature
from pipeline.metrics.overlap.rouge import rouge_l
from tests.support.oracles.overlap_cases import draw_case, read_case, score_case, seeds

DOCUMENTS = count_documents(draw_case(0).references)
METRICS = [
    bleu(2), bleu(2, "floor"), bleu(4, effective_order=True), meteor(), meteor("1.5-other", alignment="fewest_chunks"),
    meteor(corpus="aggregate", alignment="fewest_chunks"), meteor(penalty="argmax"),
    meteor(penalty="argmax", corpus="aggregate", gamma=1.0), rouge_l("coco"), rouge_l("best"), rouge_l("union"),
    rouge_l("union", length="shortest"), rouge_l("union", length="longest", beta=0.5), cider(DOCUMENTS),
    cider(DOCUMENTS, variant="d"),
]  # fmt: skip


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.signature)
@settings(max_examples=8)
@given(seed=seeds)
def test_properties(metric: Metric, seed: int) -> None:
    """Scores are within the scale, 0 for weights of 0, and no less with more weight.

    Neither the order of references nor the size of batches matters. Only with `penalty="argmax"` can weight cost.
    """
    case, highest = draw_case(seed, kinds=7), 10 if metric.name == "CIDEr-D" else 1
    scores = score_case(metric, *case)
    assert ((scores >= 0) & (scores <= highest + 1e-12)).all()
    assert 0 <= metric.score(metric.stats(read_case(case)).sum(axis=0)) <= highest
    assert score_case(metric, *case.reverse(), size=7) == pytest.approx(scores, rel=0, abs=1e-12)
    assert not score_case(metric, *case.weigh(0)).any()
    if "penalty:argmax" not in metric.signature:
        assert (score_case(metric, *case.raise_weights(1, 2)) >= scores - 1e-12).all()


@pytest.mark.parametrize(
    ("build", "options", "message"),
    [
        (bleu, {"order": 0}, "order should be at least 1, not 0"),
        (bleu, {"smoothing": "add-k"}, "smoothing should be one of none, floor, add_k, exp, not 'add-k'"),
        (bleu, {"length": "longest"}, "length should be one of closest, shortest, average"),
        (bleu, {"smooth_value": 0.1}, "smoothing none accepts no value, found 0.1"),
        (bleu, {"smoothing": "floor", "smooth_value": 0}, "should be above 0, not 0"),
        (bleu, {"smoothing": "add_k", "smooth_value": np.nan}, "should be above 0, not nan"),
        (cider, {"frequencies": DOCUMENTS, "order": 5}, "between 1 and 4"),
        (cider, {"frequencies": DOCUMENTS, "variant": "D"}, "one of plain, d, not 'D'"),
        (cider, {"frequencies": DOCUMENTS, "variant": "d", "sigma": 0}, "sigma should be above 0"),
        (meteor, {"preset": "2"}, "preset should be one of 2005, 1.0, 1.5-other, 1.5-universal, not '2'"),
        (meteor, {"alpha": 1.5}, "alpha and gamma should be in"),
        (meteor, {"beta": 0.0}, "beta above 0"),
        (meteor, {"penalty": "outside"}, "penalty should be one of inside, argmax, not 'outside'"),
        (meteor, {"alignment": "best"}, "alignment should be one of greedy, fewest_chunks"),
        (meteor, {"corpus": "sum"}, "corpus should be one of mean, aggregate"),
        (rouge_l, {"reading": "lin"}, "reading should be one of coco, union, best, not 'lin'"),
        (rouge_l, {"beta": 0}, "beta should be above 0"),
    ],
)
def test_unknown_options_are_errors(build: Callable[..., Metric], options: dict[str, object], message: str) -> None:
    """What a metric does not have is named before anything is read, with what it has."""
    with pytest.raises(ValueError, match=message):
        build(**options)


def test_mean_and_signature() -> None:
    """A mean of nothing is 0; options stand in the order of their names, numbers without needless digits."""
    assert mean(np.array([[1.5, 3], [0, 0]])).tolist() == [0.5, 0]
    options = signature(b=True, a=0.1, d=None, c="x")
    assert options.rsplit("|", 1)[0] == "a:0.1|b:yes|c:x|d:none"


@pytest.mark.parametrize(
    ("metric", "beginning"),
    [
        (bleu(1), "counts_zero_weight_lengths:yes|effective_order:no|length:closest|order:1|smoothing:none|undertone:"),
        (
            bleu(1, "floor"),
            "counts_zero_weight_lengths:yes|effective_order:no|length:closest|order:1|smoothing:floor[0.1]",
        ),
        (cider(DOCUMENTS), f"documents:100@{DOCUMENTS.digest()}|order:4|variant:plain|"),
        (cider(DOCUMENTS, variant="d", sigma=5), f"documents:100@{DOCUMENTS.digest()}|order:4|sigma:5|variant:d|"),
        (rouge_l(), "beta:1.2|reading:coco|"),
        (rouge_l("union", 1.0), "beta:1|length:mean|reading:union|"),
    ],
)
def test_signatures(metric: Metric, beginning: str) -> None:
    """Every option that is read is in the signature, defaults too, and the documents of CIDEr."""
    assert metric.signature.startswith(beginning)
