"""The ledger's tables, and how they are made where they are not.

`answers` holds each answer once, by the request's key; `calls` every call, what became of it and what it cost, `guess`
saying why that is a guess where it is one; `claims` who is asking what just now, and what was set aside for it;
`batches` what a provider was handed as a batch.
"""

import sqlite3
import time

import sqlalchemy as sa

META = sa.MetaData()
_text, _real, _int = sa.Text, sa.Double, sa.Integer
answers = sa.Table(
    "answers", META, sa.Column("key", sa.String(64), primary_key=True),
    *[sa.Column(name, _text, nullable=False) for name in ("model", "prompt", "prompt_version", "messages", "params")],
    sa.Column("revision", _text), sa.Column("attempt", _int, nullable=False), sa.Column("mode", _text, nullable=False),
    sa.Column("response", _text, nullable=False), sa.Column("served_model", _text), sa.Column("finish_reason", _text),
    sa.Column("input_tokens", _int), sa.Column("output_tokens", _int), sa.Column("run_id", _text, nullable=False),
    sa.Column("answered_at", _real, nullable=False),
)  # fmt: skip
calls = sa.Table(
    "calls", META, sa.Column("id", _int, primary_key=True), sa.Column("key", sa.String(64), nullable=False),
    sa.Column("run_id", _text, nullable=False), sa.Column("model", _text, nullable=False),
    sa.Column("mode", _text, nullable=False), sa.Column("outcome", _text, nullable=False), sa.Column("status", _int),
    sa.Column("detail", _text), sa.Column("retries", _int, nullable=False), sa.Column("input_tokens", _int),
    sa.Column("output_tokens", _int), sa.Column("cost_usd", _real), sa.Column("began_at", _real, nullable=False),
    sa.Column("ended_at", _real, nullable=False), sa.Column("guess", _text),
    sa.Index("calls_of_run", "run_id", "cost_usd"), sa.Index("calls_of_key", "key"),
)  # fmt: skip
claims = sa.Table(
    "claims", META, sa.Column("key", sa.String(64), primary_key=True), sa.Column("owner", _text, nullable=False),
    sa.Column("run_id", _text, nullable=False), sa.Column("lease", _real, nullable=False),
    sa.Column("reserved_usd", _real, nullable=False), sa.Column("request", _text),
    sa.Index("claims_of_owner", "owner"), sa.Index("claims_of_run", "run_id", "reserved_usd"),
)  # fmt: skip
batches = sa.Table(
    "batches", META, sa.Column("id", sa.String(32), primary_key=True), sa.Column("run_id", _text, nullable=False),
    sa.Column("owner", _text, nullable=False), sa.Column("model", _text, nullable=False),
    sa.Column("state", _text, nullable=False), sa.Column("requests", _int, nullable=False),
    sa.Column("file_id", _text), sa.Column("provider_id", _text), sa.Column("detail", _text),
    sa.Column("changed_at", _real, nullable=False),
)  # fmt: skip


def create(engine: sa.Engine) -> None:
    """Make the tables; another process may be at it."""
    for left in reversed(range(5)):
        try:
            META.create_all(engine)
            for index in calls.indexes:  # a ledger of an earlier version has the table without them
                index.create(engine, checkfirst=True)
            if "guess" not in {column["name"] for column in sa.inspect(engine).get_columns("calls")}:
                with engine.begin() as con:
                    con.execute(sa.text("alter table calls add column guess text"))
        except (sa.exc.OperationalError, sa.exc.ProgrammingError, sa.exc.IntegrityError, sqlite3.OperationalError):
            if not left:
                raise
            time.sleep(0.2)
        else:
            return
