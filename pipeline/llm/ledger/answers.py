"""The ledger of what language models were asked: SQL tables, SQLite by default, PostgreSQL for a team.

`answers` holds each answer once, by the request's key; `calls` every call and what became of it; `claims` who is asking
what just now; `batches` what a provider was handed as a batch. Before a request is sent its key is claimed in the
transaction that looks whether it is answered, and the answer goes in with the claim's removal; so two processes never
pay for one key, and what a kill can lose is what was in flight. A claim ends at its lease, and at once where its
process ran on this machine and is gone.
"""

import os
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa

from pipeline.errors import BadInput, Missing
from pipeline.llm.ledger import owners, tables
from pipeline.llm.request import Request, as_json
from pipeline.llm.service.replies import Reply, printable
from pipeline.private import make_folder
from pipeline.text.redact import mask_secrets

T = TypeVar("T")

PART = 500  # keys of one IN; every database takes as many
REASKS = 2  # of a malformed answer, over all runs
ERASED = "erased"  # in place of the key of a call whose answer was erased
BATCH = "batch:"  # how the owner of a batch's claims begins


class Answer(NamedTuple):
    """An answer as it stands in the ledger; `finish_reason` is `length` where it was cut off."""

    key: str
    response: str
    mode: str
    served_model: str | None
    finish_reason: str | None
    input_tokens: int | None
    output_tokens: int | None

    @property
    def is_cut(self) -> bool:
        """Whether a limit on tokens cut the answer off."""
        return self.finish_reason == "length"


class Call(NamedTuple):
    """A call that has ended, as it goes into the ledger."""

    key: str
    request: Request
    reply: Reply
    cost_usd: float | None
    mode: str = "live"
    guess: str | None = None  # why the cost is a guess


class Claimed(NamedTuple):
    """What became of the keys asked for: to be sent by the owner, asked by others, over the limit on cost, or in vain.

    `vain` has the reason why asking again would be.
    """

    mine: list[str]
    others: dict[str, str]
    over: list[str]
    vain: dict[str, str]


class Spending(NamedTuple):
    """Sums over calls; `cost_usd` is of the `priced` ones, `guessed_usd` that part of it that no server counted."""

    calls: int
    answered: int
    priced: int
    input_tokens: int
    output_tokens: int
    cost_usd: float
    guessed_usd: float = 0.0


_engines: dict[tuple[int, str], sa.Engine] = {}


def opened(uri: str) -> sa.Engine:
    """The ledger at an SQLAlchemy address, one engine a process; its tables are made where they are not."""
    at = (os.getpid(), uri)  # a fork must not use its parent's connections
    if at not in _engines:
        _engines[at] = _open(uri)
    return _engines[at]


def close() -> None:
    """Let go of all ledgers of this process."""
    for at in [at for at in _engines if at[0] == os.getpid()]:
        _engines.pop(at).dispose()


def parts(requests: Iterable[Request], size: int = PART) -> Iterator[dict[str, Request]]:
    """The requests by key, so many at a time, each key once."""
    unique = _unique(requests)
    while part := dict(islice(unique, size)):
        yield part


def answers(engine: sa.Engine, keys: Iterable[str]) -> dict[str, Answer]:
    """The answers there are, by key."""
    left = iter(keys)
    found: dict[str, Answer] = {}
    with engine.connect() as con:
        while some := list(islice(left, PART)):
            found.update(_answered(con, some))
    return found


def vain(engine: sa.Engine, keys: Sequence[str]) -> dict[str, str]:
    """Keys that it is in vain to ask again, with the reason: malformed too often in all runs, or rejected at last."""
    found: dict[str, str] = {}
    with engine.connect() as con:
        for some in _cut(keys):
            found.update(_vain(con, some))
    return found


