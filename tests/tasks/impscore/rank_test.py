"""Ranking graded groups, answering choice questions, measuring distances."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from pipeline.tasks.impscore import rank, scoring

Enlist = Callable[..., str]

GROUPS = {"up": ["a", "bb!", "cccc!!"], "down": ["cccc", "bb", "a?"]}


@pytest.fixture
def model(tables: Path, enlist: Enlist) -> str:
    """A model with random weights on the tiny encoder."""
    return enlist("2026-11-19", 1)


@pytest.fixture
def sentences() -> pl.DataFrame:
    """Two groups of three."""
    rows = [(name, level, text) for name, texts in GROUPS.items() for level, text in enumerate(texts, 1)]
    return pl.DataFrame(rows, schema=["group", "level", "text"], orient="row")


def test_model_and_baselines(model: str, sentences: pl.DataFrame) -> None:
    """The model stands first and ranks by its own scores: in their order tau and rho are 1, reversed -1."""
    rows = {row["by"]: row for row in rank.rank(sentences, model).to_dicts()}
    assert list(rows) == ["implicitness", "longer", "length", "punctuation", "words"]
    # "up": all three pairs rise; "down": two of three pairs fall, "bb" and "a?" tie
    assert rows["longer"]["kendall_tau"] == pytest.approx((3 / 3 + (0 - 2) / 3) / 2, abs=1e-6)
    assert all(-1 <= row["kendall_tau"] <= 1 and -1 <= row["spearman_rho"] <= 1 for row in rows.values())
    assert {row["group_count"] for row in rows.values()} == {2}
    scored = scoring.add_scores(sentences, "text", model).sort("group", "implicitness")
    for descending, expected in ((False, 1.0), (True, -1.0)):
        level = pl.col("implicitness").rank("ordinal", descending=descending).over("group").cast(pl.Int64)
        ranked = scored.with_columns(level=level).drop("implicitness", "signature")
        row = rank.rank(ranked, model).row(0, named=True)
        assert (row["kendall_tau"], row["spearman_rho"]) == (expected, expected)


def test_a_group_is_scored_by_one_head(model: str, sentences: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence that reads like another language is scored by the head of most of its group: heads do not compare."""
    frames: list[pl.DataFrame] = []
    score_texts = scoring.score_texts
    monkeypatch.setattr(scoring, "score_texts", lambda rows, *rest: frames.append(rows) or score_texts(rows, *rest))
    chinese, english = ["关上门", "门开着 OK", "LOL so cold"], ["close it", "the door!", "冷"]
    rank.rank(sentences.with_columns(text=pl.Series([*chinese, *english])), model)
    langs = {**dict.fromkeys(chinese, "zh"), **dict.fromkeys(english, "en")}
    assert dict(frames[0].select("text", "lang").iter_rows()) == langs


def test_accuracy_and_chance() -> None:
    """One of two right is 0.5; guessing among three options and two gives (1/3 + 1/2) / 2."""
    answered = pl.DataFrame({"options": [["a", "b", "c"], ["a", "b"]], "is_right": [True, False]})
    chance = pytest.approx(5 / 12, abs=1e-6)
    assert rank.measure_accuracy(answered).rows() == [("pragmatic_distance", 2, 0.5), ("chance", 2, chance)]
