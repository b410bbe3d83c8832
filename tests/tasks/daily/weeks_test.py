"""The week until a day next to the one before, from the tables, as numpy computes it."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline import warehouse
from pipeline.tasks.daily import report
from tests.support.pages import texts
from tests.support.rows.filled import DAY, digest, filled

MODEL, OTHER = "a" * 64, "b" * 64


def ago(days: int) -> date:
    """The day so many days before."""
    return DAY - timedelta(days=days)


@pytest.fixture
def rows(tables: Any) -> pl.DataFrame:
    """Write comments and scores of three sources on some days of two weeks; return them."""
    rng, rows = np.random.default_rng(5), []
    for source, rise, ages in (("weibo", 0.6, (0, 2, 7, 9)), ("zhihu", -0.5, (0, 1, 7)), ("bilibili", 0, (0, 3, 12))):
        for age, number in ((age, number) for age in ages for number in range(48)):
            value = np.clip(1 + rise * (age < 7) + 0.03 * (number % 12) + rng.normal(0, 0.1), 0, 2)
            rows.append((source, ago(age), f"{age}-{number % 12}", f"{age}-{number}", round(value, 6), MODEL))
    rows += [("weibo", ago(age), "x", f"x{age}", 2.0, model) for age, model in ((5, MODEL), (12, OTHER))]
    columns = ("source", "day", "thread_id", "comment_id", "value", "model_id")
    scores = pl.DataFrame(rows, schema=columns, orient="row")
    comments = scores.drop("value", "model_id").with_columns(like_count=pl.Series(range(len(rows))) * 7 % 100)
    text, user = pl.format("text {} {}", "source", "comment_id"), pl.lit(digest(1, 32))
    comments = comments.with_columns(text=text, lang=pl.lit("zh"), user_id=user)
    for name, frame in (("comments", comments), ("scores", scores)):
        for (source,), part in frame.partition_by("source", as_dict=True).items():
            warehouse.overwrite(name, {"source": source}, filled(name, *part.to_dicts()), "test")
    return scores.with_columns(comments.select("text", "like_count"))


def test_changes_are_of_days_that_both_weeks_have(rows: pl.DataFrame) -> None:
    """Counts, means and shares of each source over its matched days; none of another model, or of a single week."""
    changes = report.compare_weeks(str(DAY), MODEL)["changes"]
    assert changes["source"].to_list() == ["weibo", "zhihu"]  # the larger first; bilibili has no day in both
    for row, days in zip(changes.to_dicts(), ((0, 2), (0,)), strict=True):
        part = rows.filter(source=row["source"])
        now, before = (part.filter(pl.col("day").is_in([ago(n + m) for n in days]))["value"].to_numpy() for m in (0, 7))
        first, last = np.quantile(before, (0.25, 0.75))
        expected = {
            "day_count": len(days), "thread_count": 12 * len(days), "comment_count_before": len(before),
            "mean": pytest.approx(now.mean()), "change": pytest.approx(now.mean() - before.mean()),
            "low_share": (now < first).mean(), "high_share": (now > last).mean(), "is_clear": True, "judge": None,
        }  # fmt: skip
        assert {name: row[name] for name in expected} == expected


def test_examples_show_the_change(rows: pl.DataFrame) -> None:
    """Five comments of the day: above last week's quarter where the mean rose, below where it fell, by likes.

    A day without an earlier week has nothing to compare, and its page has one line that says so.
    """
    result = report.compare_weeks(str(DAY), MODEL)
    turns = []
    for row, way in zip(result["changes"].to_dicts(), (1, -1), strict=True):
        value, edge = pl.col("value"), row["last_quarter"] if way > 0 else row["first_quarter"]
        part = rows.filter(value > edge if way > 0 else value < edge, source=row["source"], day=DAY)
        part = part.sort(-pl.col("like_count"), "thread_id", "comment_id")
        turns.append([(way, text) for text in part["text"]])
    expected = [row for turn in zip(*turns, strict=False) for row in turn][:5]
    assert result["examples"].select("way", "text").rows() == expected
    assert {"user_id", "comment_id", "thread_id"}.isdisjoint(result["examples"].columns)
    page = texts(Path(report.write(str(DAY))).read_text(encoding="utf-8"))
    assert "weibo (zh) rose from" in page
    assert page.count("↓ lowers it") == 2
    assert report.compare_weeks(str(ago(7)), MODEL) == report.compare_weeks(str(DAY), OTHER) == {}
    page = texts(Path(report.write(str(ago(7)))).read_text(encoding="utf-8"))
    assert page.count("No comparison: no source has scores by this model on the same day") == 1
