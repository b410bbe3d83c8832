"""What an overlap metric is: statistics of each segment, and a score from them or from sums of them.

A segment is a candidate with its references. As in sacrebleu, the score of a segment, of a corpus and of a bootstrap
sample are one function, on a row of statistics, on their sum, on sums of samples.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline import __version__
from pipeline.metrics.overlap.segments import Batch
from pipeline.metrics.resample import Floats

Option = str | float | bool | None


class Metric(NamedTuple):
    """One metric with its options."""

    name: str
    stats: Callable[[Batch], Floats]  # statistics of each segment of a batch, float64 [n, k]; they add up
    score: Callable[[Floats], Floats]  # the score of each row of statistics or sums of them, [..., k] -> [...]
    signature: str  # its options; scores with different ones are not to be compared
    lowest: float = 0.0  # weight it is defined for; the highest is 1


def mean(stats: Floats) -> Floats:
    """Compute scores from statistics (score, 1), [..., 2], where the corpus score is the segments' mean."""
    return divide(stats[..., 0], stats[..., 1])


def divide(part: npt.NDArray[np.number], divisor: npt.NDArray[np.number]) -> Floats:
    """Divide element by element; 0 where the divisor is 0."""
    return np.asarray(np.divide(part, divisor, out=np.zeros(np.shape(part)), where=np.asarray(divisor) > 0))


def add_count(scores: Floats) -> Floats:
    """Build the statistics that `mean` reads: each score with a 1, [n, 2]."""
    return np.stack([scores, np.ones_like(scores)], axis=1)


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    """Raise ValueError for the value of an option that has others."""
    if value not in choices:
        raise ValueError(f"{name} should be one of {', '.join(choices)}, not {value!r}")


def signature(**options: Option) -> str:
    """Join every option as `name:value`, sorted by name, and our version, with | between."""
    names: dict[Option, str] = {True: "yes", False: "no", None: "none"}
    parts = []
    for option, value in sorted(options.items()):
        is_number = isinstance(value, float | int) and not isinstance(value, bool)
        parts.append(f"{option}:{f'{value:.12g}' if is_number else names.get(value, value)}")
    return "|".join([*parts, f"undertone:{__version__}"])