def claim(
    engine: sa.Engine, wanted: Mapping[str, Request], reserved: Mapping[str, float], owner: str, run_id: str,
    lease: float, *, limit: float | None = None, keep_requests: bool = False,
) -> tuple[Claimed, dict[str, Answer]]:  # fmt: skip
    """Claim what nobody has answered or is asking, in one transaction, while the run stays under its limit of USD.

    What was asked in vain is not claimed.
    """
    mine: list[str] = []
    others: dict[str, str] = {}
    over: list[str] = []
    now = time.time()
    with writing(engine) as con:
        known: dict[str, Answer] = {}
        held: dict[str, Any] = {}
        hopeless: dict[str, str] = {}
        for some in _cut(list(wanted)):
            known.update(_answered(con, some))
            hopeless.update(_vain(con, [key for key in some if key not in known]))
            held.update({r.key: r for r in con.execute(sa.select(tables.claims).where(tables.claims.c.key.in_(some)))})
        spent = _committed(con, run_id) if limit is not None else 0.0
        for key in wanted:
            if key in known or key in hopeless:
                continue
            if key in held and not _ended(held[key].owner, held[key].lease, now):
                others[key] = held[key].owner
            elif limit is not None and spent + reserved[key] > limit:
                over.append(key)
            else:
                spent += reserved[key]
                mine.append(key)
        _book(con, [held[key] for key in mine if key in held], wanted, now)
        if mine:
            con.execute(sa.insert(tables.claims), [
                {"key": key, "owner": owner, "run_id": run_id, "lease": now + lease, "reserved_usd": reserved[key],
                 "request": as_json(wanted[key]._asdict()) if keep_requests else None}
                for key in mine
            ])  # fmt: skip
    return Claimed(mine, others, over, hopeless), known


def record(engine: sa.Engine, calls: Sequence[Call], owner: str, run_id: str) -> None:
    """Commit calls that have ended, with their answers, and give their claims back. The first answer to a key stays."""
    with writing(engine) as con:
        for some in _cut(calls):
            _record(con, some, owner, run_id)


def reclassify(engine: sa.Engine, keys: Sequence[str], run_id: str, outcome: str, new_outcome: str) -> None:
    """Give calls of a run another outcome: `unread` ones do not count as tries of their requests, `malformed` do."""
    c = tables.calls.c
    with writing(engine) as con:
        for some in _cut(keys):
            these = sa.update(tables.calls).where(c.key.in_(some), c.run_id == run_id, c.outcome == outcome)
            con.execute(these.values(outcome=new_outcome))


def release(engine: sa.Engine, owner: str) -> int:
    """Give back all that an owner has claimed and not asked."""
    with writing(engine) as con:
        return free(con, owner)


def book_lost(engine: sa.Engine, requests: Mapping[str, Request]) -> None:
    """Book as lost calls the claims of these requests whose owners died: perhaps they were billed."""
    claims, now = tables.claims, time.time()
    with writing(engine) as con:
        for some in _cut(list(requests)):
            held = con.execute(sa.select(claims).where(claims.c.key.in_(some))).all()
            _book(con, [claim for claim in held if _ended(claim.owner, claim.lease, now)], requests, now)


def _book(con: sa.Connection, ended: Sequence[Any], requests: Mapping[str, Request], now: float) -> None:
    if ended:
        con.execute(sa.insert(tables.calls), [_lost(claim, requests[claim.key].model, now) for claim in ended])
        con.execute(sa.delete(tables.claims).where(tables.claims.c.key.in_([claim.key for claim in ended])))


def free(con: sa.Connection, owner: str) -> int:
    """The same within a transaction of the caller's."""
    return con.execute(sa.delete(tables.claims).where(tables.claims.c.owner == owner)).rowcount


def held(engine: sa.Engine, owner: str) -> dict[str, Request]:
    """The requests an owner has claimed, where they were kept with the claims."""
    with engine.connect() as con:
        c = tables.claims.c
        rows = con.execute(sa.select(c.key, c.request).where(c.owner == owner)).all()
    return {row.key: Request.from_json(row.request) for row in rows if row.request}


