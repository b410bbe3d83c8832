"""Scores of candidates by overlap metrics: of a corpus with a bootstrap interval, of each candidate, and of two systems
on the same references.

In: streams of tokens as `segments.read_batches` reads them. Besides one batch only the statistics are held. They add
up, so a bootstrap sample is how often each segment is drawn times its statistics.

Weights of references come from the grades 1 to 5 that people gave them (AAC-18; errata E11). The paper wants "properly
normalized" s_j in [0, 1] and does not say how. No single preset gives the ratios of weighted to plain scores in its
table 7, so results should be given for each.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import tee

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.errors import BadInput
from pipeline.metrics import resample
from pipeline.metrics.overlap.metric import Metric, check_choice
from pipeline.metrics.overlap.segments import SIZE, Tokens, read_batches
from pipeline.metrics.resample import DRAWS, SEED, Floats, Names, bounds, p_value, tail_shares

Candidates = Iterable[Tokens]
References = Iterable[Sequence[Tokens]]
Weights = Iterable[Sequence[float]]
Streams = tuple[Candidates, References, Weights | None]


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

    Metrics are such as `build_metrics(["bleu_1", "meteor"])`, and all have the same samples. Candidates, references,
    weights and size are as of `segments.read_batches`. The confidence is in (0, 1). `groups` has of each candidate what
    it is drawn with, such as its article; by default each is drawn alone.

    Returns a row a metric: metric, score, low, high, segment_mean (the mean of the candidates' own scores, which for
    BLEU is another number), segments, signature. BadInput for no candidates, or as of `segments.read_batches`.
    ValueError for not a group for each candidate, draws below 1, confidence outside (0, 1).
    """
    stats = _collect_stats(metrics, size, (candidates, references, weights))
    samples = _sample_stats(stats, groups, draws, seed)
    rows = []
    for metric, segment_stats, sample_stats in zip(metrics, stats, samples, strict=True):
        low, high = bounds(metric.score(sample_stats), tail_shares(confidence))
        score, mean = float(metric.score(segment_stats.sum(axis=0))), float(metric.score(segment_stats).mean())
        rows.append((metric.name, score, low, high, mean, len(segment_stats), metric.signature))
    names = ["metric", "score", "low", "high", "segment_mean", "segments", "signature"]
    return pl.DataFrame(rows, schema=names, orient="row")


def score_segments(
    metrics: Sequence[Metric], candidates: Candidates, references: References, weights: Weights | None = None
) -> pl.DataFrame:
    """Score each candidate: a row a candidate in their order, a column a metric; otherwise as `measure`."""
    stats = _collect_stats(metrics, SIZE, (candidates, references, weights))
    return pl.DataFrame({metric.name: metric.score(rows) for metric, rows in zip(metrics, stats, strict=True)})


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

    p is that of `resample.p_value`. `first` and `second` are the candidates of the systems in the same order; the other
    arguments and the errors are as of `measure`, and a system with more candidates than the other is BadInput.

    Returns a row a metric: metric, one and other (corpus scores), difference (one - other), low, high, p, segments,
    signature.
    """
    reference_streams, weight_streams = tee(references), (None, None) if weights is None else tee(weights)
    streams = zip((first, second), reference_streams, weight_streams, strict=True)
    stats = _collect_stats(metrics, size, *streams)
    samples, rows = _sample_stats(stats, groups, draws, seed), []
    for i, metric in enumerate(metrics):
        systems = slice(i, None, len(metrics))  # statistics of the first system, then of the second
        scores = [float(metric.score(system_stats.sum(axis=0))) for system_stats in stats[systems]]
        differences = np.subtract(*map(metric.score, samples[systems]))
        interval = bounds(differences, tail_shares(confidence))
        numbers = (*scores, scores[0] - scores[1], *interval, p_value(differences), len(stats[0]))
        rows.append((metric.name, *numbers, metric.signature))
    names = ["metric", "one", "other", "difference", "low", "high", "p", "segments", "signature"]
    return pl.DataFrame(rows, schema=names, orient="row")


def _collect_stats(metrics: Sequence[Metric], size: int, *systems: Streams) -> list[Floats]:
    """Collect statistics by system, then by metric, each [segments, k]; systems are read in step."""
    low = max(metric.lowest for metric in metrics)
    batches = zip(*(read_batches(*streams, size=size, low=low) for streams in systems), strict=True)
    parts = [[metric.stats(batch) for batch in batch_group for metric in metrics] for batch_group in batches]
    if not parts:
        raise BadInput("candidates: expected at least one, found none")
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _sample_stats(stats: list[Floats], groups: Names | None, draws: int, seed: int) -> list[Floats]:
    """Sum statistics over the same samples, each [draws, k]."""
    if groups is not None:
        units = resample.number_units(groups, len(stats[0]), "candidates")
        stats = [resample.sum_units(metric_stats, units) for metric_stats in stats]
    return resample.sum_all_samples(stats, resample.draw_picks(len(stats[0]), draws, seed))


LOWEST, HIGHEST = 1, 5
DEFAULT_PRESET = "s/5"

PRESETS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "s/5": lambda grades, _: grades / HIGHEST, "(s-1)/4": lambda grades, _: (grades - LOWEST) / (HIGHEST - LOWEST),
    "s/max": lambda grades, highest: grades / highest, "none": lambda grades, _: np.ones_like(grades),
}  # fmt: skip
"""Grades [m] and the highest grade of each one's article [m] -> weights [m]. Only `(s-1)/4` gives the lowest grade no
weight; `s/max` gives the best references of every article 1."""


def normalise_grades(
    grades: Sequence[float] | npt.NDArray[np.floating] | pl.Series,
    preset: str = DEFAULT_PRESET,
    articles: Sequence[object] | npt.NDArray[np.generic] | pl.Series | None = None,
) -> Floats:
    """Convert grades to reference weights in [0, 1].

    Grades are from 1 to 5, [m]; means of raters need not be whole. `articles` has the article of each reference, [m],
    for `s/max`; by default all are of one.
    BadInput for a grade that is missing or not between 1 and 5; it names the row, from 1. ValueError for an unknown
    preset, or not as many articles as grades.
    """
    check_choice("preset", preset, PRESETS)
    values = pl.Series("grade", grades, strict=False).cast(pl.Float64).to_numpy()  # null becomes NaN
    outside = np.flatnonzero(~((values >= LOWEST) & (values <= HIGHEST)))
    if len(outside):
        row = outside[0]
        raise BadInput(f"row {row + 1}, grade: expected {LOWEST} to {HIGHEST}, found {values[row]:g}")
    names = pl.Series("article", [0] * len(values) if articles is None else articles, strict=False)
    if len(names) != len(values):
        raise ValueError(f"expected an article for each of {len(values)} grades, got {len(names)}")
    graded = pl.DataFrame({"grade": values, "article": names})
    return PRESETS[preset](values, graded.select(pl.col("grade").max().over("article")).to_series().to_numpy())
