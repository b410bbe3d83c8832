"""How far raters agree: Fleiss' and Cohen's kappa, Krippendorff's alpha, and TAE (CSD, section 3.3 and appendix A).

For grades there is Cohen's weighted kappa (commenting, section 3; AAC-09).

Labels are whole numbers from 0, [items, raters], -1 where a label is missing. Each measure is a formula on sums over
items, so items that were labelled alike are counted once, and a thousand resamples of a million labels are one matrix
product.

TAE takes three raters of a first round and the label that a fourth decided on (CSD-15), who saw theirs: he is not
independent of them. That is why kappa is told of the three as well as of all four, as the paper has it (CSD-16).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.errors import BadInput
from pipeline.label.schema import FIELDS
from pipeline.metrics.resample import bounds, draw_counts, sum_samples, tails

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.signedinteger]

MISSING = -1
RESAMPLES = 1000
SEED = 42


class _Parts(NamedTuple):
    """A measure taken apart."""

    features: Floats  # [patterns, m]: what an item labelled so adds to the sums
    value: Callable[[Floats], Floats]  # sums [..., m] to the measure [...]


def fleiss_kappa(codes: Codes) -> float:
    """Fleiss' kappa (1971), at most 1; an item with a missing label does not count.

    Args:
        codes: [items, raters], two raters or more.

    Returns:
        NaN where it is undefined: no item counts, or all labels are of one class, so that chance explains everything.
    """
    return _measured("fleiss_kappa", codes)


def cohen_kappa(codes: Codes) -> float:
    """Cohen's kappa (1960), in [-1, 1], averaged over all pairs of raters; each over the items that both labelled.

    Args:
        codes: [items, raters], two raters or more.

    Returns:
        NaN where it is undefined for a pair: no item in common, or both gave one and the same class throughout.
    """
    return _measured("cohen_kappa", codes)


def weighted_kappa(codes: Codes, weights: str = "quadratic") -> float:
    """Weighted kappa (Cohen, 1968), in [-1, 1]: 1 less disagreement over that by chance.

    Commenting, section 3, tells 0.59 without its weights, so there are both kinds (AAC-09).

    Of several raters all pairs are pooled: disagreements are summed over the pairs, and so is what chance would give
    them, each rater having one distribution of grades over all items that somebody else graded, too. Where all grade
    all items, that is Conger's kappa (1980), with weights. Taken pair by pair, as `cohen_kappa` does, it would be
    undefined for two who never met, and near 0 for two who met seldom, whose own few items tell chance too well.

    Args:
        codes: [items, raters], two raters or more; greater codes are greater grades, a step apart.
        weights: how far two grades lie apart: linear (their difference), or quadratic (its square).

    Returns:
        NaN where it is undefined: no item with two grades, or all raters gave one and the same grade throughout.
    """
    return _measured(f"weighted_kappa_{weights}", codes)


def krippendorff_alpha(codes: Codes, level: str = "nominal") -> float:
    """Krippendorff's alpha (2011), at most 1; an item with fewer than two labels does not count.

    Args:
        codes: [items, raters], two raters or more. But for `nominal`, greater codes stand for greater values.
        level: how far two classes lie apart: nominal (all alike), ordinal, interval (the difference of the codes).

    Returns:
        NaN where it is undefined: no item counts, or all labels are of one class.
    """
    return _measured(f"alpha_{level}", codes)


def tae(first: Codes, second: Codes) -> float:
    """Two-Stages Annotation Evaluation, (exp(agr - rad) - 1/e) / (e - 1/e), in (0, 1] (equation 3; CSD-20).

    agr and rad are averaged over records first (equations 4 and 5); `tae_bounds` tells how low it can be.

    Args:
        first: [items, raters], labels of the first round.
        second: [items], the label decided on. An item with a missing label does not count.

    Returns:
        1 where all agree, in one class too; NaN where no item counts.
    """
    return _measured("tae", np.column_stack([first, second]))


def tae_mean_of_records(first: Codes, second: Codes) -> float:
    """The mean of the records' own TAE, as section 3.3 may be read; at least `tae`, exp being convex (CSD-20)."""
    return _measured("tae_mean_of_records", np.column_stack([first, second]))


class Records(NamedTuple):
    """One number for each item, NaN where a label is missing."""

    agr: Floats  # share of the first labels that are the second (equation 1); a label given twice counts twice
    rad: Floats  # of the distinct labels of both rounds, the share that are not the second (equation 2)
    tae: Floats  # equation 3 of the two


def tae_records(first: Codes, second: Codes) -> Records:
    """agr, rad and TAE of each item (CSD-18, CSD-19); arguments as for `tae`."""
    codes = _checked(np.column_stack([first, second]))
    agr, rad = _agr_rad(codes, _classes(codes))
    agr, rad = (np.where((codes >= 0).all(axis=1), part, np.nan) for part in (agr, rad))
    return Records(agr, rad, tae_of(agr, rad))


