"""The upkeep of the tables without Airflow (`undertone upgrade` and others), and the tables for other programs."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from typer import Argument, Exit, Option, confirm, echo

from pipeline import __version__, settings, warehouse
from pipeline.commands.data import init
from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import Day, Json
from pipeline.errors import BadInput, format_quantity
from pipeline.llm.ledger.answers import open_ledger
from pipeline.progress import iterate, track
from pipeline.tasks import upkeep
from pipeline.tasks.labelling import csd
from pipeline.tasks.record.retry import retry

MOST = 36_500  # of days, hours and gigabytes; with many more no date is left


def maintain(
    table: Annotated[list[str] | None, Option(help="Only this table; repeat it. All by default.")] = None,
    keep_days: Annotated[float, Option(help="Days a snapshot stays after it was replaced.", min=0, max=MOST)] = 7,
    grace_hours: Annotated[float, Option(help="Age in hours below which no file is removed.", min=0, max=MOST)] = 24,
    quiet_hours: Annotated[float, Option(help="Hours a partition rests before it is compacted.", min=0, max=MOST)] = 1,
    small_files: Annotated[int, Option(help="Small files a partition may have.", min=1)] = 4,
    target_megabytes: Annotated[int, Option(help="Size of a compacted file.", min=1)] = 256,
    gigabytes: Annotated[float, Option(help="GB of a table to compact at most.", min=0, max=MOST)] = 20,
    footers: Annotated[bool, Option(help="Open every data file in the check.")] = True,
    verify_weeks: Annotated[
        int, Option(help="Compare every checksum once in so many weeks; 1: all now, 0: none.", min=0)
    ] = 4,
    force: Annotated[bool, Option("--force", help="Take shorter limits; only while nothing else runs.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Check and count, change nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Check the tables, compact small files, expire old snapshots, remove files that no table refers to.

    A damaged table is named with partition and file and left as it is; the exit code is 2 then. The SQLite catalog is
    copied to <home>/backups first.

    Examples: `undertone maintain --dry-run`; `undertone maintain --table comments --keep-days 30`
    """
    params = {name: value for name, value in locals().items() if name not in ("table", "as_json")}
    rows: list[dict[str, Any]] = []
    errors = []
    for name in iterate(upkeep.list_tables(table or [], params), "tables maintained"):
        try:
            rows.append({"table": name, **retry(upkeep.maintain_table, name, params)})
        except BadInput as error:
            errors.append(str(error))
    rows.append({"table": "(scratch)", **upkeep.maintain_scratch(params)})
    frame = pl.DataFrame(rows)
    console.show(frame.select(c for c in frame.columns if as_json or c == "table" or frame[c].sum()), as_json)
    if errors:
        raise BadInput("\n".join(errors))


def check(
    deep: Annotated[bool, Option("--deep", help="Compare every file with its checksum instead.")] = False,
) -> None:
    """Run the data checks of sql/checks, or look for damaged files. Exit code 1 if a check fails or a file is damaged.

    The check `contracts` compares Iceberg's metadata with the contracts; `undertone init` aligns it.

    Examples: `undertone check`; `undertone check --deep`
    """
    if deep:
        with console.working("comparing checksums"):
            damaged, unrecorded_count = upkeep.find_damage()
        for line in damaged:
            console.out.print(f"DAMAGED  {line}", markup=False, soft_wrap=True)
        if unrecorded_count:
            count = format_quantity(unrecorded_count, "file")
            console.report(f"no checksum yet: {count}; `undertone maintain` records them")
        if damaged or not unrecorded_count:
            console.report(f"damaged files: {len(damaged):,}" if damaged else "every file is as it was written")
        raise Exit(1 if damaged else 0)
    is_failed = False
    for name in [*warehouse.list_checks(), "contracts"]:
        rows = warehouse.compare_contracts() if name == "contracts" else warehouse.run_check(name)
        is_failed |= bool(rows)
        console.out.print(f"{'FAILED' if rows else 'holds '}  {name}", markup=False)
        if rows:
            console.table(pl.DataFrame(rows[:5]))
    raise Exit(int(is_failed))


def upgrade(yes: Annotated[bool, Option("--yes", "-y", help="Do not ask: there is a backup.")] = False) -> None:
    """Upgrade the home of an earlier version, and check it. Safe to repeat. Stop Airflow and back up first.

    It adds tables and columns, also to the ledger, and makes the home readable by its owner only. No row changes. Exit
    code 1 if a check fails.

    Examples: `undertone upgrade`; `undertone upgrade --yes`
    """
    run = warehouse.scan("runs").sort("started_at").select("code_version").tail(1).collect()
    home, paths = str(settings.home()), settings.absolute()
    elsewhere = [name for name, path in paths.items() if not f"{path}/".startswith(f"{home}/")]
    console.report(f"{home} was written by version {run.item() if run.height else 'unknown'}; this is {__version__}")
    console.report(f"Stop Airflow, and back up {home}{''.join(f', {name}' for name in elsewhere)}")
    if not (yes or sys.stdin.isatty()):
        raise BadInput("back up first, then give --yes where there is no terminal")
    if not yes:
        confirm("Is it backed up?", abort=True, err=True)
    init()
    open_ledger(settings.llm_ledger())
    for project, count in csd.count_reopened().items():
        problem = f"project {project}: {count} fields are open again: three raters differ, and the answer is a value"
        console.report(f"{problem}; run `undertone label adjudicate --project {project}`")
    check()