def forget(engine: sa.Engine, keys: Collection[str], is_meant: Callable[[Sequence[str]], Sequence[bool]]) -> int:
    """Take answers out on request: by key, and where what was asked or answered is meant; how many rows.

    Claims of such requests go too. Calls stay, as they were paid for, without their key and what was said of them;
    batches stay without a message that quotes what is meant.

    Args:
        engine: of the ledger.
        keys: of answers.
        is_meant: of texts, such as messages as JSON, which are.
    """
    looked_at = ((tables.answers, ("messages", "response")), (tables.calls, ("detail",)), (tables.claims, ("request",)))
    met = set(keys)
    for table, names in looked_at:
        wanted = sa.select(table.c.key, *[table.c[name] for name in names])
        with engine.connect() as con:
            for rows in con.execution_options(yield_per=10 * PART).execute(wanted).partitions():
                found = [is_meant([row[1 + at] or "" for row in rows]) for at in range(len(names))]
                met |= {row.key for row, *hits in zip(rows, *found, strict=True) if any(hits)}
    with engine.connect() as con:
        batches = con.execute(sa.select(tables.batches.c.id, tables.batches.c.detail)).all()
    quoting = [row.id for row, hit in zip(batches, is_meant([row.detail or "" for row in batches]), strict=True) if hit]
    with writing(engine) as con:
        con.execute(sa.update(tables.batches).where(tables.batches.c.id.in_(quoting)).values(detail=None))
        count = 0
        for some in _cut(sorted(met)):
            for table in (tables.answers, tables.claims):
                count += con.execute(sa.delete(table).where(table.c.key.in_(some))).rowcount
            bare = sa.update(tables.calls).where(tables.calls.c.key.in_(some), tables.calls.c.key != ERASED)
            count += con.execute(bare.values(key=ERASED, detail=None)).rowcount
    return count


