"""Upkeep as a run: limits as a form gives them, the tables there are to do, and one of them."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TypedDict

from pipeline import warehouse
from pipeline.errors import BadInput
from pipeline.warehouse.upkeep import maintain, sweep
from pipeline.warehouse.upkeep.check import check, describe
from pipeline.warehouse.upkeep.limits import GRACE, KEEP, Limits, refuse_hasty


class Given(TypedDict):
    """The parameters of a run."""

    keep_days: float
    grace_hours: float
    quiet_hours: float
    small_files: int
    target_megabytes: int
    gigabytes: float
    footers: bool
    verify_weeks: int
    force: bool
    dry_run: bool


DEFAULTS = Given(
    keep_days=KEEP.total_seconds() / 86_400, grace_hours=GRACE.total_seconds() / 3_600, quiet_hours=1,
    small_files=4, target_megabytes=256, gigabytes=20, footers=True, verify_weeks=4, force=False, dry_run=False,
)  # fmt: skip


def limits(given: Given) -> Limits:
    """The parameters as limits; BadInput if they are too short to be safe and `force` is not set."""
    found = Limits(
        keep=timedelta(days=given["keep_days"]),
        grace=timedelta(hours=given["grace_hours"]),
        quiet=timedelta(hours=given["quiet_hours"]),
        files=given["small_files"],
        target=given["target_megabytes"] << 20,
        budget=int(given["gigabytes"] * (1 << 30)),
        footers=given["footers"],
        weeks=given["verify_weeks"],
    )
    if not given["force"]:
        refuse_hasty(found)
    return found


def tables(names: Sequence[str], given: Given) -> list[str]:
    """The tables to look after: those named, else all that were ever written. Bad limits are refused here already.

    A copy of the SQLite catalog is made first, unless it is a dry run.
    """
    limits(given)
    if unknown := sorted(set(names) - set(warehouse.names())):
        raise BadInput(f"no table {', '.join(unknown)}; there are {', '.join(warehouse.names())}")
    if not given["dry_run"]:
        warehouse.backup()
    return [name for name in maintain.written() if name in names or not names]


def table(name: str, given: Given) -> dict[str, int]:
    """Upkeep of one table; counts of what was done."""
    return warehouse.maintain(name, limits(given), dry_run=given["dry_run"])


def find_damage() -> tuple[list[str], int]:
    """What is damaged, the catalog or any file of a table by its checksum; and how many files have no checksum."""
    if damage := warehouse.find_damage():
        return [damage], 0
    damaged = []
    unrecorded_count = 0
    for name in maintain.written():
        checked = check(name, footers=True, weeks=1)
        damaged += [f"{name}: {describe(name, [p])}" for p in (*checked.problems, *checked.other_problems)]
        unrecorded_count += len(checked.unrecorded)
    return damaged, unrecorded_count


def scratch(given: Given) -> dict[str, int]:
    """Upkeep of scratch files, embeddings and training states; counts of what was removed."""
    return sweep.maintain_scratch(limits(given).grace, dry_run=given["dry_run"])
