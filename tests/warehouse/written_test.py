"""What was written is counted for `runs` and logged."""

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline import warehouse
from pipeline.tables import empty
from pipeline.warehouse import write
from tests.support.rows.filled import DAY, filled


def test_a_write_counts_the_bytes_of_its_files(tables: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Counted and logged are the bytes of the table's new files, for each thread apart; an emptied slice has none."""
    caplog.set_level(logging.INFO, logger="pipeline")
    before, partition = warehouse.count_bytes_written(), warehouse.make_slice(source="weibo", day=DAY)
    warehouse.overwrite("comments", partition, filled("comments", {"text": "one"}, {"text": "two"}), "r1")
    size = sum(path.stat().st_size for path in tables.glob("warehouse/**/*.parquet"))
    assert warehouse.count_bytes_written() - before == size > 0
    assert "comments: 2 rows in" in caplog.messages[-1]
    warehouse.overwrite("comments", partition, empty("comments"), "r1")
    with ThreadPoolExecutor(1) as pool:
        pool.submit(write.record_write, "tokens", {"day": "2026-11-19"}, 1, 1000, 0.1, "r1").result()
        assert pool.submit(warehouse.count_bytes_written).result() == 1000
    assert warehouse.count_bytes_written() - before == size
