"""The mean of a corpus as a judge would give it, as the view `implicitness_by_source_day` computes it in SQL.

Prediction-powered inference (Angelopoulos et al., 2023) takes the sample mean + weight × (mean score of all - mean
score of the sample). With `weight` 1 it is the difference estimate of Horvitz and Thompson. The weight with the least
variance is the slope of the judgements on the scores (PPI++). In `tests/metrics/calibration/estimates_test.py`
intervals of both cover the mean in 93 to 97 %, and those of the slope are narrower, so the view has the slope.
"""

import numpy as np
from scipy import stats

from pipeline.metrics.resample import Floats


def estimate_mean(
    scores: Floats, judged: Floats, sample_scores: Floats, weight: float | None = None
) -> tuple[float, float, float]:
    """Estimate the mean judgement of all texts, with its interval, from a sample; by default with the slope."""
    n, total = len(judged), len(scores)
    centred = sample_scores - sample_scores.mean()
    spread = float(centred @ centred)
    gap = float(scores.mean() - sample_scores.mean())
    has_slope = weight is None and spread > 0
    slope = float(centred @ judged) / spread if has_slope else weight or 0.0
    rest = judged - slope * sample_scores
    degrees = n - 1 - has_slope
    variance = float(((rest - rest.mean()) ** 2).sum()) / degrees
    unseen = 1 / n - 1 / total + (gap**2 / spread if has_slope else 0.0)
    half = float(stats.t.ppf(0.975, degrees)) * (variance * unseen) ** 0.5
    value = float(judged.mean()) + slope * gap
    return value, value - half, value + half


def explain_refusal(judged: Floats) -> str | None:
    """Explain why a sample cannot correct a mean; None if it can."""
    varied = len(judged) - int(np.unique(np.floor(judged + 0.5), return_counts=True)[1].max(initial=0))
    if len(judged) < 20:
        return f"{len(judged)} judged comments, 20 are needed"
    return None if varied >= 10 else f"only {varied} of {len(judged)} judgements differ from the most frequent"
