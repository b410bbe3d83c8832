"""`undertone backfill`: a range of days through the daily chain without Airflow."""

from typing import Annotated

import typer

from pipeline import warehouse
from pipeline.commands.terminal import console
from pipeline.progress import track


def backfill(
    first: Annotated[str, typer.Option("--from", help="First UTC day, YYYY-MM-DD.")],
    last: Annotated[str, typer.Option("--to", help="Last UTC day, included.")],
    step: Annotated[list[str] | None, typer.Option(help="collect, tokenize, score or report; repeat it.")] = None,
    source: Annotated[str, typer.Option(help="all, or one source to collect.")] = "all",
    backwards: Annotated[bool, typer.Option("--backwards", help="The last day first.")] = False,
) -> None:
    """Run days through collect, tokenize, score and report, again or for the first time.

    Any order and any repetition gives the same tables. A day without comments has no report; one that fails does not
    stop the others, and is named at the end. With Airflow: `airflow backfill create --dag-id collect …`.

    Examples: `undertone backfill --from 2026-11-01 --to 2026-11-19`;
    `undertone backfill --from 2026-11-01 --to 2026-11-19 --step score --backwards`
    """
    from pipeline.tasks.daily import backfill

    warehouse.create()
    todo = backfill.list_days(first, last, backwards=backwards)
    with track("days", len(todo)) as done:
        failed = backfill.run_all(todo, step or backfill.STEPS, source, done)
    console.say(f"{len(todo) - len(failed)} of {len(todo)} days are done, {todo[0]} to {todo[-1]}")
    for day, why in failed.items():
        console.say(f"{day} failed: {why}")
    if failed:
        raise typer.Exit(max(why.exit_code for why in failed.values()))
