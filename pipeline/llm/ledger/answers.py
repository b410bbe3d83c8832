"""The ledger of requests to language models: SQL tables, SQLite by default, PostgreSQL for a team.

A key is claimed in the transaction that looks for its answer, and released in the one that records it.
"""

import json
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa

from pipeline.errors import BadInput, Missing
from pipeline.llm.ledger import tables
from pipeline.llm.ledger.cost import Budget, Call
from pipeline.llm.request import Request, dump_json
from pipeline.llm.service.replies import make_printable
from pipeline.private import make_folder
from pipeline.text.redact import mask_secrets

T = TypeVar("T")
PART = 500  # keys of one IN; every database accepts as many
REPEATS = 2  # of a request whose answer is malformed, over all runs
ERASED = "erased"  # in place of the key of a call whose answer was erased
BATCH = "batch:"  # prefix of the owner of a batch's claims
_OF_REPLY = ("outcome", "status", "retries", "input_tokens", "output_tokens", "began_at", "ended_at")
OF_ANSWER = ("response", "served_model", "finish_reason", "input_tokens", "output_tokens", "logprobs")


class Answer(NamedTuple):
    """An answer as it stands in the ledger, with the log probabilities of its last tokens as JSON if asked for."""

    key: str
    response: str
    mode: str
    served_model: str | None = None
    finish_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    logprobs: str | None = None

    @property
    def is_cut(self) -> bool:
        """Whether a limit on tokens cut the answer off."""
        return self.finish_reason == "length"


class Claims(NamedTuple):
    """The keys that the owner may send, and why it may not send the others."""

    claimed: list[str]
    answers: dict[str, Answer]
    given_up: dict[str, str]  # reasons not to send a request again
    owners: dict[str, str]  # of keys that others have claimed
    over_limit: list[str]  # on the cost of the run


@dataclass
class Spending:
    """Sums over calls; `cost_usd` is of the `priced` ones, `guessed_usd` that part of it that no server counted."""

    calls: int
    answered: int
    priced: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    guessed_usd: float = 0.0


_engines: dict[tuple[int, str], sa.Engine] = {}


def open_ledger(uri: str) -> sa.Engine:
    """Open the ledger at an SQLAlchemy address, one engine a process; create its tables if they are absent."""
    process = (os.getpid(), uri)  # a fork must not use its parent's connections
    if process not in _engines:
        _engines[process] = _open(uri)
    return _engines[process]


def close() -> None:
    """Close all ledgers of this process."""
    for process in [process for process in _engines if process[0] == os.getpid()]:
        _engines.pop(process).dispose()


def split(requests: Iterable[Request]) -> Iterator[dict[str, Request]]:
    """Split a stream of requests into parts by key, each key once."""
    keys: set[str] = set()
    part: dict[str, Request] = {}
    for request in requests:
        if (key := request.key) not in keys:
            keys.add(key)
            part[key] = request
        if len(part) == PART:
            yield part
            part = {}
    if part:
        yield part


def look_up(engine: sa.Engine, keys: Collection[str]) -> tuple[dict[str, Answer], dict[str, str]]:
    """Look up answers by key, and why others are not sent again: malformed too often in all runs, or rejected last."""
    with engine.connect() as con:
        return _look_up(con, keys)


def find_unanswered(engine: sa.Engine, requests: Iterable[Request]) -> dict[str, Request]:
    unanswered: dict[str, Request] = {}
    for part in split(requests):
        answers, _ = look_up(engine, part)
        unanswered.update((key, request) for key, request in part.items() if key not in answers)
    return unanswered


