"""The measures of agreement as formulas on sums over items (CSD, section 3.3 and appendix A; commenting, section 3).

Items that were labelled alike add the same to the sums and are counted once. Labels are whole numbers from 0,
[items, raters], -1 where one is missing. Each measure is at most 1, and NaN where nothing counts or chance is all.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.metrics.resample import Floats, Ints

Codes = npt.NDArray[np.signedinteger]
MISSING = -1


class Parts(NamedTuple):
    """A measure taken apart."""

    features: Floats  # [patterns, m]: what an item labelled so adds to the sums
    value: Callable[[Floats], Floats]  # sums [..., m] to the measure [...]


Measure = Callable[[Codes, int], Parts]


def count_patterns(codes: Codes) -> tuple[Codes, Ints, int]:
    """Return the distinct rows of labels in a fixed order, their counts, and the number of classes.

    ValueError if labels are not whole numbers from -1 of two raters or more.
    """
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.shape[1] < 2 or not np.issubdtype(codes.dtype, np.integer):
        raise ValueError(f"expected whole numbers [items, two raters or more], got {codes.dtype} {list(codes.shape)}")
    if codes.min(initial=0) < MISSING:
        raise ValueError(f"expected codes from 0, and {MISSING} for a missing label, got {codes.min()}")
    classes = int(codes.max(initial=0)) + 1
    if (classes + 1) ** codes.shape[1] >= 2**63:  # too many for one number a row
        return *np.unique(codes, axis=0, return_counts=True), classes
    row_numbers = (codes.astype(np.int64) + 1) @ (classes + 1) ** np.arange(codes.shape[1] - 1, -1, -1)
    _, first_rows, counts = np.unique(row_numbers, return_index=True, return_counts=True)
    return codes[first_rows], counts, classes


def combine_ratios(agr: Floats, rad: Floats) -> Floats:
    """Compute equation 3: 1 at agr 1 and rad 0; rises with agr, falls with rad."""
    return np.asarray((np.exp(agr - rad) - np.exp(-1)) / (np.e - np.exp(-1)))


def _share_alike(codes: Codes, classes: int) -> Parts:
    """Take apart raw agreement: the share of an item's pairs of labels that are alike, mean over the items."""
    counts = _count_raters(codes, classes)
    label_count = counts.sum(axis=1)
    alike = (counts * (counts - 1)).sum(axis=1) / np.maximum(label_count * (label_count - 1), 1)
    return Parts(np.column_stack([label_count > 1, alike]), _average)


def _fleiss(codes: Codes, classes: int) -> Parts:
    """Take apart Fleiss' kappa (1971); an item with a missing label does not count."""
    raters = codes.shape[1]
    counts = _count_raters(codes, classes)
    alike = (counts * (counts - 1)).sum(axis=1) / (raters * (raters - 1))

    def value(sums: Floats) -> Floats:
        items = sums[..., 0]
        shares = _divide(sums[..., 2:], raters * items[..., None])
        return _correct_chance(_divide(sums[..., 1], items), (shares**2).sum(axis=-1))

    return Parts(np.column_stack([np.ones(len(codes)), alike, counts]) * _is_complete(codes), value)


def _cohen(codes: Codes, classes: int, *, skips_undefined: bool = False) -> Parts:
    """Take apart Cohen's kappa (1960): the mean over pairs of raters, over the items that both labelled.

    It is undefined if it is for one pair; `skips_undefined` leaves such pairs out.
    """
    pairs = list(zip(*np.triu_indices(codes.shape[1], 1), strict=True))
    features = []
    for i, j in pairs:
        first, second = (codes[:, [rater]] for rater in (i, j))
        is_class = [first == np.arange(classes), second == np.arange(classes)]
        features.append(np.hstack([np.ones_like(first), first == second, *is_class]) * ((first >= 0) & (second >= 0)))

    def value(sums: Floats) -> Floats:
        by_pair = sums.reshape(*sums.shape[:-1], len(pairs), 2 + 2 * classes)
        items = by_pair[..., 0]
        shares = _divide(by_pair[..., 2:], items[..., None])
        expected = (shares[..., :classes] * shares[..., classes:]).sum(axis=-1)
        kappas = _correct_chance(_divide(by_pair[..., 1], items), expected)
        is_used = ~np.isnan(kappas) | (not skips_undefined)
        return _divide(np.where(is_used, kappas, 0).sum(axis=-1), is_used.sum(axis=-1))

    return Parts(np.hstack(features).astype(np.float64), value)