def tae_of(agr: Floats, rad: Floats) -> Floats:
    """Equation 3: 1 at agr 1 and rad 0; rises with agr, falls with rad."""
    return np.asarray((np.exp(agr - rad) - np.exp(-1)) / (np.e - np.exp(-1)))


class Bounds(NamedTuple):
    """Least and greatest value that labels can have."""

    low: float
    high: float


def tae_bounds(raters: int, classes: int) -> Bounds:
    """How low and how high TAE can be (errata E8), by either reading.

    With d distinct labels beside the second, both rounds have d + 1, so rad = d / (d + 1) < 1. TAE is least where no
    first label is the second and they are as varied as can be: d = min(raters, classes - 1).

    Args:
        raters: of the first round, at least 1.
        classes: labels there are to choose from, at least 1.
    """
    if raters < 1 or classes < 1:
        raise ValueError(f"expected at least one rater and one class, got {raters} and {classes}")
    others = min(raters, classes - 1)
    # with one class there is no other label to give: agr is 1
    low = float(tae_of(np.array(0.0), np.array(others / (others + 1)))) if others else 1.0
    return Bounds(low, 1.0)


class Interval(NamedTuple):
    """A measure with the ends of its interval; NaN where it is undefined."""

    value: float
    low: float
    high: float
    undefined_count: int  # resamples in which the measure was undefined; the ends are taken over the others


def interval(
    measure: str, codes: Codes, resamples: int = RESAMPLES, confidence: float = 0.95, seed: int = SEED
) -> Interval:
    """Percentile bootstrap over items: items are drawn with replacement, all labels of an item together.

    Drawing n items is drawing how often each pattern of labels occurs (multinomial), so the work depends on the number
    of patterns, not of items, and the result not on the order of items.

    Args:
        measure: a name of `MEASURES`.
        codes: [items, raters]; for the TAE measures the last column is the second round.
        resamples: how many sets of items are drawn.
        confidence: share of the resamples between the ends.
        seed: the same seed gives the same ends.
    """
    patterns, counts = _patterns(_checked(codes))
    parts = _parts(measure, patterns)
    value = float(parts.value(counts @ parts.features))
    if np.isnan(value):
        return Interval(value, np.nan, np.nan, resamples)
    samples = parts.value(sum_samples(parts.features, draw_counts(counts, resamples, seed)))
    return Interval(value, *bounds(samples, tails(confidence)), int(np.isnan(samples).sum()))


def encoded(field: str, values: pl.Series, names: pl.Series | None = None) -> pl.Series:
    """Values of a field as their places in the schema, Int8; nulls stay.

    Args:
        field: a field of the schema.
        values: as text, or as numbers that read the same.
        names: what errors call the rows; without them, their numbers from 0.

    Raises:
        BadInput: there is no such field, or a value is none of its own.
    """
    if field not in FIELDS:
        raise BadInput(f"no field {field!r}; there are {', '.join(FIELDS)}")
    known = FIELDS[field].values
    codes = values.cast(pl.String).replace_strict(
        dict(zip(known, range(len(known)), strict=True)), default=None, return_dtype=pl.Int8
    )
    strange = (codes.is_null() & values.is_not_null()).arg_true()
    if len(strange):
        row = strange[0]
        name = f"row {row}" if names is None else names[row]
        raise BadInput(f"{name}, {field}: expected one of {', '.join(known)}, found {str(values[row])[:40]!r}")
    return codes


RATERS = ("a", "b", "c")
_TOLD = {
    "fleiss": ("fleiss_kappa", RATERS),
    "fleiss_four": ("fleiss_kappa", (*RATERS, "fourth")),
    "cohen": ("cohen_kappa", RATERS),
    "krippendorff": ("alpha_nominal", RATERS),
    "tae": ("tae", (*RATERS, "fourth")),
    "tae_mean_of_records": ("tae_mean_of_records", (*RATERS, "fourth")),
}


