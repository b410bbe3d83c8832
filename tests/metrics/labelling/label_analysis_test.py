"""Ratios, overlap and correlation of labels, on small frames and against scipy."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pipeline.label.schema import FIELDS
from pipeline.metrics.labelling.label_analysis import class_ratios, correlations, overlaps

LABELS = pl.DataFrame({
    "task_id": ["t1", "t2", "t3", "t4", "t5"], "subtext":   ["1", "1", "1", "-1", None],
    "metaphor":  ["1", "-1", "0", "-1", "1"], "sentiment": ["-1", "0", "1", "0", "0"],
    "emotion":   ["joy", "None", "None", "None", "sad"], "other":     ["-1", "-1", "-1", "-1", "-1"],
})  # fmt: skip

tags = st.lists(st.sampled_from(["1", "0", "-1", None]), min_size=12, max_size=12)
frames = st.fixed_dictionaries({"subtext": tags, "sarcasm": tags, "sentiment": tags}).map(
    lambda columns: pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
)


def pair(frame: pl.DataFrame, a: str, b: str) -> dict[str, object]:
    return frame.row(by_predicate=(pl.col("a") == a) & (pl.col("b") == b), named=True)


def test_class_ratios() -> None:
    """Each value's share of the labels there are; a value never given has 0, a field without labels null (CSD-25)."""
    actual = class_ratios(LABELS)
    assert actual.filter(pl.col("field") == "subtext").rows() == [
        ("subtext", "1", 3, 0.75), ("subtext", "0", 0, 0), ("subtext", "-1", 1, 0.25),
    ]  # fmt: skip
    emotion = actual.filter(pl.col("field") == "emotion")
    assert emotion["value"].to_list() == list(FIELDS["emotion"].values)
    assert emotion.filter(pl.col("count") > 0).rows() == [
        ("emotion", "joy", 1, 0.2), ("emotion", "sad", 1, 0.2), ("emotion", "None", 3, 0.6),
    ]  # fmt: skip
    assert class_ratios(LABELS.clear())["ratio"].null_count() == actual.height


def test_overlap_in_both_directions() -> None:
    """Of three comments with subtext one has a metaphor; it is the only such metaphor (CSD-26)."""
    actual = overlaps(LABELS)
    assert set(actual["a"]) == {"subtext", "metaphor", "sentiment", "emotion", "other"}
    assert pair(actual, "subtext", "metaphor") == {
        "a": "subtext", "b": "metaphor", "both_count": 1, "a_count": 3, "b_count": 1,
        "overlap": pytest.approx(1 / 3, abs=1e-6), "jaccard": pytest.approx(1 / 3, abs=1e-6),
    }  # fmt: skip
    assert pair(actual, "metaphor", "subtext")["overlap"] == 1
    # t1 and t3 are not neutral; t1 and t5 show an emotion; t1 has all
    assert pair(actual, "sentiment", "emotion")["overlap"] == 0.5
    assert pair(actual, "sentiment", "emotion")["jaccard"] == pytest.approx(1 / 3, abs=1e-6)
    assert pair(actual, "emotion", "metaphor")["both_count"] == 2
    assert pair(actual, "other", "subtext")["overlap"] is None
    assert pair(actual, "subtext", "other")["overlap"] == 0
    assert pair(actual, "other", "other")["jaccard"] is None


@settings(max_examples=40, deadline=None)
@given(frames)
def test_correlation_equals_scipy(labels: pl.DataFrame) -> None:
    """Spearman's rho of the codes -1, 0, 1 over comments with both, ties included; null where it is undefined."""
    actual = correlations(labels)
    for row in actual.iter_rows(named=True):
        labelled = labels.select(first=row["a"], second=row["b"]).drop_nulls().cast(pl.Int64)
        assert row["n"] == labelled.height
        assert row["spearman"] == pair(actual, row["b"], row["a"])["spearman"]
        if labelled["first"].n_unique() < 2 or labelled["second"].n_unique() < 2:
            assert row["spearman"] is None
        else:
            expected = stats.spearmanr(labelled["first"].to_numpy(), labelled["second"].to_numpy()).statistic
            assert row["spearman"] == pytest.approx(expected, abs=1e-6)


def test_correlation_by_hand() -> None:
    """An emotion that is shown or not is held against the metaphor's -1, 0, 1 (CSD-27)."""
    actual = correlations(LABELS)
    expected_rho = stats.spearmanr([1, -1, -1, -1, 1], [1, -1, 0, -1, 1]).statistic
    assert pair(actual, "emotion", "metaphor")["spearman"] == pytest.approx(expected_rho, abs=1e-6)
