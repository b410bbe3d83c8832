"""How far raters agree: the measures of `measures`, their intervals, and all of them for all fields of CSD.

TAE compares three raters of a first round with the label that a fourth rater decided on (CSD-15). The fourth saw their
labels and so is not independent: kappa is given for the three as well as for all four, as in the paper (CSD-16).
"""

from typing import NamedTuple

import numpy as np
import polars as pl

from pipeline.label.schema import FIELDS
from pipeline.metrics.labelling.measures import MISSING, Codes, combine_ratios, take_apart
from pipeline.metrics.resample import bounds, draw_counts, sum_samples, tail_shares

RESAMPLES = 1000
SEED = 42
RATERS = ("a", "b", "c")
FOUR = (*RATERS, "fourth")
_TABLE_MEASURES = {
    "fleiss": ("fleiss_kappa", RATERS),
    "fleiss_four": ("fleiss_kappa", FOUR),
    "cohen": ("cohen_kappa", RATERS),
    "krippendorff": ("alpha_nominal", RATERS),
    "tae": ("tae", FOUR),
    "tae_mean_of_records": ("tae_mean_of_records", FOUR),
}


class Interval(NamedTuple):
    """A measure with the ends of its 95 % interval; NaN where it is undefined."""

    value: float
    low: float
    high: float


def measure(name: str, codes: Codes) -> float:
    """Compute a measure of `measures.MEASURES`; NaN where it is undefined.

    `codes` are labels as whole numbers from 0, -1 where one is missing: [items, two raters or more]. Others are a
    ValueError.
    """
    parts, counts = take_apart(name, codes)
    return float(parts.value(counts @ parts.features))


def estimate_interval(name: str, codes: Codes, resamples: int = RESAMPLES, seed: int = SEED) -> Interval:
    """Estimate a percentile bootstrap interval: items are drawn with all their labels; arguments as of `measure`.

    Drawing n items is drawing how often each pattern of labels occurs (multinomial), so the work depends on the number
    of patterns, not of items, and the result not on the order of items. The ends are taken over the samples in which
    the measure is defined.
    """
    parts, counts = take_apart(name, codes)
    value = float(parts.value(counts @ parts.features))
    if np.isnan(value):
        return Interval(value, np.nan, np.nan)
    samples = parts.value(sum_samples(parts.features, draw_counts(counts, resamples, seed)))
    return Interval(value, *bounds(samples, tail_shares(0.95)))


def find_least_tae(raters: int, classes: int) -> float:
    """Find the lowest possible TAE (errata E8), for either reading.

    With d distinct labels other than the second, both rounds have d + 1, so rad = d / (d + 1) < 1. TAE is least where
    no first label is the second and they are as varied as can be: d = min(raters, classes - 1).
    """
    other_count = min(raters, classes - 1)
    # with one class there is no other label to give: agr is 1
    return float(combine_ratios(np.array(0.0), np.array(other_count / (other_count + 1)))) if other_count else 1.0


def encode_values(field: str, values: pl.Series) -> pl.Series:
    """Encode values of a field, as text or as numbers, as their positions in the schema, Int8; nulls stay."""
    places = {value: place for place, value in enumerate(FIELDS[field].values)}
    return values.cast(pl.String).replace_strict(places, return_dtype=pl.Int8)


def tabulate(labels: pl.DataFrame, resamples: int = RESAMPLES) -> pl.DataFrame:
    """Compute every measure for every field, with 95% intervals (the paper's table 2 and more).

    `fourth` is the final label; where the three agreed, no fourth rater was asked and it is theirs (CSD-15, rule 1).
    Left null there, TAE would be that of the disputed comments alone. Null is for what was deleted or is open.

    `labels` has task_id, field, a, b, c, fourth: a row for a task and field, schema values, null where missing.

    Returns:
        A row for each field there is, in the schema's order: field, n (tasks), n_three (all three labelled), n_four
        (the fourth as well), classes; of fleiss, fleiss_four (the fourth treated as one of four), cohen (mean of the
        three pairs), krippendorff (nominal), tae, tae_mean_of_records the value, _low and _high; tae_min, the least
        TAE that so many classes allow. Null where undefined, such as kappa of a single class.
    """
    fields = set(labels["field"])
    rows = [_measure_field(name, labels.filter(field=name), resamples) for name in FIELDS if name in fields]
    numbers = [name + end for name in _TABLE_MEASURES for end in ("", "_low", "_high")] + ["tae_min"]
    counts = ("n", "n_three", "n_four", "classes")
    schema = {"field": pl.String} | dict.fromkeys(counts, pl.Int64) | dict.fromkeys(numbers, pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col(numbers).fill_nan(None).round(6))


def _measure_field(field: str, labels: pl.DataFrame, resamples: int) -> list[str | int | float]:
    codes = {name: encode_values(field, labels[name]).fill_null(MISSING).to_numpy() for name in FOUR}
    has_three = np.all([codes[name] >= 0 for name in RATERS], axis=0)
    four_count = int((has_three & (codes["fourth"] >= 0)).sum())
    classes = len(FIELDS[field].values)
    row: list[str | int | float] = [field, labels.height, int(has_three.sum()), four_count, classes]
    for name, raters in _TABLE_MEASURES.values():
        row += estimate_interval(name, np.column_stack([codes[rater] for rater in raters]), resamples)
    return [*row, find_least_tae(len(RATERS), classes)]
