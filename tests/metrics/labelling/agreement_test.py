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
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from pipeline.errors import BadInput
from pipeline.metrics.labelling import agreement
from pipeline.metrics.labelling.agreement import (
    cohen_kappa,
    combine_ratios,
    encode_values,
    estimate_interval,
    fleiss_kappa,
    krippendorff_alpha,
    measure_records,
    tabulate,
    tae,
    tae_bounds,
    tae_mean_of_records,
    weighted_kappa,
)
from pipeline.metrics.labelling.measures import MEASURES
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
    assert fleiss_kappa(codes) == pytest.approx(0.210, abs=5e-4)


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_krippendorff_textbook(level: str, alpha: float) -> None:
    """Four observers with missing values, at three levels (Krippendorff, 2011, example C)."""
    assert krippendorff_alpha(KRIPPENDORFF, level) == pytest.approx(alpha, abs=5e-4)


@settings(deadline=None)
@given(arrays(np.int8, (9, 3), elements=st.integers(0, 3)).filter(lambda codes: len(set(codes.ravel().tolist())) > 1))
def test_equal_references(codes: np.ndarray) -> None:
    """Fleiss equals its definition in fractions, Cohen the mean of scikit-learn's over pairs."""
    assert fleiss_kappa(codes) == pytest.approx(slow_fleiss(codes))
    pairs = [
        cohen_kappa_score(codes[:, i], codes[:, j]) if len({*codes[:, i].tolist(), *codes[:, j].tolist()}) > 1 else None
        for i, j in itertools.combinations(range(3), 2)
    ]
    if None in pairs:
        assert math.isnan(cohen_kappa(codes))
    else:
        assert cohen_kappa(codes) == pytest.approx(np.mean(pairs))


def test_missing_labels() -> None:
    """Fleiss leaves out the item, Cohen the pair, alpha the item only when one label is left."""
    complete = np.array([[0, 0, 1], [1, 1, 1], [0, 1, 0], [0, 0, 0]])
    holed = np.vstack([complete, [[1, -1, 1], [-1, 0, -1]]])
    assert fleiss_kappa(holed) == fleiss_kappa(complete)
    pairs = [
        cohen_kappa_score(first, second)
        for first, second in ((complete[:, 0], complete[:, 1]), (complete[:, 1], complete[:, 2]))
    ]
    pairs.append(cohen_kappa_score([0, 1, 0, 0, 1], [1, 1, 0, 0, 1]))  # the first and the third share one item more
    assert cohen_kappa(holed) == pytest.approx(np.mean(pairs))
    assert krippendorff_alpha(holed) == krippendorff_alpha(holed[:5]) != krippendorff_alpha(complete)


def test_one_class_has_no_kappa_but_a_tae() -> None:
    """Where all labels are of one class, kappa and alpha are 0/0 and TAE is 1; of no items nothing is known."""
    same, none = np.zeros((5, 4), int), np.zeros((0, 4), int)
    for measure in MEASURES:
        is_tae = measure.startswith("tae")
        assert agreement._compute_measure(measure, same) == pytest.approx(1 if is_tae else np.nan, nan_ok=True)
        assert math.isnan(agreement._compute_measure(measure, none))
        assert np.isnan(estimate_interval(measure, none, 10)[:3]).all()
    assert math.isnan(fleiss_kappa(np.full((3, 2), -1)))


def test_perfect_agreement_is_1() -> None:
    """All alike, in two classes: every measure is 1."""
    codes = np.repeat([[0], [1], [1]], 4, axis=1)
    for measure in MEASURES:
        assert agreement._compute_measure(measure, codes) == pytest.approx(1)


@pytest.mark.parametrize(("first", "second", "agr", "rad", "value"), RECORDS)
def test_records_of_the_paper(first: tuple[int, ...], second: int, agr: float, rad: float, value: float) -> None:
    """Agreement is a multiset's share, randomness one of label sets (CSD-18 to CSD-20)."""
    actual = measure_records(np.array([first]), np.array([second]))
    assert (actual.agr[0], actual.rad[0]) == pytest.approx((agr, rad))
    assert actual.tae[0] == pytest.approx(value, abs=5e-5)
    assert tae(np.array([first]), np.array([second])) == pytest.approx(value, abs=5e-5)


