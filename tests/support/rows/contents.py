"""The rows of all tables, to compare what two runs left."""

import polars as pl

from pipeline import warehouse
from pipeline.tables import PROVENANCE, TABLES


def read_tables() -> dict[str, pl.DataFrame]:
    """Rows of all tables in an order of their own, without what a run took and its name."""
    tables = {}
    for name in TABLES:
        frame = warehouse.scan(name).collect()
        frame = frame.drop(PROVENANCE if name == "runs" else "run_id", strict=False)
        tables[name] = frame.sort([column for column in frame.columns if not frame.schema[column].is_nested()])
    return tables


def check_equal(tables: dict[str, pl.DataFrame], expected: dict[str, pl.DataFrame]) -> None:
    """All expected tables have the same rows."""
    for name, frame in expected.items():
        assert tables[name].equals(frame), name
