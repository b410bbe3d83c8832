"""How kappa, accuracy and TAE answer to the raters' accuracy and to skew (CSD, appendix A and figure 4; CSD-22).

The model: every item has a true class. Each of three raters of the first round gives it with probability q, else one
of the other classes, each as likely; raters err independently. The second round gives the true class. The first class
is negative; the positive rate is the share of the others together, and they have equal parts of it, so that a low
rate is skew with three classes too.

The paper does not say whose kappa figure 4 shows. The numbers of CSD-22 (0.239, 0.474, 0.793) are Cohen's kappa of one
rater with the truth; Fleiss' kappa of all four treated equally, as in section 3.3, is lower under skew.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.metrics.labelling.agreement import SEED, cohen_kappa, fleiss_kappa, tae

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int8]

RATERS = 3
ACCURACIES = (*(round(0.5 + 0.02 * i, 2) for i in range(25)), 0.99, 1.0)
POSITIVE_RATES = (0.02, 0.05, 0.1, 0.2, 0.5)
ITEMS = 20_000


class Ratings(NamedTuple):
    """Labels of both rounds, for `agreement.tae`."""

    first: Codes  # [items, raters]
    second: Codes  # [items], the truth


def class_shares(positive_rate: float, classes: int) -> Floats:
    """Compute the shares of the negative class and of each positive class: [classes], sum 1."""
    if not 0 <= positive_rate <= 1 or classes < 2:
        raise ValueError(f"expected a rate in [0, 1] and two classes or more, got {positive_rate} and {classes}")
    return np.array([1 - positive_rate, *[positive_rate / (classes - 1)] * (classes - 1)])


def simulate(
    items: int, accuracy: float, positive_rate: float, classes: int = 2, raters: int = RATERS, seed: int = SEED
) -> Ratings:
    """Simulate labels of raters who are right with probability `accuracy`."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(classes, items, p=class_shares(positive_rate, classes)).astype(np.int8)
    # a wrong label is the true one moved on by 1 to classes - 1 places, round and round
    is_wrong = rng.random((items, raters)) >= accuracy
    label_shifts = is_wrong * rng.integers(1, classes, (items, raters), dtype=np.int8)
    return Ratings(((truth[:, None] + label_shifts) % classes).astype(np.int8), truth)


def study(
    accuracies: Sequence[float] = ACCURACIES,
    positive_rates: Sequence[float] = POSITIVE_RATES,
    classes: Sequence[int] = (2, 3),
    items: int = ITEMS,
    seed: int = SEED,
) -> pl.DataFrame:
    """Compute figure 4 as rows: each measure on the same simulated labels.

    Every cell draws from the same seed, so that curves differ by what was varied and not by luck.

    Returns:
        A row for each of classes, positive_rate and accuracy (the q that was set), in that order: kappa (Cohen's of a
        rater with the truth, mean of the three), fleiss (of all four equally), agreement (share of first labels that
        are the second: the figure's accuracy), tae. Null where kappa is undefined.
    """
    rows = []
    for count in classes:
        for rate in positive_rates:
            for accuracy in accuracies:
                first, second = simulate(items, accuracy, rate, count, seed=seed)
                cohen = np.mean([cohen_kappa(np.column_stack([rater, second])) for rater in first.T])
                fleiss = fleiss_kappa(np.column_stack([first, second]))
                agreement = float((first == second[:, None]).mean()) if items else math.nan
                rows.append((count, rate, accuracy, float(cohen), fleiss, agreement, tae(first, second)))
    numbers = ("kappa", "fleiss", "agreement", "tae")
    schema = {"classes": pl.Int64} | dict.fromkeys(("positive_rate", "accuracy", *numbers), pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col(numbers).fill_nan(None).round(6))
