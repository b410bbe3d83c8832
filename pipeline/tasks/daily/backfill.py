"""Backfill: a range of days through the daily chain, in this process.

Days do not depend on each other: any order, any repetition, beside the schedule or not, gives the same tables. (What
decides within a day is told in `collect.import_files` and `shelf.model_for`.)
"""

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

import polars as pl

from pipeline import warehouse
from pipeline.errors import BadInput, UndertoneError
from pipeline.slices import parse_day
from pipeline.tasks.daily import collect, report, score, tokenize
from pipeline.tasks.record.retry import retry

log = logging.getLogger(__name__)

STEPS = ("collect", "tokenize", "score", "report")


def list_days(first: str, last: str, *, backwards: bool = False) -> list[str]:
    """The days from one to another, both included; BadInput if the last is before the first."""
    start, end = parse_day(first), parse_day(last)
    if end < start:
        raise BadInput(f"the last day, {last}, is before the first, {first}")
    days = [(start + timedelta(days=offset)).isoformat() for offset in range((end - start).days + 1)]
    return days[::-1] if backwards else days


def run(day: str, steps: Sequence[str] = STEPS, source: str = "all") -> None:
    """Take one day through steps of the chain: what its inbox holds, its words, its scores, its report.

    Args:
        day: ISO date.
        steps: some of `STEPS`; they are done in that order whatever theirs is.
        source: all, or the one to collect.
    """
    check_steps(steps)
    work: dict[str, list[Callable[[], object]]] = {
        "collect": [partial(collect.run, task, day) for task in collect.list_sources(source, None)],
        "tokenize": [partial(tokenize.run, day)],
        "score": [partial(score.run, day)],
        "report": [partial(_write_report, day)],
    }
    for step in STEPS:
        for task in work[step] if step in steps else ():
            retry(task)


def run_all(
    days: Sequence[str],
    steps: Sequence[str] = STEPS,
    source: str = "all",
    on_progress: Callable[[int], object] = lambda _: None,
) -> dict[str, UndertoneError]:
    """Take each of these days through steps; one that fails does not stop the others. Return what failed, by day."""
    check_steps(steps)
    collect.list_sources(source, None)
    errors = {}
    for day in days:
        try:
            run(day, steps, source)
        except UndertoneError as error:
            errors[day] = error
        on_progress(1)
    return errors


def check_steps(steps: Sequence[str]) -> None:
    """Refuse steps that there are not."""
    if unknown := sorted(set(steps) - set(STEPS)):
        raise BadInput(f"no step {', '.join(unknown)}; there are {', '.join(STEPS)}")


def _write_report(day: str) -> None:
    """The report of a day, if there is something to tell."""
    if warehouse.scan("scores", pl.col("day") == parse_day(day)).head(1).collect().height:
        report.write(day)
    else:
        log.info("%s: no comment has a score, so there is no report", day)
