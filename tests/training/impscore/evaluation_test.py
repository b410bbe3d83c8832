"""The numbers of a model: by split and source, what the surface alone reaches beside them."""

import numpy as np
import polars as pl
import pytest

from pipeline.metrics.impscore import artefacts
from pipeline.tables import TABLES
from pipeline.training.impscore import heads
from pipeline.training.impscore.heads import COLUMNS, evaluate, evaluate_groups, list_epochs

METRICS = {
    "implicitness_accuracy", "pragmatics_accuracy", "implicitness_of_implicit", "implicitness_of_explicit",
    "pragmatic_distance_positive", "pragmatic_distance_negative",
}  # fmt: skip
BASELINES = {f"{name}_baseline" for name in artefacts.BASELINES}


@pytest.fixture(scope="module")
def triples(pairs: pl.DataFrame) -> pl.DataFrame:
    values = pl.DataFrame(np.random.default_rng(1).random((pairs.height, 5)), ["i1", "i2", "i3", "near", "far"])
    return pairs.select("pair_id", "source", "split").hstack(values)


@pytest.fixture(scope="module")
def numbers(pairs: pl.DataFrame, triples: pl.DataFrame) -> pl.DataFrame:
    return evaluate(pairs, triples, 42)


def select_row(rows: pl.DataFrame, metric: str, split: str, subset: str = "all") -> dict[str, object]:
    return rows.filter(metric=metric, split=split, subset=subset).row(0, named=True)


def test_every_split_and_source_is_measured(numbers: pl.DataFrame) -> None:
    """Every split is measured whole and by source, and again among length-matched pairs; no number stands twice.

    The columns are those of `evaluations` without its keys.
    """
    assert numbers.select("metric", "split", "subset", "epoch").is_duplicated().sum() == 0
    assert [*TABLES["evaluations"].schema.column_names()][3:] == list(COLUMNS) == numbers.columns
    unmatched = numbers.filter(~pl.col("subset").str.starts_with("matched"))
    subsets = unmatched.group_by("split").agg(pl.col("subset").unique().sort()).rows()
    assert sorted(subsets) == [(s, ["all", "sample_en", "sample_zh"]) for s in ("test", "train", "validation")]
    assert set(unmatched["metric"]) == METRICS | BASELINES
    rows = [select_row(numbers, "pragmatics_accuracy", split) for split in ("train", "validation", "test")]
    assert [row["pair_count"] for row in rows] == [24, 4, 4]
    matched = numbers.filter(subset="matched:all")
    assert set(matched["metric"]) >= METRICS
    assert 0 < select_row(numbers, "implicitness_accuracy", "train", "matched:all")["pair_count"] < 24  # type: ignore[operator]


def test_accuracies_by_hand(numbers: pl.DataFrame, pairs: pl.DataFrame, triples: pl.DataFrame) -> None:
    """Accuracies over the test split, from the numbers one by one, are those recorded (IMP-25, IMP-26).

    Without pairs there is no number, but the columns.
    """
    empty = evaluate(pairs.clear(), triples.clear(), 42)
    assert (empty.height, empty.columns) == (0, list(COLUMNS))
    rows = triples.filter(pl.col("split") == "test").rows(named=True)
    above = [row["i1"] > row[side] for row in rows for side in ("i2", "i3")]
    assert select_row(numbers, "implicitness_accuracy", "test")["value"] == pytest.approx(np.mean(above), abs=1e-6)
    nearer = np.mean([row["near"] < row["far"] for row in rows])
    assert select_row(numbers, "pragmatics_accuracy", "test")["value"] == pytest.approx(nearer, abs=1e-6)
    explicit = np.mean([row[side] for row in rows for side in ("i2", "i3")])
    assert select_row(numbers, "implicitness_of_explicit", "test")["value"] == pytest.approx(explicit, abs=1e-6)


@pytest.mark.parametrize(
    ("splits", "expected"),
    [(["validation"], "validation"), (["train", "validation"], "train"), (["test", "train"], "test")],
    ids=str,
)
def test_baselines_stand_beside_the_split_there_is(
    pairs: pl.DataFrame, triples: pl.DataFrame, splits: list[str], expected: str
) -> None:
    """Baselines stand beside the test part; without one beside the largest there is, so that none is lost."""
    numbers = evaluate(pairs.filter(pl.col("split").is_in(splits)), triples, 42)
    numbers = numbers.filter(~pl.col("subset").str.starts_with("matched"))  # too few remain there
    assert numbers.filter(pl.col("baseline").is_not_null())["split"].unique().to_list() == [expected]
    assert select_row(numbers, "implicitness_accuracy", expected)["baseline"] is not None
    assert set(numbers.filter(pl.col("metric").is_in(BASELINES))["split"]) == {expected}


