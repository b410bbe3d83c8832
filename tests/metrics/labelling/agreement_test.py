"""Agreement of raters, against textbooks, the paper's own numbers and by properties."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import cohen_kappa_score

from pipeline.metrics.labelling.agreement import estimate_interval, find_least_tae, measure, simulate, study, tabulate
from pipeline.metrics.labelling.measures import MEASURES, combine_ratios, compute_ratios
from pipeline.papers.csd import KAPPA_HIGH, TABLE_2, TAE_HIGH

# Fleiss, 1971, as retold in Wikipedia, "Fleiss' kappa": how many of 14 raters gave each of 5 classes; kappa is 0.210
FLEISS = [
    (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
    (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
]  # fmt: skip
# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), example C: 4 observers, 12 units, 0 for missing
KRIPPENDORFF = np.array([
    (1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0), (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3),
    (0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0), (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0),
]).T - 1  # fmt: skip
# CSD-19 and CSD-20, in codes 0, 1, 2 for the tags 1, 0, -1: first round, second, agr, rad, TAE of the one record
RECORDS = [
    ((0, 0, 0), 0, 1, 0, 1.0), ((0, 0, 2), 0, 2 / 3, 1 / 2, 0.3461), ((0, 1, 2), 0, 1 / 3, 2 / 3, 0.1483),
    ((0, 2, 2), 0, 1 / 3, 1 / 2, 0.2036), ((0, 0, 0), 2, 0, 1 / 2, 0.1015), ((1, 1, 2), 0, 0, 2 / 3, 0.0619),
]  # fmt: skip

two_rounds = st.integers(1, 12).flatmap(lambda n: arrays(np.int8, (n, 4), elements=st.integers(0, 3)))


def slow_fleiss(codes: np.ndarray) -> float:
    """Fleiss' kappa from its definition, in fractions: pairs that agree within an item, against pairs at large."""
    pairs = [Fraction(int(a == b)) for row in codes.tolist() for a, b in itertools.combinations(row, 2)]
    shares = [Fraction(count, codes.size) for count in Counter(codes.ravel().tolist()).values()]
    expected = sum(share**2 for share in shares)
    return float((sum(pairs) / len(pairs) - expected) / (1 - expected))


def test_fleiss_textbook() -> None:
    """Ten subjects, fourteen raters, five classes (Fleiss, 1971): 0.210."""
    codes = np.array([np.repeat(range(5), row) for row in FLEISS])
    assert measure("fleiss_kappa", codes) == pytest.approx(0.210, abs=5e-4)


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_krippendorff_textbook(level: str, alpha: float) -> None:
    """Four observers with missing values, at three levels (Krippendorff, 2011, example C)."""
    assert measure(f"alpha_{level}", KRIPPENDORFF) == pytest.approx(alpha, abs=5e-4)


@settings(deadline=None)
@given(arrays(np.int8, (9, 3), elements=st.integers(0, 3)).filter(lambda codes: len(set(codes.ravel().tolist())) > 1))
def test_equal_references(codes: np.ndarray) -> None:
    """Fleiss equals its definition in fractions, Cohen the mean of scikit-learn's over pairs."""
    assert measure("fleiss_kappa", codes) == pytest.approx(slow_fleiss(codes))
    pairs = [codes[:, columns] for columns in itertools.combinations(range(3), 2)]
    kappas = [cohen_kappa_score(*pair.T) if len(np.unique(pair)) > 1 else math.nan for pair in pairs]
    assert measure("cohen_kappa", codes) == pytest.approx(np.mean(kappas), nan_ok=True)


def test_missing_labels() -> None:
    """Fleiss and TAE leave out the item, Cohen the pair, alpha the item only when one label remains."""
    complete = np.array([[0, 0, 1], [1, 1, 1], [0, 1, 0], [0, 0, 0]])
    holed = np.vstack([complete, [[1, -1, 1], [-1, 0, -1]]])
    assert measure("fleiss_kappa", holed) == measure("fleiss_kappa", complete)
    pairs = [cohen_kappa_score(*complete[:, columns].T) for columns in ([0, 1], [1, 2])]
    pairs.append(cohen_kappa_score([0, 1, 0, 0, 1], [1, 1, 0, 0, 1]))  # the first and the third share one item more
    assert measure("cohen_kappa", holed) == pytest.approx(np.mean(pairs))
    assert measure("alpha_nominal", holed) == measure("alpha_nominal", holed[:5]) != measure("alpha_nominal", complete)
    rounds = np.array([[0, 0, 0, 0], [0, -1, 0, 0], [1, 1, 0, 1], [1, 1, 1, -1]])
    for name in ("tae", "tae_mean_of_records"):
        assert measure(name, rounds) == measure(name, rounds[[0, 2]])


