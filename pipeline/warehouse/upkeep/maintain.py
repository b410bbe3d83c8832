"""Upkeep: check what the metadata names, compact small files, expire old snapshots, sweep orphans.

No file goes that any state refers to, whether the catalog knows the state or not, nor one of a write in flight.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress

from pyarrow import fs

from pipeline.errors import BadInput, Retry
from pipeline.tables import TABLES
from pipeline.warehouse import catalog, checksums
from pipeline.warehouse.files import open_store, remove
from pipeline.warehouse.lineage import take_inventory
from pipeline.warehouse.upkeep import compact, sweep
from pipeline.warehouse.upkeep.check import check, describe
from pipeline.warehouse.upkeep.limits import Limits

log = logging.getLogger(__name__)
MANY = {"snapshots": 10_000, "manifests": 1_000, "metadata_files": 100}  # each scan reads the first two
_COUNTS = ("rows", "files", "bytes", "snapshots", "manifests", "metadata_files")


def maintain(name: str, limits: Limits = Limits(), *, dry_run: bool = False) -> dict[str, int]:  # noqa: B008
    """Check, compact, expire and sweep one table, or only count; return what there is, and counts of the work.

    Each step is a commit or a deletion of its own.

    Raises:
        BadInput: something the metadata names is missing or damaged; then nothing is changed, as older snapshots
            may hold what is needed to mend it.
        Retry: another writer was faster than the expiry, or another upkeep removed what this one reads.
    """
    checked = check(name, footers=limits.footers, weeks=limits.weeks)
    if checked.problems:
        raise BadInput(f"{name} is damaged, nothing was changed: {describe(name, checked.problems)}")
    if checked.other_problems:
        log.warning("%s: %s", name, describe(name, checked.other_problems))
    for field, limit in MANY.items():
        if (count := getattr(checked, field)) > limit:
            log.warning("%s has %d %s, more than %d", name, count, field, limit)
    counts = {field: getattr(checked, field) for field in _COUNTS}
    counts |= {"files_verified": len(checked.verified), "checksums_added": len(checked.unrecorded)}
    if dry_run:
        superseded_count = len(sweep.find_superseded(catalog.load_table(name), limits.keep))
        orphans = sweep.find_orphans(name, limits.grace)
        return counts | {"snapshots_expired": superseded_count, **sweep.count_sizes(orphans)}
    try:
        unrecorded_states = [state for state in take_inventory(name).lineage.unknown if not state.is_published]
        # with a checksum, these are known as published once the others have theirs
        add_checksums(name, [*checked.unrecorded, *(state.path for state in unrecorded_states)])
        partitions, files, lost = compact.compact(name, limits)
        merged_count = compact.merge_manifests(name, limits.manifests)
        expired_count = sweep.expire(name, limits.keep)
        removed = remove(open_store(catalog.load_table(name).location())[0], sweep.find_orphans(name, limits.grace))
        checksums.merge(catalog.load_table(name).location(), limits.grace)
    except FileNotFoundError as error:
        raise Retry(f"{name}: another upkeep or an erasure was faster: {error}") from error
    if problems := check(name).problems:
        raise BadInput(f"{name} was damaged during its upkeep: {describe(name, problems)}")
    return counts | {
        "partitions_compacted": partitions, "files_compacted": files, "partitions_lost": lost,
        "manifests_merged": merged_count, "snapshots_expired": expired_count, **sweep.count_sizes(removed),
    }  # fmt: skip


def add_checksums(name: str, paths: Sequence[str]) -> None:
    """Record the checksums of files that have none: of an earlier version, another engine or a killed process."""
    if paths:
        location = catalog.load_table(name).location()
        system, _ = open_store(location)
        existing = [info.path for info in system.get_file_info(list(paths)) if info.type is fs.FileType.File]
        checksums.record(location, {path: checksums.compute(system, path) for path in existing})
        log.info("%s: recorded the checksums of %d files that had none", name, len(existing))


def list_written() -> list[str]:
    """List the tables that have ever been written: those that need upkeep. A damaged one is among them."""
    names = []
    for name in TABLES:
        with suppress(BadInput):  # its check names the file
            if catalog.get_snapshot_id(name) is None:
                continue
        names.append(name)
    return names
