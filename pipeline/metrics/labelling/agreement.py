"""How far raters agree: Fleiss' and Cohen's kappa, Krippendorff's alpha, and TAE (CSD, section 3.3 and appendix A).

For grades there is Cohen's weighted kappa (commenting, section 3; AAC-09).

Labels are whole numbers from 0, [items, raters], -1 where a label is missing.

TAE compares three raters of a first round with the label that a fourth rater decided on (CSD-15). The fourth saw their
labels and so is not independent: kappa is given for the three as well as for all four, as in the paper (CSD-16).
"""

from typing import NamedTuple

import numpy as np
import polars as pl

from pipeline.errors import BadInput
from pipeline.label.schema import FIELDS
from pipeline.metrics.labelling.measures import (
    MISSING,
    Codes,
    Floats,
    check_codes,
    combine_ratios,
    compute_ratios,
    count_classes,
    count_patterns,
    decompose,
)
from pipeline.metrics.resample import bounds, draw_counts, sum_samples, tail_shares

RESAMPLES = 1000
SEED = 42


def fleiss_kappa(codes: Codes) -> float:
    """Compute Fleiss' kappa (1971), at most 1; an item with a missing label does not count.

    Args:
        codes: [items, raters], two raters or more.

    Returns:
        NaN where it is undefined: no item counts, or all labels are of one class, so that chance explains everything.
    """
    return _compute_measure("fleiss_kappa", codes)


def cohen_kappa(codes: Codes) -> float:
    """Compute Cohen's kappa (1960), in [-1, 1]: the mean over pairs of raters, over the items that both labelled.

    Args:
        codes: [items, raters], two raters or more.

    Returns:
        NaN where it is undefined for a pair: no item in common, or both gave one and the same class throughout.
    """
    return _compute_measure("cohen_kappa", codes)


def weighted_kappa(codes: Codes, weights: str = "quadratic") -> float:
    """Compute weighted kappa (Cohen, 1968), in [-1, 1]: 1 less disagreement over that by chance.

    Commenting, section 3, reports 0.59 without its weights, so there are both kinds (AAC-09).

    Of several raters all pairs are pooled: disagreements are summed over the pairs, and so is what chance would give
    them, each rater having one distribution of grades over all items that somebody else graded, too. Where all grade
    all items, that is Conger's kappa (1980), with weights. Taken pair by pair, as `cohen_kappa` does, it would be
    undefined for two raters without common items, and near 0 for two with few.

    Args:
        codes: [items, raters], two raters or more; greater codes are greater grades, a step apart.
        weights: how far two grades lie apart: linear (their difference), or quadratic (its square).

    Returns:
        NaN where it is undefined: no item with two grades, or all raters gave one and the same grade throughout.
    """
    return _compute_measure(f"weighted_kappa_{weights}", codes)


def krippendorff_alpha(codes: Codes, level: str = "nominal") -> float:
    """Compute Krippendorff's alpha (2011), at most 1; an item with fewer than two labels does not count.

    Args:
        codes: [items, raters], two raters or more. But for `nominal`, greater codes stand for greater values.
        level: how far two classes lie apart: nominal (all alike), ordinal, interval (the difference of the codes).

    Returns:
        NaN where it is undefined: no item counts, or all labels are of one class.
    """
    return _compute_measure(f"alpha_{level}", codes)


def tae(first: Codes, second: Codes) -> float:
    """Compute Two-Stages Annotation Evaluation, (exp(agr - rad) - 1/e) / (e - 1/e), in (0, 1] (equation 3; CSD-20).

    agr and rad are averaged over records first (equations 4 and 5); `tae_bounds` gives its minimum.

    Args:
        first: [items, raters], labels of the first round.
        second: [items], the label decided on. An item with a missing label does not count.

    Returns:
        1 where all agree, in one class too; NaN where no item counts.
    """
    return _compute_measure("tae", np.column_stack([first, second]))


def tae_mean_of_records(first: Codes, second: Codes) -> float:
    """Compute the mean of the records' own TAE, another reading of section 3.3; at least `tae` (CSD-20)."""
    return _compute_measure("tae_mean_of_records", np.column_stack([first, second]))


