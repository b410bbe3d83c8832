"""The numbers of ImpScore's figures: the separation of sentences (3), sampled pairs (6), detectors by bin (7), spaces.

The accuracy of a detector has an interval that counts near duplicates once (section 7.2; IMP-42, IMP-43). The spaces
are the pragmatic and the semantic one (section 6.4; IMP-39); pairs are sampled for distances (section 7.1; IMP-41). And
the ranking of graded groups: does the score rise with the level (section 6.2 and appendix A.3)?
"""

from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy

from pipeline.errors import BadInput
from pipeline.examples.splits import SEED
from pipeline.metrics.resample import Ints, wilson

Floats = npt.NDArray[np.floating]
PERPLEXITY = 30.0  # of t-SNE with enough points


def silhouettes(pragmatic: Floats, semantic: Floats, groups: Sequence[object]) -> list[float]:
    """Measure how well the groups are separated in both spaces of features [n, l]: two mean silhouette coefficients.

    They are in [-1, 1], 1 where groups are separate, 0 where they mix (figures 11 to 13).

    The paper's claim is that groups of one intent in different words are tighter in the pragmatic space. BadInput for
    fewer than two groups, or if each row is its own group.
    """
    from sklearn.metrics import silhouette_score

    _, label = np.unique(np.array([str(group) for group in groups]), return_inverse=True)
    group_count = int(label.max(initial=-1)) + 1
    if not 2 <= group_count < len(label):
        sizes = f"{len(label)} in {group_count}"
        raise BadInput(f"a silhouette needs at least two groups, one with two sentences; got {sizes}")
    scores = (silhouette_score(np.asarray(space, np.float64), label) for space in (pragmatic, semantic))
    return [round(float(score), 6) for score in scores]


def lay_out(features: Floats, seed: int = SEED) -> npt.NDArray[np.float64]:
    """Lay out features [n, l] in the plane by t-SNE for drawing: [n, 2].

    Near points stay near, other distances mean nothing. The same features give the same points. Points that are all
    equal, or fewer than three, are laid in a row.
    """
    from sklearn.manifold import TSNE

    points = np.asarray(features, np.float64)
    if len(points) < 3 or not np.ptp(points, axis=0).any():
        return np.column_stack((np.arange(len(points), dtype=np.float64), np.zeros(len(points))))
    perplexity = min(PERPLEXITY, (len(points) - 1) / 3)
    init = "pca" if points.shape[1] > 1 else "random"
    return np.asarray(TSNE(perplexity=perplexity, init=init, random_state=seed).fit_transform(points), np.float64)


PAIRS = 2000


def sample_pairs(text_count: int, pairs: int = PAIRS, seed: int = SEED) -> Ints:
    """Sample distinct unordered pairs of distinct rows; every set of pairs is equally likely.

    Pairs are numbered 0, 1, 2, … as (0,1), (0,2), (1,2), (0,3), …, and numbers are drawn, so that 100,000 texts cost no
    more than 100. Returns [pairs, 2], in each the lesser row first, in random order. BadInput if so many texts have
    fewer pairs.
    """
    possible = text_count * (text_count - 1) // 2
    if not 0 <= pairs <= possible:
        raise BadInput(f"{text_count} texts have {possible} distinct pairs; expected to sample {pairs}")
    return _decode_pairs(np.random.default_rng(seed).choice(possible, pairs, replace=False).astype(np.int64))


