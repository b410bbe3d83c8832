"""Upkeep: checking what the metadata names, compacting small files, expiring old snapshots, sweeping orphans.

pyiceberg forgets snapshots but leaves the bytes on disk; the sweeper here removes them. Nothing of a write in flight
goes: files are listed before the references are read, a file younger than the grace time by the store's own clock is
left alone, and a snapshot expires only a week after it stopped being the current one. A damaged table is not touched.
Nor does a file go that any state refers to, whether the catalog knows the state or not (`lineage`).
"""

import logging
from collections.abc import Sequence
from datetime import timedelta

from pyarrow import fs

from pipeline.errors import BadInput, Retry
from pipeline.tables import TABLES
from pipeline.warehouse import catalog, checksums
from pipeline.warehouse.files import list_table, open_store, remove, store_time
from pipeline.warehouse.lineage import head_of, read_states, sort_states
from pipeline.warehouse.upkeep import compact, sweep
from pipeline.warehouse.upkeep.check import check, describe
from pipeline.warehouse.upkeep.limits import Limits

log = logging.getLogger(__name__)

MANY = {"snapshots": 10_000, "manifests": 1_000, "metadata_files": 100}  # each scan reads the first two


def maintain(name: str, limits: Limits = Limits(), *, dry_run: bool = False) -> dict[str, int]:  # noqa: B008
    """Check, compact, expire and sweep one table; each step is a commit or a deletion of its own.

    Args:
        name: of the table.
        limits: how far to go.
        dry_run: only check and count.

    Returns:
        Counts: rows, files, bytes, snapshots and manifests there are, and what was done.

    Raises:
        BadInput: something the metadata names is missing or damaged; then nothing is changed, as older snapshots
            may hold what is needed to mend it.
        Retry: another writer was faster than the expiry, or another upkeep removed what this one reads.
    """
    found = check(name, footers=limits.footers, weeks=limits.weeks)
    if found.problems:
        raise BadInput(f"{name} is damaged, nothing was changed: {describe(name, found.problems)}")
    if found.other_problems:
        log.warning("%s: %s", name, describe(name, found.other_problems))
    for what, many in MANY.items():
        if getattr(found, what) > many:
            log.warning("%s has %d %s, more than %d", name, getattr(found, what), what, many)
    counts = {field: getattr(found, field) for field in _COUNTS} | {"checksums_added": len(found.unrecorded)}
    if dry_run:
        superseded, orphans = (
            len(sweep.superseded_snapshots(catalog.table(name), limits.keep)),
            sweep.find_orphans(name, limits.grace),
        )
        return counts | {"snapshots_expired": superseded, **sweep.count_sizes(orphans)}
    try:
        add_checksums(name, [*found.unrecorded, *_unrecorded_states(name)])
        compacted = compact.compact(name, limits)
        merged = compact.merge_manifests(name, limits.manifests)
        expired = sweep.expire(name, limits.keep)
        removed = remove(open_store(catalog.table(name).location())[0], sweep.find_orphans(name, limits.grace))
        _merge_checksums(name, limits.grace)
    except FileNotFoundError as error:
        raise Retry(f"{name}: another upkeep or an erasure was faster: {error}") from error
    if broken := check(name).problems:
        raise BadInput(f"{name} was damaged during its upkeep: {describe(name, broken)}")
    return counts | {
        "partitions_compacted": compacted.partitions, "files_compacted": compacted.files,
        "partitions_lost": compacted.lost, "manifests_merged": merged, "snapshots_expired": expired,
        **sweep.count_sizes(removed),
    }  # fmt: skip


_COUNTS = ("rows", "files", "bytes", "snapshots", "manifests", "metadata_files", "files_verified")


def add_checksums(name: str, paths: Sequence[str]) -> None:
    """Record the checksums of files that have none: of an earlier version, another engine or a killed process."""
    if paths:
        location = catalog.table(name).location()
        system, _ = open_store(location)
        there = [info.path for info in system.get_file_info(list(paths)) if info.type is fs.FileType.File]
        checksums.record(location, {path: checksums.compute(system, path) for path in there})
        log.info("%s: recorded the checksums of %d files that had none", name, len(there))


def _unrecorded_states(name: str) -> list[str]:
    """Paths of unknown states without a checksum, which shows that they were published once the others have theirs."""
    handle = catalog.table(name)
    system, root = open_store(handle.location())
    states = read_states(system, list_table(system, root), handle.io, head_of(handle.location()))
    return [state.path for state in sort_states(handle, states).unknown if not state.is_published]


def _merge_checksums(name: str, grace: timedelta) -> None:
    location = catalog.table(name).location()
    system, root = open_store(location)
    before = store_time(system, f"{root}/metadata") - grace
    checksums.merge(location, {info.path for info in list_table(system, root)}, before)


def written() -> list[str]:
    """The tables that have ever been written: those that need upkeep. A damaged one is among them."""
    return [name for name in TABLES if _is_written(name)]


def _is_written(name: str) -> bool:
    try:
        return catalog.snapshot(name) is not None
    except BadInput:  # its check names the file
        return True
