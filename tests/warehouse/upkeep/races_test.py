"""Upkeep beside everything else: writes in flight, kills, a second upkeep."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from polars.testing import assert_frame_equal

from pipeline import warehouse
from pipeline.errors import Retry
from pipeline.tasks.record.retry import retry
from pipeline.warehouse import checksums, lineage, write
from pipeline.warehouse.upkeep import check, compact, maintain, sweep
from pipeline.warehouse.upkeep.limits import Limits
from tests.support.rows.filled import DAY, NEXT
from tests.support.rows.held import age, data_files, held, list_files, put_articles, texts
from tests.support.rows.held import write as put

EAGER = Limits(keep=timedelta(0), quiet=timedelta(0), files=1, manifests=2)
in_threads = pytest.mark.filterwarnings("ignore:Delete operation did not match")  # filters are not safe in threads


def test_a_write_in_flight_survives(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Upkeep between the writing of a file and its commit takes nothing of it, and the commit goes through."""
    put("one")
    put("two")
    commit = write._GuardedCatalog.commit_table
    counts: list[dict[str, int]] = []

    def commit_late(self: Any, *given: Any) -> Any:
        if not counts:
            before = list_files()
            counts.append(warehouse.maintain("comments", EAGER))
            assert {path.name[-14:] for path in before - list_files()} == {".metadata.json"}
        return commit(self, *given)

    monkeypatch.setattr(write._GuardedCatalog, "commit_table", commit_late)
    put("other", source="zhihu")
    assert counts[0]["snapshots_expired"] == 2  # the first state, and the deletion between the two
    assert counts[0]["files_removed"] == 2  # the metadata of these states
    assert texts() == ["other", "two"]


def test_files_are_listed_before_references_are_read(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file so old that grace does not protect it, committed after the listing, is not swept."""
    put("one")
    commit, list_table = write._GuardedCatalog.commit_table, lineage.list_table
    swept: list[int] = []
    responses: list[Any] = []

    def sweep_before(self: Any, *given: Any) -> Any:
        def list_and_commit(*place: Any) -> Any:
            files = list_table(*place)
            responses.append(commit(self, *given))
            return files

        age(tables)
        monkeypatch.setattr(lineage, "list_table", list_and_commit)
        swept.append(sweep.sweep("comments"))
        return responses[0]

    monkeypatch.setattr(write._GuardedCatalog, "commit_table", sweep_before)
    put("other", source="zhihu")
    assert swept == [0]
    assert texts() == ["one", "other"]


@in_threads
def test_writers_and_upkeep_at_once_lose_nothing(tables: Path) -> None:
    """Two writers, each on slices of its own, and upkeep all the while: every row is there and every file is found."""

    def write_days(source: str) -> None:
        for n in range(4):
            retry(lambda n=n: put(f"{source} {n}", source=source, day=(DAY, NEXT)[n % 2]))  # type: ignore[misc]

    def tidy(_: str) -> None:
        for _round in range(3):
            retry(lambda: warehouse.maintain("comments", EAGER))

    with ThreadPoolExecutor(3) as pool:
        work = [pool.submit(write_days, "zhihu"), pool.submit(write_days, "netease"), pool.submit(tidy, "")]
        for future in work:
            future.result()
    assert texts() == ["netease 2", "netease 3", "zhihu 2", "zhihu 3"]
    assert check.check("comments", footers=True).problems == []


@in_threads
def test_two_upkeeps_at_once(tables: Path) -> None:
    """Both end, one of them perhaps after trying again, and the table has its rows in one file."""
    rows = put_articles(*"abcd")
    age(tables)
    with ThreadPoolExecutor(2) as pool:
        work = [pool.submit(retry, lambda: warehouse.maintain("articles", EAGER)) for _ in range(2)]
        counts = [future.result()["partitions_compacted"] for future in work]
    assert sum(counts) <= 1  # one that tries again tells of its last try
    assert len(data_files("articles")) == 1
    assert check.check("articles", footers=True).problems == []
    assert_frame_equal(held("articles"), rows)


@pytest.mark.parametrize(
    ("module", "step", "is_after"),
    [
        (compact, "_join_files", False), (compact, "_join_files", True), (compact, "merge_manifests", False),
        (sweep, "expire", False), (sweep, "find_orphans", False), (maintain, "remove", False),
        (checksums, "merge", False), (checksums, "merge", True),
    ],
)  # fmt: skip
def test_killed_anywhere_the_table_reads(
    tables: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, step: str, is_after: bool
) -> None:
    """Ended before or after each step, the table is sound and has its rows, and the next upkeep does the rest."""
    rows = put_articles(*"abc")
    age(tables)
    work = getattr(module, step)

    def kill(*given: Any, **options: Any) -> Any:
        if is_after:
            work(*given, **options)
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(module, step, kill)
        with pytest.raises(SystemExit):
            warehouse.maintain("articles", EAGER)
    assert check.check("articles", footers=True).problems == []
    assert_frame_equal(held("articles"), rows)
    age(tables)
    assert warehouse.maintain("articles", EAGER)["snapshots"] >= 1
    assert len(data_files("articles")) == 1
    assert check.check("articles").snapshots == 1
    assert warehouse.maintain("articles", EAGER)["files_removed"] == 0


def test_expiring_what_another_expired_is_retry(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slower of two expiries changes nothing and says so."""
    for text in ("one", "two"):
        put(text)
    old = sweep.find_superseded(warehouse.load_table("comments"), timedelta(0))
    sweep.expire("comments", timedelta(0))
    monkeypatch.setattr(sweep, "find_superseded", lambda *_: old)
    with pytest.raises(Retry, match="nothing was expired"):
        sweep.expire("comments", timedelta(0))
    assert len(warehouse.load_table("comments").metadata.snapshot_log) == 1
