"""What people's grades of compressions come to: means, differences and agreement by hand and by scikit-learn."""

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import cohen_kappa_score

from pipeline.label.compression import FIELDS, GRADED
from pipeline.metrics.ndd.compression import AGREEMENT, measure_agreement, summarize


def rows(*gradings: tuple[str, str, str, list[int]], field: str = "syntax") -> pl.DataFrame:
    """Grades of (item, system, task, grades), by raters a, b, … in order."""
    records = []
    for item, system, task, grades in gradings:
        mean = float(np.mean(grades)) if grades else None
        records.append((item, system, task, field, mean, grades, [*"abcdefgh"[: len(grades)]], len(grades)))
    return pl.DataFrame(records, schema=GRADED, orient="row")


def add_both_fields(*gradings: tuple[str, str, str, list[int]]) -> pl.DataFrame:
    """The same grades for syntax and semantics."""
    return pl.concat([rows(*gradings, field=field) for field in FIELDS])


GRADES = add_both_fields(
    ("1", "ndd", "t1", [5, 4]), ("2", "ndd", "t2", [3]), ("3", "ndd", "t3", []),
    ("1", "ppl", "t4", [2, 2]), ("2", "ppl", "t2", [3]), ("3", "ppl", "t5", [1, 0]),
)  # fmt: skip


def test_means_by_hand() -> None:
    """Of 4.5 and 3 the mean is 3.75, ungraded is not 0; a compression that systems share is one case."""
    actual = summarize(GRADES, draws=50)
    assert actual.select("system", "field", "value", "n").rows() == [
        ("ndd", "syntax", 3.75, 2), ("ndd", "semantics", 3.75, 2),
        ("ppl", "syntax", pytest.approx(5.5 / 3), 3), ("ppl", "semantics", pytest.approx(5.5 / 3), 3),
    ]  # fmt: skip
    assert (actual["low"] <= actual["value"]).all()
    assert (actual["value"] <= actual["high"]).all()
    assert actual.equals(summarize(GRADES.reverse(), draws=50))
    gradings = [("1", "x", "t1", [5, 5]), ("1", "y", "t1", [5, 5]), ("2", "x", "t2", [0, 1])]
    actual = measure_agreement(add_both_fields(*gradings), draws=10)
    assert actual["n"].unique().to_list() == [2]
    assert actual.equals(measure_agreement(add_both_fields(gradings[0], gradings[2]), draws=10))


def test_agreement_is_scikit_learns() -> None:
    """Cohen's weighted kappa of two raters on the compressions that both graded, a 0 being a grade like others."""
    rng = np.random.default_rng(2)
    first = rng.integers(0, 6, 60)
    second = {field: np.clip(first + rng.integers(-1, 2, 60), 0, 5) for field in FIELDS}
    graded = [
        rows(*((str(n), "x", f"t{n:02}", [int(first[n]), int(grades[n])]) for n in range(60)), field=field)
        for field, grades in second.items()
    ]
    actual = measure_agreement(pl.concat([*graded, rows(("99", "x", "t99", [5]))]), draws=50)
    assert actual.select("field", "metric").rows() == [(field, name) for field in FIELDS for name in AGREEMENT]
    assert actual["n"].unique().to_list() == [60]
    for field, grades in second.items():
        for weights in ("linear", "quadratic"):
            value = actual.filter(field=field, metric=f"weighted_kappa_{weights}")["value"].item()
            assert value == pytest.approx(cohen_kappa_score(first, grades, weights=weights))
    assert (actual["low"] < actual["value"]).all()
    assert (actual["value"] < actual["high"]).all()