def claim(engine: sa.Engine, requests: Mapping[str, Request], budget: Budget, owner: str, lease: float) -> Claims:
    """Claim requests without an answer or a claim in one transaction, while the run stays below its limit on cost."""
    now, is_batch = time.time(), owner.startswith(BATCH)
    reserves = {key: budget.reserve(request, is_batch=is_batch) for key, request in requests.items()}
    with write_transaction(engine) as con:
        answers, given_up = _look_up(con, requests)
        unanswered = {key: r for key, r in requests.items() if key not in answers and key not in given_up}
        claims = Claims([], answers, given_up, book_lost(con, unanswered), [])
        columns = (tables.calls.c.cost_usd, tables.claims.c.reserved_usd) if budget.max_cost is not None else ()
        sums = [sa.select(sa.func.sum(c)).where(c.table.c.run_id == budget.run_id) for c in columns]
        spent = sum(float(con.execute(query).scalar() or 0) for query in sums)
        for key in (key for key in unanswered if key not in claims.owners):
            if budget.max_cost is not None and spent + reserves[key] > budget.max_cost:
                claims.over_limit.append(key)
            else:
                spent += reserves[key]
                claims.claimed.append(key)
        row = {"owner": owner, "run_id": budget.run_id, "lease": now + lease}
        texts = {key: dump_json(requests[key]._asdict()) if is_batch else None for key in claims.claimed}
        if texts:
            rows = [{**row, "key": key, "reserved_usd": reserves[key], "request": text} for key, text in texts.items()]
            con.execute(sa.insert(tables.claims), rows)
    return claims


def record(engine: sa.Engine, calls: Sequence[Call], owner: str, run_id: str) -> None:
    """Commit calls that have ended, with their answers, and remove their claims. The first answer to a key stays."""
    keys = tables.answers.c.key
    with write_transaction(engine) as con:
        for part in _cut(calls):
            rows = []
            for call in part:
                row = {name: getattr(call.reply, name) for name in _OF_REPLY}
                row |= {name: getattr(call, name) for name in ("key", "mode", "cost_usd", "guess")}
                detail = call.reply.detail and make_printable(call.reply.detail)
                rows.append({**row, "run_id": run_id, "model": call.request.model, "detail": detail})
            con.execute(sa.insert(tables.calls), rows)
            answered = {call.key: call for call in reversed(part) if call.reply.outcome == "answered"}
            existing = set(con.execute(sa.select(keys).where(keys.in_(list(answered)))).scalars())
            rows = []
            for call in (call for key, call in answered.items() if key not in existing):
                fields = {name: getattr(call.reply, name) for name in OF_ANSWER}
                stamp = {"key": call.key, "mode": call.mode, "run_id": run_id, "answered_at": call.reply.ended_at}
                rows.append(call.request.as_row() | fields | stamp)
            if rows:
                con.execute(sa.insert(tables.answers), rows)
            is_claim = tables.claims.c.key.in_([call.key for call in part])
            con.execute(sa.delete(tables.claims).where(is_claim, tables.claims.c.owner == owner))


def reclassify(engine: sa.Engine, keys: Sequence[str], run_id: str, outcome: str, new_outcome: str) -> None:
    """Give calls of a run another outcome: `unread` ones do not count as tries of their requests, `malformed` do."""
    c = tables.calls.c
    with write_transaction(engine) as con:
        for part in _cut(keys):
            change = sa.update(tables.calls).where(c.key.in_(part), c.run_id == run_id, c.outcome == outcome)
            con.execute(change.values(outcome=new_outcome))


def release(con: sa.Connection, owner: str) -> int:
    """Remove all claims of an owner; return their number."""
    return con.execute(sa.delete(tables.claims).where(tables.claims.c.owner == owner)).rowcount


def book_lost(con: sa.Connection, requests: Mapping[str, Request]) -> dict[str, str]:
    """Book these requests' claims whose owners ended as lost calls, paid or not; return the owners of the others."""
    now, lost, living = time.time(), [], {}
    for part in _cut(list(requests)):
        for claim in con.execute(sa.select(tables.claims).where(tables.claims.c.key.in_(part))):
            is_batch = claim.owner.startswith(BATCH)
            if claim.lease >= now and (is_batch or not tables.has_ended(claim.owner)):
                living[claim.key] = claim.owner
                continue
            row = {"key": claim.key, "run_id": claim.run_id, "model": requests[claim.key].model, "outcome": "lost"}
            row |= {"mode": "batch" if is_batch else "live", "detail": f"{claim.owner} ended while asking"}
            row |= {"cost_usd": claim.reserved_usd or None, "guess": "its process ended: perhaps it was billed"}
            lost.append({**row, "retries": 0, "began_at": now, "ended_at": now})
    if lost:
        con.execute(sa.insert(tables.calls), lost)
        con.execute(sa.delete(tables.claims).where(tables.claims.c.key.in_([row["key"] for row in lost])))
    return living


