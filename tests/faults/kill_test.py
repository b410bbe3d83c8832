"""An import that is killed anywhere leaves no half slice, and run again it ends as if nothing had happened."""

import random
import select
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import warehouse
from pipeline.sample import pages_of, sources

from .importing import answer, ask, start, stop

DAY = "2026-11-19"
KILLS = {"sample": 5, "csv": 6}
Rows = Callable[[Path], dict[str, pl.DataFrame]]


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """Two homes that are set up: one for an undisturbed import, one for the kills."""
    folders = [tmp_path / "calm", tmp_path / "killed"]
    for folder in folders:
        monkeypatch.setenv("UNDERTONE_HOME", str(folder))
        warehouse.create()
    yield folders
    warehouse.close()


@pytest.mark.parametrize("what", ["sample", "csv"])
def test_a_killed_import_is_finished_by_the_next(
    homes: list[Path], rows_of_home: Rows, comments_csv: Callable[[int], Path], what: str
) -> None:
    """After each kill a slice is empty or whole; after one full run all tables are as undisturbed."""
    calm, killed = homes
    paths = [p for s in sources() for p in pages_of(s)] if what == "sample" else [comments_csv(20_000)]
    source = None if what == "sample" else "made_up"

    child = start(calm)
    began = time.monotonic()
    ask(child, paths, source, DAY, what)
    assert answer(child) == "done"
    took = time.monotonic() - began
    stop(child)
    expected = rows_of_home(calm)

    chance = random.Random(what)
    kills, interrupted = KILLS[what], 0
    for kill in range(kills):
        child = start(killed)
        ask(child, paths, source, DAY, what)
        time.sleep(took * (kill + chance.random()) / kills)
        interrupted += not select.select([child.stdout], [], [], 0)[0]  # it had not said "done"
        stop(child)
        counts = rows_of_home(killed)["comments"].group_by("source").len().rows()
        assert all(n == expected["comments"].filter(source=s).height for s, n in counts)

    assert interrupted >= kills // 2, "most imports ended before they were killed"

    child = start(killed)
    ask(child, paths, source, DAY, what)
    assert answer(child) == "done"
    stop(child)
    found = rows_of_home(killed)
    for name, frame in expected.items():
        assert_frame_equal(found[name], frame)
    assert expected["comments"].height > (250 if what == "sample" else 15_000)