def _weighted(codes: Codes, classes: int, *, power: int) -> Parts:
    """Take apart weighted kappa (Cohen, 1968): 1 less disagreement over that by chance; codes rise with grades.

    Two grades lie as far apart as their difference (power 1) or its square (2). Commenting, section 3, reports 0.59
    without its weights, so there are both kinds (AAC-09).
    Of several raters all pairs are pooled: disagreements are summed over the pairs, and so is what chance would give
    them, each rater having one distribution of grades over all items that somebody else graded, too. Where all grade
    all items, that is Conger's kappa (1980), with weights.
    """
    raters = codes.shape[1]
    first, second = np.triu_indices(raters, 1)
    grades = np.arange(float(classes))
    distance = np.abs(grades[:, None] - grades) ** power
    has_both = (codes[:, first] >= 0) & (codes[:, second] >= 0)
    disagreement = (np.where(has_both, distance[codes[:, first], codes[:, second]], 0)).sum(axis=1)
    is_shared = ((codes >= 0).sum(axis=1) > 1)[:, None, None]
    is_class = ((codes[:, :, None] == np.arange(classes)) & is_shared).reshape(len(codes), raters * classes)

    def value(sums: Floats) -> Floats:
        counts = sums[..., 1 + len(first) :].reshape(*sums.shape[:-1], raters, classes)
        shares = np.nan_to_num(_divide(counts, counts.sum(axis=-1, keepdims=True)))  # of who graded nothing: 0
        chance = shares @ distance @ np.swapaxes(shares, -1, -2)
        return 1 - _divide(sums[..., 0], (sums[..., 1 : 1 + len(first)] * chance[..., first, second]).sum(axis=-1))

    return Parts(np.column_stack([disagreement, has_both, is_class]).astype(np.float64), value)


def _alpha(codes: Codes, classes: int, *, level: str) -> Parts:
    """Take apart Krippendorff's alpha (2011), nominal or ordinal; an item with fewer than two labels does not count."""
    counts = _count_raters(codes, classes)
    label_counts = counts.sum(axis=1)[:, None, None]
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(classes)
    coincidences = np.where(label_counts > 1, pairs / np.maximum(label_counts - 1, 1), 0)

    def value(sums: Floats) -> Floats:
        matrix = sums.reshape(*sums.shape[:-1], classes, classes)
        class_totals = matrix.sum(axis=-1)
        distance = 1 - np.eye(classes)
        if level == "ordinal":  # distances are differences of mid-ranks
            ranks = np.cumsum(class_totals, axis=-1) - class_totals / 2
            distance = (ranks[..., :, None] - ranks[..., None, :]) ** 2
        observed = (matrix * distance).sum(axis=(-2, -1)) * (class_totals.sum(axis=-1) - 1)
        expected = (class_totals[..., :, None] * class_totals[..., None, :] * distance).sum(axis=(-2, -1))
        return 1 - _divide(observed, expected)

    return Parts(coincidences.reshape(len(codes), classes**2), value)


def interval_alpha(codes: Codes, classes: int, *, values: Floats | None = None) -> Parts:
    """Take apart Krippendorff's alpha (2011) of numbers: the values of the classes, by default their codes.

    Squared differences of all pairs are sums of values and of their squares, so that any number of classes is cheap.
    """
    numbers = np.arange(float(classes)) if values is None else values - values.mean()
    labels = np.append(numbers / max(np.ptp(numbers), 1e-300), 0)[codes]  # the last is that of a missing label
    counts = (codes >= 0).sum(axis=1)
    sums, squares = labels.sum(axis=1), (labels**2).sum(axis=1)
    observed = 2 * (counts * squares - sums**2) / np.maximum(counts - 1, 1)
    features = np.column_stack([counts, sums, squares, observed])

    def value(totals: Floats) -> Floats:
        label_count, total, square, disagreement = np.moveaxis(totals, -1, 0)
        expected = 2 * (label_count * square - total**2)
        expected = np.where(expected > 1e-9 * label_count * square, expected, 0)  # of one value, but for rounding
        return 1 - _divide(disagreement * (label_count - 1), expected)

    return Parts(features * (counts > 1)[:, None], value)


