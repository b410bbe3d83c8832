"""`undertone query`: limits of time and memory, and what it writes."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from pipeline.commands.operate import query as command
from tests.commands.conftest import Run

BOMBS = """
with recursive t as (select 1 as a union all select a from t) select count(*) from t
select count(*) from range(1000000) a, range(1000000) b
select r from range(100000000000) t(r) order by hash(r)
select list(r) from range(100000000000) t(r)
select repeat('x', 10000000000)
select list_transform(range(10000000000), lambda x: x + 1)
""".strip().splitlines()
# a function that DuckDB does not interrupt
DEAF = "select levenshtein(repeat('a', 300000), repeat('b', 300000)) -- of comments"
# a table whose reading takes long and looks for no interruption, as polars at a store that does not answer
SLOW = """
import sys, time, polars as pl
from pipeline import cli
from pipeline.warehouse import catalog
catalog.scan_widened = lambda name: pl.LazyFrame({"text": ["a"]}).map_batches(lambda frame: time.sleep(100) or frame)
cli.main()
"""
MAIN = "from pipeline.cli import main; main()"


@pytest.mark.parametrize("sql", BOMBS)
def test_a_query_ends_in_time_and_memory(tables: Path, run: Run, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would run for ever or take all memory ends with one error that says so."""
    monkeypatch.setattr(command, "GRACE", 60)  # else it may end this process
    timer = time.monotonic()
    result = run("query", f"{sql} -- of comments", "--format", "csv", "--timeout", "1", "--memory", "0.6").check(2)
    assert time.monotonic() - timer < 60
    limits = "longer than 1 s|more than 0.6 GB|more memory than it may take|string of size|Lists larger"
    assert re.search(limits, result.err)


@pytest.mark.parametrize(
    ("code", "sql", "limit"),
    [(MAIN, DEAF, ("--timeout", "1")),
     (MAIN, "select list_reduce(range(100000000), lambda x, y: x + y) -- of comments", ("--memory", "0.3")),
     (SLOW, "select * from comments", ("--timeout", "1"))],
)  # fmt: skip
def test_work_that_cannot_be_interrupted_ends_with_the_process(
    tables: Path, tmp_path: Path, code: str, sql: str, limit: tuple[str, str]
) -> None:
    """Where DuckDB or polars does not look for a limit, the command ends all the same and leaves nothing behind."""
    command = [sys.executable, "-c", code, "query", sql, "-o", str(tmp_path / "rows.csv"), *limit]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 2
    assert f"give it more by {limit[0]}" in result.stderr
    assert not list(tmp_path.glob("*rows.csv*"))
    assert not list((tables / "scratch" / "duckdb").iterdir())


@pytest.mark.parametrize("sql", [DEAF, f"{BOMBS[0]} -- of comments"])
def test_ctrl_c_ends_a_query(tables: Path, sql: str) -> None:
    """A person who presses Ctrl-C has the prompt back."""
    code = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler); {MAIN}"
    with subprocess.Popen([sys.executable, "-c", code, "query", sql], stderr=subprocess.PIPE, text=True) as process:
        while not (tables / "scratch" / "duckdb").exists():
            time.sleep(0.05)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, message = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in message


def test_rows_go_to_a_file(tables: Path, run: Run, tmp_path: Path) -> None:
    """csv, JSON Lines and Parquet get every row, batch after batch; another ending is refused."""
    sql = "select range as n, 'a' || range as word from range(120000)"
    for suffix in ("csv", "jsonl", "parquet"):
        assert run("query", sql, "-o", tmp_path / f"rows.{suffix}").code == 0
    expected = pl.DataFrame({"n": range(120_000)}).with_columns(word=pl.format("a{}", "n"))
    assert pl.read_csv(tmp_path / "rows.csv").equals(expected)
    assert pl.read_ndjson(tmp_path / "rows.jsonl").equals(expected)
    assert pl.read_parquet(tmp_path / "rows.parquet").equals(expected)
    assert run("query", "select 1", "-o", tmp_path / "rows.txt").code == 2


def test_what_a_table_cannot_show_is_said(tables: Path, run: Run) -> None:
    """The terminal gets a thousand rows and a hint how to get all; a csv says that it cannot hold a struct."""
    result = run("query", "select * from range(1001)")
    assert "the first 1,000 rows; --format csv, --json or -o FILE" in result.err
    assert len(result.out.splitlines()) == 1 + 1000
    assert run("query", "select * from range(1000)").err == ""
    sql = "select {'a': 1} as pair, 'nan'::double as x, '-inf'::float as y"
    run("query", sql, "--format", "csv").check(2, "write JSON or Parquet")
    assert run("query", sql, "--json").json == {"pair": {"a": 1}, "x": None, "y": None}


def test_unsafe_is_refused_in_a_task(tables: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--unsafe` lifts the fence on a machine of one's own, never where Airflow runs a task."""
    assert run("query", "select 1; select 2 as second", "--unsafe", "--json").out == '{"second": 2}\n'
    monkeypatch.setenv("AIRFLOW_CTX_DAG_ID", "score")
    run("query", "select 1", "--unsafe").check(2, "a task may not run a query that is unsafe")