@pytest.mark.parametrize("name", MEASURES)
def test_extremes(name: str) -> None:
    """All alike in two classes is 1. In one class kappa and alpha are 0/0 and TAE is 1; of no items all is unknown."""
    assert measure(name, np.repeat([[0], [1], [1]], 4, axis=1)) == pytest.approx(1)
    same, none = np.zeros((5, 4), int), np.zeros((0, 4), int)
    assert measure(name, same) == pytest.approx(1 if name.startswith(("tae", "raw")) else np.nan, nan_ok=True)
    for codes in (none, np.full((3, 4), -1)):
        assert math.isnan(measure(name, codes))
    assert np.isnan(estimate_interval(name, none, 10)).all()


@pytest.mark.parametrize(("first", "second", "agr", "rad", "value"), RECORDS)
def test_records_of_the_paper(first: tuple[int, ...], second: int, agr: float, rad: float, value: float) -> None:
    """Agreement is a multiset's share, randomness one of label sets (CSD-18 to CSD-20)."""
    codes = np.array([[*first, second]])
    assert [part[0] for part in compute_ratios(codes, 3)] == pytest.approx([agr, rad])
    assert measure("tae", codes) == pytest.approx(value, abs=5e-5)


def test_mean_of_records_is_another_reading() -> None:
    """One record at 1 and two at 0.3461: averaged, agr - rad is 4/9, its TAE 0.5070; the mean of TAE is 0.5641."""
    codes = np.array([[0, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0]])
    expected = (math.exp(4 / 9) - math.exp(-1)) / (math.e - math.exp(-1))
    assert measure("tae", codes) == pytest.approx(expected)
    assert expected == pytest.approx(0.5070, abs=5e-5)
    assert measure("tae_mean_of_records", codes) == pytest.approx((1 + 2 * 0.34611) / 3, abs=5e-5)


@pytest.mark.parametrize(
    ("raters", "classes", "low"),
    [(3, 1, 1), (3, 2, 0.1015), (3, 3, 0.0619), (3, 4, 0.0445), (1, 2, 0.1015), (2, 4, 0.0619), (4, 3, 0.0619)],
)
def test_least_tae(raters: int, classes: int, low: float) -> None:
    """The bound is errata E8's; over every possible record the least TAE is the bound and the greatest is 1."""
    assert find_least_tae(raters, classes) == pytest.approx(low, abs=5e-5)
    codes = np.array(list(itertools.product(range(classes), repeat=raters + 1)))
    values = combine_ratios(*compute_ratios(codes, classes))
    assert (values.min(), values.max()) == pytest.approx((find_least_tae(raters, classes), 1))
    assert find_least_tae(3, 9) == find_least_tae(3, 4)


@settings(deadline=None)
@given(two_rounds, st.randoms(use_true_random=False))
def test_tae_axioms(codes: np.ndarray, random) -> None:
    """In range; the same in any order of items and of raters, under other names, and of the data set twice (CSD-21)."""
    names = np.array(random.sample(range(4), 4))
    items, raters = random.sample(range(len(codes)), len(codes)), random.sample(range(3), 3)
    for name in ("tae", "tae_mean_of_records"):
        value = measure(name, codes)
        assert find_least_tae(3, 4) - 1e-12 <= value <= 1 + 1e-12
        for same_codes in (codes[items][:, [*raters, 3]], names[codes], np.tile(codes, (2, 1))):
            assert measure(name, same_codes) == pytest.approx(value)
    assert measure("tae", codes) <= measure("tae_mean_of_records", codes) + 1e-12  # Jensen


@settings(deadline=None)
@given(two_rounds)
def test_tae_is_monotone(codes: np.ndarray) -> None:
    """A wrong label made right raises TAE; one made yet another wrong label lowers it (CSD-21)."""
    before, (agr, rad) = measure("tae", codes), compute_ratios(codes, 5)
    for row, rater in np.argwhere(codes[:, :-1] != codes[:, -1:]):
        better, worse = codes.copy(), codes.copy()
        better[row, rater] = codes[row, -1]
        assert measure("tae", better) > before
        worse[row, rater] = 4
        worse_agr, worse_rad = compute_ratios(worse, 5)
        assert worse_agr.sum() == pytest.approx(agr.sum())
        assert worse_rad.sum() >= rad.sum() - 1e-12
        assert measure("tae", worse) <= before + 1e-12