def test_the_best_baseline_stands_beside_the_accuracy(numbers: pl.DataFrame, pairs: pl.DataFrame) -> None:
    """Next to the accuracy on test pairs stands the best surface baseline by its name; each has a row of its own."""
    audit = artefacts.audit(pairs).filter(pl.col("subset") == "all")
    row = select_row(numbers, "implicitness_accuracy", "test")
    best = audit.filter(pl.col("accuracy") == audit["accuracy"].max())
    assert row["baseline"] == best["accuracy"][0]
    assert row["baseline_name"] in best["baseline"].to_list()
    for name, accuracy in audit.select("baseline", "accuracy").rows():
        assert select_row(numbers, f"{name}_baseline", "test")["value"] == accuracy
    assert numbers.filter(pl.col("baseline").is_not_null())["metric"].unique().to_list() == ["implicitness_accuracy"]


def test_epochs() -> None:
    """Each epoch's validation accuracy is a row under its number."""
    history = pl.DataFrame({"epoch": [1, 2], "value": [0.5, 2 / 3], "count": [9, 9]})
    rows = list_epochs(history, "head:en")
    assert rows.columns == list(COLUMNS)
    assert rows.select("epoch", "value", "split", "subset", "pair_count").rows() == [
        (1, 0.5, "validation", "head:en", 9),
        (2, 0.666667, "validation", "head:en", 9),
    ]


def graded(values: dict[str, list[float]], split: str = "test") -> pl.DataFrame:
    """Groups whose sentences lie at a place of their group, its value apart."""
    rows = [
        {"group": name, "level": level, "text": f"{name} {level}", "split": split, "value": value,
         "pragmatic": [10.0 * place, value]}
        for place, (name, of_group) in enumerate(values.items())
        for level, value in enumerate(of_group, 1)
    ]  # fmt: skip
    return pl.DataFrame(rows).with_columns(pl.col("pragmatic").list.to_array(2))


def test_groups_by_hand() -> None:
    """Taus 1, 1/3 and -1 are 1/9 on average; every sentence is nearest to its own group, so all choices are right.

    Two groups make no question of three options.
    """
    rows = evaluate_groups(graded({"a": [0.1, 0.2, 0.3], "b": [0.1, 0.3, 0.2], "c": [0.3, 0.2, 0.1]}), "groups:en", 42)
    assert rows.columns == list(COLUMNS)
    assert select_row(rows, "kendall_tau", "test", "groups:en")["value"] == pytest.approx(1 / 9, abs=1e-6)
    assert select_row(rows, "kendall_tau", "test", "groups:en")["baseline_name"] == "words"
    assert select_row(rows, "spearman_rho", "test", "groups:en")["value"] == pytest.approx((1 + 0.5 - 1) / 3, abs=1e-6)
    assert select_row(rows, "choice_accuracy", "test", "groups:en")["value"] == 1.0
    assert rows["pair_count"].to_list() == [3, 3, 3]
    rows = evaluate_groups(graded({"a": [0.1, 0.2], "b": [0.2, 0.1]}), "groups:en", 42)
    assert rows["metric"].to_list() == ["kendall_tau", "spearman_rho"]


def move(*places: list[float]) -> pl.DataFrame:
    """Three groups of two, whose sentences lie at these places."""
    groups = graded({"a": [0.0, 0.0], "b": [0.0, 0.0], "c": [0.0, 0.0]})
    return groups.with_columns(pragmatic=pl.Series(places, dtype=pl.Array(pl.Float64, 2)))


def test_choices_by_the_models_own_distance() -> None:
    """A question is right if the nearest of the most implicit sentences is of the reference's own group.

    With the cosine variant directions decide: what is far along the own one is nearer than what is close by.
    """
    swapped = move([0, 0], [0, 0], [10, 0], [20, 0], [20, 0], [10, 0])  # the most implicit sentences of b and c
    assert heads._measure_choices(swapped, 42, "euclidean") == pytest.approx(1 / 3, abs=1e-6)
    apart = move([1, 0], [9, 0], [0, 1], [0, 9], [-1, 1], [-9, 9])
    near = move([1, 0], [9, 0], [0, 1], [0, 9], [-1, -1], [-0.1, -0.1])
    assert heads._measure_choices(apart, 42, "cosine") == 1.0
    assert heads._measure_choices(near, 42, "cosine") == 1.0
    assert heads._measure_choices(near, 42, "euclidean") < 1.0
