"""Scores of candidates by overlap metrics: of a corpus with a bootstrap interval, of each candidate, and of two systems
on the same references.

In: streams of tokens as `segments.batches` reads them. Besides one batch only the statistics are held, a few numbers
a segment. Statistics add up, so a bootstrap sample is how often each segment is drawn times its statistics.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import tee

import numpy as np
import polars as pl

from pipeline.errors import BadInput
from pipeline.metrics.overlap.metric import Floats, Metric
from pipeline.metrics.overlap.segments import SIZE, Batch, Tokens, read_batches
from pipeline.metrics.resample import (
    Names,
    bounds,
    draw_picks,
    number_units,
    p_value,
    sum_samples,
    sum_units,
    tail_shares,
)

Candidates = Iterable[Tokens]
References = Iterable[Sequence[Tokens]]
Weights = Iterable[Sequence[float]]

DRAWS = 1000
SEED = 42


def measure(
    metrics: Sequence[Metric],
    candidates: Candidates,
    references: References,
    weights: Weights | None = None,
    *,
    size: int = SIZE,
    draws: int = DRAWS,
    seed: int = SEED,
    confidence: float = 0.95,
    groups: Names | None = None,
) -> pl.DataFrame:
    """Compute the corpus score of each metric with its percentile bootstrap interval.

    Args:
        metrics: with distinct names, such as `build_metrics(["bleu_1", "meteor"])`.
        candidates: tokens of each candidate.
        references: of each candidate at least one, as tokens.
        weights: of each reference one, in [0, 1] (ΔBLEU alone: [-1, 1]); all 1 by default.
        size: segments read at a time; no score depends on it.
        draws: bootstrap samples.
        seed: of the samples, the same for each metric.
        confidence: of the interval, in (0, 1).
        groups: of each candidate what it is drawn with, such as its article; by default each is drawn alone.

    Returns:
        A row a metric: metric, score, low, high, segment_mean (the mean of the candidates' own scores, which for BLEU
        is another number), segments, signature.

    Raises:
        BadInput: no candidates, or as of `segments.batches`.
        ValueError: two metrics of one name, not a group for each candidate, draws below 1, confidence outside (0, 1).
    """
    stats = _collect_stats(
        metrics, read_batches(candidates, references, weights, size=size, low=_find_lowest_weight(metrics))
    )
    samples = _sample_stats(stats, groups, draws, seed)
    rows = []
    for metric, segment_stats, sample_stats in zip(metrics, stats, samples, strict=True):
        low, high = bounds(metric.score(sample_stats), tail_shares(confidence))
        score, mean = float(metric.score(segment_stats.sum(axis=0))), float(metric.score(segment_stats).mean())
        rows.append((metric.name, score, low, high, mean, len(segment_stats), metric.signature))
    names = ["metric", "score", "low", "high", "segment_mean", "segments", "signature"]
    return pl.DataFrame(rows, schema=names, orient="row")


def score_segments(
    metrics: Sequence[Metric],
    candidates: Candidates,
    references: References,
    weights: Weights | None = None,
    *,
    size: int = SIZE,
) -> pl.DataFrame:
    """Score each candidate: a row a candidate in their order, a column a metric; arguments as of `measure`.

    Raises:
        BadInput: as of `measure`.
        ValueError: two metrics of one name.
    """
    stats = _collect_stats(
        metrics, read_batches(candidates, references, weights, size=size, low=_find_lowest_weight(metrics))
    )
    return pl.DataFrame(
        {metric.name: metric.score(segment_stats) for metric, segment_stats in zip(metrics, stats, strict=True)}
    )


def compare(
    metrics: Sequence[Metric],
    first: Candidates,
    second: Candidates,
    references: References,
    weights: Weights | None = None,
    *,
    size: int = SIZE,
    draws: int = DRAWS,
    seed: int = SEED,
    confidence: float = 0.95,
    groups: Names | None = None,
) -> pl.DataFrame:
    """Measure how much better one system is than another on the same references, by a paired bootstrap (Koehn, 2004).

    p is that of `resample.p_value`.

    `first` and `second` are the candidates of the systems in the same order; the other arguments are as of `measure`.

    Returns:
        A row a metric: metric, one and other (corpus scores), difference (one - other), low, high, p, segments,
        signature.

    Raises:
        BadInput: as of `measure`; a system with more candidates than the other.
        ValueError: as of `measure`.
    """
    reference_streams, weight_streams = tee(references), (None, None) if weights is None else tee(weights)
    systems = [
        read_batches(candidates, system_references, system_weights, size=size, low=_find_lowest_weight(metrics))
        for candidates, system_references, system_weights in zip(
            (first, second), reference_streams, weight_streams, strict=True
        )
    ]
    stats = _collect_stats(metrics, *systems)
    samples = _sample_stats(stats, groups, draws, seed)
    rows = []
    for position, metric in enumerate(metrics):
        metric_index = slice(position, None, len(metrics))  # statistics of the first system, then of the second
        first_score, second_score = (
            float(metric.score(system_stats.sum(axis=0))) for system_stats in stats[metric_index]
        )
        first_samples, second_samples = (metric.score(sample_stats) for sample_stats in samples[metric_index])
        differences = first_samples - second_samples
        low, high = bounds(differences, tail_shares(confidence))
        p = p_value(differences)
        rows.append(
            (
                metric.name,
                first_score,
                second_score,
                first_score - second_score,
                low,
                high,
                p,
                len(stats[0]),
                metric.signature,
            )
        )
    names = ["metric", "one", "other", "difference", "low", "high", "p", "segments", "signature"]
    return pl.DataFrame(rows, schema=names, orient="row")


def _find_lowest_weight(metrics: Sequence[Metric]) -> float:
    """Find the lowest weight for which all metrics are defined."""
    names = [metric.name for metric in metrics]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"expected at least one metric, with distinct names (metric._replace(name=...)), got {names}")
    return max(metric.lowest for metric in metrics)


def _collect_stats(metrics: Sequence[Metric], *systems: Iterator[Batch]) -> list[Floats]:
    """Collect statistics by system, then by metric, each [segments, k]; systems are read in step."""
    parts = [
        [metric.stats(batch) for batch in batch_group for metric in metrics]
        for batch_group in zip(*systems, strict=True)
    ]
    if not parts:
        raise BadInput("candidates: expected at least one, found none")
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _sample_stats(stats: list[Floats], groups: Names | None, draws: int, seed: int) -> list[Floats]:
    """Sum statistics over the same samples, each [draws, k]."""
    widths = [metric_stats.shape[1] for metric_stats in stats]
    all_stats = np.concatenate(stats, axis=1)
    if groups is not None:
        all_stats = sum_units(all_stats, number_units(groups, len(all_stats), "candidates"))
    samples = sum_samples(all_stats, draw_picks(len(all_stats), draws, seed))
    return np.split(samples, np.cumsum(widths)[:-1], axis=1)
