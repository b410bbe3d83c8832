"""`undertone maintain`: the upkeep of the tables without Airflow."""

from functools import partial
from typing import Annotated

import polars as pl
import typer

from pipeline.commands import console
from pipeline.commands.options import Json, show
from pipeline.errors import BadInput
from pipeline.tasks.again import again


def maintain(
    table: Annotated[list[str] | None, typer.Option(help="Only this one; repeat it. All by default.")] = None,
    keep_days: Annotated[float, typer.Option(help="Days a snapshot stays after it was replaced.", min=0)] = 7,
    grace_hours: Annotated[float, typer.Option(help="Hours under which no file is removed.", min=0)] = 24,
    quiet_hours: Annotated[float, typer.Option(help="Hours a partition rests before it is compacted.", min=0)] = 1,
    small_files: Annotated[int, typer.Option(help="Small files a partition may have.", min=1)] = 4,
    target_megabytes: Annotated[int, typer.Option(help="Size of a compacted file.", min=1)] = 256,
    gigabytes: Annotated[float, typer.Option(help="Compacted at most, a table.", min=0)] = 20,
    footers: Annotated[bool, typer.Option(help="Open every data file in the check.")] = True,
    force: Annotated[bool, typer.Option("--force", help="Take shorter limits; only while nothing else runs.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and count, change nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Check the tables, compact small files, expire replaced snapshots, sweep what nobody refers to.

    A damaged table is named with partition and file and left as it is; the exit code is 2 then.

    Examples: `undertone maintain --dry-run`; `undertone maintain --table comments --keep-days 30`
    """
    from pipeline.tasks import upkeep

    given = upkeep.Given(
        keep_days=keep_days, grace_hours=grace_hours, quiet_hours=quiet_hours, small_files=small_files,
        target_megabytes=target_megabytes, gigabytes=gigabytes, footers=footers, force=force, dry_run=dry_run,
    )  # fmt: skip
    rows, damaged = [], []
    with console.working("tidying"):
        for name in upkeep.tables(table or [], given):
            try:
                rows.append({"table": name, **again(partial(upkeep.table, name, given))})
            except BadInput as why:
                damaged.append(str(why))
        rows.append({"table": "(scratch)", **upkeep.scratch(given)})
    frame = pl.DataFrame(rows)
    counts = [c for c in frame.columns if as_json or c == "table" or frame[c].sum()]
    show(frame.select(counts), as_json)
    if damaged:
        raise BadInput("\n".join(damaged))
