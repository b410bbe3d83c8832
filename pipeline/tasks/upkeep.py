"""Upkeep of the tables, one table at a time, with limits from the parameters of a run; counts of their rows."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import polars as pl

from pipeline import warehouse
from pipeline.errors import BadInput
from pipeline.progress import iterate
from pipeline.tables import TABLES
from pipeline.warehouse.upkeep import maintain, sweep
from pipeline.warehouse.upkeep.check import check, describe
from pipeline.warehouse.upkeep.limits import GRACE, KEEP, Limits

Params = Mapping[str, Any]  # the parameters of the DAG `maintain`, but for its tables


def parse_limits(params: Params) -> Limits:
    """Convert parameters to limits; BadInput if they are too short to be safe and `force` is not set."""
    for name, least in (("grace_hours", GRACE // timedelta(hours=1)), ("keep_days", KEEP.days)):
        if params[name] < least and not params["force"]:
            problem = (
                f"{name}: expected {least} or more, found {params[name]}; a longer task or run still needs the files"
            )
            raise BadInput(f"{problem}; force it only while nothing else runs")
    return Limits(
        keep=timedelta(days=params["keep_days"]),
        grace=timedelta(hours=params["grace_hours"]),
        quiet=timedelta(hours=params["quiet_hours"]),
        files=params["small_files"],
        target=params["target_megabytes"] << 20,
        budget=int(params["gigabytes"] * (1 << 30)),
        footers=params["footers"],
        weeks=params["verify_weeks"],
    )


def list_tables(names: Sequence[str], params: Params) -> list[str]:
    """List the tables to maintain, by default all ever written, and copy the catalog unless it is a dry run."""
    parse_limits(params)
    if unknown := sorted(set(names) - set(TABLES)):
        raise BadInput(f"no table {', '.join(unknown)}; there are {', '.join(TABLES)}")
    if not params["dry_run"]:
        warehouse.back_up()
    return [name for name in maintain.list_written() if name in names or not names]


def maintain_table(name: str, params: Params) -> dict[str, int]:
    """Maintain one table; return counts of the work."""
    return warehouse.maintain(name, parse_limits(params), dry_run=params["dry_run"])


def find_damage() -> tuple[list[str], int]:
    """Find damage in the catalog and, by checksums, in all files; count the files without a checksum."""
    if damage := warehouse.find_damage():
        return [damage], 0
    damaged = []
    unrecorded_count = 0
    for name in iterate(maintain.list_written(), "tables checked"):
        checked = check(name, footers=True, weeks=1)
        damaged += [f"{name}: {describe(name, [problem])}" for problem in (*checked.problems, *checked.other_problems)]
        unrecorded_count += len(checked.unrecorded)
    return damaged, unrecorded_count


def maintain_scratch(params: Params) -> dict[str, int]:
    """Maintain scratch files, embeddings and training states; return counts of removed files."""
    return sweep.maintain_scratch(parse_limits(params).grace, dry_run=params["dry_run"])


def count_rows() -> pl.DataFrame:
    """Count the rows, days and sources of each table."""
    schema = {"table": pl.String, "rows": pl.Int64, "days": pl.Int64, "sources": pl.Int64}
    rows = []
    for name in TABLES:
        frame = warehouse.scan(name)
        columns = frame.collect_schema()
        values = [pl.col(column).n_unique().alias(f"{column}s") for column in ("day", "source") if column in columns]
        try:
            totals = frame.select(pl.len().alias("rows"), *values).collect()
        except (OSError, pl.exceptions.ComputeError) as error:
            advice = "`undertone check --deep` names what is missing or damaged, and what to import again"
            raise BadInput(f"{name}: a data file cannot be read; {advice}") from error
        rows.append({"table": name, **totals.row(0, named=True)})
    return pl.DataFrame(rows, schema=schema)