@pytest.mark.parametrize("codes", [np.zeros(3, int), np.zeros((3, 1), int), np.zeros((3, 2)), np.full((3, 2), -2)])
def test_codes_of_another_shape(codes: np.ndarray) -> None:
    """One rater, fractions and codes below -1 are errors."""
    with pytest.raises(ValueError, match="expected"):
        measure("fleiss_kappa", codes)


@pytest.mark.parametrize("name", MEASURES)
def test_interval_repeats_and_does_not_depend_on_order(name: str) -> None:
    """The same seed gives the same ends, in any order of rows; another seed others."""
    codes = np.random.default_rng(8).integers(0, 3, (50, 4))
    interval = estimate_interval(name, codes, 200)
    assert interval.value == measure(name, codes)
    assert estimate_interval(name, codes[::-1], 200) == interval
    assert estimate_interval(name, codes, 200, seed=7)[1:] != interval[1:]


def build_labels(field: str, rows: list[tuple[str | None, ...]]) -> pl.DataFrame:
    """Build a frame as `tabulate` takes it, of one round, in which nothing waits."""
    entries = [(f"t{i}", field, *row) for i, row in enumerate(rows)]
    columns = dict.fromkeys(("task_id", "field", "a", "b", "c", "fourth"), pl.String)
    frame = pl.DataFrame(entries, columns, orient="row")
    return frame.with_columns(last_a="a", last_b="b", last_c="c", is_waiting=pl.lit(value=False))


def test_table_of_fields() -> None:
    """A row a field in the schema's order, each number that of its own measure, missing fourths left out."""
    tags = [("1", "1", "1", "1"), ("1", "-1", "0", "1"), ("-1", "-1", "-1", "-1"), ("-1", "1", "-1", "-1"),
            ("0", "0", "1", None), ("0", None, "1", "1")]  # fmt: skip
    emotions = [("joy", "joy", "joy", "joy"), ("joy", "None", "joy", "joy")]
    rows = {"emotion": emotions, "subtext": tags, "other": [("-1", "-1", "-1", "-1")]}
    table = tabulate(pl.concat([build_labels(field, values) for field, values in rows.items()]))
    assert table["field"].to_list() == ["subtext", "emotion", "other"]
    row = table.row(0, named=True)
    assert (row["n"], row["n_three"], row["n_four"], row["classes"]) == (6, 5, 4, 3)
    place = {"1": 0, "0": 1, "-1": 2, None: -1}
    codes = np.array([[place[value] for value in values] for values in tags])
    three, four = codes[:, :3], codes[:4]
    assert row["fleiss"] == pytest.approx(slow_fleiss(three[:5]), abs=1e-6)
    assert row["fleiss_four"] == pytest.approx(slow_fleiss(four), abs=1e-6)
    assert row["cohen"] == pytest.approx(measure("cohen_kappa", three), abs=1e-6)
    assert row["krippendorff"] == pytest.approx(measure("alpha_nominal", three), abs=1e-6)
    assert row["tae"] == pytest.approx(measure("tae", four), abs=1e-6)
    assert row["tae_mean_of_records"] == pytest.approx((1 + 0.14834 + 1 + 0.34611) / 4, abs=1e-5)
    assert table["tae_min"].to_list() == pytest.approx([0.0619, 0.0445, 0.0619], abs=5e-5)
    assert all(row[f"{name}_low"] <= row[name] <= row[f"{name}_high"] for name in ("fleiss", "tae", "cohen"))
    other = table.row(2, named=True)
    assert (other["tae"], other["tae_low"], other["fleiss"], other["fleiss_low"]) == (1, 1, None, None)


def test_claims_about_table_2() -> None:
    """F1 runs from 0.47 (subtext) to 0.54 (sentiment) as printed; exaggeration is not low in kappa (CSD-24)."""
    by_f1 = sorted(TABLE_2, key=lambda field: TABLE_2[field].svm_f1)
    assert (by_f1[0], TABLE_2[by_f1[0]].svm_f1) == ("subtext", 0.47)
    assert (by_f1[-1], TABLE_2[by_f1[-1]].svm_f1) == ("sentiment", 0.54)
    by_kappa = sorted(TABLE_2, key=lambda field: TABLE_2[field].kappa)
    assert by_kappa[-2] == "exaggeration"
    assert TABLE_2["exaggeration"].kappa > KAPPA_HIGH
    assert TABLE_2["subtext"].tae < TAE_HIGH  # errata E8


