"""Backfill: a range of days through the daily chain, in this process.

Days do not depend on each other: any order, any repetition, beside the schedule or not, gives the same tables. (What
decides within a day is told in `collect.import_files` and `shelf.model_for`.)
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

from pipeline.errors import BadInput
from pipeline.slices import parse_day
from pipeline.tasks import collect, report, score, segment
from pipeline.tasks.again import again

STEPS = ("collect", "tokenize", "score", "report")


def days(first: str, last: str, *, backwards: bool = False) -> list[str]:
    """The days from one to another, both included; BadInput if the last is before the first."""
    start, end = parse_day(first), parse_day(last)
    if end < start:
        raise BadInput(f"the last day, {last}, is before the first, {first}")
    found = [(start + timedelta(days=n)).isoformat() for n in range((end - start).days + 1)]
    return found[::-1] if backwards else found


def run(day: str, steps: Sequence[str] = STEPS, source: str = "all") -> None:
    """Take one day through steps of the chain: what its inbox holds, its words, its scores, its report.

    Args:
        day: ISO date.
        steps: some of `STEPS`; they are done in that order whatever theirs is.
        source: all, or the one to collect.
    """
    if unknown := sorted(set(steps) - set(STEPS)):
        raise BadInput(f"no step {', '.join(unknown)}; there are {', '.join(STEPS)}")
    work: dict[str, list[Callable[[], object]]] = {
        "collect": [partial(collect.run, one, day) for one in collect.sources(source, None)],
        "tokenize": [partial(segment.run, day)],
        "score": [partial(score.run, day)],
        "report": [partial(report.write, day)],
    }
    for step in STEPS:
        for one in work[step] if step in steps else ():
            again(one)