class Records(NamedTuple):
    """One number for each item, NaN where a label is missing."""

    agr: Floats  # share of the first labels that are the second (equation 1); a label given twice counts twice
    rad: Floats  # of the distinct labels of both rounds, the share that are not the second (equation 2)
    tae: Floats  # equation 3 of the two


def measure_records(first: Codes, second: Codes) -> Records:
    """Compute agr, rad and TAE of each item (CSD-18, CSD-19); arguments as of `tae`."""
    codes = check_codes(np.column_stack([first, second]))
    agr, rad = compute_ratios(codes, count_classes(codes))
    agr, rad = (np.where((codes >= 0).all(axis=1), part, np.nan) for part in (agr, rad))
    return Records(agr, rad, combine_ratios(agr, rad))


class Bounds(NamedTuple):
    """Least and greatest value that labels can have."""

    low: float
    high: float


def tae_bounds(raters: int, classes: int) -> Bounds:
    """Compute the lowest and highest possible TAE (errata E8), for either reading.

    With d distinct labels other than the second, both rounds have d + 1, so rad = d / (d + 1) < 1. TAE is least where
    no first label is the second and they are as varied as can be: d = min(raters, classes - 1).

    Args:
        raters: of the first round, at least 1.
        classes: labels there are to choose from, at least 1.
    """
    if raters < 1 or classes < 1:
        raise ValueError(f"expected at least one rater and one class, got {raters} and {classes}")
    other_count = min(raters, classes - 1)
    # with one class there is no other label to give: agr is 1
    low = float(combine_ratios(np.array(0.0), np.array(other_count / (other_count + 1)))) if other_count else 1.0
    return Bounds(low, 1.0)


class Interval(NamedTuple):
    """A measure with the ends of its interval; NaN where it is undefined."""

    value: float
    low: float
    high: float
    undefined_count: int  # resamples in which the measure was undefined; the ends are taken over the others


def estimate_interval(
    measure: str, codes: Codes, resamples: int = RESAMPLES, confidence: float = 0.95, seed: int = SEED
) -> Interval:
    """Estimate a percentile bootstrap interval: items are drawn with all their labels.

    Drawing n items is drawing how often each pattern of labels occurs (multinomial), so the work depends on the number
    of patterns, not of items, and the result not on the order of items.

    Args:
        measure: a name of `MEASURES`.
        codes: [items, raters]; for the TAE measures the last column is the second round.
        resamples: how many sets of items are drawn.
        confidence: share of the resamples between the ends.
        seed: the same seed gives the same ends.
    """
    patterns, counts = count_patterns(check_codes(codes))
    parts = decompose(measure, patterns)
    value = float(parts.value(counts @ parts.features))
    if np.isnan(value):
        return Interval(value, np.nan, np.nan, resamples)
    samples = parts.value(sum_samples(parts.features, draw_counts(counts, resamples, seed)))
    return Interval(value, *bounds(samples, tail_shares(confidence)), int(np.isnan(samples).sum()))


def encode_values(field: str, values: pl.Series, names: pl.Series | None = None) -> pl.Series:
    """Encode values of a field as their positions in the schema, Int8; nulls stay.

    Args:
        field: a field of the schema.
        values: as text, or as numbers that read the same.
        names: what errors call the rows; without them, their numbers from 0.

    Raises:
        BadInput: an unknown field, or a value that the field does not have.
    """
    if field not in FIELDS:
        raise BadInput(f"no field {field!r}; there are {', '.join(FIELDS)}")
    field_values = FIELDS[field].values
    codes = values.cast(pl.String).replace_strict(
        dict(zip(field_values, range(len(field_values)), strict=True)), default=None, return_dtype=pl.Int8
    )
    unknown_rows = (codes.is_null() & values.is_not_null()).arg_true()
    if len(unknown_rows):
        row = unknown_rows[0]
        name = f"row {row}" if names is None else names[row]
        raise BadInput(f"{name}, {field}: expected one of {', '.join(field_values)}, found {str(values[row])[:40]!r}")
    return codes


