"""The ledger's tables: `answers` by the request's key, `calls` with their cost, `claims` in flight, `batches`."""

import os
import socket
import sqlite3
import uuid
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import sqlalchemy as sa
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_fixed

META = sa.MetaData()
_KEY = ("key", sa.String(64))
_INTEGERS = "attempt status retries input_tokens output_tokens requests"
_REALS = "answered_at cost_usd began_at ended_at lease reserved_usd changed_at"
_TYPES: dict[str, Any] = dict.fromkeys(_INTEGERS.split(), sa.Integer) | dict.fromkeys(_REALS.split(), sa.Double)
_RACES = (sa.exc.OperationalError, sa.exc.ProgrammingError, sa.exc.IntegrityError, sqlite3.OperationalError)


def _define(name: str, key: tuple[str, Any], required: str, optional: str, *indexes: Any) -> sa.Table:
    """Define a table by its key, the columns that always have a value, and those that may be null; most are text."""
    nullable = dict.fromkeys(required.split(), False) | dict.fromkeys(optional.split(), True)
    columns = [sa.Column(column, _TYPES.get(column, sa.Text), nullable=null) for column, null in nullable.items()]
    return sa.Table(name, META, sa.Column(*key, primary_key=True), *columns, *indexes)


answers = _define(
    "answers",
    _KEY,
    "model prompt prompt_version messages params attempt mode response run_id answered_at",
    "revision served_model finish_reason input_tokens output_tokens logprobs",
)
calls = _define(
    "calls",
    ("id", sa.Integer),
    "run_id model mode outcome retries began_at ended_at",
    "status detail input_tokens output_tokens cost_usd guess",
    sa.Column(*_KEY, nullable=False),
    sa.Index("calls_of_run", "run_id", "cost_usd"),
    sa.Index("calls_of_key", "key"),
)
claims = _define(
    "claims",
    _KEY,
    "owner run_id lease reserved_usd",
    "request",
    sa.Index("claims_of_owner", "owner"),
    sa.Index("claims_of_run", "run_id", "reserved_usd"),
)
batches = _define(
    "batches", ("id", sa.String(32)), "run_id owner model state requests changed_at", "file_id provider_id detail"
)


@retry(retry=retry_if_exception_type(_RACES), stop=stop_after_attempt(5), wait=wait_fixed(0.2), reraise=True)
def create(engine: sa.Engine) -> None:
    """Create the tables that are absent; another process may do the same."""
    META.create_all(engine)
    for index in calls.indexes:  # a ledger of an earlier version has the table without them
        index.create(engine, checkfirst=True)
    for table, name in (("calls", "guess"), ("answers", "logprobs")):
        if name not in {column["name"] for column in sa.inspect(engine).get_columns(table)}:
            with engine.begin() as con:
                con.execute(sa.text(f"alter table {table} add column {name} text"))


def create_name() -> str:
    """Create an owner's name: this machine, this process, its start, and a number that each owner has for itself."""
    return f"{_machine()}:{os.getpid()}:{_start_time(os.getpid())}:{uuid.uuid4().hex[:8]}"


def has_ended(name: str) -> bool:
    """Return whether an owner was a process of this machine that has ended."""
    machine, _, rest = name.partition(":")
    if machine != _machine():
        return False
    pid, start_time = rest.split(":")[:2]
    return _start_time(int(pid)) != start_time


@cache
def _machine() -> str:
    """Name this machine, or this container of it: process ids mean nothing across their borders."""
    space = Path("/proc/self/ns/pid")
    return f"{socket.gethostname()}/{space.readlink() if space.is_symlink() else ''}".replace(":", "")


def _start_time(pid: int) -> str:
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return "" if stat[0] in "ZX" else stat[19]
    with suppress(psutil.Error):
        return "" if Path("/proc/self/stat").is_file() else f"{psutil.Process(pid).create_time():.0f}"
    return ""
