"""Queries over tables and views."""

import re
import sys
from contextlib import closing
from pathlib import Path
from unittest.mock import MagicMock

import duckdb
import polars as pl
import pytest

from pipeline import warehouse
from pipeline.commands.terminal import files
from pipeline.errors import BadInput
from pipeline.tables import TABLES
from tests.support.rows.filled import DAY, filled

SQL = Path(__file__).parents[2] / "sql"
VIEWS = {path.stem.partition("_")[2]: path for path in sorted((SQL / "views").glob("*.sql"))}
WRITES = """
copy comments to '{folder}/stolen.csv'
copy (select 1) to '/dev/stdout'
explain analyze copy (select 1) to '{folder}/stolen.csv'
export database '{folder}/stolen'
import database '{folder}'
attach '{folder}/new.db' as new
attach ':memory:' as other
create table mine as select * from comments
create temp table mine as select * from comments
explain analyze create table mine as select 1
drop view most_implicit
select 1; select 2
select 1; copy (select 1) to '{folder}/stolen.csv'
begin
prepare mine as select 1
checkpoint
select * from enable_profiling(save_location = '{folder}/profile.json')
select * from enable_logging(storage_path = '{folder}/logs')
""".strip().splitlines()
READS = """
select * from read_csv('{folder}/private.csv')
select * from read_text('{folder}/private.csv')
select * from read_blob('/proc/self/environ')
select * from '{folder}/private.csv'
select * from parquet_scan('{folder}/private.parquet')
select * from parquet_metadata('{folder}/private.parquet')
select * from read_json('{folder}/private.jsonl')
select * from sniff_csv('{folder}/private.csv')
select * from glob('{folder}/*')
select * from read_duckdb('{folder}/private.db')
select * from read_text('/dev/stdin')
select * from read_csv('http://127.0.0.1:1/private.csv')
select * from 's3://bucket/private.parquet'
select json_serialize_plan('select 1') from query('from read_text(''{folder}/private.csv'')')
select * from json_execute_serialized_sql(json_serialize_sql('from read_text(''{folder}/private.csv'')'))
describe select * from read_csv('{folder}/private.csv')
select * from local_frame
select getenv('UNDERTONE_LLM_KEY')
""".strip().splitlines()
SETTINGS = """
set memory_limit = '100GB'
reset memory_limit
pragma memory_limit = '100GB'
set enable_external_access = true
set python_scan_all_frames = true
set python_enable_replacements = true
set temp_directory = '{folder}'
set variable mine = 1
pragma database_list
call duckdb_settings()
use memory
install httpfs
install httpfs from 'http://127.0.0.1:1'
load '{folder}/mine.duckdb_extension'
create secret mine (type s3, key_id 'a', secret 'b')
select * from duckdb_extensions()
""".strip().splitlines()
INJECTION = "x' or 1=1; drop view funnel; --"


@pytest.fixture
def two(tables: Path) -> None:
    """Two comments, one scored."""
    warehouse.overwrite("comments", {"day": DAY}, filled("comments", {"text": "cold here"}, {"text": "hot here"}))
    warehouse.overwrite("scores", {"day": DAY}, filled("scores", {"value": 0.5}))


def test_every_table_and_view_opens_on_empty_tables(tables: Path) -> None:
    """A fresh installation has all of them, without rows; one view holds what a paper says. All checks hold."""
    with closing(warehouse.connect()) as con:
        filled_names = [name for name in (*TABLES, *VIEWS) if con.execute(f"from {name} limit 1").fetchall()]
    assert filled_names == ["paper_errata"]
    names = warehouse.list_checks()
    assert names == sorted(path.stem for path in (SQL / "checks").glob("*.sql"))
    assert {name: warehouse.run_check(name) for name in names} == {name: [] for name in names}


def test_a_query_sees_tables_and_views(two: None) -> None:
    """The rows come back as a frame with the tables' types, as of now; values are bound, not spliced."""
    rows = warehouse.query("select day, text, implicitness from comments_scored")
    assert rows.rows() == [(DAY, "cold here", 0.5)]
    assert rows.schema == {"day": pl.Date, "text": pl.String, "implicitness": pl.Float64}
    assert warehouse.query("select text from comments order by text")["text"].to_list() == ["cold here", "hot here"]
    sql = "select text from comments where text = ?"
    assert warehouse.query(sql, [INJECTION]).height == 0
    warehouse.overwrite("comments", {"day": DAY}, filled("comments", {"text": INJECTION}, {"text": "other"}))
    assert warehouse.query(sql, [INJECTION]).rows() == [(INJECTION,)]
    assert warehouse.query("select ? as a, ? as b", [1, "x"]).rows() == [(1, "x")]


