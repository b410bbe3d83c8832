"""Shards write scratch files; one overwrite makes them the slice."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import warehouse
from pipeline.errors import BadInput, Retry
from pipeline.slices import Staged
from tests.support.rows.filled import DAY, digest, filled
from tests.support.rows.held import held

WEIBO = warehouse.make_slice(source="weibo", day=DAY)


def shard(*ids: str) -> pl.DataFrame:
    """Scores of these comments."""
    return filled("scores", *({"comment_id": i, "model_id": "m", "text_hash": digest(i, 32)} for i in ids))


def commit(staged: Sequence[Staged], name: str = "scores") -> int:
    """Overwrite the slice with the rows of staged files."""
    return warehouse.overwrite(name, WEIBO, warehouse.scan_staged(name, staged))


def test_a_staged_shard_is_invisible_until_the_commit(tables: Path) -> None:
    """Staging writes a file and changes no table; the commit takes all shards at once, those without rows too.

    Repeated, as by a cleared task, it finds its files and changes no row.
    """
    staged = [warehouse.stage("scores", rows) for rows in (shard("a", "b"), shard("c").lazy(), shard())]
    assert [s["rows"] for s in staged] == [2, 1, 0]
    assert warehouse.get_snapshot_id("scores") is None
    for _ in range(2):
        assert commit(staged) == 3
        assert_frame_equal(held("scores"), shard("a", "b", "c"))


def test_a_key_in_two_shards_is_refused(tables: Path) -> None:
    """Keys are checked over all shards together; nothing is written."""
    staged = [warehouse.stage("scores", shard("a", "b")), warehouse.stage("scores", shard("b", "c"))]
    with pytest.raises(BadInput, match=r"scores: the key .* occurs more than once.*'b'"):
        commit(staged)
    assert warehouse.get_snapshot_id("scores") is None


@pytest.mark.parametrize("name", ["scores", "dropped"])
def test_a_shard_given_twice_is_refused(tables: Path, name: str) -> None:
    """The same file twice is BadInput even in a table without a key."""
    staged = warehouse.stage(name, filled(name, {}))
    with pytest.raises(BadInput, match=f"{name}: .*(twice|more than once)"):
        commit([staged, staged], name)
    assert warehouse.get_snapshot_id(name) is None


def test_a_file_with_other_rows_than_staged_changes_nothing(tables: Path) -> None:
    """Where a file lacks rows that its shard staged, the commit is Retry and the table keeps its rows."""
    staged = warehouse.stage("scores", shard("a", "b"))
    with pytest.raises(Retry, match=r"scores: 3 rows were staged and 2 read back"):
        commit([Staged(path=staged["path"], rows=3)])
    assert warehouse.get_snapshot_id("scores") is None


def test_two_attempts_never_share_a_file(tables: Path) -> None:
    """A lost attempt that still writes cannot hit the file of its retry."""
    paths = {warehouse.stage("scores", shard("a"))["path"] for _ in range(5)}
    assert len(paths) == 5
    assert all(path.startswith(f"{tables}/warehouse/_scratch/scores/") for path in paths)