def test_mean_of_records_is_another_reading() -> None:
    """One record at 1 and two at 0.3461: averaged, agr - rad is 4/9, its TAE 0.5070; the mean of TAE is 0.5641."""
    first, second = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0]]), np.zeros(3, int)
    expected = (math.exp(4 / 9) - math.exp(-1)) / (math.e - math.exp(-1))
    assert tae(first, second) == pytest.approx(expected)
    assert expected == pytest.approx(0.5070, abs=5e-5)
    assert tae_mean_of_records(first, second) == pytest.approx((1 + 2 * 0.34611) / 3, abs=5e-5)


def test_records_with_a_missing_label_do_not_count() -> None:
    """They are NaN in the list of records, and absent from the means."""
    first, second = np.array([[0, 0, 0], [0, -1, 0], [1, 1, 0], [1, 1, 1]]), np.array([0, 0, 1, -1])
    assert np.isnan(measure_records(first, second).tae).tolist() == [False, True, False, True]
    complete = first[[0, 2]], second[[0, 2]]
    assert tae(first, second) == tae(*complete)
    assert tae_mean_of_records(first, second) == tae_mean_of_records(*complete)


@pytest.mark.parametrize(("classes", "low"), [(1, 1), (2, 0.1015), (3, 0.0619), (4, 0.0445), (9, 0.0445)])
def test_least_tae_of_three_raters(classes: int, low: float) -> None:
    """The bound is errata E8's, and some labels attain it and none go below."""
    assert tae_bounds(3, classes) == pytest.approx((low, 1), abs=5e-5)
    combinations = np.array(list(itertools.product(range(min(classes, 4)), repeat=4)))
    assert measure_records(combinations[:, :3], combinations[:, 3]).tae.min() == pytest.approx(
        tae_bounds(3, classes).low
    )


@pytest.mark.parametrize(("raters", "classes"), [(1, 2), (2, 4), (4, 3), (5, 3)])
def test_bounds_are_attained(raters: int, classes: int) -> None:
    """Over every possible record, least and greatest TAE are the bounds."""
    combinations = np.array(list(itertools.product(range(classes), repeat=raters + 1)))
    actual = measure_records(combinations[:, :-1], combinations[:, -1]).tae
    assert (actual.min(), actual.max()) == pytest.approx(tae_bounds(raters, classes))


@settings(deadline=None)
@given(two_rounds, st.randoms(use_true_random=False))
def test_tae_axioms(codes: np.ndarray, random) -> None:
    """In range; the same in any order of items and of raters, under other names, and of the data set twice (CSD-21)."""
    first, second = codes[:, :-1], codes[:, -1]
    names = np.array(random.sample(range(4), 4))
    items, raters = random.sample(range(len(codes)), len(codes)), random.sample(range(3), 3)
    for measure in (tae, tae_mean_of_records):
        value = measure(first, second)
        assert tae_bounds(3, 4).low - 1e-12 <= value <= 1 + 1e-12
        assert measure(first[items][:, raters], second[items]) == pytest.approx(value)
        assert measure(names[first], names[second]) == pytest.approx(value)
        assert measure(np.tile(first, (2, 1)), np.tile(second, 2)) == pytest.approx(value)
    assert tae(first, second) <= tae_mean_of_records(first, second) + 1e-12  # Jensen


@settings(deadline=None)
@given(two_rounds)
def test_tae_is_monotone(codes: np.ndarray) -> None:
    """A wrong label made right raises TAE; one made yet another wrong label lowers it (CSD-21)."""
    first, second = codes[:, :-1], codes[:, -1]
    before = tae(first, second)
    for row, rater in np.argwhere(first != second[:, None]):
        better, worse = first.copy(), first.copy()
        better[row, rater] = second[row]
        assert tae(better, second) > before
        worse[row, rater] = 4
        agr, rad = (part.sum() for part in measure_records(first, second)[:2])
        agr_then, rad_then = (part.sum() for part in measure_records(worse, second)[:2])
        assert agr_then == pytest.approx(agr)
        assert rad_then >= rad - 1e-12
        assert tae(worse, second) <= before + 1e-12