def test_a_query_spills_below_the_home(two: None, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit into memory goes where `maintain` sweeps, never into the working directory."""
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    con = warehouse.connect(memory="48MB")
    many = "select r, text || r as t from comments, range(400000) as n (r) order by t"
    con.execute(f"create temp table sorted as {many}")
    spilt = list((home / "scratch" / "duckdb").glob("*/*"))
    assert con.execute(f"select count(*) from ({many}, r)").fetchall() == [(800_000,)]
    con.close()
    assert spilt
    assert not list(folder.iterdir())
    assert not list((home / "scratch" / "duckdb").glob("*/*"))


def list_loaded(sql: str) -> set[str]:
    """Tables and views that a connection for a query has."""
    return {name for (name,) in warehouse.connect(sql).execute("show tables").fetchall()}


def test_a_query_loads_what_it_names(tables: Path) -> None:
    """Tables that a query names neither itself nor in its views cost nothing; if it names none, all are loaded."""
    for sql in ("select text from Comments", 'select * from "most_implicit"'):
        names = list_loaded(sql)
        assert "comments" in names
        assert not names & {"tokens", "pairs", "label_progress"}
    for sql in (
        "",
        "show tables",
        "select 1 as tokens_",
        "select name from (show tables) where name like 'comments'",
        "select * from information_schema.columns where column_name = 'tokens'",
        "from duckdb_views() -- of comments",
    ):
        assert list_loaded(sql) == {*TABLES, "reference_scales", *VIEWS}, sql


def test_views_are_named_as_their_files_are() -> None:
    """What is loaded for a query is found by name, and a view comes after those that it reads."""
    for number, (name, path) in enumerate(VIEWS.items()):
        sql = path.read_text(encoding="utf-8").lower()
        assert f"create or replace view {name} as" in sql
        assert not [later for later in [*VIEWS][number + 1 :] if re.search(rf"(from|join) {later}\b", sql)]


def test_bad_sql_is_bad_input(two: None) -> None:
    """What DuckDB cannot parse, bind or run, what gives no rows, or columns that no frame has, is BadInput."""
    for sql in (
        "selec 1",
        "select nothing from comments",
        "select * from nowhere",
        "select ?",
        "",
        "select error('no')",
        "select cast(text as int) from comments",
        "select interval 1 day",
        "select [union_value(a := 1)]",
        "select 1 as a, 2 as a",
    ):
        with pytest.raises(BadInput, match="the query"):
            warehouse.query(sql)


@pytest.mark.parametrize("statements", [WRITES, READS, SETTINGS])
def test_a_query_only_reads_tables_and_views(tables: Path, tmp_path: Path, statements: list[str]) -> None:
    """A query writes nothing, reads no file, address, variable or environment, and changes no setting."""
    local_frame = pl.DataFrame({"secret": ["canary"]})
    for suffix in (".csv", ".jsonl", ".parquet"):
        files.write_frames([local_frame], (tmp_path / "private").with_suffix(suffix))
    files_before = sorted(tmp_path.glob("*"))
    for sql in statements:
        with pytest.raises(BadInput, match=r"the query (failed|has|is)") as error:
            warehouse.query(sql.format(folder=tmp_path) + " -- of comments")
        assert "canary" not in str(error.value), sql
        assert sorted(tmp_path.glob("*")) == files_before, sql


def test_a_query_sees_no_password_of_the_environment(two: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB's settings and secrets, which a query may list, hold none."""
    for name in ("http_proxy", "HTTP_PROXY", "AWS_SECRET_ACCESS_KEY", "UNDERTONE_LLM_KEY", "MOTHERDUCK_TOKEN"):
        monkeypatch.setenv(name, "http://me:canary@127.0.0.1:1")
    for source in ("duckdb_settings()", "duckdb_secrets()", "duckdb_variables()", "duckdb_databases()"):
        assert "canary" not in str(warehouse.query(f"select * from {source}").rows())
    assert "canary" not in str(warehouse.query("explain analyze select * from comments").rows())


def test_an_unsafe_query_reads_files_but_never_in_a_task(
    two: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody on a machine of their own lifts the fence; a process of a task cannot."""
    (tmp_path / "mine.csv").write_text("name\nanna\n", encoding="utf-8")
    sql = f"select name from '{tmp_path}/mine.csv'"
    assert warehouse.query(sql, unsafe=True).rows() == [("anna",)]
    monkeypatch.setenv("AIRFLOW_CTX_DAG_ID", "score")
    with pytest.raises(BadInput, match="a task may not run a query that is unsafe"):
        warehouse.query(sql, unsafe=True)


HONEST = """
describe comments
summarize comments
show all tables
from comments
table comments
values (1)
explain select * from most_implicit
pivot comments on lang
select * from (pivot comments on lang);
with recursive n as (select 1 as i union all select i + 1 from n where i < 9) select sum(i) from n
select list_transform([1, 2], lambda x: x + 1), {'a': 1}, map {'a': 1}, regexp_extract('a1', '[0-9]')
select c.text, rank() over (partition by lang order by c.text) from comments c join scores using (comment_id)
select unnest(range(3)), (select count(*) from comments), 'x'::enum ('x'), null, uuid(), time '10:00'
""".strip().splitlines()


def test_an_honest_query_gives_rows(two: None) -> None:
    """Whatever reads tables and views runs, in all forms that DuckDB has for it."""
    assert [sql for sql in HONEST if not warehouse.query(sql).height] == []


def test_every_query_of_the_documents_runs(tables: Path) -> None:
    """What README, the documents and the help show after `undertone query` is right."""
    paths = [SQL.parent / "README.md", *(SQL.parent / "docs").glob("*.md")]
    paths += [path for folder in ("dags", "pipeline") for path in (SQL.parent / folder).rglob("*.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    queries = re.findall(r'undertone query "(.*?)"', text)
    assert len(queries) > 5
    for sql in queries:
        warehouse.query(sql)


def test_rows_come_as_they_are_made(tables: object) -> None:
    """Of a result without end first rows are there at once; what does not fit in memory is BadInput."""
    with closing(warehouse.connect("")) as con:
        batches = warehouse.read(con, "select * from range(1000000000000)")
        assert [next(batches).height, next(batches).height] == [0, 50_000]
    with (
        closing(warehouse.connect("select 1", unsafe=True, memory="30MB")) as con,
        pytest.raises(BadInput, match="the query needs more memory than it may take; select fewer days"),
    ):
        list(warehouse.read(con, "select list(i) from range(20000000) as t(i)"))


def test_a_check_gives_at_most_so_many_rows(two: None) -> None:
    """Violating rows come as dictionaries, five at most; the message about an unknown check lists those there are."""
    scores = filled("scores", *({"comment_id": f"x{i}"} for i in range(9)))
    warehouse.overwrite("scores", {"day": DAY}, scores)
    rows = warehouse.run_check("scores_have_comments")
    assert [set(row) for row in rows] == [{"source", "day", "comment_id", "metric"}] * 5
    with pytest.raises(BadInput, match=r"no check '\.\./views/30_holes'; there are cloze_items_have_targets, comments"):
        warehouse.run_check("../views/30_holes")


def test_a_damaged_file_is_named_without_a_traceback(two: None, home: Path) -> None:
    """What pyarrow tells DuckDB of the code that read the file is cut, for a query and for `browse`."""
    (path,) = home.rglob("undertone/comments/data/**/*.parquet")
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(BadInput, match=r'^the query failed: .*"PAR1" or "PARE" in footer, got ".*" instead$'):
        warehouse.query("select text from comments")
    with pytest.raises(BadInput, match=r"(?s)^the comments cannot be read: .* instead; `undertone check --deep`"):
        warehouse.make_corpus()


def test_a_corpus_beyond_memory_is_named(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """More comments than `browse` may hold end with what to do; the draft is removed."""
    warehouse.create()
    con = MagicMock()
    con.execute.side_effect = duckdb.OutOfMemoryException("could not allocate block")
    monkeypatch.setattr(sys.modules["pipeline.warehouse.query"], "connect", lambda *_, **_options: con)
    with pytest.raises(BadInput, match=r"do not fit in the [2-8]GB"):
        warehouse.make_corpus()
    assert not [*home.rglob("*.duckdb*")]
