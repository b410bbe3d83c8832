"""A ghost, an attempt whose worker is lost but which lives on and ends after its retry, changes nothing."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipeline import settings, warehouse
from pipeline.errors import Retry
from pipeline.tables import TABLES, empty
from tests.faults.attempts import Attempt, Call
from tests.faults.whole import DAY
from tests.support.rows.filled import filled

TASK = "daily.collect.collect_source"


def attempt(path: Path, home: Path, began: int, *, waits: bool) -> Attempt:
    """An attempt to import a file, begun at that second of the day; it waits, if asked to, with what it has read."""
    env = {
        "UNDERTONE_HOME": str(home), "FAULTS_LOG": str(home.parent / "log"), "POLARS_MAX_THREADS": "2",
        "UNDERTONE_ATTEMPT": f"{TASK} 2026-11-20T00:00:{began:02}+00:00",
    }  # fmt: skip
    return Attempt(Call("tests.faults.whole:import_file", (str(path),), {"waits": waits}), env)


def write_file(path: Path, text: str) -> None:
    """Write a file of one comment."""
    path.write_text(f"thread_id,comment_id,text\nt,c,{text}\n", encoding="utf-8")


def test_a_ghost_with_older_input_comes_too_late(tables: Path, tmp_path: Path) -> None:
    """The file is mended while a ghost stands still; the retry brings the mended rows, and the ghost's are refused."""
    path = tmp_path / "notes.csv"
    write_file(path, "as it was")
    ghost = attempt(path, tables, 1, waits=True)
    while not path.with_suffix(".read").exists():
        assert not ghost.wait(0.01), ghost.outcome()
    write_file(path, "as it was mended")
    assert attempt(path, tables, 2, waits=False).outcome().word == "done"
    before = {name: warehouse.get_snapshot_id(name) for name in TABLES}
    path.with_suffix(".go").touch()
    assert ghost.outcome().word == "Retry"
    assert {name: warehouse.get_snapshot_id(name) for name in TABLES} == before
    assert warehouse.scan("comments").collect()["text"].to_list() == ["as it was mended"]


@pytest.fixture
def write(tables: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Overwrites a slice of `comments` as an attempt at a task that began at that second of the day."""

    def overwrite(task: str | None, second: int, text: str, source: str = "weibo") -> int:
        monkeypatch.setenv("UNDERTONE_ATTEMPT", "")  # so that it is put back at the end
        if task:
            settings.begin(task, datetime(2026, 11, 20, 0, 0, second, tzinfo=UTC))
        row = filled("comments", {"text": text, "source": source})
        return warehouse.overwrite("comments", warehouse.make_slice(source=source, day=DAY), row)

    return overwrite


def test_only_an_older_attempt_at_the_same_task_and_slice_is_refused(write: Callable[..., int]) -> None:
    """Another slice, another task, a later attempt, the same attempt again and a person at the shell all may write."""
    write(TASK, 5, "newer")
    with pytest.raises(Retry, match="later attempt"):
        write(TASK, 4, "older")
    assert warehouse.scan("comments").collect()["text"].to_list() == ["newer"]
    for task, second, source in ((TASK, 4, "zhihu"), ("other", 4, "weibo"), (TASK, 6, "weibo"), (None, 0, "weibo")):
        assert write(task, second, f"{task} {second}", source) == 1
    with pytest.raises(Retry, match="later attempt"):
        write(TASK, 5, "older still")
    settings.begin(TASK, datetime(2026, 11, 20, 0, 0, 8, tzinfo=UTC))
    warehouse.overwrite("comments", warehouse.make_slice(source="weibo", day=DAY), empty("comments"))
    with pytest.raises(Retry, match="later attempt"):
        write(TASK, 7, "of an emptied slice")