def load_claimed(engine: sa.Engine, owner: str) -> dict[str, Request]:
    """Load the requests of a batch, which its claims hold."""
    c = tables.claims.c
    with engine.connect() as con:
        rows = con.execute(sa.select(c.key, c.request).where(c.owner == owner)).all()
    return {row.key: Request(**json.loads(row.request)) for row in rows if row.request}


def forget(engine: sa.Engine, keys: Collection[str], match: Callable[[Sequence[str]], Sequence[bool]]) -> int:
    """Erase answers and claims, by key and where a request or an answer matches; return the number of changed rows.

    Calls stay, as they were paid for, without their key and detail; batches stay without a message that matches.
    `match` returns which of some texts, such as messages as JSON, are to be erased.
    """
    searched = ((tables.answers, ("messages", "response")), (tables.calls, ("detail",)), (tables.claims, ("request",)))
    erased_keys = set(keys)
    for table, names in searched:
        texts = sa.select(table.c.key, *[table.c[name] for name in names])
        with engine.connect() as con:
            for rows in con.execution_options(yield_per=10 * PART).execute(texts).partitions():
                matches = [match([text or "" for text in column]) for column in [*zip(*rows, strict=True)][1:]]
                erased_keys |= {row.key for row, *hits in zip(rows, *matches, strict=True) if any(hits)}
    c = tables.batches.c
    with engine.connect() as con:
        batches = con.execute(sa.select(c.id, c.detail)).all()
    hits = match([row.detail or "" for row in batches])
    quoting = [row.id for row, is_hit in zip(batches, hits, strict=True) if is_hit]
    with write_transaction(engine) as con:
        con.execute(sa.update(tables.batches).where(c.id.in_(quoting)).values(detail=None))
        count = 0
        for part in _cut(sorted(erased_keys)):
            for table in (tables.answers, tables.claims):
                count += con.execute(sa.delete(table).where(table.c.key.in_(part))).rowcount
            bare = sa.update(tables.calls).where(tables.calls.c.key.in_(part), tables.calls.c.key != ERASED)
            count += con.execute(bare.values(key=ERASED, detail=None)).rowcount
    return count


def sum_spending(engine: sa.Engine, run_id: str | None = None, keys: Sequence[str] | None = None) -> Spending:
    """Sum the calls of a run, or of all; of requests with some keys, or of all."""
    c = tables.calls.c
    counts = [sa.func.count(), sa.func.count(sa.case((c.outcome == "answered", 1))), sa.func.count(c.cost_usd)]
    tokens = [sa.func.coalesce(sa.func.sum(column), 0) for column in (c.input_tokens, c.output_tokens)]
    guessed_usd = sa.case((c.guess.is_not(None), c.cost_usd))
    costs = [sa.func.coalesce(sa.func.sum(column), 0.0) for column in (c.cost_usd, guessed_usd)]
    query = sa.select(*counts, *tokens, *costs)
    if run_id is not None:
        query = query.where(c.run_id == run_id)
    queries = [query] if keys is None else [query.where(c.key.in_(part)) for part in _cut(keys or [""])]
    with engine.connect() as con:
        rows = [con.execute(part).one() for part in queries]
    return Spending(*[sum(column) for column in zip(*rows, strict=True)])