@settings(deadline=None)
@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 0.5))
def test_equation_3_rises_with_agr_and_falls_with_rad(agr: float, rad: float, step: float) -> None:
    """Strictly, whatever the other is."""
    pairs = ((agr, rad), (agr + step, rad), (agr, rad + step))
    value, higher, lower = (float(combine_ratios(*np.array(pair))) for pair in pairs)
    assert lower < value < higher


@settings(deadline=None)
@given(arrays(np.int8, (8, 4), elements=st.integers(-1, 2)), st.permutations(range(3)))
def test_kappa_and_alpha_ignore_order_and_names(codes: np.ndarray, names: list[int]) -> None:
    """Order of items and raters and names of classes do not matter, and nothing exceeds 1."""
    renamed = np.append(names, -1)[codes]
    for measure in (fleiss_kappa, cohen_kappa, krippendorff_alpha):
        value = measure(codes)
        assert math.isnan(value) or value <= 1 + 1e-12
        assert measure(codes[::-1, ::-1]) == pytest.approx(value, nan_ok=True)
        assert measure(renamed) == pytest.approx(value, nan_ok=True)


def test_many_raters_of_many_classes() -> None:
    """Rows too long for one whole number are counted as well."""
    codes = np.random.default_rng(5).integers(0, 9, (12, 40))
    assert fleiss_kappa(codes) == pytest.approx(slow_fleiss(codes))
    assert fleiss_kappa(np.vstack([codes, codes])) == pytest.approx(slow_fleiss(codes))


@pytest.mark.parametrize("codes", [np.zeros(3, int), np.zeros((3, 1), int), np.zeros((3, 2)), np.full((3, 2), -2)])
def test_codes_of_another_shape(codes: np.ndarray) -> None:
    """One rater, fractions and codes below -1 are errors."""
    with pytest.raises(ValueError, match="expected"):
        fleiss_kappa(codes)


def test_unknown_measure() -> None:
    """A level or measure that there is not is named."""
    with pytest.raises(ValueError, match="alpha_ratio"):
        krippendorff_alpha(np.zeros((2, 2), int), "ratio")
    with pytest.raises(ValueError, match="at least one rater"):
        tae_bounds(0, 2)


def test_interval_is_that_of_a_binomial() -> None:
    """With two kinds of records, the mean of TAE is a binomial count rescaled, whose quantiles scipy knows."""
    codes = np.array([[0, 0, 0, 0]] * 320 + [[0, 0, 1, 0]] * 80)
    value, low, high, _ = estimate_interval("tae_mean_of_records", codes, 20_000)
    worst = 0.34611
    expected = [worst + (1 - worst) * stats.binom.ppf(q, 400, 0.8) / 400 for q in (0.025, 0.975)]
    assert value == pytest.approx(worst + (1 - worst) * 0.8, abs=1e-5)
    assert [low, high] == pytest.approx(expected, abs=(1 - worst) / 400 + 1e-5)  # one step of the count


def test_interval_repeats_and_does_not_depend_on_order() -> None:
    """The same seed gives the same ends, in any order of rows; another seed others."""
    codes = np.random.default_rng(8).integers(0, 3, (50, 4))
    for measure in MEASURES:
        interval = estimate_interval(measure, codes, 200)
        assert estimate_interval(measure, codes[::-1], 200) == interval
        assert estimate_interval(measure, codes, 200, seed=7)[1:3] != interval[1:3]


def test_undefined_resamples_are_counted() -> None:
    """Two items of one class each: a resample of one of them alone has no kappa, half the time."""
    actual = estimate_interval("fleiss_kappa", np.array([[0, 0], [1, 1]]), 2000)
    assert actual[:3] == (1, 1, 1)
    assert actual.undefined_count / 2000 == pytest.approx(0.5, abs=0.05)


def labels_of(field: str, rows: list[tuple[str | None, ...]]) -> pl.DataFrame:
    """A frame as `table` takes it."""
    entries = [(f"t{i}", field, *row) for i, row in enumerate(rows)]
    return pl.DataFrame(entries, schema=dict.fromkeys(("task_id", "field", "a", "b", "c", "fourth"), pl.String),
                        orient="row")  # fmt: skip


