"""Upkeep beside everything else: writes in flight, damage, kills, a second upkeep; what it may not do."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from pyiceberg.table.statistics import StatisticsFile
from pyiceberg.types import StringType

from pipeline import warehouse
from pipeline.errors import BadInput, Retry
from pipeline.tasks import upkeep as runs
from pipeline.tasks.record.retry import retry
from pipeline.warehouse import lineage, write
from pipeline.warehouse.files import path_of
from pipeline.warehouse.upkeep import check, compact, maintain, sweep
from pipeline.warehouse.upkeep.limits import Limits
from tests.support.filled import DAY, NEXT, filled

NOW = timedelta(0)
EAGER = Limits(keep=NOW, quiet=NOW, files=1, manifests=2)
BEFORE = timedelta(seconds=-5)  # a grace that protects nothing


def put(*texts: str, source: str = "weibo", day: Any = DAY, name: str = "comments") -> None:
    """Make the slice a comment a text."""
    rows = filled(name, *({"text": t, "source": source, "day": day, "origin": t} for t in texts))
    warehouse.overwrite(name, {"source": source, "day": day}, rows)


def texts() -> list[str]:
    """The texts in the table."""
    return sorted(warehouse.scan("comments").select("text").collect()["text"])


def files(tables: Path, name: str = "comments") -> set[Path]:
    """All files of a table."""
    return {path for path in (tables / "warehouse" / "undertone" / name).rglob("*") if path.is_file()}


def in_use(name: str = "comments") -> list[Path]:
    """Data files that the table's current state reads."""
    return [Path(path_of(at)) for at in sorted(warehouse.table(name).inspect.files()["file_path"].to_pylist())]


def age(folder: Path) -> None:
    """Make every file below look two days old."""
    then = time.time() - 48 * 3600
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))


def several(*origins: str) -> pl.DataFrame:
    """Articles, a file an origin; returns their rows."""
    for o in origins:
        where = warehouse.slice_of(source="weibo", day=DAY.isoformat(), origin=o)
        warehouse.overwrite("articles", where, filled("articles", {"origin": o, "thread_id": o}))
    return warehouse.scan("articles").sort("origin").collect()


