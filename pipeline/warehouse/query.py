"""SQL over the tables: DuckDB in process, with the views of `sql/views/` and the checks of `sql/checks/`."""

import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from uuid import uuid4

import polars as pl

from pipeline import settings
from pipeline.errors import BadInput, Missing, check_name
from pipeline.io.hashes import hash_file, hash_text
from pipeline.private import make_folder
from pipeline.score import reference as scales
from pipeline.slices import parse_day
from pipeline.tables import TABLES
from pipeline.warehouse import alignment, catalog
from pipeline.warehouse.erase import lock_erasures

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

MEMORY = "1GB"  # that DuckDB may take; what polars reads for it comes on top
_HALF = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 31  # of this machine's memory, in GB
CORPUS_MEMORY = f"{min(max(_HALF, 2), 3)}GB"  # for `browse`
SPILL = 10 << 30  # bytes of disk that sorts and joins may take, but never more than half of what is free
BATCH = 50_000
_FENCE: dict[str, Any] = {
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}
# DuckDB takes a stream of a table for one row, and would often hold the larger side of a join: it holds the right one
_JOINS = {"disabled_optimizers": "build_side_probe_side"}
_CLOSE = (
    "set http_proxy = ''",  # DuckDB takes it from the environment, perhaps with a password
    "set enable_external_access = false",
    "set lock_configuration = true",
    "begin transaction read only",
)
_SCALES = "reference_scales"  # not stored: made of the files of references
_CATALOG = {"show", "information_schema", "pg_catalog", "sqlite_master"}
_CORPUS = Path(__file__).with_name("corpus.sql")
_OF_CORPUS = ("comments", "articles", "scores", "scores_explained", "projections", "models")


