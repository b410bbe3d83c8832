"""The warehouse: the only package that knows Iceberg, catalogs and paths.

`scan` reads a table as a lazy frame; `overwrite` and `replace` make the rows of one slice exactly these, in one
commit; `stage` and `staged_rows` take them from mapped shards; `erase` and `maintain` keep the tables in order;
`connect` opens DuckDB over tables and views.
"""

from pipeline.warehouse.catalog import STORE, close, create, names, scan, snapshot, table, widen
from pipeline.warehouse.erase import (
    discard,
    erase,
    filter_exactly,
    history,
    purge,
    refuse_unknown_states,
    rewrite,
    strays,
)
from pipeline.warehouse.query import checks, connect, query, read, run_check
from pipeline.warehouse.scratch import attempt, stage
from pipeline.warehouse.search import Place, search, spellings
from pipeline.warehouse.upkeep.maintain import maintain
from pipeline.warehouse.upkeep.recovery import Recovered, backup, find_damage, recover
from pipeline.warehouse.upkeep.sweep import sweep
from pipeline.warehouse.write import bytes_written, overwrite, replace, slice_of, staged_rows

__all__ = [
    "STORE",
    "Place",
    "Recovered",
    "attempt",
    "backup",
    "bytes_written",
    "checks",
    "close",
    "connect",
    "create",
    "discard",
    "erase",
    "filter_exactly",
    "find_damage",
    "history",
    "maintain",
    "names",
    "overwrite",
    "purge",
    "query",
    "read",
    "recover",
    "refuse_unknown_states",
    "replace",
    "rewrite",
    "run_check",
    "scan",
    "search",
    "slice_of",
    "snapshot",
    "spellings",
    "stage",
    "staged_rows",
    "strays",
    "sweep",
    "table",
    "widen",
]