def recover_catalog(
    force: Annotated[bool, Option("--force", help="Take the newest whole state, even if another is named.")] = False,
    take: Annotated[list[str] | None, Option("--take", help="Take the state of this metadata file; repeat it.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Show what it would do, change nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Rebuild a lost or damaged catalog from the tables' metadata files. Stop everything else first.

    A damaged SQLite catalog is moved aside, not deleted. Tables that a sound catalog knows stay as they are. States
    that it does not know are kept and listed; `--take` makes it name one of them.

    Examples: `undertone recover-catalog --dry-run`; `undertone recover-catalog`;
    `undertone recover-catalog --take 00007-5f2c….metadata.json`
    """
    recovered = warehouse.recover(dry_run=dry_run, force=force, take=take or [])
    rows = [row._asdict() | {"others": [other._asdict() for other in row.others]} for row in recovered]
    if as_json:
        echo("".join(f"{json.dumps(row, ensure_ascii=False, default=str)}\n" for row in rows), nl=False)
    else:
        console.table(pl.DataFrame(rows, schema=list(warehouse.Recovered._fields)).drop("others"))
    for other in [] if as_json else [other for row in recovered for other in row.others]:
        state = f"{other.note}: {other.rows:,} rows, snapshot {other.snapshot}, of {other.written_at:%Y-%m-%d %H:%M:%S}"
        message = f"{other.table} has another state, {state} UTC. To take it: --take {other.state}"
        console.out.print(message, markup=False, soft_wrap=True)
    lost = [row.table for row in recovered if row.action == "lost"]
    changed_count = sum(row.action in ("registered", "replaced") for row in recovered)
    console.report(f"tables {'to register' if dry_run else 'registered'}: {changed_count:,}; lost: {len(lost):,}")
    raise Exit(1 if lost else 0)


def connect(
    engine: Annotated[Literal["duckdb", "polars", "pandas", "pyarrow", "spark", "trino"], Argument(help="The reader.")],
    table: Annotated[str, Option(help="Table to read.")] = "comments",
) -> None:
    """Print how an engine reads a table of this installation: Python code, or settings and SQL. It holds no password.

    Examples: `undertone connect duckdb`; `undertone connect polars --table scores`; `undertone connect trino`
    """
    from pipeline.report.sections import render_template
    from pipeline.warehouse import catalog

    address = catalog.locate(table)
    options = {"uri": address["uri"], "warehouse": address["warehouse"], "init_catalog_tables": "false"}
    literal = json.dumps(options | address["store"], indent=4, ensure_ascii=False)
    template = f"engines/{engine if engine in ('spark', 'trino') else 'python'}.txt"
    echo(render_template(template, engine=engine, table=table, options=literal, **address))


def snapshot(
    out: Annotated[Path, Option("--out", "-o", help="Folder to write, absent or empty.")],
    table: Annotated[list[str] | None, Option(help="Only this table; repeat it. All by default.")] = None,
    with_personal: Annotated[bool, Option("--with-personal", help="Also columns of persons: users, raters.")] = False,
    force: Annotated[bool, Option("--force", help="Replace an earlier snapshot in the folder.")] = False,
    as_json: Json = False,
) -> None:
    """Write the tables as plain Parquet files, with a card that describes them (README.md).

    Examples: `undertone snapshot --out share`; `undertone snapshot --out share --table comments --force`
    """
    console.show(upkeep.write_snapshot(out, table or (), with_personal=with_personal, force=force), as_json)
    console.report(f"wrote {out}")


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
    from pipeline.tasks.daily import report as work

    if page:
        with console.working("writing the page"):
            path = work.write_health(day, days)
        echo(path)
        return
    steps = work.build_health(day, days)
    console.show(steps if as_json else steps.select(*steps.columns[:8], "seconds", "cost_usd"), as_json)
    raise Exit(1 if "missing" in steps["status"] else 0)


def heal(dry_run: Annotated[bool, Option("--dry-run", help="Only list the days.")] = False) -> None:
    """Find days that lack tokens or scores, and make them. Such days are left when a DAG was paused or failed.

    The same holds for what the scheduled ones of the DAGs ndd, commenting and recam build.

    Examples: `undertone heal --dry-run`; `undertone heal`
    """
    from pipeline.tasks.operate import backfill as work

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
    from pipeline.tasks.operate import backfill as work

    warehouse.create()
    days = work.list_days(first, last, backwards=backwards)
    with track("days", len(days)) as on_progress:
        failures = work.run_all(days, step or (), source, on_progress)
    done_count = len({*days} - {*failures})
    console.report(f"days done: {done_count:,} of {len(days):,}, {days[0]} to {days[-1]}")
    for name, error in failures.items():
        console.report(f"{name} failed: {error}")
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
