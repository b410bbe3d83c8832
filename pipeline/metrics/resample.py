"""Uncertainty of a number: the percentile bootstrap over units, paired p values, and Wilson's interval of a share.

A unit is an item, or a group of items that depend on each other, such as the comments on one article. A sample draws
as many units as there are, with replacement, and is given as counts of each unit: sums over items are then products
with the counts, and ranks use them as weights.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Numbers = TypeVar("Numbers", Floats, Ints)
Names = npt.NDArray[np.generic] | pl.Series | Sequence[object] | range
DRAWS, SEED = 1000, 42  # samples of an interval, and of which generator
MIDDLE = (0.025, 0.975)
_CELLS = 1 << 20  # counts held at a time


class Interval(NamedTuple):
    """A number with the ends of its 95 % interval; NaN where it is undefined."""

    value: float
    low: float
    high: float


def number_units(names: Names, count: int, items: str = "items") -> Ints:
    """Number the unit of each item, from 0 in the order of the names: [count]; ValueError for a missing name."""
    series = pl.Series("group", names)
    name_count = len(series) - series.null_count()
    if len(series) != count or name_count != count:
        raise ValueError(f"expected a group for each of {count} {items}, got {name_count}")
    return series.rank("dense").to_numpy().astype(np.int64) - 1


def sum_units(values: Numbers, units: Ints) -> Numbers:
    """Sum items' values over each unit: [items, k] -> [units, k]."""
    sums = np.zeros((units.max() + 1, *values.shape[1:]), values.dtype)
    np.add.at(sums, units, values)
    return sums


def draw_counts(copies: int | Ints, draws: int, seed: int) -> Iterator[Ints]:
    """Draw samples as counts of each unit, in blocks of samples: [block, units].

    `copies` is the number of units; or of each distinct unit how many there are, [units], which costs no more than a
    single one. The block size does not change the samples.
    """
    copies = np.ones(copies, np.int64) if isinstance(copies, int) else copies
    total, rng = copies.sum(), np.random.default_rng(seed)
    return (rng.multinomial(total, copies / total, size=size) for size in block_sizes(draws, len(copies)))


def draw_picks(units: int, draws: int, seed: int, width: int = 0) -> Iterator[Ints]:
    """Draw samples as `draw_counts` does, by picking units one by one: other samples, same distribution.

    `width` is how many numbers the caller makes of a sample, if more than units.
    """
    rng = np.random.default_rng(seed)
    for size in block_sizes(draws, max(width, units)):
        picks = rng.integers(units, size=(size, units)) + np.arange(size)[:, None] * units
        yield np.bincount(picks.ravel(), minlength=picks.size).reshape(size, units)


def block_sizes(draws: int, width: int) -> Iterator[int]:
    """Split the draws into blocks of so many samples that few numbers are held at a time."""
    step = max(1, _CELLS // width)
    return (min(step, draws - start) for start in range(0, draws, step))


def sum_samples(values: Numbers, blocks: Iterator[Ints]) -> Numbers:
    """Sum units' values over each sample: [units, …] -> [draws, …]; ValueError without draws."""
    sums = [block @ values for block in blocks]
    if not sums:
        raise ValueError("draws should be at least 1")
    return np.concatenate(sums)


def sum_all_samples(stats: Sequence[Floats], blocks: Iterator[Ints]) -> list[Floats]:
    """Sum the statistics of several measures over the same samples: [units, k] each -> [draws, k] each."""
    ends = np.cumsum([part.shape[1] for part in stats])
    return np.split(sum_samples(np.concatenate(stats, axis=1), blocks), ends[:-1], axis=1)


def iterate_counts(units: int, draws: int, seed: int) -> Iterator[Floats]:
    """Yield the counts of all units once, then of each sample of `draw_counts`: [units] each."""
    yield np.ones(units)
    for block in draw_counts(units, draws, seed):
        yield from block.astype(np.float64)


def tail_shares(confidence: float) -> tuple[float, float]:
    """Compute the quantiles at which an interval begins and ends; ValueError for a confidence outside (0, 1)."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence should be between 0 and 1, not {confidence}")
    return (1 - confidence) / 2, (1 + confidence) / 2


def bounds(samples: Floats, shares: tuple[float, float] = MIDDLE) -> tuple[float, float]:
    """Compute the percentile interval of the samples [draws] that are not NaN, by default of 95 %; NaN without any."""
    defined = samples[~np.isnan(samples)]
    if not len(defined):
        return np.nan, np.nan
    low, high = np.quantile(defined, shares)
    return float(low), float(high)


def p_value(differences: Floats) -> float:
    """Compute the two-sided p of a paired difference from its samples [draws]; NaN do not count.

    min(1, 2 (k + 1) / (draws + 1)), k being the number of samples on the rarer side of 0, so that it is never 0.
    """
    defined = differences[~np.isnan(differences)]
    minority_count = min(int((defined <= 0).sum()), int((defined >= 0).sum()))
    return min(1.0, 2 * (minority_count + 1) / (len(defined) + 1))


def wilson(share: Floats, count: npt.NDArray[np.integer], confidence: float = 0.95) -> tuple[Floats, Floats]:
    """Compute Wilson's score interval of a share of `count` independent answers: (low, high), NaN for a count of 0."""
    z = float(scipy.stats.norm.ppf((1 + confidence) / 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = (share + z**2 / (2 * count)) / (1 + z**2 / count)
        half = z / (1 + z**2 / count) * np.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    low, high = (np.where(count > 0, np.clip(edge, 0, 1), np.nan) for edge in (middle - half, middle + half))
    return low, high