def compute_ratios(codes: Codes, classes: int) -> tuple[Floats, Floats]:
    """Compute agr and rad of each row (equations 1 and 2; CSD-18, CSD-19); the last column is the second round.

    agr is the share of the first labels that are the second; a label given twice counts twice. rad is the share of the
    distinct labels of both rounds that are not the second.
    """
    first, second = codes[:, :-1], codes[:, -1:]
    other_count = ((_count_raters(first, classes) > 0) & (second != np.arange(classes))).sum(axis=1)
    return (first == second).mean(axis=1), other_count / (other_count + 1)


def _tae(codes: Codes, classes: int) -> Parts:
    """Take apart Two-Stages Annotation Evaluation, (exp(agr - rad) - 1/e) / (e - 1/e) (equation 3; CSD-20).

    The last column is the second round. agr and rad are averaged over records first (equations 4 and 5). It is 1 where
    all agree, in one class too; an item with a missing label does not count.
    """
    agr, rad = compute_ratios(codes, classes)

    def value(sums: Floats) -> Floats:
        return combine_ratios(_divide(sums[..., 1], sums[..., 0]), _divide(sums[..., 2], sums[..., 0]))

    return Parts(np.column_stack([np.ones(len(codes)), agr, rad]) * _is_complete(codes), value)


def _tae_mean_of_records(codes: Codes, classes: int) -> Parts:
    """Take apart the mean of the records' own TAE, another reading of section 3.3; at least `tae` (CSD-20)."""
    record_values = combine_ratios(*compute_ratios(codes, classes))
    return Parts(np.column_stack([np.ones(len(codes)), record_values]) * _is_complete(codes), _average)


MEASURES: dict[str, Measure] = {
    "raw_agreement": _share_alike, "fleiss_kappa": _fleiss, "cohen_kappa": _cohen,
    "weighted_kappa_linear": partial(_weighted, power=1), "weighted_kappa_quadratic": partial(_weighted, power=2),
    "alpha_nominal": partial(_alpha, level="nominal"), "alpha_ordinal": partial(_alpha, level="ordinal"),
    "alpha_interval": interval_alpha, "tae": _tae, "tae_mean_of_records": _tae_mean_of_records,
}  # fmt: skip
"""The measures by name: functions of patterns of labels, [patterns, raters], and the number of classes."""

DEFINED_COHEN: Measure = partial(_cohen, skips_undefined=True)
"""Cohen's kappa over the pairs of raters for which it is defined."""


def _count_raters(codes: Codes, classes: int) -> Floats:
    """Count the raters that gave each class: [patterns, classes]."""
    return np.asarray((codes[:, :, None] == np.arange(classes)).sum(axis=1), np.float64)


def _is_complete(codes: Codes) -> Floats:
    """Return 1 where no label is missing, else 0: [patterns, 1]."""
    return np.asarray(np.all(codes >= 0, axis=1, keepdims=True), np.float64)


def _divide(numerator: Floats, denominator: Floats) -> Floats:
    """Divide; NaN where `denominator` is 0."""
    undefined = np.full(np.broadcast_shapes(np.shape(numerator), np.shape(denominator)), np.nan)
    return np.asarray(np.divide(numerator, denominator, out=undefined, where=np.asarray(denominator) != 0))


def _average(sums: Floats) -> Floats:
    """Compute the mean from the sums of (counted items, value)."""
    return _divide(sums[..., 1], sums[..., 0])


def _correct_chance(observed: Floats, expected: Floats) -> Floats:
    return _divide(observed - expected, 1 - expected)