def spending(engine: sa.Engine, run_id: str | None = None, keys: Sequence[str] | None = None) -> Spending:
    """Sums over the calls of a run, or over all; of requests with some keys, or of all."""
    c = tables.calls.c
    sums = sa.select(
        sa.func.count(), sa.func.count(sa.case((c.outcome == "answered", 1))), sa.func.count(c.cost_usd),
        *[sa.func.coalesce(sa.func.sum(column), 0) for column in (c.input_tokens, c.output_tokens, c.cost_usd)],
        sa.func.coalesce(sa.func.sum(sa.case((c.guess.is_not(None), c.cost_usd))), 0),
    )  # fmt: skip
    if run_id is not None:
        sums = sums.where(c.run_id == run_id)
    with engine.connect() as con:
        parts = [sums] if keys is None else [sums.where(c.key.in_(part)) for part in _cut(keys)]
        rows = [con.execute(part).one() for part in parts]
    counts = [sum(int(row[n]) for row in rows) for n in range(5)]
    cost_usd, guessed_usd = (sum(float(row[n]) for row in rows) for n in (5, 6))
    return Spending(counts[0], counts[1], counts[2], counts[3], counts[4], cost_usd, guessed_usd)


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A transaction beside which no other claims or records; what it read still holds when it commits."""
    with engine.execution_options(undertone_writes=True).begin() as con:
        if con.dialect.name == "postgresql":
            con.execute(sa.text("lock table claims in share row exclusive mode"))
        yield con


def _open(uri: str) -> sa.Engine:
    try:
        url = sa.make_url(uri)
        sqlite = url.get_backend_name() == "sqlite"
        engine = sa.create_engine(url, connect_args={"timeout": 60} if sqlite else {})  # connects to nothing yet
    except (sa.exc.ArgumentError, ValueError):  # neither the address nor what is wrong with it is told: it has secrets
        raise BadInput("the ledger's address should be one for SQLAlchemy, such as sqlite:////data/ledger.db") from None
    except ImportError as why:
        raise BadInput(f"the ledger's address needs a driver that is not installed: {why.name}") from None
    try:
        if sqlite and url.database:
            make_folder(Path(url.database).parent)
        if sqlite:
            sa.event.listen(engine, "connect", _on_connect)
            sa.event.listen(engine, "begin", _on_begin)
        tables.create(engine)
    except (sa.exc.SQLAlchemyError, sqlite3.Error, OSError) as why:
        reason = mask_secrets(str(getattr(why, "orig", None) or why), [uri, url.password])
        where = url.set(query={}).render_as_string(hide_password=True)
        raise Missing(f"the ledger {where} cannot be opened: {reason}") from None  # a driver may repeat the address
    return engine


def _on_connect(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where we say so
    if connection.execute("pragma journal_mode").fetchone()[0] != "wal":
        connection.execute("pragma journal_mode=wal")  # who reads does not wait for who writes
    connection.execute("pragma synchronous=full")  # a power cut loses no answer either; it is one flush a commit


def _on_begin(con: sa.Connection) -> None:
    con.exec_driver_sql("begin immediate" if con.get_execution_options().get("undertone_writes") else "begin")


def _unique(requests: Iterable[Request]) -> Iterator[tuple[str, Request]]:
    seen: set[str] = set()
    for request in requests:
        if (key := request.key) not in seen:
            seen.add(key)
            yield key, request


def _cut(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[start : start + PART] for start in range(0, len(items), PART))


def _answered(con: sa.Connection, keys: Sequence[str]) -> dict[str, Answer]:
    wanted = sa.select(*[tables.answers.c[name] for name in Answer._fields]).where(tables.answers.c.key.in_(keys))
    return {row.key: Answer(*row) for row in con.execute(wanted)}


def _vain(con: sa.Connection, keys: Sequence[str]) -> dict[str, str]:
    c = tables.calls.c
    calls = con.execute(sa.select(c.key, c.outcome, c.detail).where(c.key.in_(keys)).order_by(c.id)).all()
    times = Counter(call.key for call in calls if call.outcome == "malformed")
    last = {call.key: call for call in calls}
    often = (key for key, count in times.items() if count > REASKS)
    found = {key: f"malformed {times[key]} times, at last: {last[key].detail}" for key in often}
    return found | {key: f"rejected: {call.detail}" for key, call in last.items() if call.outcome == "rejected"}


def _committed(con: sa.Connection, run_id: str) -> float:
    """USD a run has spent, and those set aside for what is in flight."""
    spent = sa.select(sa.func.sum(tables.calls.c.cost_usd)).where(tables.calls.c.run_id == run_id)
    aside = sa.select(sa.func.sum(tables.claims.c.reserved_usd)).where(tables.claims.c.run_id == run_id)
    return float(con.execute(spent).scalar() or 0) + float(con.execute(aside).scalar() or 0)


def _ended(owner: str, lease: float, now: float) -> bool:
    return lease < now or (not owner.startswith(BATCH) and owners.is_gone(owner))


def _lost(claim: Any, model: str, now: float) -> dict[str, Any]:
    """The call of a claim whose owner died: perhaps it was paid, so what was set aside for it counts as spent."""
    return {
        "key": claim.key, "run_id": claim.run_id, "model": model, "outcome": "lost", "retries": 0,
        "mode": "batch" if claim.owner.startswith(BATCH) else "live", "detail": f"{claim.owner} ended while asking",
        "cost_usd": claim.reserved_usd or None, "began_at": now, "ended_at": now,
        "guess": "its process ended: perhaps it was billed",
    }  # fmt: skip


def _record(con: sa.Connection, calls: Sequence[Call], owner: str, run_id: str) -> None:
    con.execute(sa.insert(tables.calls), [_call_row(call, run_id) for call in calls])
    answered = {call.key: call for call in reversed(calls) if call.reply.outcome == "answered"}
    keys = tables.answers.c.key
    known = con.execute(sa.select(keys).where(keys.in_(list(answered)))).scalars().all()
    if new := [_answer_row(call, run_id) for key, call in answered.items() if key not in known]:
        con.execute(sa.insert(tables.answers), new)
    held_here = tables.claims.c.key.in_([call.key for call in calls]), tables.claims.c.owner == owner
    con.execute(sa.delete(tables.claims).where(*held_here))


def _call_row(call: Call, run_id: str) -> dict[str, Any]:
    names = ("outcome", "status", "detail", "retries", "input_tokens", "output_tokens", "began_at", "ended_at")
    return {
        "key": call.key, "run_id": run_id, "model": call.request.model, "mode": call.mode, "cost_usd": call.cost_usd,
        "guess": call.guess, **{name: getattr(call.reply, name) for name in names},
        "detail": call.reply.detail and printable(call.reply.detail),
    }  # fmt: skip


def _answer_row(call: Call, run_id: str) -> dict[str, Any]:
    request, reply = call.request, call.reply
    names = ("response", "served_model", "finish_reason", "input_tokens", "output_tokens")
    return {
        "key": call.key, "model": request.model, "revision": request.revision, "prompt": request.prompt,
        "prompt_version": request.prompt_version, "messages": as_json(request.messages),
        "params": as_json(request.params), "attempt": request.attempt, "mode": call.mode, "run_id": run_id,
        "answered_at": reply.ended_at, **{name: getattr(reply, name) for name in names},
    }  # fmt: skip
