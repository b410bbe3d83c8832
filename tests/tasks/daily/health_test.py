"""Health as a task: what the sample's steps told, as a frame and as a page."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipeline import sample
from pipeline.errors import BadInput
from pipeline.slices import parse_day
from pipeline.tasks.daily import report

DAY = sample.DAY


def test_the_sample_s_steps_are_told(scored: Path) -> None:
    """Collecting, cutting and scoring the sample have a row each with seconds; nothing is missing."""
    steps = report.build_health(DAY)
    chain = steps.filter(steps["step"].is_in(["collect", "tokenize", "score"]))
    assert sorted(chain["step"]) == ["collect", "score", "tokenize"]
    assert chain["kept_count"].to_list()[0] == 301  # comments of the sample
    assert chain["seconds"].null_count() == 0
    assert "missing" not in steps["status"]
    with pytest.raises(BadInput, match="expected 1 or more, found 0"):
        report.build_health(DAY, 0)


def test_days_after_the_last_are_missing(imported: Path) -> None:
    """When nothing is collected any more, each later day that is over says so, however many days are looked at."""
    last = parse_day(DAY)
    silent = [last + timedelta(days=n) for n in (1, 2, 3)]
    steps = report.build_health(silent[-1].isoformat(), 4).filter(step="collect", status="missing")
    over = [day for day in silent if day <= datetime.now(UTC).date() - timedelta(days=2)]
    assert steps["day"].to_list() == over
    assert set(steps["why"]) == ({"nothing collected"} if over else set())
    much_later = report.build_health("2026-11-21", 1)
    assert much_later["day"].to_list() == ([parse_day("2026-11-21")] if len(over) > 1 else [])
