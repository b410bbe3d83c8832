"""What is in the tables."""

import polars as pl

from pipeline import warehouse
from pipeline.errors import BadInput


def counts() -> pl.DataFrame:
    """Each table with its rows, days and sources."""
    rows = []
    for name in warehouse.names():
        frame = warehouse.scan(name)
        columns = frame.collect_schema()
        picked = [pl.len().alias("rows")]
        picked += [pl.col(c).n_unique().alias(f"{c}s") for c in ("day", "source") if c in columns]
        try:
            found = frame.select(picked).collect().row(0, named=True)
        except (OSError, pl.exceptions.ComputeError) as error:
            raise BadInput(
                f"{name}: a data file cannot be read; `undertone check --deep` names what is missing or damaged, and "
                "what to import again"
            ) from error
        rows.append({"table": name, "rows": found["rows"], "days": found.get("days"), "sources": found.get("sources")})
    kinds = {"table": pl.String, "rows": pl.Int64, "days": pl.Int64, "sources": pl.Int64}
    return pl.DataFrame(rows, schema=kinds)
