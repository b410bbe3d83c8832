"""How far raters agree: the measures of `measures` with intervals, of CSD's fields and of any ratings; their study.

TAE compares three raters with the label that a fourth rater decided on (CSD-15). The fourth saw their labels and so is
not independent: kappa is given for the three as well as for all four, as in the paper (CSD-16).

The study (CSD, appendix A and figure 4; CSD-22): each of three raters gives an item's true class with probability q,
else one of the other classes, each as likely; the second round gives the true class. The positive rate is the share of
all classes but the first. The paper does not say whose kappa figure 4 shows. Its 0.239, 0.474, 0.793 are Cohen's kappa
of one rater with the truth; Fleiss' kappa of all four treated equally, as in section 3.3, is lower under skew.
"""

from collections.abc import Sequence
from functools import partial
from itertools import combinations, product

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.label.rating_files import MOST_VALUES, Level
from pipeline.label.schema import FIELDS
from pipeline.metrics.labelling import measures
from pipeline.metrics.labelling.measures import DEFINED_COHEN, MEASURES, MISSING, Codes, Measure
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
    patterns, counts, classes = measures.count_patterns(codes)
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
    patterns, counts, classes = measures.count_patterns(codes)
    parts = (MEASURES[name] if isinstance(name, str) else name)(patterns, classes)
    return Interval(value, *bounds(parts.value(sum_samples(parts.features, draw_counts(counts, resamples, seed)))))


def find_least_tae(raters: int, classes: int) -> float:
    """Find the lowest possible TAE (errata E8), for either reading.

    With d distinct labels other than the second, both rounds have d + 1, so rad = d / (d + 1) < 1. TAE is least where
    no first label is the second and they are as varied as can be: d = min(raters, classes - 1).
    """
    other_count = min(raters, classes - 1)
    if not other_count:  # with one class there is no other label to give: agr is 1
        return 1.0
    return float(measures.combine_ratios(np.array(0.0), np.array(other_count / (other_count + 1))))


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


STUDY_RATERS = 3
ACCURACIES = (*(round(0.5 + 0.02 * i, 2) for i in range(25)), 0.99, 1.0)
POSITIVE_RATES = (0.02, 0.05, 0.1, 0.2, 0.5)
ITEMS = 20_000
_STUDY_MEASURES = ("kappa", "fleiss", "agreement", "tae")


def simulate(items: int, accuracy: float, positive_rate: float, classes: int = 2) -> npt.NDArray[np.int8]:
    """Simulate labels of raters who are right with probability `accuracy`: [items, raters and the truth].

    The positive rate is the share of all classes but the first, in equal parts; so are a rater's wrong labels.
    """
    rng = np.random.default_rng(SEED)
    shares = [1 - positive_rate, *[positive_rate / (classes - 1)] * (classes - 1)]
    truth = rng.choice(classes, (items, 1), p=shares).astype(np.int8)
    # a wrong label is the true one moved on by 1 to classes - 1 places, round and round
    is_wrong = rng.random((items, STUDY_RATERS)) >= accuracy
    label_shifts = is_wrong * rng.integers(1, classes, (items, STUDY_RATERS), dtype=np.int8)
    return np.hstack([(truth + label_shifts) % classes, truth])


def study(
    accuracies: Sequence[float] = ACCURACIES,
    positive_rates: Sequence[float] = POSITIVE_RATES,
    classes: Sequence[int] = (2, 3),
    items: int = ITEMS,
) -> pl.DataFrame:
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
        kappa = np.mean([measure("cohen_kappa", codes[:, [rater, STUDY_RATERS]]) for rater in range(STUDY_RATERS)])
        agreement = (codes[:, :STUDY_RATERS] == codes[:, [STUDY_RATERS]]).mean()
        rows.append((*setting, float(kappa), measure("fleiss_kappa", codes), float(agreement), measure("tae", codes)))
    schema = {"classes": pl.Int64} | dict.fromkeys(("positive_rate", "accuracy", *_STUDY_MEASURES), pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col(_STUDY_MEASURES).fill_nan(None).round(6))


_RATING_MEASURES = ("agreement", "fleiss", "cohen", "krippendorff")
_COUNTS = ("n", "n_two", "n_fleiss", "raters", "labels", "classes")
_CELLS = 1 << 24  # numbers that an interval may need at a time
_UNDEFINED = Interval(np.nan, np.nan, np.nan)


def tabulate_ratings(
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
    numbers = [name + end for name in _RATING_MEASURES for end in ("", "_low", "_high")]
    texts = dict.fromkeys(("field", "level"), pl.String)
    schema = texts | dict.fromkeys(_COUNTS, pl.Int64) | dict.fromkeys(numbers, pl.Float64) | {"note": pl.String}
    groups = ratings.partition_by("field", maintain_order=True)
    rows = [_measure_rated_field(group, level, values or sort_values(group["value"]), resamples) for group in groups]
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col(numbers).fill_nan(None).round(6))


def sort_values(values: pl.Series) -> list[str]:
    """Sort the distinct values: numbers first, by size, then other texts."""
    frame = values.unique().to_frame("value")
    return frame.sort(pl.col("value").cast(pl.Float64, strict=False), "value", nulls_last=True)["value"].to_list()


def _measure_rated_field(group: pl.DataFrame, level: Level, values: Sequence[str], resamples: int) -> list[object]:
    codes = _encode(group, values)
    label_counts = (codes >= 0).sum(axis=1)
    most = 2 + max(range(codes.shape[1] - 1), key=lambda extra: ((label_counts == 2 + extra).sum(), extra))
    full = np.sort(codes[label_counts == most], axis=1)[:, -most:]  # who gave a label does not matter to Fleiss
    alpha: str | Measure = f"alpha_{level}"
    if level == "interval":
        alpha = partial(measures.interval_alpha, values=np.array(values, np.float64))
    estimates = dict.fromkeys(_RATING_MEASURES, _UNDEFINED) | {
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
    return [*row, *(number for name in _RATING_MEASURES for number in estimates[name]), "; ".join(notes) or None]


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
