"""Agreement of any ratings, against the packages krippendorff, scikit-learn and statsmodels."""

import itertools
import math
import warnings

import krippendorff
import numpy as np
import polars as pl
import pytest
from sklearn.metrics import cohen_kappa_score

from pipeline.label.rating_files import Level
from pipeline.metrics.labelling import agreement

LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")


def draw_values(seed: int) -> tuple[Level, np.ndarray]:
    """Draw a level and numbers [tasks, raters], NaN where a label is missing."""
    rng, level = np.random.default_rng(seed), LEVELS[seed % 3]
    shape = (int(rng.integers(2, 40)), int(rng.integers(2, 21) if seed % 20 == 0 else rng.integers(2, 6)))
    values = np.sort(rng.choice(np.arange(-20, 50), int(rng.integers(1, 8)), replace=False)) * 1.5
    truth = rng.choice(values, (shape[0], 1))
    numbers = np.where(rng.random(shape) < rng.random(), truth, rng.choice(values, shape))
    numbers[rng.random(shape) < rng.choice([0, 0, 0.1, 0.4, 0.8])] = np.nan
    return level, numbers


def build_frame(numbers: np.ndarray) -> pl.DataFrame:
    rows = [(str(task), f"r{rater}", "f", str(v)) for (task, rater), v in np.ndenumerate(numbers) if np.isfinite(v)]
    return pl.DataFrame(rows, ["task_id", "rater_id", "field", "value"], orient="row")


def count_values(numbers: np.ndarray) -> np.ndarray:
    """Count each value of the tasks with the most frequent number of labels, two or more: [tasks, values]."""
    label_counts = np.isfinite(numbers).sum(axis=1)
    most = max(range(2, numbers.shape[1] + 1), key=lambda count: ((label_counts == count).sum(), count))
    domain = np.unique(numbers[np.isfinite(numbers)])
    return (numbers[label_counts == most][:, :, None] == domain).sum(axis=1)


def expect_numbers(level: Level, numbers: np.ndarray) -> dict[str, float]:
    """Compute what other implementations compute; NaN where there are no two labels of a task, or one value."""
    is_label = np.isfinite(numbers)
    pairable = numbers[is_label.sum(axis=1) > 1]
    expected = {"agreement": math.nan, "krippendorff": math.nan}
    if len(pairable):
        alike = [[a == b for a, b in itertools.combinations(row[np.isfinite(row)], 2)] for row in pairable]
        expected["agreement"] = float(np.mean([*map(np.mean, alike)]))
    if len(np.unique(pairable[np.isfinite(pairable)])) > 1:
        expected["krippendorff"] = krippendorff.alpha(reliability_data=pairable.T, level_of_measurement=level)
    return expected


def expect_cohen(numbers: np.ndarray) -> float:
    """Compute the mean of scikit-learn's kappa over the pairs of raters that share tasks and used two values."""
    kappas = []
    for first, second in itertools.combinations(numbers[:, np.isfinite(numbers).any(axis=0)].T, 2):
        is_shared = np.isfinite(first) & np.isfinite(second)
        texts = first[is_shared].astype(str), second[is_shared].astype(str)
        kappas.append(cohen_kappa_score(*texts) if len({*texts[0], *texts[1]}) > 1 else math.nan)
    return float(np.nanmean(kappas)) if np.isfinite(kappas).any() else math.nan


def test_random_files_equal_other_implementations() -> None:
    """Raw agreement is its definition's, alpha krippendorff's, and Cohen, of some files, scikit-learn's."""
    defined_count = 0
    for seed in range(60):
        level, numbers = draw_values(seed)
        if not (frame := build_frame(numbers)).height:
            continue
        (row,) = agreement.tabulate_ratings(frame, level, resamples=2).to_dicts()
        numbers_by_name = expect_numbers(level, numbers) | ({} if seed % 5 else {"cohen": expect_cohen(numbers)})
        for name, expected in numbers_by_name.items():
            value = math.nan if row[name] is None else row[name]
            assert value == pytest.approx(expected, abs=1e-6, nan_ok=True), (seed, name)
            defined_count += math.isfinite(expected)
        has_null = None in [row[name] for name in ("agreement", "fleiss", "cohen", "krippendorff")]
        assert row["note"] or not has_null, seed
    assert defined_count > 110


def test_fleiss_equals_statsmodels() -> None:
    """Fleiss is over the tasks with the most frequent number of labels, whoever gave them."""
    reference = pytest.importorskip("statsmodels.stats.inter_rater", reason="statsmodels is not installed: make setup")
    for seed in range(40):
        level, numbers = draw_values(seed)
        table = count_values(numbers)
        if table.sum(axis=1).max(initial=0) < 2 or (table.sum(axis=0) > 0).sum() < 2:
            continue
        (row,) = agreement.tabulate_ratings(build_frame(numbers), level, resamples=2).to_dicts()
        with warnings.catch_warnings(action="ignore"):
            assert row["fleiss"] == pytest.approx(reference.fleiss_kappa(table), abs=1e-6), seed
        assert row["n_fleiss"] == len(table)


@pytest.mark.parametrize(
    ("numbers", "note", "null"),
    [
        ([[1, np.nan], [np.nan, 2]], "no task has labels of two raters", ["agreement", "fleiss", "cohen"]),
        ([[1, 1], [1, 1]], "all labels are alike, so chance alone explains it", ["fleiss", "cohen", "krippendorff"]),
        ([[1, 2, 1], [2, 2, np.nan], [1, 1, np.nan]], "Fleiss is over the 2 of 3 tasks with 2 labels; Coh", []),
        ([[n, n + 0.5] for n in range(101)], "Fleiss and Cohen need at most 100 values", ["fleiss", "cohen"]),
    ],
)  # fmt: skip
def test_what_is_undefined_has_its_reason(numbers: list[list[float]], note: str, null: list[str]) -> None:
    """A measure that is null, or over some of the tasks, is explained; many numbers still have alpha."""
    (row,) = agreement.tabulate_ratings(build_frame(np.array(numbers)), "interval", resamples=2).to_dicts()
    assert row["note"].startswith(note)
    assert [name for name in null if row[name] is not None] == []


def test_values_in_their_order() -> None:
    """Texts have the order that is given; numbers are sorted by size and come before other texts."""
    assert agreement.sort_values(pl.Series(["10", "b", "9", "a", "-1"])) == ["-1", "9", "10", "a", "b"]
    data = np.array([[0, 2, 1, 0], [1, 2, 0, 0]])
    frame = build_frame(data.T.astype(float))
    names = {"0.0": "l", "1.0": "m", "2.0": "h"}
    frame = frame.with_columns(pl.col("value").replace_strict(names))
    (row,) = agreement.tabulate_ratings(frame, "ordinal", ("l", "m", "h"), resamples=2).to_dicts()
    assert row["krippendorff"] == pytest.approx(krippendorff.alpha(data, level_of_measurement="ordinal"), abs=1e-6)
