"""How far any raters agree, by field: two raters or more, any values at three levels, labels missing."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import polars as pl

from pipeline.label.rating_files import MOST_VALUES, Level
from pipeline.metrics.labelling.agreement import estimate_interval, measure
from pipeline.metrics.labelling.measures import DEFINED_COHEN, MISSING, Codes, Measure, build_interval_alpha
from pipeline.metrics.resample import DRAWS as RESAMPLES
from pipeline.metrics.resample import Interval

_MEASURES = ("agreement", "fleiss", "cohen", "krippendorff")
_COUNTS = ("n", "n_two", "n_fleiss", "raters", "labels", "classes")
_CELLS = 1 << 24  # numbers that an interval may need at a time
_UNDEFINED = Interval(np.nan, np.nan, np.nan)


def tabulate(
    ratings: pl.DataFrame, level: Level = "nominal", values: Sequence[str] = (), resamples: int = RESAMPLES
) -> pl.DataFrame:
    """Compute the measures of any ratings by field, with 95 % intervals.

    `ratings` has task_id, rater_id, field, value: a row a label, each once; the values are numbers if the level is
    interval. `values` has all values in their order; by default numbers come first, then other texts.

    Returns a row a field, in the order of the rows: field, level, n (tasks), n_two (with two labels or more, which
    agreement and krippendorff are over), n_fleiss (with the most frequent number of labels from two, that fleiss is
    over), raters, labels, classes; the value, _low and _high of agreement (share of pairs of labels that are alike),
    fleiss, cohen (mean over the pairs of raters where it is defined), krippendorff (of the level); note: why one is
    null or over fewer tasks.
    """
    numbers = [name + end for name in _MEASURES for end in ("", "_low", "_high")]
    texts = dict.fromkeys(("field", "level"), pl.String)
    schema = texts | dict.fromkeys(_COUNTS, pl.Int64) | dict.fromkeys(numbers, pl.Float64) | {"note": pl.String}
    groups = ratings.partition_by("field", maintain_order=True)
    rows = [_measure_field(group, level, values or sort_values(group["value"]), resamples) for group in groups]
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col(numbers).fill_nan(None).round(6))


def sort_values(values: pl.Series) -> list[str]:
    """Sort the distinct values: numbers first, by size, then other texts."""
    frame = values.unique().to_frame("value")
    return frame.sort(pl.col("value").cast(pl.Float64, strict=False), "value", nulls_last=True)["value"].to_list()


def _measure_field(group: pl.DataFrame, level: Level, values: Sequence[str], resamples: int) -> list[object]:
    codes = _encode(group, values)
    label_counts = (codes >= 0).sum(axis=1)
    most = 2 + max(range(codes.shape[1] - 1), key=lambda extra: ((label_counts == 2 + extra).sum(), extra))
    full = np.sort(codes[label_counts == most], axis=1)[:, -most:]  # who gave a label does not matter to Fleiss
    alpha: str | Measure = f"alpha_{level}"
    if level == "interval":
        alpha = build_interval_alpha(np.array(values, np.float64))
    estimates = dict.fromkeys(_MEASURES, _UNDEFINED) | {
        "agreement": _estimate("raw_agreement", codes, codes.shape[1] * len(values), resamples),
        "krippendorff": _estimate(alpha, codes, 4 if level == "interval" else len(values) ** 2, resamples),
    }
    pairs = list(combinations(range(codes.shape[1]), 2))
    n, two_count, classes = len(codes), int((label_counts > 1).sum()), group["value"].n_unique()
    notes = []
    if len(values) > MOST_VALUES:
        notes.append(f"Fleiss and Cohen need at most {MOST_VALUES} values")
    else:
        kappas = [measure("cohen_kappa", codes[:, pair]) for pair in pairs]
        estimates["fleiss"] = _estimate("fleiss_kappa", full, len(values), resamples)
        estimates["cohen"] = _UNDEFINED._replace(value=measure(DEFINED_COHEN, codes))
        if n * len(pairs) * (2 + 2 * len(values)) <= _CELLS:
            estimates["cohen"] = estimate_interval(DEFINED_COHEN, codes, resamples)
        notes += _explain(classes, two_count, [n, len(full), most], int(np.isnan(kappas).sum()), len(pairs))
    row = [group["field"][0], level, n, two_count, len(full), group["rater_id"].n_unique(), group.height, classes]
    return [*row, *(number for name in _MEASURES for number in estimates[name]), "; ".join(notes) or None]


def _encode(group: pl.DataFrame, values: Sequence[str]) -> Codes:
    """Encode the labels as positions in `values`: [tasks, raters], two raters at least, -1 where one is missing."""
    code = pl.col("value").replace_strict({value: n for n, value in enumerate(values)}, return_dtype=pl.Int64)
    wide = group.with_columns(code=code).pivot("rater_id", index="task_id", values="code")
    codes = wide.drop("task_id").fill_null(MISSING).to_numpy()
    return codes if codes.shape[1] > 1 else np.column_stack([codes, np.full(len(codes), MISSING)])


def _estimate(name: str | Measure, codes: Codes, width: int, resamples: int) -> Interval:
    """Estimate a measure; without an interval where that would need too much memory."""
    if len(codes) * width > _CELLS:
        return _UNDEFINED._replace(value=measure(name, codes))
    return estimate_interval(name, codes, resamples)


def _explain(classes: int, two_count: int, tasks: list[int], undefined_count: int, pair_count: int) -> list[str]:
    """Explain what is null, or over fewer tasks; `tasks`: all, those of Fleiss, and how many labels these have."""
    n, full_count, most = tasks
    if not two_count:
        return ["no task has labels of two raters"]
    if classes == 1:
        return ["all labels are alike, so chance alone explains it"]
    notes = []
    if full_count < n:
        notes.append(f"Fleiss is over the {full_count} of {n} tasks with {most} labels")
    if undefined_count:
        notes.append(f"Cohen: {undefined_count} of {pair_count} pairs of raters share no task or used one value")
    return notes
