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
from pipeline.metrics.overlap.segments import SIZE, Batch, Tokens, batches
from pipeline.metrics.resample import Names, bounds, draw_picks, number_units, p_value, sum_samples, sum_units, tails

Candidates = Iterable[Tokens]
References = Iterable[Sequence[Tokens]]
Weights = Iterable[Sequence[float]]

DRAWS = 1000
SEED = 42


def measure(
    metrics: Sequence[Metric], candidates: Candidates, references: References, weights: Weights | None = None, *,
    size: int = SIZE, draws: int = DRAWS, seed: int = SEED, confidence: float = 0.95, groups: Names | None = None,
) -> pl.DataFrame:  # fmt: skip
    """The corpus score of each metric with its percentile bootstrap interval.

    Args:
        metrics: with names of their own, such as `of(["bleu_1", "meteor"])`.
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
    stats = _stats(metrics, batches(candidates, references, weights, size=size, low=_lowest(metrics)))
    samples = _samples(stats, groups, draws, seed)
    rows = []
    for metric, own, drawn in zip(metrics, stats, samples, strict=True):
        low, high = bounds(metric.score(drawn), tails(confidence))
        score, mean = float(metric.score(own.sum(axis=0))), float(metric.score(own).mean())
        rows.append((metric.name, score, low, high, mean, len(own), metric.signature))
    names = ["metric", "score", "low", "high", "segment_mean", "segments", "signature"]
    return pl.DataFrame(rows, schema=names, orient="row")


def segment_scores(
    metrics: Sequence[Metric], candidates: Candidates, references: References, weights: Weights | None = None, *,
    size: int = SIZE,
) -> pl.DataFrame:  # fmt: skip
    """The score of each candidate: a row a candidate in their order, a column a metric; arguments as of `measure`.

    Raises:
        BadInput: as of `measure`.
        ValueError: two metrics of one name.
    """
    stats = _stats(metrics, batches(candidates, references, weights, size=size, low=_lowest(metrics)))
    return pl.DataFrame({metric.name: metric.score(own) for metric, own in zip(metrics, stats, strict=True)})


def paired(
    metrics: Sequence[Metric], one: Candidates, other: Candidates, references: References,
    weights: Weights | None = None, *, size: int = SIZE, draws: int = DRAWS, seed: int = SEED, confidence: float = 0.95,
    groups: Names | None = None,
) -> pl.DataFrame:  # fmt: skip
    """How much better one system is than another on the same references, by a paired bootstrap (Koehn, 2004).

    p is that of `resample.p_value`.

    `one` and `other` are the candidates of the systems in the same order; the other arguments are as of `measure`.

    Returns:
        A row a metric: metric, one and other (corpus scores), difference (one - other), low, high, p, segments,
        signature.

    Raises:
        BadInput: as of `measure`; a system with more candidates than the other.
        ValueError: as of `measure`.
    """
    owned, weighted = tee(references), (None, None) if weights is None else tee(weights)
    systems = [
        batches(candidates, given, worth, size=size, low=_lowest(metrics))
        for candidates, given, worth in zip((one, other), owned, weighted, strict=True)
    ]
    stats = _stats(metrics, *systems)
    samples = _samples(stats, groups, draws, seed)
    rows = []
    for place, metric in enumerate(metrics):
        both = slice(place, None, len(metrics))  # statistics of the first system, then of the second
        first, second = (float(metric.score(own.sum(axis=0))) for own in stats[both])
        drawn_first, drawn_second = (metric.score(drawn) for drawn in samples[both])
        differences = drawn_first - drawn_second
        low, high = bounds(differences, tails(confidence))
        p = p_value(differences)
        rows.append((metric.name, first, second, first - second, low, high, p, len(stats[0]), metric.signature))
    names = ["metric", "one", "other", "difference", "low", "high", "p", "segments", "signature"]
    return pl.DataFrame(rows, schema=names, orient="row")


def _lowest(metrics: Sequence[Metric]) -> float:
    """The lowest weight that all metrics are defined for."""
    names = [metric.name for metric in metrics]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"expected metrics with names of their own (metric._replace(name=...)), got {names}")
    return max(metric.lowest for metric in metrics)


def _stats(metrics: Sequence[Metric], *systems: Iterator[Batch]) -> list[Floats]:
    """Statistics by system, then by metric, each [segments, k]; systems are read in step."""
    parts = [
        [metric.stats(batch) for batch in together for metric in metrics] for together in zip(*systems, strict=True)
    ]
    if not parts:
        raise BadInput("candidates: expected at least one, found none")
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _samples(stats: list[Floats], groups: Names | None, draws: int, seed: int) -> list[Floats]:
    """Sums of statistics over the same samples, each [draws, k]."""
    widths = [own.shape[1] for own in stats]
    together = np.concatenate(stats, axis=1)
    if groups is not None:
        together = sum_units(together, number_units(groups, len(together), "candidates"))
    samples = sum_samples(together, draw_picks(len(together), draws, seed))
    return np.split(samples, np.cumsum(widths)[:-1], axis=1)
