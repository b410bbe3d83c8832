"""How far raters agree: the measures of `measures`, their intervals, and all of them for all fields of CSD.

TAE compares three raters with the label that a fourth rater decided on (CSD-15). The fourth saw their labels and so is
not independent: kappa is given for the three as well as for all four, as in the paper (CSD-16).
"""

import numpy as np
import polars as pl

from pipeline.label.schema import FIELDS
from pipeline.metrics.labelling.measures import MEASURES, MISSING, Codes, Measure, combine_ratios, count_patterns
from pipeline.metrics.resample import DRAWS as RESAMPLES
from pipeline.metrics.resample import SEED, Interval, bounds, draw_counts, sum_samples

RATERS = ("a", "b", "c")
LAST = ("last_a", "last_b", "last_c")
FOUR = (*LAST, "fourth")
_TABLE_MEASURES = {
    "fleiss": ("fleiss_kappa", RATERS), "fleiss_last": ("fleiss_kappa", LAST), "fleiss_four": ("fleiss_kappa", FOUR),
    "cohen": ("cohen_kappa", RATERS), "krippendorff": ("alpha_nominal", RATERS), "tae": ("tae", FOUR),
    "tae_mean_of_records": ("tae_mean_of_records", FOUR),
}  # fmt: skip
_BLOCK = 1000  # patterns whose sums are computed at a time


def measure(name: str | Measure, codes: Codes) -> float:
    """Compute a measure, by its name in `measures.MEASURES` or itself; NaN where it is undefined.
    `codes` are labels as whole numbers from 0, -1 where one is missing: [items, two raters or more]. Others are a
    ValueError.
    """
    patterns, counts, classes = count_patterns(codes)
    build = MEASURES[name] if isinstance(name, str) else name
    blocks = [slice(start, start + _BLOCK) for start in range(0, max(len(patterns), 1), _BLOCK)]
    sums = sum(counts[block] @ build(patterns[block], classes).features for block in blocks)
    return float(build(patterns[:0], classes).value(np.asarray(sums)))


def estimate_interval(name: str | Measure, codes: Codes, resamples: int = RESAMPLES, seed: int = SEED) -> Interval:
    """Estimate a percentile bootstrap interval: items are drawn with all their labels; arguments as of `measure`.
    Patterns of labels are drawn, so the result does not depend on the order of items. The ends are taken over the
    samples in which the measure is defined.
    """
    value = measure(name, codes)
    if np.isnan(value):
        return Interval(value, np.nan, np.nan)
    patterns, counts, classes = count_patterns(codes)
    parts = (MEASURES[name] if isinstance(name, str) else name)(patterns, classes)
    samples = parts.value(sum_samples(parts.features, draw_counts(counts, resamples, seed)))
    return Interval(value, *bounds(samples))


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
    Left null there, TAE would be that of the disputed comments alone. While a field of a task waits for the fourth
    (`is_waiting`), what uses the fourth is not yet defined: over the settled tasks alone it would be too high.

    `labels` has task_id, field, the labels of the first round (a, b, c) and of the round that decided or is to decide
    (last_a, last_b, last_c), fourth, is_waiting: a row for a task and field, schema values, null where missing.

    Returns a row for each field there is, in the schema's order: field, n (tasks), n_three (all three labelled in the
    first round), n_four (all three in the last round, and the fourth), n_waiting, classes; the value, _low and _high of
    each of `_TABLE_MEASURES`, where the fourth is one of four; tae_min, the least TAE that so many classes allow. Null
    where undefined, such as kappa of a single class.
    """
    fields = set(labels["field"])
    rows = [_measure_field(name, labels.filter(field=name), resamples) for name in FIELDS if name in fields]
    numbers = [name + end for name in _TABLE_MEASURES for end in ("", "_low", "_high")] + ["tae_min"]
    counts = ("n", "n_three", "n_four", "n_waiting", "classes")
    schema = {"field": pl.String} | dict.fromkeys(counts, pl.Int64) | dict.fromkeys(numbers, pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col(numbers).fill_nan(None).round(6))


def _measure_field(field: str, labels: pl.DataFrame, resamples: int) -> list[str | int | float]:
    columns = {name: encode_values(field, labels[name]).fill_null(MISSING).to_numpy() for name in (*RATERS, *FOUR)}
    sets: tuple[tuple[str, ...], ...] = (RATERS, LAST, FOUR)
    codes = {names: np.column_stack([columns[name] for name in names]) for names in sets}
    counts = [int((codes[names] >= 0).all(axis=1).sum()) for names in (RATERS, FOUR)]
    waiting_count, classes = int(labels["is_waiting"].sum()), len(FIELDS[field].values)
    row: list[str | int | float] = [field, labels.height, *counts, waiting_count, classes]
    for name, raters in _TABLE_MEASURES.values():
        is_open = waiting_count and "fourth" in raters
        row += [np.nan] * 3 if is_open else estimate_interval(name, codes[raters], resamples)
    return [*row, find_least_tae(len(RATERS), classes)]