def test_table_of_fields() -> None:
    """A row a field in the schema's order, each number that of its own function, missing fourths left out."""
    tags = [("1", "1", "1", "1"), ("1", "-1", "0", "1"), ("-1", "-1", "-1", "-1"), ("-1", "1", "-1", "-1")]
    actual = tabulate(
        pl.concat([
            labels_of("emotion", [("joy", "joy", "joy", "joy"), ("joy", "None", "joy", "joy")]),
            labels_of("subtext", [*tags, ("0", "0", "1", None), ("0", None, "1", "1")]),
            labels_of("other", [("-1", "-1", "-1", "-1")]),
        ])
    )  # fmt: skip
    assert actual["field"].to_list() == ["subtext", "emotion", "other"]
    row = actual.row(0, named=True)
    assert (row["n"], row["n_three"], row["n_four"], row["classes"]) == (6, 5, 4, 3)
    place = {"1": 0, "0": 1, "-1": 2, None: -1}
    codes = np.array([[place[value] for value in tag] for tag in [*tags, ("0", "0", "1", None), ("0", None, "1", "1")]])
    three, four = codes[:, :3], codes[:4]
    assert row["fleiss"] == pytest.approx(slow_fleiss(three[:5]), abs=1e-6)
    assert row["fleiss_four"] == pytest.approx(slow_fleiss(four), abs=1e-6)
    assert row["cohen"] == pytest.approx(cohen_kappa(three), abs=1e-6)
    assert row["krippendorff"] == pytest.approx(krippendorff_alpha(three), abs=1e-6)
    assert row["tae"] == pytest.approx(tae(four[:, :3], four[:, 3]), abs=1e-6)
    assert row["tae_mean_of_records"] == pytest.approx((1 + 0.14834 + 1 + 0.34611) / 4, abs=1e-5)
    assert actual["tae_min"].to_list() == pytest.approx([0.0619, 0.0445, 0.0619], abs=5e-5)
    assert all(row[f"{name}_low"] <= row[name] <= row[f"{name}_high"] for name in ("fleiss", "tae", "cohen"))
    other = actual.row(2, named=True)
    assert (other["tae"], other["tae_low"], other["fleiss"], other["fleiss_low"]) == (1, 1, None, None)


def test_table_of_nothing() -> None:
    """No labels: the columns, and no rows."""
    actual = tabulate(labels_of("subtext", []))
    assert actual.height == 0
    assert {"fleiss_low", "tae_mean_of_records_high", "tae_min"} < set(actual.columns)


def test_table_refuses() -> None:
    """A strange field or value, a task told twice and a missing column are named."""
    good = labels_of("subtext", [("1", "1", "1", "1")])
    bad = (
        (good.drop("fourth"), "no column fourth"),
        (pl.concat([good, good]), "t0 subtext twice"),
        (good.with_columns(field=pl.lit("meaning")), "no field 'meaning'"),
        (good.with_columns(field=pl.lit(None, pl.String)), "no field None"),
        (good.with_columns(b=pl.lit("yes")), "t0, subtext: expected one of 1, 0, -1, found 'yes'"),
    )
    for labels, message in bad:
        with pytest.raises(BadInput, match=message):
            tabulate(labels)


def test_encoded() -> None:
    """Values become their places in the schema; nulls stay, numbers are read as text."""
    assert encode_values("sarcasm", pl.Series([-1, None, 1, 0])).to_list() == [2, None, 0, 1]
    assert encode_values("emotion", pl.Series(["None", "anger"])).to_list() == [8, 0]
    with pytest.raises(BadInput, match="no field 'irony'"):
        encode_values("irony", pl.Series(["1"]))


def test_claims_about_table_2() -> None:
    """F1 runs from 0.47 (subtext) to 0.54 (sentiment) as told; exaggeration is not low in kappa (CSD-24)."""
    by_f1 = sorted(TABLE_2, key=lambda field: TABLE_2[field].svm_f1)
    assert (by_f1[0], TABLE_2[by_f1[0]].svm_f1) == ("subtext", 0.47)
    assert (by_f1[-1], TABLE_2[by_f1[-1]].svm_f1) == ("sentiment", 0.54)
    assert "emotion" not in TABLE_2
    assert len(TABLE_2) == 7
    by_kappa = sorted(TABLE_2, key=lambda field: TABLE_2[field].kappa)
    assert by_kappa[-2] == "exaggeration"
    assert TABLE_2["exaggeration"].kappa > KAPPA_HIGH
    assert TABLE_2["subtext"].tae < TAE_HIGH  # errata E8


