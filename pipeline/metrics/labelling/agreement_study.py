"""How kappa, accuracy and TAE answer to the raters' accuracy and to skew (CSD, appendix A and figure 4; CSD-22).

Each of three raters gives an item's true class with probability q, else one of the other classes, each as likely. The
second round gives the true class. The positive rate is the share of all classes but the first, in equal parts.

The paper does not say whose kappa figure 4 shows. The numbers of CSD-22 (0.239, 0.474, 0.793) are Cohen's kappa of one
rater with the truth; Fleiss' kappa of all four treated equally, as in section 3.3, is lower under skew.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.metrics.labelling.agreement import measure
from pipeline.metrics.resample import SEED

RATERS = 3
ACCURACIES = (*(round(0.5 + 0.02 * i, 2) for i in range(25)), 0.99, 1.0)
POSITIVE_RATES = (0.02, 0.05, 0.1, 0.2, 0.5)
ITEMS = 20_000
_MEASURES = ("kappa", "fleiss", "agreement", "tae")


def simulate(items: int, accuracy: float, positive_rate: float, classes: int = 2) -> npt.NDArray[np.int8]:
    """Simulate labels of raters who are right with probability `accuracy`: [items, raters and the truth]."""
    rng = np.random.default_rng(SEED)
    shares = [1 - positive_rate, *[positive_rate / (classes - 1)] * (classes - 1)]
    truth = rng.choice(classes, (items, 1), p=shares).astype(np.int8)
    # a wrong label is the true one moved on by 1 to classes - 1 places, round and round
    is_wrong = rng.random((items, RATERS)) >= accuracy
    label_shifts = is_wrong * rng.integers(1, classes, (items, RATERS), dtype=np.int8)
    return np.hstack([(truth + label_shifts) % classes, truth])


def study(
    accuracies: Sequence[float] = ACCURACIES, positive_rates: Sequence[float] = POSITIVE_RATES,
    classes: Sequence[int] = (2, 3), items: int = ITEMS,
) -> pl.DataFrame:  # fmt: skip
    """Compute figure 4 as rows: each measure on the same simulated labels.

    Every cell draws from the same seed, so that curves differ by what was varied and not by luck.

    Returns a row for each of classes, positive_rate and accuracy (the q that was set), in that order: kappa (Cohen's of
    a rater with the truth, mean of the three), fleiss (of all four equally), agreement (share of first labels that are
    the second: the figure's accuracy), tae. Null where kappa is undefined.
    """
    rows = []
    for setting in product(classes, positive_rates, accuracies):
        class_count, rate, accuracy = setting
        codes = simulate(items, accuracy, rate, class_count)
        kappa = np.mean([measure("cohen_kappa", codes[:, [rater, RATERS]]) for rater in range(RATERS)])
        agreement = (codes[:, :RATERS] == codes[:, [RATERS]]).mean()
        rows.append((*setting, float(kappa), measure("fleiss_kappa", codes), float(agreement), measure("tae", codes)))
    schema = {"classes": pl.Int64} | dict.fromkeys(("positive_rate", "accuracy", *_MEASURES), pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col(_MEASURES).fill_nan(None).round(6))
