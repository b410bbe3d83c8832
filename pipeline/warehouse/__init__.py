"""The warehouse: the only package that knows Iceberg, catalogs and paths.

`scan` reads a table as a lazy frame; `overwrite` and `replace` make the rows of one slice exactly these, in one
commit; `stage` and `commit` do the same for mapped shards; `erase`, `compact` and `maintain` keep the tables in
order; `connect` opens DuckDB over tables and views.
"""

from pipeline.warehouse.catalog import close, create, names, scan, snapshot, table
from pipeline.warehouse.query import checks, connect, query, run_check
from pipeline.warehouse.scratch import attempt, stage
from pipeline.warehouse.upkeep import compact, erase, maintain
from pipeline.warehouse.write import commit, overwrite, replace, slice_of, staged_rows

__all__ = [
    "attempt",
    "checks",
    "close",
    "commit",
    "compact",
    "connect",
    "create",
    "erase",
    "maintain",
    "names",
    "overwrite",
    "query",
    "replace",
    "run_check",
    "scan",
    "slice_of",
    "snapshot",
    "stage",
    "staged_rows",
    "table",
]
