"""Backfill: run a range of days through the daily chain and the scheduled DAGs of papers, in this process; heal.

Any order and repetition of days gives the same tables; see `collect.import_files` and `model_choice.select_model_id`.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import NamedTuple

import polars as pl

from pipeline import settings, warehouse
from pipeline.errors import BadInput, UndertoneError
from pipeline.progress import OnProgress, iterate
from pipeline.slices import parse_day, parse_window
from pipeline.tasks.commenting import corpus
from pipeline.tasks.daily import collect, report, score, tokenize
from pipeline.tasks.record import due
from pipeline.tasks.record.retry import retry

log = logging.getLogger(__name__)


def score_contexts(day: str) -> None:
    """Count the words of the corpus, if models of counts are set, and score the context shift of a day."""
    from pipeline.tasks.ndd import context_shift, masked_lm  # loads torch

    masked_lm.count_all(day)
    context_shift.score_day(day)


def build_items(day: str) -> None:
    """Build the cloze items of all days."""
    from pipeline.tasks.recam import options  # loads torch

    options.build(day)


class Work(NamedTuple):
    """What a DAG of a paper makes as data arrive, without its trainings and tests."""

    run: Callable[[str], object]
    step: str  # in `runs`
    is_daily: bool  # else it is about all days


FAMILIES = {
    "ndd": Work(score_contexts, "score_context_shift", is_daily=True),
    "commenting": Work(corpus.build, "threads", is_daily=False),
    "recam": Work(build_items, "cloze_items", is_daily=False),
}
STEPS = ("collect", "tokenize", "score", *FAMILIES, "report")


def list_steps() -> list[str]:
    """List the steps of the daily chain and of the DAGs of papers that have a schedule."""
    return [step for step in STEPS if step not in FAMILIES or settings.schedule(step) != "off"]


def list_days(first: str, last: str, *, backwards: bool = False) -> list[str]:
    """List the days from the first to the last, both included; BadInput if the last is before the first."""
    parse_day(first), parse_day(last)  # both are needed here
    start, end = parse_window(first, last)
    days = [(start + timedelta(days=offset)).isoformat() for offset in range((end - start).days + 1)]
    return days[::-1] if backwards else days


def run(day: str, steps: Sequence[str], source: str = "all") -> None:
    """Run some of `STEPS` on a day, in their order; collect its inbox, all sources or one."""
    tasks: dict[str, Sequence[Callable[[], object]]] = {
        "collect": [partial(collect.run, name, day) for name in collect.list_sources(source, None)],
        "tokenize": [partial(tokenize.run, day)],
        "score": [partial(score.run, day)],
        "report": [partial(_write_report, day)],
        **{name: [partial(work.run, day)] for name, work in FAMILIES.items()},
    }
    for step in STEPS:
        for task in tasks[step] if step in steps else ():
            retry(task)


def run_all(
    days: Sequence[str], steps: Sequence[str] = (), source: str = "all", on_progress: OnProgress = lambda _: None
) -> dict[str, UndertoneError]:
    """Run steps, by default `list_steps`, on each day, at the end those about all days.

    Return the errors by day, and that of the steps about all days by their names.
    """
    steps = steps or list_steps()
    check_steps(steps)
    collect.list_sources(source, None)
    once = [name for name, work in FAMILIES.items() if name in steps and not work.is_daily]
    daily = [step for step in steps if step not in once]
    failures = {}
    for name, day, day_steps in [*((day, day, daily) for day in days), (", ".join(once), max(days), once)]:
        try:
            run(day, day_steps, source)
        except UndertoneError as error:
            failures[name] = error
        on_progress(day_steps is daily)
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


RUNS: dict[str, Callable[[str], object]] = {"tokens": tokenize.run, "scores": score.run}
RUNS |= {name: work.run for name, work in FAMILIES.items()}


def find_holes() -> dict[str, list[str]]:
    """Find the days that lack `tokens`, `scores` or the work of a scheduled DAG of a paper, each sorted."""
    days: dict[str, list[str]] = {"tokens": [], "scores": []}
    for table, day in warehouse.query("select missing, day from holes order by day").iter_rows():
        days[table].append(day.isoformat())
    for name, work in FAMILIES.items():
        if settings.schedule(name) != "off":
            days[name] = _find_unseen(name, work)
    return days


def _find_unseen(name: str, work: Work) -> list[str]:
    """Find the days collected since the work ran on them, not before its first; of work about all days the last due."""
    runs = warehouse.query(
        "select day, max(started_at) filter (step = 'collect' and kept_count > 0) as collected_at, "
        "max(started_at) filter (step = ?) as seen_at from runs group by day order by day",
        [work.step],
    )
    seen_at = pl.col("seen_at") if work.is_daily else pl.col("seen_at").max()
    is_collected = pl.col("collected_at").is_not_null()
    unseen = runs.filter((pl.col("collected_at") > seen_at) | (seen_at.is_null() & is_collected))
    if work.is_daily:
        first = runs.drop_nulls("seen_at")["day"].min()
        return [day.isoformat() for day in unseen["day"] if first and day >= first]
    last = str(runs.drop_nulls("collected_at")["day"].max())
    return [last] if unseen.height and due.is_due(name, last) else []


def heal(holes: dict[str, list[str]]) -> dict[str, int]:
    """Make what is missing, in this process; return the count of days by table or DAG."""
    for name, days in holes.items():
        for day in iterate(days, f"days without {name}"):
            RUNS[name](day)
    return {name: len(days) for name, days in holes.items()}
