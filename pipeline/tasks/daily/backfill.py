"""Backfill: run a range of days through the daily chain, in this process.

Days do not depend on each other: any order and repetition, with or without the schedule, gives the same tables. (For
the order within a day see `collect.import_files` and `model_choice.select_model_id`.)
"""

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

import polars as pl

from pipeline import warehouse
from pipeline.errors import BadInput, UndertoneError
from pipeline.slices import parse_day, parse_window
from pipeline.tasks.daily import collect, report, score, tokenize
from pipeline.tasks.record.retry import retry

log = logging.getLogger(__name__)

STEPS = ("collect", "tokenize", "score", "report")


def list_days(first: str, last: str, *, backwards: bool = False) -> list[str]:
    """List the days from the first to the last, both included; BadInput if the last is before the first."""
    parse_day(first), parse_day(last)  # both are needed here
    start, end = parse_window(first, last)
    days = [(start + timedelta(days=offset)).isoformat() for offset in range((end - start).days + 1)]
    return days[::-1] if backwards else days


def run(day: str, steps: Sequence[str] = STEPS, source: str = "all") -> None:
    """Run some of `STEPS` on a day, in their order: collect its inbox, all sources or one; tokenize, score, report."""
    check_steps(steps)
    tasks: dict[str, Sequence[Callable[[], object]]] = {
        "collect": [partial(collect.run, name, day) for name in collect.list_sources(source, None)],
        "tokenize": [partial(tokenize.run, day)],
        "score": [partial(score.run, day)],
        "report": [partial(_write_report, day)],
    }
    for step in STEPS:
        for task in tasks[step] if step in steps else ():
            retry(task)


def run_all(
    days: Sequence[str],
    steps: Sequence[str] = STEPS,
    source: str = "all",
    on_progress: Callable[[int], object] = lambda _: None,
) -> dict[str, UndertoneError]:
    """Run steps of the chain on each of the days; a failure does not stop the others. Return the errors by day."""
    check_steps(steps)
    collect.list_sources(source, None)
    failures = {}
    for day in days:
        try:
            run(day, steps, source)
        except UndertoneError as error:
            failures[day] = error
        on_progress(1)
    return failures


def check_steps(steps: Sequence[str]) -> None:
    """Refuse unknown steps."""
    if unknown := sorted(set(steps) - set(STEPS)):
        raise BadInput(f"no step {', '.join(unknown)}; there are {', '.join(STEPS)}")


def _write_report(day: str) -> None:
    if warehouse.scan("scores", pl.col("day") == parse_day(day)).head(1).collect().height:
        report.write(day)
    else:
        log.info("%s: no comment has a score, so there is no report", day)