grades = st.integers(2, 40).flatmap(lambda n: arrays(np.int8, (n, 2), elements=st.integers(0, 4)))


@settings(deadline=None)
@given(grades, st.sampled_from(["linear", "quadratic"]))
def test_weighted_kappa_of_two_is_scikit_learns(codes: np.ndarray, weights: str) -> None:
    """Equal to 1e-12 on any two raters' grades, NaN for NaN; items that only one graded change nothing (AAC-09)."""
    actual = weighted_kappa(codes, weights)
    if len(set(codes.ravel().tolist())) == 1:
        assert math.isnan(actual)
    else:
        assert actual == pytest.approx(cohen_kappa_score(*codes.T, labels=range(5), weights=weights), abs=1e-12)
    alone = np.array([[4, -1], [-1, 0], [-1, -1]], np.int8)
    assert weighted_kappa(np.vstack([codes, alone]), weights) == pytest.approx(actual, abs=1e-12, nan_ok=True)


def slow_weighted(codes: np.ndarray, power: int) -> float:
    """Pooled weighted kappa from its definition, in fractions: pair by pair, item by item."""
    shared = [row for row in codes.tolist() if sum(code >= 0 for code in row) > 1]
    given_by = [[row[rater] for row in shared if row[rater] >= 0] for rater in range(codes.shape[1])]
    observed = chance = Fraction(0)
    for i, j in itertools.combinations(range(codes.shape[1]), 2):
        met = [(row[i], row[j]) for row in shared if row[i] >= 0 <= row[j]]
        observed += sum(abs(a - b) ** power for a, b in met)
        distances = [abs(a - b) ** power for a in given_by[i] for b in given_by[j]]
        chance += Fraction(len(met) * sum(distances), len(distances)) if met else 0
    return float(1 - observed / chance) if chance else math.nan


@settings(deadline=None)
@given(arrays(np.int8, (9, 4), elements=st.integers(-1, 4)), st.randoms(use_true_random=False))
def test_weighted_kappa_of_several(codes: np.ndarray, random) -> None:
    """It is its definition, whatever is missing; order of items and raters, and grades turned around, do not matter."""
    items, raters = random.sample(range(9), 9), random.sample(range(4), 4)
    for weights, power in (("linear", 1), ("quadratic", 2)):
        actual = weighted_kappa(codes, weights)
        assert actual == pytest.approx(slow_weighted(codes, power), abs=1e-12, nan_ok=True)
        assert weighted_kappa(codes[items][:, raters], weights) == pytest.approx(actual, abs=1e-12, nan_ok=True)
        turned = np.where(codes < 0, -1, 4 - codes)
        assert weighted_kappa(turned, weights) == pytest.approx(actual, abs=1e-12, nan_ok=True)


def test_weighted_kappa_where_two_of_five_grade() -> None:
    """Pooled, pairs that met seldom tell what two tell who grade all; a mean over pairs is undefined if two never met.

    Nor are few items of each pair taken for chance: of ten items, about one a pair, kappa is not near 0.
    """
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 5, 4000)
    observed_grades = np.clip(truth[:, None] + rng.integers(-1, 2, (4000, 5)), 0, 4)
    pairs = np.array(list(itertools.combinations(range(5), 2)))[rng.integers(0, 10, 4000)]
    sparse = np.full((4000, 5), -1)
    np.put_along_axis(sparse, pairs, np.take_along_axis(observed_grades, pairs, axis=1), axis=1)
    for weights in ("linear", "quadratic"):
        expected = cohen_kappa_score(observed_grades[:, 0], observed_grades[:, 1], weights=weights)
        assert weighted_kappa(sparse, weights) == pytest.approx(expected, abs=0.02)
        assert weighted_kappa(sparse[:10], weights) > 0.2
    assert math.isnan(cohen_kappa(sparse[:10]))
    actual = estimate_interval("weighted_kappa_quadratic", sparse, 200)
    assert actual.value == weighted_kappa(sparse)
    assert actual.low < actual.value < actual.high


def test_weights_of_another_name() -> None:
    """Weights that there are not are named."""
    with pytest.raises(ValueError, match="no measure 'weighted_kappa_cubic'"):
        weighted_kappa(np.zeros((2, 2), int), "cubic")
