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
    """Staging changes no table; the commit takes all shards at once, empty ones too, and may be repeated."""
    staged = [warehouse.stage("scores", rows) for rows in (shard("a", "b"), shard("c").lazy(), shard())]
    assert [s["rows"] for s in staged] == [2, 1, 0]
    assert warehouse.get_snapshot_id("scores") is None
    for _ in range(2):
        assert commit(staged) == 3
        assert_frame_equal(held("scores"), shard("a", "b", "c"))


def test_shards_that_do_not_fit_are_refused(tables: Path) -> None:
    """A key in two shards, a shard given twice, also of a table without a key, or lost rows: nothing is written."""
    first, second = (warehouse.stage("scores", shard(*ids)) for ids in ("ab", "bc"))
    without_key = warehouse.stage("dropped", filled("dropped", {}))
    cases = [
        ([first, second], "scores", BadInput, r"scores: the key .* occurs more than once.*'b'"),
        ([first, first], "scores", BadInput, "scores: .*twice"),
        ([without_key, without_key], "dropped", BadInput, "dropped: .*twice"),
        ([Staged(path=first["path"], rows=3)], "scores", Retry, "scores: 3 rows were staged and 2 read back"),
    ]
    for staged, name, error, message in cases:
        with pytest.raises(error, match=message):
            commit(staged, name)
        assert warehouse.get_snapshot_id(name) is None
    paths = {warehouse.stage("scores", shard("a"))["path"] for _ in range(5)}  # no attempt has the file of another
    assert len([path for path in paths if path.startswith(f"{tables}/warehouse/_scratch/scores/")]) == 5
