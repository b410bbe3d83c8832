"""When a scheduled training or study is due, and which GPU a task gets."""

import logging
from datetime import date, timedelta
from pathlib import Path

import pytest
import torch

from pipeline import warehouse
from pipeline.errors import BadInput, Retry
from pipeline.tasks.record.due import check_gpu, is_due
from tests.support.rows.filled import filled

DAY = date(2026, 11, 2)


def write(table: str, day: date, count: int = 1, **values: object) -> None:
    """Write rows of a day that differ in their thread."""
    rows = [{"day": day, "thread_id": str(number), **values} for number in range(count)]
    warehouse.overwrite(table, warehouse.make_slice(day=day), filled(table, *rows))


def test_a_training_is_due_a_week_after_the_last_if_enough_rows_are_new(
    tables: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a model all rows are new; then only those after it; articles without a summary never count."""
    caplog.set_level(logging.INFO, logger="pipeline")
    monkeypatch.setenv("UNDERTONE_LEAST_NEW_ROWS", "3")
    write("articles", DAY, 2, summary="a summary")
    write("articles", DAY - timedelta(days=1), 5, summary=None)
    assert not is_due("recam", DAY.isoformat())
    assert "2 new rows of articles so far, below 3" in caplog.text
    write("articles", DAY, 3, summary="a summary")
    assert is_due("recam", DAY.isoformat())
    write("models", DAY, kind="reader_imperceptibility")
    write("articles", DAY + timedelta(days=1), 3, summary="a summary")
    assert not is_due("recam", (DAY + timedelta(days=6)).isoformat())
    assert f"the last run is of {DAY}, the next is due on {DAY + timedelta(days=7)}" in caplog.text
    assert is_due("recam", (DAY + timedelta(days=7)).isoformat())
    assert is_due("recam", DAY.isoformat()) is False  # a backfilled day is judged by what was there


def test_commenters_are_due_after_comments_on_articles(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Comments of threads without an article do not count."""
    monkeypatch.setenv("UNDERTONE_LEAST_NEW_ROWS", "2")
    write("comments", DAY, 3, source="forum")
    write("articles", DAY, 1, source="forum")
    assert not is_due("commenting", DAY.isoformat())
    write("articles", DAY, 2, source="forum")
    assert is_due("commenting", DAY.isoformat())


def test_studies_are_due_after_a_new_model_of_new_sentences(tables: Path) -> None:
    """One import of sentences is enough for a model, and one model for a study; neither counts again."""
    day, later = DAY.isoformat(), (DAY + timedelta(days=30)).isoformat()
    steps = ("runs", {"step": "sentences"}), ("models", {"kind": "impscore"}), ("studies", {"study": "ablation"})
    due = []
    for table, values in steps:
        due.append((is_due("impscore", day), is_due("studies", day)))
        write(table, DAY, **values)
    assert due == [(False, False), (True, False), (False, True)]
    assert not is_due("impscore", later)
    assert not is_due("studies", later)


def test_a_task_without_the_gpu_it_requires_waits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By default it runs on the CPU and logs so; where a GPU is required it is retried."""
    caplog.set_level("INFO", logger="pipeline")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    check_gpu()
    assert "no GPU is visible; the task runs on the CPU" in caplog.text
    monkeypatch.setenv("UNDERTONE_GPU", "required")
    with pytest.raises(Retry, match="this worker sees no GPU"):
        check_gpu()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "H100")
    check_gpu()
    assert "GPU: H100" in caplog.text
    monkeypatch.setenv("UNDERTONE_GPU", "must")
    with pytest.raises(BadInput, match="expected one of optional, required, found 'must'"):
        check_gpu()
