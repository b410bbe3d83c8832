"""Requests that no run sends again: their answers were malformed too often, or they were rejected."""

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


def list_entries(
    engine: sa.Engine, model: str | None = None, reason: str | None = None, *, of_all: bool = False
) -> list[Entry]:
    """List calls without an answer by model, outcome and reason, or `of_all` by model and outcome, the most first."""
    c = tables.calls.c
    detail = sa.literal("all") if of_all else sa.func.substr(sa.func.coalesce(c.detail, ""), 1, 100)
    conditions = [] if of_all else _select_unanswered(model, reason)
    costs = c.cost_usd, sa.case((c.guess.is_not(None), c.cost_usd))
    sums, count = [sa.func.coalesce(sa.func.sum(cost), 0.0) for cost in costs], sa.func.count()
    rows = sa.select(c.model, c.outcome, detail.label("reason"), count, sa.func.count(c.key.distinct()), *sums)
    rows = rows.where(*conditions).group_by(c.model, c.outcome, sa.text("reason"))
    with engine.connect() as con:
        return [Entry(*row) for row in con.execute(rows.order_by(count.desc(), c.model, c.outcome))]


def forgive(engine: sa.Engine, model: str | None = None, reason: str | None = None, *, is_clearing: bool) -> int:
    """Let runs send such requests again; `is_clearing` removes the calls whose cost is a guess or nothing."""
    c = tables.calls.c
    conditions = _select_unanswered(model, reason)
    is_uncounted = sa.or_(c.guess.is_not(None), c.cost_usd.is_(None), c.cost_usd == 0)
    with answers.write_transaction(engine) as con:
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