def _decode_pairs(pair_numbers: Ints) -> Ints:
    upper = ((1 + np.sqrt(1 + 8 * pair_numbers.astype(np.float64))) / 2).astype(np.int64)
    upper -= upper * (upper - 1) // 2 > pair_numbers  # at the end of a row of great numbers the root is rounded up
    return np.stack([pair_numbers - upper * (upper - 1) // 2, upper], axis=1)


WIDTH = 0.25
BINS = tuple(WIDTH * i for i in range(9))  # edges of eight bins on [0, 2], half-open but the last
LABELS = tuple(f"{low:.2f}-{low + WIDTH:.2f}" for low in BINS[:-1])
_SLACK = 1e-5  # 1 - cos in single precision may leave [0, 2] by a rounding


def label_bins(values: pl.Series | Sequence[float]) -> pl.Series:
    """Label bins such as `0.25-0.50`, which has 0.25, not 0.50; the last has 2 as well. BadInput outside of [0, 2]."""
    numbers = pl.Series("bin", values, dtype=pl.Float64)
    outside = numbers.filter(numbers.is_null() | ~numbers.is_between(-_SLACK, BINS[-1] + _SLACK))
    if len(outside):
        problem = f"implicitness should be between 0 and {BINS[-1]:g}, not {outside[0]};"
        raise BadInput(f"{problem} {len(outside)} of {len(numbers)} texts fit no bin: use a model whose I is a cosine")
    place = (numbers / WIDTH).floor().clip(0, len(LABELS) - 1).cast(pl.Int64)
    return place.replace_strict(dict(enumerate(LABELS)), return_dtype=pl.String)


def measure_bins(rows: pl.DataFrame) -> pl.DataFrame:
    """Measure the accuracy of one detector in each bin, including empty bins.

    Accuracy is the share of all rows that are detected, as in the paper. Its 95 % interval is Wilson's on the
    *effective* count, the number of near-duplicate clusters in the bin: rows of one cluster count as one answer.

    The rows have implicitness; is_detected (null for an answer other than yes and no, which counts as not detected);
    cluster (of `examples.splits`). Returns eight rows in order: subset (label of the bin), accuracy, low,
    high (all null in an empty bin), row_count, effective_count, other_count.
    """
    counts = {
        "row_count": pl.len().cast(pl.Int64),
        "effective_count": pl.col("cluster").n_unique().cast(pl.Int64),
        "other_count": pl.col("is_detected").null_count().cast(pl.Int64),
    }
    accuracy = pl.col("is_detected").cast(pl.Boolean).fill_null(value=False).mean()
    bin_rows = rows.with_columns(subset=label_bins(rows["implicitness"])).group_by("subset")
    bins = pl.DataFrame({"subset": LABELS})
    bins = bins.join(bin_rows.agg(accuracy=accuracy, **counts), on="subset", how="left", maintain_order="left")
    bins = bins.with_columns(pl.col(*counts).fill_null(0))
    low, high = wilson(bins["accuracy"].cast(pl.Float64).to_numpy(), bins["effective_count"].to_numpy())
    bounds = {name: pl.Series(values).fill_nan(None).round(6) for name, values in (("low", low), ("high", high))}
    return bins.select("subset", pl.col("accuracy").round(6), **bounds, **{name: name for name in counts})


QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def tabulate_figure_3(triples: pl.DataFrame, *group_columns: str) -> pl.DataFrame:
    """Compute both accuracies and the means of figure 3 (IMP-25 to IMP-27), overall or by columns.

    The triples have i1, i2, i3 (implicitness of the implicit, explicit and foreign sentence), near and far (ΔP of the
    positive and the negative pair). Returns the group columns, metric, value, pair_count.
    """
    i1, i2, i3, near, far = map(pl.col, ("i1", "i2", "i3", "near", "far"))
    numbers = {
        "implicitness_accuracy": ((i1 > i2).mean() + (i1 > i3).mean()) / 2, "pragmatics_accuracy": (near < far).mean(),
        "implicitness_of_implicit": i1.mean(), "implicitness_of_explicit": (i2.mean() + i3.mean()) / 2,
        "pragmatic_distance_positive": near.mean(), "pragmatic_distance_negative": far.mean(),
    }  # fmt: skip
    aggregates = {**numbers, "pair_count": pl.len().cast(pl.Int64)}
    groups = triples.group_by(*group_columns, maintain_order=True) if group_columns else None
    wide = groups.agg(**aggregates) if groups else triples.select(**aggregates)
    rows = wide.unpivot(index=[*group_columns, "pair_count"], on=list(numbers), variable_name="metric")
    return rows.select(*group_columns, "metric", "value", "pair_count")


def compute_quantiles(values: pl.Series, levels: Sequence[float] = QUANTILES) -> list[float]:
    """Compute linearly interpolated quantiles, the numbers behind a violin of figure 3 (IMP-28)."""
    return [float(values.quantile(level, interpolation="linear") or 0.0) for level in levels]


def kendall_tau(gold: Sequence[float], scores: Sequence[float]) -> float:
    """Compute (concordant - discordant) / all pairs (equation 11), in [-1, 1]; a tie is neither.

    ValueError for fewer than two items, or lengths that differ.
    """
    if len(gold) != len(scores) or len(gold) < 2:
        sizes = f"{len(gold)} and {len(scores)}"
        raise ValueError(f"expected two equally long sequences of at least two items, got {sizes}")
    return float(_compare_pairs(gold, scores).sum() / (len(gold) * (len(gold) - 1) / 2))


def count_concordant(gold: Sequence[float], scores: Sequence[float]) -> int:
    """Count the pairs of items that both order alike: a linguist's rating of implicitness (appendix A.5; IMP-37)."""
    return int((_compare_pairs(gold, scores) > 0).sum())


def _compare_pairs(gold: Sequence[float], scores: Sequence[float]) -> npt.NDArray[np.float64]:
    """Compare each pair of items once: 1 where both order it alike, -1 where they do not, 0 for a tie: [n, n]."""
    return np.triu(np.sign(np.subtract.outer(gold, gold)) * np.sign(np.subtract.outer(scores, scores)), 1)


def spearman_rho(gold: Sequence[float], scores: Sequence[float]) -> float:
    """Compute Spearman's rank correlation in [-1, 1], tied ranks averaged; 0 where one side is constant."""
    if len(set(gold)) < 2 or len(set(scores)) < 2:
        return 0.0
    return float(scipy.stats.spearmanr(gold, scores).statistic)


def kendall_w(ratings: npt.NDArray[np.floating]) -> float:
    """Compute Kendall's W of raters [raters, groups, items], corrected for ties, as the mean over groups.

    1 where all raters give one order, 0 where their rank sums are equal; a group in which no rater sees a difference
    counts 0.
    """
    ranks = scipy.stats.rankdata(ratings, axis=2)
    rater_count, _, size = ranks.shape
    spread = ((ranks.sum(axis=0) - rater_count * (size + 1) / 2) ** 2).sum(axis=1)
    most = rater_count * ((ranks - (size + 1) / 2) ** 2).sum(axis=(0, 2))  # what it is where all orders are one
    return float(np.divide(spread, most, out=np.zeros_like(spread), where=most > 0).mean())


class Correlations(NamedTuple):
    """Means over groups."""

    kendall_tau: float
    spearman_rho: float
    group_count: int


def average_correlations(groups: pl.DataFrame) -> Correlations:
    """Compute Kendall tau and Spearman rho of value with level within each group and average over groups."""
    lists = [(part["level"].to_list(), part["value"].to_list()) for part in groups.partition_by("group")]
    taus, rhos = ([measure(*pair) for pair in lists] for measure in (kendall_tau, spearman_rho))
    count = max(len(lists), 1)
    return Correlations(round(sum(taus) / count, 6), round(sum(rhos) / count, 6), len(lists))


def agreement_matrix(ratings: npt.NDArray[np.floating], measure: str = "kendall") -> npt.NDArray[np.float64]:
    """Measure how far each pair of raters agrees on the order of items (table 4 and figure 9; IMP-35).

    Ratings [raters, groups, items] are numbers that rise with implicitness; equal numbers are ties. The measure is
    kendall (equation 11) or spearman. Returns [raters, raters], means over groups; 1 on the diagonal of a rater without
    ties.
    """
    correlate = {"kendall": kendall_tau, "spearman": spearman_rho}.get(measure)
    if correlate is None:
        raise ValueError(f"measure should be kendall or spearman, not {measure!r}")
    raters = ratings.tolist()
    matrix = np.empty((len(raters), len(raters)))
    for first, second in combinations_with_replacement(range(len(raters)), 2):
        matrix[first, second] = matrix[second, first] = np.mean([*map(correlate, raters[first], raters[second])])
    return matrix
