"""How far upkeep goes: which files are small, which snapshots old, which orphans certain."""

from datetime import timedelta
from typing import NamedTuple

from pipeline.errors import BadInput

GRACE = timedelta(hours=24)  # longer than the longest task, or files of a write in flight would go
KEEP = timedelta(days=7)  # longer than the longest run, whose shards read a pinned snapshot


class Limits(NamedTuple):
    """How far upkeep goes.

    Attributes:
        keep: how long a snapshot stays after another took its place.
        grace: age under which no file is removed.
        quiet: how long a partition rests before it is compacted, so that its writers are not disturbed.
        files: small files that a partition may have; with more it is compacted.
        target: bytes of a compacted file; a file under a quarter of that is small.
        partitions: compacted in one run at most.
        budget: bytes rewritten in one run at most.
        manifests: small manifests that a table may have; with more they are merged.
        footers: whether the check opens every data file, not only looks whether it is there in its size.
        weeks: in which the checksums of all data files are compared, a share of them a week; 1 all, 0 none.
    """

    keep: timedelta = KEEP
    grace: timedelta = GRACE
    quiet: timedelta = timedelta(hours=1)
    files: int = 4
    target: int = 256 << 20
    partitions: int = 1_000
    budget: int = 20 << 30
    manifests: int = 100
    footers: bool = True
    weeks: int = 4


def refuse_hasty(limits: Limits) -> None:
    """BadInput for limits under which files of a write in flight or snapshots of a run could go."""
    for name, given, least in (("grace", limits.grace, GRACE), ("keep", limits.keep, KEEP)):
        if given < least:
            raise BadInput(
                f"{name} of {given} is shorter than {least}, the longest that a task or run may last: what it still "
                "needs would be removed; force it only while nothing else runs"
            )
