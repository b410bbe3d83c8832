"""The warehouse: the only package that knows Iceberg, catalogs and paths."""

from pipeline.warehouse.catalog import STORE, align, close, create, get_snapshot_id, load_table, scan
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
from pipeline.warehouse.query import compare_contracts, connect, list_checks, make_corpus, query, read, run_check
from pipeline.warehouse.search import Place, list_spellings, search
from pipeline.warehouse.upkeep.maintain import maintain
from pipeline.warehouse.upkeep.recovery import Recovered, back_up, find_damage, recover
from pipeline.warehouse.upkeep.sweep import sweep
from pipeline.warehouse.write import (
    append,
    count_bytes_written,
    create_attempt,
    describe_writes,
    make_slice,
    overwrite,
    replace,
    scan_staged,
    stage,
)
