"""Requests that no run asks any more: their answers were malformed too often, or they were rejected."""

from typing import NamedTuple

import sqlalchemy as sa

from pipeline.llm.ledger import answers, tables

OUTCOMES = ("malformed", "unread", "rejected")
FORGIVEN = "forgiven"  # the outcome of calls that no longer count as tries


class Entry(NamedTuple):
    """Calls of one model that ended alike."""

    model: str
    outcome: str
    reason: str
    calls: int
    requests: int
    cost_usd: float
    guessed_usd: float


def entries(engine: sa.Engine, model: str | None = None, reason: str | None = None) -> list[Entry]:
    """Calls without an answer by model, outcome and reason, the most first."""
    return _counts(
        engine, sa.func.substr(sa.func.coalesce(tables.calls.c.detail, ""), 1, 100), _without_answer(model, reason)
    )


def status(engine: sa.Engine) -> list[Entry]:
    """All calls by model and outcome, the most first."""
    return _counts(engine, sa.literal("all"), [])


def forgive(
    engine: sa.Engine, model: str | None = None, reason: str | None = None, *, is_clearing: bool = False
) -> int:
    """Let such requests be asked again; with `is_clearing` calls whose cost is a guess or nothing are removed."""
    c = tables.calls.c
    conditions = _without_answer(model, reason)
    uncounted = sa.or_(c.guess.is_not(None), c.cost_usd.is_(None), c.cost_usd == 0)
    with answers.writing(engine) as con:
        removed = con.execute(sa.delete(tables.calls).where(*conditions, uncounted)).rowcount if is_clearing else 0
        return removed + con.execute(sa.update(tables.calls).where(*conditions).values(outcome=FORGIVEN)).rowcount


def _counts(engine: sa.Engine, reason: sa.ColumnElement[str], conditions: list[sa.ColumnElement[bool]]) -> list[Entry]:
    c = tables.calls.c
    guessed = sa.func.coalesce(sa.func.sum(sa.case((c.guess.is_not(None), c.cost_usd))), 0.0)
    counts = sa.func.count(), sa.func.count(c.key.distinct()), sa.func.coalesce(sa.func.sum(c.cost_usd), 0.0), guessed
    rows = sa.select(c.model, c.outcome, reason.label("reason"), *counts).where(*conditions)
    rows = rows.group_by(c.model, c.outcome, sa.text("reason")).order_by(counts[0].desc(), c.model, c.outcome)
    with engine.connect() as con:
        return [Entry(*row) for row in con.execute(rows)]


def _without_answer(model: str | None, reason: str | None) -> list[sa.ColumnElement[bool]]:
    c = tables.calls.c
    conditions: list[sa.ColumnElement[bool]] = [c.outcome.in_(OUTCOMES), c.key.not_in(sa.select(tables.answers.c.key))]
    if model is not None:
        conditions.append(c.model == model)
    if reason is not None:
        has_words = [column.icontains(reason, autoescape=True) for column in (c.outcome, c.detail)]
        conditions.append(sa.or_(*has_words))
    return conditions
