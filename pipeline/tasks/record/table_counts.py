"""Count the rows, days and sources of the tables."""

import polars as pl

from pipeline import warehouse
from pipeline.errors import BadInput


def count_rows() -> pl.DataFrame:
    """Count the rows, days and sources of each table."""
    schema = {"table": pl.String, "rows": pl.Int64, "days": pl.Int64, "sources": pl.Int64}
    rows = []
    for name in warehouse.list_tables():
        frame = warehouse.scan(name)
        columns = frame.collect_schema()
        values = [pl.col(column).n_unique().alias(f"{column}s") for column in ("day", "source") if column in columns]
        try:
            totals = frame.select(pl.len().alias("rows"), *values).collect()
        except (OSError, pl.exceptions.ComputeError) as error:
            advice = "`undertone check --deep` names what is missing or damaged, and what to import again"
            raise BadInput(f"{name}: a data file cannot be read; {advice}") from error
        rows.append({"table": name, **totals.row(0, named=True)})
    return pl.DataFrame(rows, schema=schema)