grades = st.integers(2, 40).flatmap(lambda n: arrays(np.int8, (n, 2), elements=st.integers(0, 4)))


@settings(deadline=None)
@given(grades, st.sampled_from(["linear", "quadratic"]))
def test_weighted_kappa_of_two_is_scikit_learns(codes: np.ndarray, weights: str) -> None:
    """Equal to 1e-12 on any two raters' grades, NaN for NaN; items that only one graded change nothing (AAC-09)."""
    actual = measure(f"weighted_kappa_{weights}", codes)
    is_varied = len(np.unique(codes)) > 1
    expected = cohen_kappa_score(*codes.T, labels=range(5), weights=weights) if is_varied else math.nan
    assert actual == pytest.approx(expected, abs=1e-12, nan_ok=True)
    more_codes = np.vstack([codes, np.array([[4, -1], [-1, 0], [-1, -1]], np.int8)])
    assert measure(f"weighted_kappa_{weights}", more_codes) == pytest.approx(actual, abs=1e-12, nan_ok=True)


def slow_weighted(codes: np.ndarray, power: int) -> float:
    """Pooled weighted kappa from its definition, in fractions: pair by pair, item by item."""
    shared = [row for row in codes.tolist() if sum(code >= 0 for code in row) > 1]
    grades_of = [[row[rater] for row in shared if row[rater] >= 0] for rater in range(codes.shape[1])]
    observed = chance = Fraction(0)
    for i, j in itertools.combinations(range(codes.shape[1]), 2):
        pairs = [(row[i], row[j]) for row in shared if row[i] >= 0 <= row[j]]
        observed += sum(abs(a - b) ** power for a, b in pairs)
        distances = [abs(a - b) ** power for a in grades_of[i] for b in grades_of[j]]
        chance += Fraction(len(pairs) * sum(distances), len(distances)) if pairs else 0
    return float(1 - observed / chance) if chance else math.nan


@settings(deadline=None)
@given(arrays(np.int8, (9, 4), elements=st.integers(-1, 4)), st.randoms(use_true_random=False))
def test_weighted_kappa_of_several(codes: np.ndarray, random) -> None:
    """It is its definition, whatever is missing; order of items and raters, and grades turned around, do not matter."""
    items, raters = random.sample(range(9), 9), random.sample(range(4), 4)
    for weights, power in (("linear", 1), ("quadratic", 2)):
        expected = pytest.approx(slow_weighted(codes, power), abs=1e-12, nan_ok=True)
        for same_codes in (codes, codes[items][:, raters], np.where(codes < 0, -1, 4 - codes)):
            assert measure(f"weighted_kappa_{weights}", same_codes) == expected


@pytest.mark.parametrize(("q", "kappa", "value"), [(0.90, 0.239, 0.757), (0.96, 0.474, 0.892), (0.99, 0.793, 0.972)])
def test_kappa_and_tae_of_skewed_labels(q: float, kappa: float, value: float) -> None:
    """At a positive rate of 0.02: kappa of a rater with the truth, and TAE (CSD-22)."""
    row = study([q], [0.02], [2], items=100_000).row(0, named=True)
    assert row["kappa"] == pytest.approx(kappa, abs=0.02)
    assert row["tae"] == pytest.approx(value, abs=0.005)
    assert row["agreement"] == pytest.approx(q, abs=0.005)


def test_rows_of_the_study() -> None:
    """A row a setting, at 1 for perfect raters; labels have the shares of their rate, wrong ones alike."""
    actual = study([0.5, 1.0], [0.0, 0.5], [2], items=500)
    assert actual.columns == ["classes", "positive_rate", "accuracy", "kappa", "fleiss", "agreement", "tae"]
    assert actual.select("positive_rate", "accuracy").rows() == [(0.0, 0.5), (0.0, 1.0), (0.5, 0.5), (0.5, 1.0)]
    assert actual.row(1)[3:] == (None, None, 1.0, 1.0)
    assert actual.row(3)[3:] == (1.0, 1.0, 1.0, 1.0)
    assert study([0.7], [0.2], [3], items=500).equals(study([0.7], [0.2], [3], items=500))
    codes = simulate(50_000, 0.75, 0.2, 3)
    first, truth = codes[:, :-1], codes[:, -1:]
    assert np.bincount(truth.ravel()) / len(truth) == pytest.approx([0.8, 0.1, 0.1], abs=0.01)
    shifts = (first - truth) % 3
    assert np.bincount(shifts.ravel()) / shifts.size == pytest.approx([0.75, 0.125, 0.125], abs=0.01)
