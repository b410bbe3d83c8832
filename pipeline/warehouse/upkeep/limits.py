"""How far upkeep goes: which files are small, which snapshots old, which orphans certain."""

from datetime import timedelta
from typing import NamedTuple

GRACE = timedelta(hours=24)  # longer than the longest task, or files of a write in flight would go
KEEP = timedelta(days=7)  # longer than the longest run, whose shards read a pinned snapshot


class Limits(NamedTuple):
    """How far upkeep goes."""

    keep: timedelta = KEEP  # how long a snapshot stays after another took its place
    grace: timedelta = GRACE  # age under which no file is removed
    quiet: timedelta = timedelta(hours=1)  # how long a partition rests before it is compacted, for its writers' sake
    files: int = 4  # small files that a partition may have; with more it is compacted
    target: int = 256 << 20  # bytes of a compacted file; a file under a quarter of that is small
    partitions: int = 1_000  # compacted in one run at most
    budget: int = 20 << 30  # bytes rewritten in one run at most
    manifests: int = 100  # small manifests that a table may have; with more they are merged
    footers: bool = True  # whether the check opens every data file, not only looks whether it is there in its size
    weeks: int = 4  # in which the checksums of all data files are compared, a share of them a week; 1 all, 0 none