def connect(
    sql: str = "", *, unsafe: bool = False, memory: str = MEMORY, spill: Path | None = None
) -> "duckdb.DuckDBPyConnection":
    """Connect to every table by name, as of now, and every view. Use it alone: cursors do not see them.

    It reads these alone: no file, network, extension or Python variable, no writing, and no setting can be changed;
    `unsafe` allows all that DuckDB can do, for one's own machine. Loading a table costs reads of the catalog and the
    store, so if the query to come (`sql`) names some tables or views, only those and what they are made of are loaded.
    What does not fit into `memory` goes into the folder `spill`, by default a new one below the home.
    """
    import duckdb

    if unsafe and settings.airflow_task():
        raise BadInput("a task may not run a query that is unsafe: it holds secrets; leave unsafe out")
    spill = spill or settings.scratch("duckdb") / uuid4().hex  # by default DuckDB takes the working directory
    make_folder(spill.parent)
    spill_bytes = min(SPILL, shutil.disk_usage(spill.parent).free // 2)
    limits = {"memory_limit": memory, "temp_directory": str(spill), "max_temp_directory_size": f"{spill_bytes}B"}
    con = duckdb.connect(config=limits | _JOINS | ({} if unsafe else _FENCE))
    # named NN_name.sql, so that each comes after those it reads
    paths = sorted(settings.locate_shipped("sql/views").glob("*.sql"))
    views = {path.stem.partition("_")[2]: path.read_text(encoding="utf-8") for path in paths}
    needed = _list_needed(sql, views)
    for name in TABLES:
        if name in needed:
            frame = catalog.scan_widened(name)
            frame.__class__ = _StreamedFrame
            con.register(name, frame)
    if _SCALES in needed:  # of all references: those of the home, and that of the shipped model
        files = [scales.SHIPPED, *settings.references().glob("*/*.json")]
        references = [scales.parse_reference(path.read_text(encoding="utf-8"), str(path)) for path in files]
        con.register(_SCALES, scales.tabulate({(item.name, item.model_id): item for item in references}.values()))
    for statement in (*(view for name, view in views.items() if name in needed), *(() if unsafe else _CLOSE)):
        con.execute(statement)
    return con


class _StreamedFrame(pl.LazyFrame):
    """A lazy frame whose `collect` makes batches: DuckDB calls it, and would hold all rows of a table in memory.

    A lazy frame pushes filters and columns down, and stays right after renames, unlike read_parquet over files.
    """

    def collect(self, *_: Any, **__: Any) -> Any:
        return _Batches(self)


class _Batches(NamedTuple):
    frame: pl.LazyFrame

    @property
    def schema(self) -> pl.Schema:
        return self.frame.collect_schema()

    def to_arrow(self) -> "pa.RecordBatchReader":
        import pyarrow as pa

        schema = pl.DataFrame(schema=self.schema).to_arrow().schema
        frames = self.frame.collect_batches(maintain_order=False, lazy=True)
        tables = (batch.to_arrow().cast(schema) for batch in frames)
        return pa.RecordBatchReader.from_batches(schema, (part for table in tables for part in table.to_batches()))


def _list_needed(sql: str, views: dict[str, str]) -> set[str]:
    """Tables and views that are words of the SQL or of views among them; all if it names none or asks what there is."""
    names, words = {*TABLES, _SCALES, *views}, _list_words(sql)
    if words & _CATALOG or any(word.startswith("duckdb_") for word in words):
        return names
    for name in reversed(views):
        if name in words:
            words |= _list_words(views[name])
    return words & names or names


def _list_words(sql: str) -> set[str]:
    return set(re.findall(r"\w+", sql.lower()))


def query(sql: str, values: Sequence[Any] = (), *, unsafe: bool = False) -> pl.DataFrame:
    """The rows of a SQL query over tables and views; `?` in it stand for `values`. See `connect` for what it may do."""
    with closing(connect(sql, unsafe=unsafe)) as con:
        return pl.concat(read(con, sql, values, unsafe=unsafe))


def read(
    con: "duckdb.DuckDBPyConnection", sql: str, values: Sequence[Any] = (), *, unsafe: bool = False
) -> Iterator[pl.DataFrame]:
    """The rows of a query, batch by batch as DuckDB makes them, the first maybe empty; BadInput if it does not read."""
    import duckdb

    try:
        if not unsafe:
            types = [statement.type.name for statement in con.extract_statements(sql)]
            if len(types) != 1:
                raise BadInput(f"the query has {len(types)} statements; write one select")
            # describe, summarize, show, values and pivot are of these too; DuckDB has no name for the type of a pivot
            if types[0] not in ("SELECT", "EXPLAIN", "MULTI"):
                raise BadInput(f"the query is a statement {types[0].lower()}; it may only read: write one select")
        relation = con.sql(sql, params=list(values))
        if relation is None:  # a statement that gives no rows
            raise BadInput("the query gives no rows; write a select")
        reader = relation.to_arrow_reader(BATCH)
        for column in reader.schema:
            if kind := re.search("interval|union(?=<)", str(column.type)):
                raise BadInput(f"the query gives a column {column.name!r} of type {kind[0]}; cast it to text")
        for batch in chain([reader.schema.empty_table()], reader):
            yield cast("pl.DataFrame", pl.from_arrow(batch))
    except duckdb.OutOfMemoryException as error:
        raise BadInput("the query needs more memory than it may take; select fewer days, sources or columns") from error
    except duckdb.PermissionException as error:
        raise BadInput(f"the query failed: it may read our tables and views alone: {error}") from error
    except (duckdb.Error, pl.exceptions.PolarsError) as error:
        raise BadInput(f"the query failed: {_cut_traceback(error)}") from error


def _cut_traceback(error: Exception) -> str:
    """The message of an error, without the traceback that pyarrow adds where polars cannot read a file."""
    return str(error).partition(" Detail: Python exception")[0].rstrip(".")


def list_checks() -> list[str]:
    """Names of the data checks, one SQL file each."""
    return sorted(path.stem for path in settings.locate_shipped("sql/checks").glob("*.sql"))


def run_check(name: str, day: str | None = None) -> list[dict[str, Any]]:
    """The first rows that violate the check, of one day or of all; none means it holds."""
    path = settings.locate_shipped("sql/checks") / f"{check_name('check', name, list_checks())}.sql"
    violations = query(path.read_text(encoding="utf-8"))
    if day is not None and "day" in violations.columns:  # some checks are about no day
        violations = violations.filter(pl.col("day") == parse_day(day))
    return violations.head(5).to_dicts()


def compare_contracts() -> list[dict[str, str]]:
    """List where Iceberg's metadata of the tables is not as their contracts: a row for each column or other part."""
    return [row for name in TABLES for row in alignment.compare(catalog.load_table(name))]


@lock_erasures()  # so that no erasure misses it
def make_corpus() -> Path:
    """Make the corpus that `undertone browse` reads, if it is not that of the tables as they are now; return its file.

    It is one DuckDB file of comments, scores and articles below the home, without user ids. Texts are not compressed in
    it, so that a search for erased texts finds them; an erasure removes all scratch files. Older ones are removed.
    """
    import duckdb

    hashes = [hash_file(path) for path in (_CORPUS, *sorted(settings.references().glob("*/*.json")))]
    state = (hashes, [catalog.get_snapshot_id(name) for name in _OF_CORPUS])
    folder = make_folder(settings.scratch("browse"))
    path = folder / f"{hash_text(repr(state))[:16]}.duckdb"
    if path.exists():
        path.touch()  # a sweep removes what nobody opened
        return path
    draft = folder / f".draft-{secrets.token_hex(4)}.duckdb"
    address = str(draft).replace("'", "''")
    try:
        with closing(connect(" ".join((*_OF_CORPUS, "comments_scored")), unsafe=True, memory=CORPUS_MEMORY)) as con:
            con.execute("pragma force_compression = 'uncompressed'; set default_null_order = 'nulls_last'")
            con.execute(f"attach '{address}' as corpus")
            con.execute(_CORPUS.read_text(encoding="utf-8"))
            if not con.execute("from corpus.comments limit 1").fetchall():
                raise Missing("there are no comments to browse; run `undertone import FILE` or `undertone collect`")
        draft.chmod(0o600)
        for old in folder.glob("[!.]*"):
            old.unlink(missing_ok=True)
        draft.rename(path)
    except duckdb.OutOfMemoryException as error:
        problem = f"the comments do not fit in the {CORPUS_MEMORY} that `undertone browse` may use"
        advice = "ask with `undertone query`, or import fewer into another UNDERTONE_HOME"
        raise BadInput(f"{problem}; {advice}") from error
    except duckdb.Error as error:
        advice = "`undertone check --deep` names what is missing or damaged, and what to import again"
        raise BadInput(f"the comments cannot be read: {_cut_traceback(error)}; {advice}") from error
    finally:
        for rest in folder.glob(f"{draft.name}*"):
            rest.unlink(missing_ok=True)
    return path
