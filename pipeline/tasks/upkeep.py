"""Upkeep of the tables, one table at a time, with limits from the parameters of a run."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from pipeline import warehouse
from pipeline.errors import BadInput
from pipeline.progress import iterate
from pipeline.warehouse.upkeep import maintain, sweep
from pipeline.warehouse.upkeep.check import check, describe
from pipeline.warehouse.upkeep.limits import Limits, refuse_hasty

Params = Mapping[str, Any]  # the parameters of the DAG `maintain`, but for its tables


def parse_limits(params: Params) -> Limits:
    """Convert parameters to limits; BadInput if they are too short to be safe and `force` is not set."""
    limits = Limits(
        keep=timedelta(days=params["keep_days"]),
        grace=timedelta(hours=params["grace_hours"]),
        quiet=timedelta(hours=params["quiet_hours"]),
        files=params["small_files"],
        target=params["target_megabytes"] << 20,
        budget=int(params["gigabytes"] * (1 << 30)),
        footers=params["footers"],
        weeks=params["verify_weeks"],
    )
    if not params["force"]:
        refuse_hasty(limits)
    return limits


def list_tables(names: Sequence[str], params: Params) -> list[str]:
    """List the tables to maintain: those named, else all that were ever written; refuse bad limits.

    A copy of the SQLite catalog is made first, unless it is a dry run.
    """
    parse_limits(params)
    if unknown := sorted(set(names) - set(warehouse.list_tables())):
        raise BadInput(f"no table {', '.join(unknown)}; there are {', '.join(warehouse.list_tables())}")
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