@contextmanager
def write_transaction(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Open a transaction during which no other claims or records; what it read still holds when it commits."""
    with engine.execution_options(undertone_writes=True).begin() as con:
        if con.dialect.name == "postgresql":
            con.execute(sa.text("lock table claims in share row exclusive mode"))
        yield con


def _open(uri: str) -> sa.Engine:
    try:
        url = sa.make_url(uri)
        is_sqlite = url.get_backend_name() == "sqlite"
        engine = sa.create_engine(url, connect_args={"timeout": 60} if is_sqlite else {})  # connects to nothing yet
    except (sa.exc.ArgumentError, ValueError):  # the message shows neither the address nor its fault: it has secrets
        raise BadInput("the ledger's address should be one for SQLAlchemy, such as sqlite:////data/ledger.db") from None
    except ImportError as why:
        raise BadInput(f"the ledger's address needs a driver that is not installed: {why.name}") from None
    try:
        if is_sqlite and url.database:
            make_folder(Path(url.database).parent)
        if is_sqlite:
            sa.event.listen(engine, "connect", _on_connect)
            sa.event.listen(engine, "begin", _on_begin)
        tables.create(engine)
    except (sa.exc.SQLAlchemyError, sqlite3.Error, OSError) as why:
        reason = mask_secrets(str(getattr(why, "orig", None) or why), [uri, url.password])
        address = url.set(query={}).render_as_string(hide_password=True)
        raise Missing(f"the ledger {address} cannot be opened: {reason}") from None  # a driver may repeat the address
    return engine


def _on_connect(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # `_on_begin` begins transactions
    if connection.execute("pragma journal_mode").fetchone()[0] != "wal":
        connection.execute("pragma journal_mode=wal")  # readers do not wait for writers
    connection.execute("pragma synchronous=full")  # a power cut loses no answer either; it is one flush a commit


def _on_begin(con: sa.Connection) -> None:
    con.exec_driver_sql("begin immediate" if con.get_execution_options().get("undertone_writes") else "begin")


def _cut(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[start : start + PART] for start in range(0, len(items), PART))


def _look_up(con: sa.Connection, keys: Collection[str]) -> tuple[dict[str, Answer], dict[str, str]]:
    c = tables.calls.c
    answers: dict[str, Answer] = {}
    given_up: dict[str, str] = {}
    for part in _cut(list(keys)):
        columns = [tables.answers.c[name] for name in Answer._fields]
        rows = con.execute(sa.select(*columns).where(tables.answers.c.key.in_(part)))
        answers |= {row.key: Answer(*row) for row in rows}
        is_open = c.key.in_([key for key in part if key not in answers])
        calls = con.execute(sa.select(c.key, c.outcome, c.detail).where(is_open).order_by(c.id)).all()
        counts = Counter(call.key for call in calls if call.outcome == "malformed")
        for key, call in {call.key: call for call in calls}.items():  # the last of each
            if call.outcome == "rejected":
                given_up[key] = f"rejected: {call.detail}"
            elif counts[key] > REPEATS:
                given_up[key] = f"malformed {counts[key]} times, at last: {call.detail}"
    return answers, given_up


OUTCOMES = ("malformed", "unread", "rejected")
FORGIVEN = "forgiven"  # the outcome of calls that no longer count as tries


def list_entries(
    engine: sa.Engine, model: str | None = None, reason: str | None = None, *, of_all: bool = False
) -> list[Any]:
    """Count calls and costs without an answer by model, outcome and reason, or `of_all` by model and outcome."""
    c = tables.calls.c
    detail = sa.literal("all") if of_all else sa.func.substr(sa.func.coalesce(c.detail, ""), 1, 100)
    conditions = [] if of_all else _select_unanswered(model, reason)
    costs = {"cost_usd": c.cost_usd, "guessed_usd": sa.case((c.guess.is_not(None), c.cost_usd))}
    sums = [sa.func.coalesce(sa.func.sum(cost), 0.0).label(name) for name, cost in costs.items()]
    counts = sa.func.count().label("calls"), sa.func.count(c.key.distinct()).label("requests")
    rows = sa.select(c.model, c.outcome, detail.label("reason"), *counts, *sums).where(*conditions)
    rows = rows.group_by(c.model, c.outcome, sa.text("reason"))
    with engine.connect() as con:
        return [*con.execute(rows.order_by(sa.func.count().desc(), c.model, c.outcome))]


def forgive(engine: sa.Engine, model: str | None = None, reason: str | None = None, *, is_clearing: bool) -> int:
    """Let runs send such requests again; `is_clearing` removes the calls whose cost is a guess or nothing."""
    c = tables.calls.c
    conditions = _select_unanswered(model, reason)
    is_uncounted = sa.or_(c.guess.is_not(None), c.cost_usd.is_(None), c.cost_usd == 0)
    with write_transaction(engine) as con:
        removed = con.execute(sa.delete(tables.calls).where(*conditions, is_uncounted)).rowcount if is_clearing else 0
        return removed + con.execute(sa.update(tables.calls).where(*conditions).values(outcome=FORGIVEN)).rowcount


def _select_unanswered(model: str | None, reason: str | None) -> list[sa.ColumnElement[bool]]:
    c = tables.calls.c
    conditions: list[sa.ColumnElement[bool]] = [c.outcome.in_(OUTCOMES), c.key.not_in(sa.select(tables.answers.c.key))]
    if model is not None:
        conditions.append(c.model == model)
    if reason is not None:
        conditions.append(sa.or_(*[column.icontains(reason, autoescape=True) for column in (c.outcome, c.detail)]))
    return conditions