def table(labels: pl.DataFrame, resamples: int = RESAMPLES, seed: int = SEED) -> pl.DataFrame:
    """Every measure for every field, with 95% intervals (the paper's table 2, and what it leaves out).

    `fourth` is the label that stands, so where the three agreed and nobody was asked it is theirs (CSD-15, rule 1).
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
    twice = labels.filter(pl.struct("task_id", "field").is_duplicated())
    if len(twice):
        raise BadInput(
            f"labels: expected one row a task and field, found {twice['task_id'][0]} {twice['field'][0]} twice"
        )
    unknown = labels.filter(~pl.col("field").is_in(list(FIELDS)).fill_null(value=False))["field"]
    if len(unknown):
        raise BadInput(f"labels: no field {unknown[0]!r}; there are {', '.join(FIELDS)}")
    fields = set(labels["field"])
    rows = [_row(name, labels.filter(pl.col("field") == name), resamples, seed) for name in FIELDS if name in fields]
    numbers = [name + end for name in _TOLD for end in ("", "_low", "_high")] + ["tae_min"]
    counts = ("n", "n_three", "n_four", "classes")
    schema = {"field": pl.String} | dict.fromkeys(counts, pl.Int64) | dict.fromkeys(numbers, pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col(numbers).fill_nan(None).round(6))


def _row(field: str, labels: pl.DataFrame, resamples: int, seed: int) -> list[str | int | float]:
    places = {name: encoded(field, labels[name], labels["task_id"]) for name in (*RATERS, "fourth")}
    columns = {name: codes.fill_null(MISSING).to_numpy() for name, codes in places.items()}
    three = np.all([columns[name] >= 0 for name in RATERS], axis=0)
    classes = len(FIELDS[field].values)
    found: list[str | int | float] = [field, labels.height, int(three.sum())]
    found += [int((three & (columns["fourth"] >= 0)).sum()), classes]
    for measure, names in _TOLD.values():
        codes = np.column_stack([columns[name] for name in names])
        found += interval(measure, codes, resamples, seed=seed)[:3]
    return [*found, tae_bounds(len(RATERS), classes).low]


def _checked(codes: Codes) -> Codes:
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.shape[1] < 2 or not np.issubdtype(codes.dtype, np.integer):
        raise ValueError(f"expected whole numbers [items, two raters or more], got {codes.dtype} {list(codes.shape)}")
    if codes.min(initial=0) < MISSING:
        raise ValueError(f"expected codes from 0, and {MISSING} for a missing label, got {codes.min()}")
    return codes


def _classes(codes: Codes) -> int:
    return int(codes.max(initial=0)) + 1


def _patterns(codes: Codes) -> tuple[Codes, npt.NDArray[np.int64]]:
    """The distinct rows, in a fixed order, and how often each occurs."""
    base = _classes(codes) + 1
    if base ** codes.shape[1] >= 2**63:  # too many for one number a row
        found, counts = np.unique(codes, axis=0, return_counts=True)
        return found, counts
    number = np.zeros(len(codes), np.int64)
    for column in codes.T:
        number = number * base + (column.astype(np.int64) + 1)
    _, at, counts = np.unique(number, return_index=True, return_counts=True)
    return codes[at], counts


def _parts(measure: str, patterns: Codes) -> _Parts:
    if measure not in MEASURES:
        raise ValueError(f"no measure {measure!r}; there are {', '.join(MEASURES)}")
    return MEASURES[measure](patterns, _classes(patterns))


def _measured(measure: str, codes: Codes) -> float:
    patterns, counts = _patterns(_checked(codes))
    parts = _parts(measure, patterns)
    return float(parts.value(counts @ parts.features))


def _divided(above: Floats, below: Floats) -> Floats:
    """NaN where `below` is 0: there is nothing to measure."""
    nothing = np.full(np.broadcast_shapes(np.shape(above), np.shape(below)), np.nan)
    return np.asarray(np.divide(above, below, out=nothing, where=np.asarray(below) != 0))


def _beyond_chance(observed: Floats, expected: Floats) -> Floats:
    return _divided(observed - expected, 1 - expected)


def _counted(codes: Codes, classes: int) -> Floats:
    """[patterns, classes]: how many raters gave each class."""
    counts = np.zeros((len(codes), classes))
    for column in codes.T:
        counts += column[:, None] == np.arange(classes)
    return counts


def _whole(codes: Codes) -> Floats:
    """[patterns, 1]: 1 where no label is missing, else 0."""
    return np.asarray(np.all(codes >= 0, axis=1, keepdims=True), np.float64)


def _fleiss(codes: Codes, classes: int) -> _Parts:
    raters = codes.shape[1]
    counts = _counted(codes, classes)
    alike = (counts * (counts - 1)).sum(axis=1) / (raters * (raters - 1))

    def value(sums: Floats) -> Floats:
        items = sums[..., 0]
        shares = _divided(sums[..., 2:], raters * items[..., None])
        return _beyond_chance(_divided(sums[..., 1], items), (shares**2).sum(axis=-1))

    return _Parts(np.column_stack([np.ones(len(codes)), alike, counts]) * _whole(codes), value)


def _cohen(codes: Codes, classes: int) -> _Parts:
    pairs = list(zip(*np.triu_indices(codes.shape[1], 1), strict=True))
    features = []
    for i, j in pairs:
        one, other = (codes[:, [at]] for at in (i, j))
        gave = [one == np.arange(classes), other == np.arange(classes)]
        features.append(np.hstack([np.ones_like(one), one == other, *gave]) * ((one >= 0) & (other >= 0)))

    def value(sums: Floats) -> Floats:
        by_pair = sums.reshape(*sums.shape[:-1], len(pairs), 2 + 2 * classes)
        items = by_pair[..., 0]
        shares = _divided(by_pair[..., 2:], items[..., None])
        expected = (shares[..., :classes] * shares[..., classes:]).sum(axis=-1)
        kappas = _beyond_chance(_divided(by_pair[..., 1], items), expected)
        return np.asarray(kappas.mean(axis=-1))

    return _Parts(np.hstack(features).astype(np.float64), value)


def _weighted(weights: str) -> Callable[[Codes, int], _Parts]:
    power = {"linear": 1, "quadratic": 2}[weights]

    def parts(codes: Codes, classes: int) -> _Parts:
        raters = codes.shape[1]
        first, second = np.triu_indices(raters, 1)
        grades = np.arange(float(classes))
        distance = np.abs(grades[:, None] - grades) ** power
        both = (codes[:, first] >= 0) & (codes[:, second] >= 0)
        apart = (np.where(both, distance[codes[:, first], codes[:, second]], 0)).sum(axis=1)
        shared = ((codes >= 0).sum(axis=1) > 1)[:, None, None]
        gave = ((codes[:, :, None] == np.arange(classes)) & shared).reshape(len(codes), raters * classes)

        def value(sums: Floats) -> Floats:
            counts = sums[..., 1 + len(first) :].reshape(*sums.shape[:-1], raters, classes)
            shares = np.nan_to_num(_divided(counts, counts.sum(axis=-1, keepdims=True)))  # of who graded nothing: 0
            chance = shares @ distance @ np.swapaxes(shares, -1, -2)
            return 1 - _divided(sums[..., 0], (sums[..., 1 : 1 + len(first)] * chance[..., first, second]).sum(axis=-1))

        return _Parts(np.column_stack([apart, both, gave]).astype(np.float64), value)

    return parts


def _alpha(level: str) -> Callable[[Codes, int], _Parts]:
    def parts(codes: Codes, classes: int) -> _Parts:
        counts = _counted(codes, classes)
        given = counts.sum(axis=1)[:, None, None]
        pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(classes)
        coincidences = np.where(given > 1, pairs / np.maximum(given - 1, 1), 0)

        def value(sums: Floats) -> Floats:
            together = sums.reshape(*sums.shape[:-1], classes, classes)
            each = together.sum(axis=-1)
            if level == "nominal":
                distance = 1 - np.eye(classes)
            else:  # ordinal distances are differences of mid-ranks
                place = np.cumsum(each, axis=-1) - each / 2 if level == "ordinal" else np.arange(float(classes))
                distance = (place[..., :, None] - place[..., None, :]) ** 2
            observed = (together * distance).sum(axis=(-2, -1)) * (each.sum(axis=-1) - 1)
            expected = (each[..., :, None] * each[..., None, :] * distance).sum(axis=(-2, -1))
            return 1 - _divided(observed, expected)

        return _Parts(coincidences.reshape(len(codes), classes**2), value)

    return parts


def _agr_rad(codes: Codes, classes: int) -> tuple[Floats, Floats]:
    """Both ratios of each row, the last column being the second round."""
    first, second = codes[:, :-1], codes[:, -1:]
    gave = _counted(first, classes) > 0
    others = (gave & (second != np.arange(classes))).sum(axis=1)
    return (first == second).mean(axis=1), others / (others + 1)


def _tae(codes: Codes, classes: int) -> _Parts:
    agr, rad = _agr_rad(codes, classes)

    def value(sums: Floats) -> Floats:
        return tae_of(_divided(sums[..., 1], sums[..., 0]), _divided(sums[..., 2], sums[..., 0]))

    return _Parts(np.column_stack([np.ones(len(codes)), agr, rad]) * _whole(codes), value)


def _tae_mean_of_records(codes: Codes, classes: int) -> _Parts:
    each = tae_of(*_agr_rad(codes, classes))
    return _Parts(
        np.column_stack([np.ones(len(codes)), each]) * _whole(codes),
        lambda sums: _divided(sums[..., 1], sums[..., 0]),
    )


MEASURES: dict[str, Callable[[Codes, int], _Parts]] = {
    "fleiss_kappa": _fleiss,
    "cohen_kappa": _cohen,
    "weighted_kappa_linear": _weighted("linear"),
    "weighted_kappa_quadratic": _weighted("quadratic"),
    "alpha_nominal": _alpha("nominal"),
    "alpha_ordinal": _alpha("ordinal"),
    "alpha_interval": _alpha("interval"),
    "tae": _tae,
    "tae_mean_of_records": _tae_mean_of_records,
}
"""What `interval` can tell the interval of."""
