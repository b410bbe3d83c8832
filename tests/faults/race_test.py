"""Two processes that import the same slice at once."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import warehouse
from pipeline.tasks.collect import import_files

from .importing import answer, ask, start, stop

ROUNDS = ["2026-11-18", "2026-11-19", "2026-11-18", "2026-11-19"]  # each slice once empty and once full
Rows = Callable[[Path], dict[str, pl.DataFrame]]


def test_two_imports_of_one_slice_leave_it_once(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows_of_home: Rows,
    comments_csv: Callable[[int], Path],
) -> None:
    """Whoever loses ends in Retry and succeeds when run again; the rows are exact, none is there twice."""
    path = comments_csv(3_000)
    monkeypatch.setenv("UNDERTONE_HOME", str(tmp_path / "calm"))
    warehouse.create()
    for day in sorted(set(ROUNDS)):
        import_files([path], "made_up", day, origin="race")
    expected = rows_of_home(tmp_path / "calm")
    assert expected["comments"].height > 2 * 2_500

    children = [start(tables) for _ in range(2)]
    for number, day in enumerate(ROUNDS):
        for child in children:
            ask(child, [path], "made_up", day, "race")
        said = [answer(child) for child in children]
        assert set(said) <= {"done", "Retry"}, said
        for child, word in zip(children, said, strict=True):
            if word == "Retry":
                ask(child, [path], "made_up", day, "race")
                assert answer(child) == "done"
        found = rows_of_home(tables)
        for name, frame in expected.items():
            assert_frame_equal(found[name], frame if number else frame.filter(pl.col("day").cast(pl.String) == day))
    for child in children:
        stop(child)
