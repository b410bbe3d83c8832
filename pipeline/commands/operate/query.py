"""`undertone query`: the rows of one select, within limits of time and memory, to the terminal or a file."""

import os
import re
import shutil
import threading
import time
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal
from uuid import uuid4

import duckdb
import psutil
from typer import Argument, Option

from pipeline import settings, warehouse
from pipeline.commands.terminal import console, files
from pipeline.commands.terminal.options import Json
from pipeline.errors import BadInput
from pipeline.tasks.impscore import references

WRITES = (".csv", ".tsv", ".jsonl", ".parquet")
SHOWN = 1_000  # rows of a table for people
GRACE = 1.0  # seconds for DuckDB to stop when interrupted; some of its functions do not look


def query(
    sql: Annotated[str, Argument(help="One select in DuckDB's dialect, over tables and views.")],
    as_json: Json = False,
    format_: Annotated[
        Literal["table", "csv", "json"],
        Option("--format", help="A table, csv that is safe for spreadsheets, or one JSON object a line."),
    ] = "table",
    out: Annotated[Path | None, Option("--out", "-o", help="File to write: csv, tsv, jsonl or parquet.")] = None,
    timeout: Annotated[float, Option(min=0, help="Seconds after which the query is stopped; 0: never.")] = 300,
    memory: Annotated[float, Option(min=0.1, help="Gigabytes that the query may take.")] = 3,
    unsafe: Annotated[bool, Option("--unsafe", help="All of DuckDB: files, network, settings. Not in a task.")] = False,
) -> None:
    """Query the tables with SQL. A query changes nothing: it reads tables and views alone.

    Examples: `undertone query "select * from most_implicit order by rank limit 5"`;
    `undertone query "select * from implicitness_by_source_day" --format csv`;
    `undertone query "select * from comments" -o comments.parquet`
    """
    if out and out.suffix.lower() not in WRITES:
        raise BadInput(f"{out}: a query is written as {', '.join(WRITES)}")
    spill = settings.scratch("duckdb") / uuid4().hex
    connections: list[duckdb.DuckDBPyConnection] = []

    def work() -> None:
        con = warehouse.connect(sql, unsafe=unsafe, memory=f"{memory * 2000 / 3:.0f}MB", spill=spill)
        connections.append(con)
        frames = warehouse.read(con, sql, unsafe=unsafe)
        first = next(frames)
        has_scores = any(re.search("implicitness|percentile|band|value|score", name) for name in first.columns)
        frames = chain([first], frames)
        if as_json or format_ != "table" or out:
            files.write_frames(frames, out, as_json=as_json or format_ == "json")
        else:
            rows = next(frames)
            for frame in frames:
                rows = rows.vstack(frame)
                if rows.height > SHOWN:
                    break
            console.table(rows.head(SHOWN))
            if rows.height > SHOWN:
                console.report(f"these are the first {SHOWN:,} rows; --format csv, --json or -o FILE gives all")
        con.close()
        if has_scores and re.search(r"\b(scores|comments_scored|most_implicit|implicitness)", sql, re.IGNORECASE):
            references.warn_weak(None, references.load_reference(None))

    def clean() -> None:
        shutil.rmtree(spill, ignore_errors=True)
        if out:
            files.draft(out).unlink(missing_ok=True)

    def interrupt() -> None:
        for con in connections:
            con.interrupt()

    _run_limited(work, interrupt, clean, timeout, memory)


def _run_limited(
    work: Callable[[], None], interrupt: Callable[[], None], clean: Callable[[], None], seconds: float, gigabytes: float
) -> None:
    """Do the work in a thread, so that this one can stop it. A thread that does not stop ends with the process."""
    errors: list[BaseException] = []
    finished = threading.Event()

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised below, by the main thread
            errors.append(error)
        finished.set()

    process, timer = psutil.Process(), time.monotonic()
    memory_limit = process.memory_info().rss + gigabytes * 1e9
    threading.Thread(target=run, daemon=True).start()
    try:
        while not finished.wait(0.02):
            if seconds and time.monotonic() - timer > seconds:
                raise BadInput(f"the query ran longer than {seconds:g} s; ask for less, or give it more by --timeout")
            if process.memory_info().rss > memory_limit:
                raise BadInput(f"the query took more than {gigabytes:g} GB; ask for less, or give it more by --memory")
    except BaseException as reason:  # Ctrl-C and SIGTERM, too
        timer = time.monotonic()
        while not finished.wait(0.05) and time.monotonic() - timer < GRACE:
            interrupt()  # again and again: the connection may only now be made
        if not finished.is_set():
            clean()
            os._exit(console.report_failure(reason, is_debug=False))
        raise
    if errors:
        raise errors[0]
