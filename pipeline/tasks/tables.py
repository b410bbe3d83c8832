"""What is in the tables."""

import polars as pl

from pipeline import warehouse


def counts() -> pl.DataFrame:
    """Each table with its rows, days and sources."""
    rows = []
    for name in warehouse.names():
        frame = warehouse.scan(name)
        columns = frame.collect_schema()
        picked = [pl.len().alias("rows")]
        picked += [pl.col(c).n_unique().alias(f"{c}s") for c in ("day", "source") if c in columns]
        found = frame.select(picked).collect().row(0, named=True)
        rows.append({"table": name, "rows": found["rows"], "days": found.get("days"), "sources": found.get("sources")})
    kinds = {"table": pl.String, "rows": pl.Int64, "days": pl.Int64, "sources": pl.Int64}
    return pl.DataFrame(rows, schema=kinds)
