"""Commands that run Undertone here: health, heal, backfill, and Airflow down."""

from typing import Annotated

from typer import Exit, Option, echo

from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import Day


def health(
    day: Day = "",
    days: Annotated[int, Option(min=1, help="Number of days; the last one is --day.")] = 14,
    page: Annotated[bool, Option("--page", help="Write the page and print its path.")] = False,
    as_json: Annotated[bool, Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Print the state of each step of the last days. Exit code 1 if one is missing.

    A step is ok, backfill, late, unusual or missing.

    Examples: `undertone health`; `undertone health --day 2026-11-19 --page`
    """
    from pipeline.tasks.daily import health as work

    if page:
        with console.working("writing the page"):
            path = work.write_page(day, days)
        echo(path)
        return
    steps = work.build_table(day, days)
    console.show(steps if as_json else steps.select(*steps.columns[:8], "seconds", "cost_usd"), as_json)
    raise Exit(1 if "missing" in steps["status"] else 0)


def heal(dry_run: Annotated[bool, Option("--dry-run", help="Only list the days.")] = False) -> None:
    """Find days that lack tokens or scores, and make them. Such days are left when a DAG was paused or failed.

    The same holds for what the scheduled ones of the DAGs ndd, commenting and recam build.

    Examples: `undertone heal --dry-run`; `undertone heal`
    """
    from pipeline.tasks.operate import heal as work
    from pipeline.tasks.record.retry import retry

    holes = work.find_holes()
    for name, days in holes.items():
        console.report(f"days without {name}: {', '.join(days) or 'none'}")
    if any(holes.values()) and not dry_run:
        with console.working("making what is missing"):
            retry(work.heal, holes)


def backfill(
    first: Annotated[str, Option("--from", help="First UTC day, YYYY-MM-DD.")],
    last: Annotated[str, Option("--to", help="Last UTC day, included.")],
    step: Annotated[list[str] | None, Option(help="collect, tokenize, score, ndd, commenting, recam, report.")] = None,
    source: Annotated[str, Option(help="all, or one source to collect.")] = "all",
    backwards: Annotated[bool, Option("--backwards", help="The last day first.")] = False,
) -> None:
    """Run days through collect, tokenize, score and report, again or for the first time.

    Scheduled DAGs of papers work too: ndd scores the context shift of each day; commenting and recam build their corpus
    and items at the end. Any order and any repetition gives the same tables. A day without comments has no report; one
    that fails does not stop the others, and is named at the end. With Airflow: `airflow backfill create --dag-id
    collect …`.

    Examples: `undertone backfill --from 2026-11-01 --to 2026-11-19`;
    `undertone backfill --from 2026-11-01 --to 2026-11-19 --step score --backwards`
    """
    from pipeline import warehouse
    from pipeline.progress import track
    from pipeline.tasks.operate import backfill as work

    warehouse.create()
    days = work.list_days(first, last, backwards=backwards)
    with track("days", len(days)) as on_progress:
        failures = work.run_all(days, step or (), source, on_progress)
    console.report(f"days done: {len(days) - len(failures):,} of {len(days):,}, {days[0]} to {days[-1]}")
    for day, error in failures.items():
        console.report(f"{day} failed: {error}")
    if failures:
        raise Exit(max(error.exit_code for error in failures.values()))


def down() -> None:
    """Stop the Airflow that `up` or `demo` started. No process of it stays. Example: `undertone down`"""
    from pipeline.commands.operate import stack

    if stack.state() is None:
        console.report("Airflow is not running")
        return
    killed_count = stack.stop()
    console.report("Airflow is stopped" + (f" ({killed_count} busy processes were ended)" if killed_count else ""))
