"""Compaction: files and manifests are few, and it gives way to everything else."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal
from pyiceberg.types import StringType

from pipeline import warehouse
from pipeline.warehouse.upkeep import check
from pipeline.warehouse.upkeep import compact as compacting
from pipeline.warehouse.upkeep.compact import compact, merge_manifests
from pipeline.warehouse.upkeep.limits import Limits
from tests.support.rows.filled import DAY, NEXT, filled
from tests.support.rows.held import data_files, held, list_files, put_articles, texts, write

EAGER = Limits(keep=timedelta(0), quiet=timedelta(0), files=1, manifests=2)


def fresh_files() -> list[Path]:
    """Files that compactions of the articles have written."""
    return [path for path in list_files("articles") if path.name.startswith("compact-")]


def test_compacting_makes_one_file_a_partition(tables: Path) -> None:
    """Three files of a day become one with the same rows, other days stay, and a later slice is replaced as ever."""
    put_articles("a", "b", "c")
    rows = put_articles("a", day=NEXT)
    before = set(data_files("articles"))
    assert len(before) == 4
    assert compact("articles", EAGER) == (1, 3, 0)
    assert len(data_files("articles")) == 2
    assert len(before & set(data_files("articles"))) == 1
    assert_frame_equal(held("articles"), rows)
    assert compact("articles", EAGER) == (0, 0, 0)
    put_articles("b", title="new")
    assert held("articles").filter(title="new").select("origin", "thread_id").rows() == [("b", "b")]
    assert held("articles").height == rows.height
    for source in ("weibo", "zhihu"):
        partition = {"day": DAY, "source": source, "origin": "test", "step": "collect"}
        warehouse.overwrite("runs", partition, filled("runs", {"source": source}))
    rows = held("runs")
    assert compact("runs", EAGER) == (1, 2, 0)
    assert len(data_files("runs")) == 1
    assert_frame_equal(held("runs"), rows)


def test_compaction_gives_way_to_a_writer(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice written while its partition is rewritten keeps what was written; the partition is counted as lost."""
    put_articles(*"abc")
    join = compacting._join_files

    def join_late(handle: Any, group: Any) -> Any:
        file = join(handle, group)
        monkeypatch.setattr(compacting, "_join_files", join)
        put_articles("b", title="new")
        return file

    monkeypatch.setattr(compacting, "_join_files", join_late)
    assert compact("articles", EAGER) == (0, 0, 1)
    assert fresh_files() == []
    assert held("articles").filter(title="new").height == 1
    assert compact("articles", EAGER) == (1, 3, 0)


def test_compaction_gives_way_to_an_erasure(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a file is gone when its turn comes, the copy of those before it goes too; the partition is lost."""
    put_articles(*"abcd")
    join, files = compacting._join_files, []

    def join_once(handle: Any, group: Any) -> Any:
        if files:
            raise FileNotFoundError
        files.append(join(handle, group))
        return files[0]

    monkeypatch.setattr(compacting, "_group", lambda small, *_: [small[:2], small[2:]])
    monkeypatch.setattr(compacting, "_join_files", join_once)
    assert compact("articles", EAGER) == (0, 0, 1)
    assert files
    assert fresh_files() == []


def test_compaction_does_not_disturb_other_partitions(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write to another partition during a rewrite, and the rewrite, both land."""
    put_articles(*"abc")
    join = compacting._join_files
    monkeypatch.setattr(compacting, "_join_files", lambda *given: (join(*given), put_articles("z", day=NEXT))[0])
    assert compact("articles", EAGER) == (1, 3, 0)
    assert held("articles")["origin"].sort().to_list() == ["a", "b", "c", "z"]


def test_large_files_and_budgets_bound_a_compaction(tables: Path) -> None:
    """Files of a quarter of the target and partitions of this hour stay; partitions and bytes of a run are bounded."""
    put_articles(*"abc")
    put_articles(*"ab", day=NEXT)
    size = max(path.stat().st_size for path in data_files("articles"))
    for limits in ({"quiet": timedelta(hours=1)}, {"target": size}, {"budget": size}):
        assert compact("articles", EAGER._replace(**limits)) == (0, 0, 0)
    assert compact("articles", EAGER._replace(partitions=1)) == (1, 3, 0)
    assert compact("articles", EAGER._replace(files=2)) == (0, 0, 0)
    assert compact("articles", EAGER) == (1, 2, 0)
    files = [type("F", (), {"file_path": str(n), "file_size_in_bytes": 4}) for n in range(9)]
    groups = compacting._group(files, 10, 30)
    assert [len(group) for group in groups] == [2, 2, 2, 1]


def test_compaction_reads_old_files_by_the_present_schema(tables: Path) -> None:
    """Files from before a column came get it empty; lists stay lists."""
    rows = put_articles(*"ab")
    warehouse.load_table("articles").update_schema().add_column("extra", StringType()).commit()
    assert compact("articles", EAGER) == (1, 2, 0)
    assert_frame_equal(held("articles").drop("extra"), rows)
    assert held("articles")["extra"].null_count() == 2
    for n in "ab":
        partition = {"day": DAY, "source": "weibo", "text_hash": n * 32}
        warehouse.overwrite("tokens", partition, filled("tokens", {"text_hash": n * 32}))
    assert compact("tokens", EAGER) == (1, 2, 0)
    assert held("tokens")["tokens"].to_list() == [["what", "a", "day"]] * 2


def test_small_manifests_are_merged(tables: Path) -> None:
    """A commit a slice leaves a manifest a slice; merged they are one, with the same rows."""
    for n in range(20):  # as many as the table's property asks for
        write(f"text {n}", source=f"site{n}")
    before = texts()
    assert check.check("comments").manifests == 20
    assert merge_manifests("comments", 20) == 0
    assert merge_manifests("comments", 19) == 19
    assert check.check("comments").manifests == 1
    assert texts() == before
    write("new", source="site3")
    assert texts() == sorted({*before, "new"} - {"text 3"})
