"""The week until a day next to the one before, from the tables, as numpy computes it."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline import warehouse
from pipeline.tasks.daily import report, weeks
from tests.support.pages import texts
from tests.support.rows.filled import DAY, digest, filled

MODEL, OTHER = "a" * 64, "b" * 64


def write_weeks() -> pl.DataFrame:
    """Write two sources on some days of two weeks; return source, day, thread, comment and score."""
    rng, rows = np.random.default_rng(5), []
    for source, rise, ages in (("weibo", 0.6, (0, 2, 7, 9)), ("zhihu", -0.5, (0, 1, 7)), ("bilibili", 0, (0, 3, 12))):
        for age in ages:
            for number in range(48):
                mean = 1 + rise * (age < 7) + 0.2 * (number % 12 - 6) / 6
                value = round(float(np.clip(mean + rng.normal(0, 0.1), 0, 2)), 6)
                rows.append((source, DAY - timedelta(days=age), f"{age}-{number % 12}", f"{age}-{number}", value))
    rows += [
        ("weibo", DAY - timedelta(days=5), "x", f"x-{n}", 2.0) for n in range(9)
    ]  # of another model the week before
    rows += [("weibo", DAY - timedelta(days=12), "x", f"y-{n}", 0.0) for n in range(9)]
    frame = pl.DataFrame(rows, schema=("source", "day", "thread_id", "comment_id", "value"), orient="row")
    dicts = frame.with_columns(text=pl.format("text {} {}", "source", "comment_id")).to_dicts()
    comments = [
        row | {"lang": "zh", "like_count": number * 7 % 100, "user_id": digest("me", 32)}
        for number, row in enumerate(dicts)
    ]
    scores = [row | {"model_id": OTHER if row["comment_id"][0] == "y" else MODEL} for row in dicts]
    for row in (*comments, *scores):
        row.pop("value" if "like_count" in row else "text")
    for name, part in (("comments", comments), ("scores", scores)):
        for source in frame["source"].unique():
            warehouse.overwrite(name, {"source": source}, filled(name, *part).filter(source=source), "test")
    return frame.with_columns(like_count=pl.Series([row["like_count"] for row in comments]))


@pytest.fixture
def rows(tables: Any) -> pl.DataFrame:
    """The rows of two weeks, in the tables."""
    return write_weeks()


def test_changes_are_of_days_that_both_weeks_have(rows: pl.DataFrame) -> None:
    """Counts, means and shares of each source over its matched days; none of another model, or of a single week."""
    changes = weeks.compare_weeks(str(DAY), MODEL)["changes"]
    assert changes["source"].to_list() == ["weibo", "zhihu"]  # the larger first; bilibili has no day in both
    for row, days in zip(changes.to_dicts(), ((0, 2), (0,)), strict=True):
        part = rows.filter(source=row["source"])
        now, before = (
            part.filter(pl.col("day").is_in([DAY - timedelta(days=age + add) for age in days]))["value"].to_numpy()
            for add in (0, 7)
        )
        assert (row["day_count"], row["thread_count"], row["thread_count_before"]) == (len(days), *[12 * len(days)] * 2)
        assert (row["comment_count"], row["mean"]) == (len(now), pytest.approx(now.mean()))
        assert row["change"] == pytest.approx(now.mean() - before.mean())
        first, last = np.quantile(before, (0.25, 0.75))
        assert (row["low_share"], row["high_share"]) == ((now < first).mean(), (now > last).mean())
        assert row["high_share_before"] == (before > last).mean()
        assert row["is_clear"]
        assert row["judge"] is None


def test_examples_show_the_change(rows: pl.DataFrame) -> None:
    """Five comments of the day: above last week's quarter where the mean rose, below where it fell, by likes."""
    result = weeks.compare_weeks(str(DAY), MODEL)
    examples, expected = result["examples"], {}
    for row in result["changes"].to_dicts():
        part, is_up = rows.filter(source=row["source"], day=DAY), row["change"] > 0
        edge = row["last_quarter"] if is_up else row["first_quarter"]
        part = part.filter(pl.col("value") > edge if is_up else pl.col("value") < edge)
        part = part.sort(-pl.col("like_count"), "thread_id", "comment_id")
        expected[row["source"]] = [(1 if is_up else -1, f"text {row['source']} {name}") for name in part["comment_id"]]
    both = [pair for pairs in zip(*expected.values(), strict=False) for pair in pairs][:5]
    assert examples.select("way", "text").rows() == both
    assert {"user_id", "comment_id", "thread_id"}.isdisjoint(examples.columns)
    page = texts(Path(report.write(str(DAY))).read_text(encoding="utf-8"))
    assert "weibo (zh) rose from" in page
    assert page.count("↓ lowers it") == 2


def test_a_day_without_an_earlier_week(rows: pl.DataFrame) -> None:
    """It has nothing to compare, and the page has one line that says so."""
    assert weeks.compare_weeks(str(DAY - timedelta(days=7)), MODEL) == {}
    assert weeks.compare_weeks(str(DAY), OTHER) == {}
    page = texts(Path(report.write(str(DAY - timedelta(days=7)))).read_text(encoding="utf-8"))
    assert page.count("No comparison: no source has scores by this model on the same day") == 1