RATERS = ("a", "b", "c")
_TABLE_MEASURES = {
    "fleiss": ("fleiss_kappa", RATERS),
    "fleiss_four": ("fleiss_kappa", (*RATERS, "fourth")),
    "cohen": ("cohen_kappa", RATERS),
    "krippendorff": ("alpha_nominal", RATERS),
    "tae": ("tae", (*RATERS, "fourth")),
    "tae_mean_of_records": ("tae_mean_of_records", (*RATERS, "fourth")),
}


def tabulate(labels: pl.DataFrame, resamples: int = RESAMPLES, seed: int = SEED) -> pl.DataFrame:
    """Compute every measure for every field, with 95% intervals (the paper's table 2 and more).

    `fourth` is the final label; where the three agreed, no fourth rater was asked and it is theirs (CSD-15, rule 1).
    Left null there, TAE would be that of the disputed comments alone. Null is for what was deleted or is open.

    Args:
        labels: task_id, field, a, b, c, fourth: a row for a task and field, schema values, null where missing.
        resamples: of the bootstrap over tasks.
        seed: of the bootstrap.

    Returns:
        A row for each field there is, in the schema's order: field, n (tasks), n_three (all three labelled), n_four
        (the fourth as well), classes; of fleiss, fleiss_four (the fourth treated as one of four), cohen (mean of the
        three pairs), krippendorff (nominal), tae, tae_mean_of_records the value, _low and _high; tae_min, the least
        TAE that so many classes allow. Null where undefined, such as kappa of a single class.

    Raises:
        BadInput: a column is missing, a field or value is unknown, a task has two rows for a field.
    """
    missing = [name for name in ("task_id", "field", *RATERS, "fourth") if name not in labels.columns]
    if missing:
        raise BadInput(f"labels: no column {', '.join(missing)}; found {', '.join(labels.columns)}")
    duplicates = labels.filter(pl.struct("task_id", "field").is_duplicated())
    if len(duplicates):
        task_id, field = duplicates.select("task_id", "field").row(0)
        raise BadInput(f"labels: expected one row for each task and field, found {task_id} {field} twice")
    unknown = labels.filter(~pl.col("field").is_in(list(FIELDS)).fill_null(value=False))["field"]
    if len(unknown):
        raise BadInput(f"labels: no field {unknown[0]!r}; there are {', '.join(FIELDS)}")
    fields = set(labels["field"])
    rows = [
        _measure_field(name, labels.filter(pl.col("field") == name), resamples, seed)
        for name in FIELDS
        if name in fields
    ]
    numbers = [name + end for name in _TABLE_MEASURES for end in ("", "_low", "_high")] + ["tae_min"]
    counts = ("n", "n_three", "n_four", "classes")
    schema = {"field": pl.String} | dict.fromkeys(counts, pl.Int64) | dict.fromkeys(numbers, pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col(numbers).fill_nan(None).round(6))


def _measure_field(field: str, labels: pl.DataFrame, resamples: int, seed: int) -> list[str | int | float]:
    codes_by_rater = {name: encode_values(field, labels[name], labels["task_id"]) for name in (*RATERS, "fourth")}
    columns = {name: codes.fill_null(MISSING).to_numpy() for name, codes in codes_by_rater.items()}
    has_three = np.all([columns[name] >= 0 for name in RATERS], axis=0)
    classes = len(FIELDS[field].values)
    row: list[str | int | float] = [field, labels.height, int(has_three.sum())]
    row += [int((has_three & (columns["fourth"] >= 0)).sum()), classes]
    for measure, names in _TABLE_MEASURES.values():
        codes = np.column_stack([columns[name] for name in names])
        row += estimate_interval(measure, codes, resamples, seed=seed)[:3]
    return [*row, tae_bounds(len(RATERS), classes).low]


def _compute_measure(measure: str, codes: Codes) -> float:
    patterns, counts = count_patterns(check_codes(codes))
    parts = decompose(measure, patterns)
    return float(parts.value(counts @ parts.features))
