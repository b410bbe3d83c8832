"""The warehouse: the only package that knows Iceberg, catalogs and paths.

`scan` reads a table as a lazy frame; `overwrite` and `replace` make the rows of one slice exactly these, in one
commit; `stage` and `scan_staged` take them from mapped shards; `erase` and `maintain` keep the tables in order;
`connect` opens DuckDB over tables and views.
"""

from pipeline.warehouse.catalog import STORE, align, close, create, get_snapshot_id, list_tables, load_table, scan
from pipeline.warehouse.corpus import make_corpus
from pipeline.warehouse.erase import (
    discard,
    erase,
    filter_exactly,
    find_strays,
    lock_erasures,
    purge,
    refuse_unknown_states,
    rewrite,
    scan_history,
)
from pipeline.warehouse.query import compare_contracts, connect, list_checks, query, read, run_check
from pipeline.warehouse.scratch import create_attempt, stage
from pipeline.warehouse.search import Place, list_spellings, search
from pipeline.warehouse.upkeep.maintain import maintain
from pipeline.warehouse.upkeep.recovery import Recovered, back_up, find_damage, recover
from pipeline.warehouse.upkeep.sweep import sweep
from pipeline.warehouse.write import count_bytes_written, describe_writes, make_slice, overwrite, replace, scan_staged