def test_a_write_in_flight_survives(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Upkeep between the writing of a file and its commit takes nothing of it, and the commit goes through."""
    put("one")
    put("two")
    commit = write._Whole.commit_table
    done: list[dict[str, int]] = []

    def late(self: Any, *given: Any) -> Any:
        if not done:
            before = files(tables)
            done.append(warehouse.maintain("comments", EAGER))
            assert {path.name[-14:] for path in before - files(tables)} == {".metadata.json"}
        return commit(self, *given)

    monkeypatch.setattr(write._Whole, "commit_table", late)
    put("other", source="zhihu")
    assert done[0]["snapshots_expired"] == 2  # the first state, and the deletion between the two
    assert done[0]["files_removed"] == 2  # the metadata of these states
    assert texts() == ["other", "two"]


def test_files_are_listed_before_references_are_read(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file so old that grace does not protect it, committed after the listing, is not swept."""
    put("one")
    commit, listed = write._Whole.commit_table, sweep.list_table
    swept: list[int] = []
    done: list[Any] = []

    def late(self: Any, *given: Any) -> Any:
        def then_commit(*where: Any) -> Any:
            found = listed(*where)
            done.append(commit(self, *given))
            return found

        age(tables)
        monkeypatch.setattr(sweep, "list_table", then_commit)
        swept.append(sweep.sweep("comments"))
        return done[0]

    monkeypatch.setattr(write._Whole, "commit_table", late)
    put("other", source="zhihu")
    assert swept == [0]
    assert texts() == ["one", "other"]


@pytest.mark.filterwarnings("ignore:Delete operation did not match")  # filters are not safe in threads
def test_writers_and_upkeep_at_once_lose_nothing(tables: Path) -> None:
    """Two writers, each on slices of its own, and upkeep all the while: every row is there and every file is found."""

    def writer(source: str) -> None:
        for n in range(4):
            retry(lambda n=n: put(f"{source} {n}", source=source, day=(DAY, NEXT)[n % 2]))  # type: ignore[misc]

    def keeper(_: str) -> None:
        for _round in range(3):
            retry(lambda: warehouse.maintain("comments", EAGER))

    with ThreadPoolExecutor(3) as pool:
        work = [pool.submit(writer, "zhihu"), pool.submit(writer, "netease"), pool.submit(keeper, "")]
        for one in work:
            one.result()
    assert texts() == ["netease 2", "netease 3", "zhihu 2", "zhihu 3"]
    assert check.check("comments", footers=True).problems == []


@pytest.mark.filterwarnings("ignore:Delete operation did not match")  # filters are not safe in threads
def test_two_upkeeps_at_once(tables: Path) -> None:
    """Both end, one of them perhaps after trying again, and the table has its rows in one file."""
    rows = several(*"abcd")
    age(tables)
    with ThreadPoolExecutor(2) as pool:
        work = [pool.submit(retry, lambda: warehouse.maintain("articles", EAGER)) for _ in range(2)]
        done = [one.result() for one in work]
    assert sum(d["partitions_compacted"] for d in done) <= 1  # one that tries again tells of its last try
    assert len(in_use("articles")) == 1
    assert check.check("articles", footers=True).problems == []
    assert_frame_equal(warehouse.scan("articles").sort("origin").collect(), rows)


def test_compaction_gives_way_to_a_writer(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice written while its partition is rewritten keeps what was written; the partition is counted as lost."""
    several(*"abc")
    joined = compact._joined

    def slow(handle: Any, group: Any) -> Any:
        made = joined(handle, group)
        monkeypatch.setattr(compact, "_joined", joined)
        where = warehouse.slice_of(source="weibo", day=DAY.isoformat(), origin="b")
        warehouse.overwrite("articles", where, filled("articles", {"origin": "b", "thread_id": "b", "title": "new"}))
        return made

    monkeypatch.setattr(compact, "_joined", slow)
    assert compact.compact("articles", EAGER) == (0, 0, 1)
    assert not [path for path in files(tables, "articles") if path.name.startswith("compact-")]
    assert warehouse.scan("articles").filter(title="new").collect().height == 1
    assert compact.compact("articles", EAGER) == (1, 3, 0)


def test_compaction_gives_way_to_an_erasure(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a file is gone when its turn comes, the copy of those before it goes too; the partition is lost."""
    several(*"abcd")
    joined, made = compact._joined, []

    def gone(handle: Any, group: Any) -> Any:
        if made:
            raise FileNotFoundError
        made.append(joined(handle, group))
        return made[0]

    monkeypatch.setattr(compact, "_binned", lambda small, *_: [small[:2], small[2:]])
    monkeypatch.setattr(compact, "_joined", gone)
    assert compact.compact("articles", EAGER) == (0, 0, 1)
    assert made
    assert not [path for path in files(tables, "articles") if path.name.startswith("compact-")]


def test_compaction_does_not_disturb_other_partitions(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write to another partition during a rewrite, and the rewrite, both land."""
    several(*"abc")
    joined = compact._joined

    def slow(handle: Any, group: Any) -> Any:
        made = joined(handle, group)
        warehouse.overwrite("articles", {"day": NEXT}, filled("articles", {"day": NEXT, "origin": "z"}))
        return made

    monkeypatch.setattr(compact, "_joined", slow)
    assert compact.compact("articles", EAGER) == (1, 3, 0)
    assert sorted(warehouse.scan("articles").collect()["origin"]) == ["a", "b", "c", "z"]


STEPS = [
    (compact, "_joined"), (compact, "_replace_files"), (compact, "merge_manifests"), (sweep, "expire"),
    (sweep, "find_orphans"), (maintain, "remove"), (maintain, "_merge_checksums"),
]  # fmt: skip


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize(("module", "step"), STEPS)
def test_killed_anywhere_the_table_reads(
    tables: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, step: str, is_after: bool
) -> None:
    """Ended before or after each step, the table is sound and has its rows, and the next upkeep does the rest."""
    rows = several(*"abc")
    age(tables)
    true = getattr(module, step)

    def killed(*given: Any, **named: Any) -> Any:
        if is_after:
            true(*given, **named)
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(module, step, killed)
        with pytest.raises(SystemExit):
            warehouse.maintain("articles", EAGER)
    assert check.check("articles", footers=True).problems == []
    assert_frame_equal(warehouse.scan("articles").sort("origin").collect(), rows)
    age(tables)
    done = warehouse.maintain("articles", EAGER)
    assert len(in_use("articles")) == 1
    assert done["snapshots"] >= 1
    assert check.check("articles").snapshots == 1
    assert warehouse.maintain("articles", EAGER)["files_removed"] == 0


def shorten(path: Path) -> None:
    """Cut a file's end off."""
    path.write_bytes(path.read_bytes()[:-7])


def garble(path: Path) -> None:
    """Leave a file its size and no sense."""
    path.write_bytes(b"\x01" * path.stat().st_size)


@pytest.mark.parametrize(
    ("harm", "said"),
    [(Path.unlink, "missing"), (shorten, "bytes, not the"), (garble, "not readable|bytes have changed")],
)
def test_a_damaged_data_file_is_named(tables: Path, harm: Callable[[Path], None], said: str) -> None:
    """A missing, cut or garbled file is an error naming table, partition and file, and nothing is changed."""
    put("one")
    put("two")
    put("other", day=NEXT)
    (bad,) = [path for path in in_use() if pl.read_parquet(path)["text"].to_list() == ["two"]]
    harm(bad)
    before, names = files(tables), warehouse.snapshot("comments")
    with pytest.raises(BadInput, match=f"comments is damaged.*source=weibo/day={DAY}, {bad}: .*({said})"):
        warehouse.maintain("comments", EAGER)
    assert (files(tables), warehouse.snapshot("comments")) == (before, names)
    assert len(check.check("comments", footers=True).problems) == 1


@pytest.mark.parametrize(
    ("harm", "said"), [(Path.unlink, "missing"), (shorten, "bytes, not the"), (garble, "bytes have changed")]
)
@pytest.mark.parametrize("kind", ["manifest", "manifest list"])
def test_a_damaged_manifest_is_named(tables: Path, kind: str, harm: Callable[[Path], None], said: str) -> None:
    """The same of the files that name the data files."""
    put("one")
    current = warehouse.table("comments").current_snapshot()
    assert current is not None
    lists = {"manifest list": current.manifest_list}
    at = lists.get(kind) or current.manifests(warehouse.table("comments").io)[0].manifest_path
    harm(Path(path_of(at)))
    with pytest.raises(BadInput, match=f"comments is damaged.*{kind}, {path_of(at)}: .*({said})"):
        warehouse.maintain("comments", EAGER)


def test_missing_metadata_is_named(tables: Path) -> None:
    """A catalog that names a file of metadata which is not there is told, not a traceback."""
    put("one")
    Path(path_of(warehouse.table("comments").metadata_location)).unlink()
    with pytest.raises(BadInput, match=r"comments is damaged.*metadata"):
        warehouse.maintain("comments", EAGER)


def test_without_footers_only_presence_and_size_are_looked_at(tables: Path) -> None:
    """A garbled file of the right size passes the cheap check."""
    put("one")
    garble(in_use()[0])
    assert check.check("comments").problems == []
    assert len(check.check("comments", footers=True).problems) == 1


def test_a_snapshot_is_kept_from_its_replacement_on(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was current for long and was just replaced may be pinned by a run: its own age does not expire it."""
    put("one")
    pinned = warehouse.snapshot("comments")
    time.sleep(0.05)
    put("two")
    first, last, _ = (entry.timestamp_ms for entry in warehouse.table("comments").metadata.snapshot_log)
    keep = timedelta(milliseconds=(last - first) / 2)

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.fromtimestamp(last / 1000, tz) + later

    monkeypatch.setattr(sweep, "datetime", Later)
    later = timedelta(milliseconds=1)
    sweep.expire("comments", keep)
    assert warehouse.scan("comments", snapshot_id=pinned).collect()["text"].to_list() == ["one"]
    later = keep + timedelta(milliseconds=2)
    assert sweep.expire("comments", keep) > 0
    assert pinned not in {s.snapshot_id for s in warehouse.table("comments").snapshots()}


def test_files_of_other_engines_are_kept(tables: Path) -> None:
    """Statistics that another engine put beside the table are in use, and what lies beside its folders is not ours."""
    put("one")
    handle = warehouse.table("comments")
    folder = Path(path_of(handle.location()))
    (folder / "metadata" / "some.stats").write_bytes(b"puffin")
    (folder / "notes.txt").write_bytes(b"by hand")
    one = StatisticsFile.model_validate(
        {"snapshot-id": warehouse.snapshot("comments"), "statistics-path": f"file://{folder}/metadata/some.stats",
         "file-size-in-bytes": 6, "file-footer-size-in-bytes": 2, "blob-metadata": []}
    )  # fmt: skip
    with handle.update_statistics() as update:
        update.set_statistics(one)
    age(tables)
    assert sweep.sweep("comments") == 0
    assert {"some.stats", "notes.txt"} <= {path.name for path in files(tables)}


def test_links_are_not_followed_out_of_the_table(tables: Path, tmp_path: Path) -> None:
    """Old files behind a link that leads out of the table stay."""
    put("one")
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "precious.parquet").write_bytes(b"not ours")
    (in_use()[0].parent / "link").symlink_to(other)
    age(tables)
    age(other)
    assert sweep.sweep("comments", BEFORE) == 0
    assert (other / "precious.parquet").exists()


def test_nothing_found_is_nothing_swept(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If no file of the table is among those listed, the addresses do not fit, and nothing is swept."""
    put("one")
    age(tables)
    for module in (sweep, lineage):
        monkeypatch.setattr(module, "path_of", lambda at: at)
    with pytest.raises(BadInput, match="nothing was swept"):
        sweep.sweep("comments")


def test_age_is_by_the_stores_clock(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store whose clock is a day behind ours: its files of this minute are young."""
    put("one")
    (young := in_use()[0].with_name("young.parquet")).write_bytes(b"in flight")
    age(tables)  # the store dates everything two days back, the clock file included
    stream = sweep.fs.LocalFileSystem.get_file_info

    def dated(self: Any, what: Any) -> Any:
        if isinstance(what, str) and "clock-" in what:
            os.utime(what, (time.time() - 48 * 3600,) * 2)
        return stream(self, what)

    monkeypatch.setattr(sweep, "open_store", lambda at: (Dated(), path_of(at)))

    class Dated:
        """The local file system, two days behind."""

        def __init__(self) -> None:
            self.true = sweep.fs.LocalFileSystem()

        def get_file_info(self, what: Any) -> Any:
            return dated(self.true, what)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.true, name)

    assert sweep.sweep("comments") == 0
    assert young.exists()


def test_a_running_attempt_keeps_its_first_files(tables: Path) -> None:
    """Scratch goes by attempt: an old file stays as long as the attempt still writes beside it."""
    folder = Path(warehouse.attempt("collect"))
    for name in ("first", "last"):
        (folder / name).write_bytes(b"0")
    age(tables)
    (folder / "last").write_bytes(b"1")
    assert sweep.sweep_scratch() == 0
    age(tables)
    assert sweep.sweep_scratch() == 2


def test_partitions_just_written_rest(tables: Path) -> None:
    """A partition with a file of this hour is left to its writers."""
    several(*"abc")
    assert compact.compact("articles", EAGER._replace(quiet=timedelta(hours=1))) == (0, 0, 0)


def test_large_files_and_budgets_bound_a_compaction(tables: Path) -> None:
    """Files of a quarter of the target stay; the partitions and the bytes of a run are bounded."""
    several(*"abc")
    warehouse.overwrite("articles", {"day": NEXT, "origin": "a"}, filled("articles", {"day": NEXT, "origin": "a"}))
    warehouse.overwrite("articles", {"day": NEXT, "origin": "b"},
                        filled("articles", {"day": NEXT, "origin": "b", "thread_id": "b"}))  # fmt: skip
    size = max(path.stat().st_size for path in in_use("articles"))
    assert compact.compact("articles", EAGER._replace(target=size)) == (0, 0, 0)
    assert compact.compact("articles", EAGER._replace(budget=size)) == (0, 0, 0)
    assert compact.compact("articles", EAGER._replace(partitions=1)) == (1, 3, 0)
    assert compact.compact("articles", EAGER._replace(files=2)) == (0, 0, 0)
    assert compact.compact("articles", EAGER) == (1, 2, 0)
    groups = list(compact._binned([type("F", (), {"file_path": str(n), "file_size_in_bytes": 4}) for n in range(9)],
                                 10, 30))  # type: ignore[misc]  # fmt: skip
    assert [len(group) for group in groups] == [2, 2, 2, 1]


def test_compaction_reads_old_files_by_the_present_schema(tables: Path) -> None:
    """Files from before a column came get it empty; lists stay lists."""
    rows = several(*"ab")
    warehouse.table("articles").update_schema().add_column("extra", StringType()).commit()
    assert compact.compact("articles", EAGER) == (1, 2, 0)
    after = warehouse.scan("articles").sort("origin").collect()
    assert_frame_equal(after.drop("extra"), rows)
    assert after["extra"].null_count() == 2
    for n in "ab":
        where = warehouse.slice_of(day=DAY.isoformat(), source="weibo", text_hash=n * 32)
        warehouse.overwrite("tokens", where, filled("tokens", {"text_hash": n * 32}))
    assert compact.compact("tokens", EAGER) == (1, 2, 0)
    assert warehouse.scan("tokens").collect()["tokens"].to_list() == [["what", "a", "day"]] * 2


def test_small_manifests_are_merged(tables: Path) -> None:
    """A commit a slice leaves a manifest a slice; merged they are one, with the same rows."""
    for n in range(20):  # as many as the table's property asks for
        put(f"text {n}", source=f"site{n}")
    before = texts()
    assert check.check("comments").manifests == 20
    assert compact.merge_manifests("comments", 20) == 0
    assert compact.merge_manifests("comments", 19) == 19
    assert check.check("comments").manifests == 1
    assert texts() == before
    put("anew", source="site3")
    assert texts() == sorted({*before, "anew"} - {"text 3"})


def test_many_snapshots_are_told(
    tables: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Counts over their limits are warned of by name."""
    put("one")
    put("two")
    monkeypatch.setitem(maintain.MANY, "snapshots", 2)
    warehouse.maintain("comments")
    assert "comments has 3 snapshots, more than 2" in caplog.text


def test_a_dry_run_changes_nothing(tables: Path) -> None:
    """What would be done is counted, and no file is touched."""
    several(*"abc")
    several("a")
    age(tables)
    before = files(tables, "articles")
    told = warehouse.maintain("articles", EAGER, dry_run=True)
    assert told["snapshots_expired"] > 0
    assert files(tables, "articles") == before


DEFAULTS = runs.UpkeepParams(
    keep_days=7, grace_hours=24, quiet_hours=1, small_files=4, target_megabytes=256, gigabytes=20, footers=True,
    verify_weeks=4, force=False, dry_run=False,
)  # fmt: skip


@pytest.mark.parametrize("hasty", [{"grace_hours": 23}, {"keep_days": 6.9}])
def test_hasty_limits_are_refused(tables: Path, hasty: Any) -> None:
    """Limits shorter than the longest task or run are BadInput, unless forced; unknown tables too."""
    given: Any = {**DEFAULTS, **hasty}
    with pytest.raises(BadInput, match="force it only"):
        runs.list_tables([], given)
    assert runs.parse_limits({**given, "force": True}) != runs.parse_limits(DEFAULTS)
    assert runs.parse_limits(DEFAULTS) == Limits()
    with pytest.raises(BadInput, match="no table words"):
        runs.list_tables(["words"], DEFAULTS)
    put("one")
    assert runs.list_tables([], DEFAULTS) == ["comments"]
    assert runs.maintain_table("comments", DEFAULTS)["rows"] == 1
    assert runs.maintain_scratch(DEFAULTS)["files_removed"] == 0


def test_expiring_what_another_expired_is_retry(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slower of two expiries changes nothing and says so."""
    for text in ("one", "two"):
        put(text)
    old = sweep.superseded_snapshots(warehouse.table("comments"), NOW)
    sweep.expire("comments", NOW)
    monkeypatch.setattr(sweep, "superseded_snapshots", lambda *_: old)
    with pytest.raises(Retry, match="nothing was expired"):
        sweep.expire("comments", NOW)
    assert [
        a.timestamp_ms <= b.timestamp_ms for a, b in pairwise(warehouse.table("comments").metadata.snapshot_log)
    ] == []
