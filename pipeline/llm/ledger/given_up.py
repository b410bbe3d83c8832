"""Requests that no run sends again: their answers were malformed too often, or they were rejected."""

from typing import Any

import sqlalchemy as sa

from pipeline.llm.ledger import answers, tables

OUTCOMES = ("malformed", "unread", "rejected")
FORGIVEN = "forgiven"  # the outcome of calls that no longer count as tries


def list_entries(
    engine: sa.Engine, model: str | None = None, reason: str | None = None, *, of_all: bool = False
) -> list[Any]:
    """List calls without an answer by model, outcome and reason, or `of_all` by model and outcome, the most first.

    A row has model, outcome, reason, calls, requests, cost_usd and guessed_usd.
    """
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
