"""Sweeping: old snapshots expire, and files that nothing refers to are removed."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from pyarrow import fs
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.table import Table

from pipeline import settings
from pipeline.errors import BadInput, Retry
from pipeline.warehouse import catalog
from pipeline.warehouse.files import get_path, list_folder, open_store, remove, store_time
from pipeline.warehouse.lineage import list_references, take_inventory
from pipeline.warehouse.upkeep.limits import GRACE, KEEP
from pipeline.warehouse.write import locate_scratch

log = logging.getLogger(__name__)


def expire(name: str, keep: timedelta = KEEP) -> int:
    """Forget snapshots that another replaced longer than `keep` ago, but tagged ones; return how many."""
    handle = catalog.load_table(name)
    old = find_superseded(handle, keep)
    try:
        if old:
            handle.maintenance.expire_snapshots().by_ids(old).commit()
    except (CommitFailedException, ValidationException, ValueError) as error:  # ValueError: another has expired them
        raise Retry(f"another writer changed {name} meanwhile; nothing was expired") from error
    return len(old)


def find_superseded(handle: Table, keep: timedelta) -> list[int]:
    """Snapshots that another took the place of longer than `keep` ago.

    Their own age does not count: what was current for a month may have been pinned by a run a minute before it was
    replaced. A snapshot that never was current, such as the first half of an overwrite, is as old as itself.
    """
    metadata = handle.metadata
    before = (datetime.now(UTC) - keep).timestamp() * 1000
    replaced_at = {snapshot.snapshot_id: snapshot.timestamp_ms for snapshot in metadata.snapshots}
    for entry, following in pairwise(metadata.snapshot_log):
        replaced_at[entry.snapshot_id] = following.timestamp_ms
    referred = {ref.snapshot_id for ref in metadata.refs.values()}
    return [
        snapshot_id
        for snapshot_id, timestamp in replaced_at.items()
        if snapshot_id not in referred and (timestamp < before or keep <= timedelta(0))
    ]


def sweep(name: str, grace: timedelta = GRACE) -> int:
    """Remove files below the table that no snapshot refers to and that are older than `grace`; return their count."""
    return len(remove(open_store(catalog.load_table(name).location())[0], find_orphans(name, grace)))


def find_orphans(name: str, grace: timedelta) -> list[fs.FileInfo]:
    """List what `sweep` would remove, metadata files first: a kill in between leaves none whose files are gone."""
    handle, _, files, before, lineage = take_inventory(name, grace)
    metadata = handle.metadata
    # a state that the current one came from goes with the snapshots that it has and the current one has no more
    current_ids = {snapshot.snapshot_id for snapshot in metadata.snapshots}
    old = {state.path for state in lineage.replaced if not state.snapshot_ids <= current_ids}
    old |= {state.path for state in lineage.unpublished if state.written_at < before}
    other_states = [*lineage.pending, *lineage.unpublished, *lineage.unknown]
    remaining = [state for state in other_states if state.path not in old]
    if unread := [state.path for state in remaining if state.metadata is None and state.is_published]:
        problem = f"{unread[0]} is damaged, so the files that it refers to are unknown; nothing was swept"
        raise BadInput(f"{name}: {problem}. Restore it from a copy, or move it away if its rows are not needed")
    if lineage.unknown:
        unknown = f"the catalog does not know {len(lineage.unknown)} states that were published, such as"
        advice = "their files are kept. `undertone recover-catalog --dry-run` shows them"
        log.warning("%s: %s %s; %s", name, unknown, lineage.unknown[-1].path, advice)
    references = {get_path(handle.metadata_location)} | list_references(handle.io, metadata)
    if handle.current_snapshot() and not references.intersection(info.path for info in files):
        raise BadInput(f"{name}: nothing that the table refers to lies in {handle.location()}; nothing was swept")
    references |= {state.path for state in (*lineage.replaced, *remaining)} | old
    references |= list_references(handle.io, metadata, remaining)
    orphans = [info for info in files if info.path not in references and info.mtime < before]
    return [info for info in files if info.path in old] + orphans


def _list_abandoned(grace: timedelta) -> list[fs.FileInfo]:
    """List scratch files of attempts whose newest file is older than `grace`: a long attempt keeps its first files."""
    system, root = open_store(locate_scratch())
    if system.get_file_info(root).type is fs.FileType.NotFound:
        return []
    before = store_time(system, root) - grace
    attempts = defaultdict(list)
    for info in list_folder(system, root):
        attempts[tuple(info.path.removeprefix(f"{root}/").split("/")[:2])].append(info)
    return [info for files in attempts.values() if max(f.mtime for f in files) < before for info in files]


def count_sizes(files: Sequence[fs.FileInfo]) -> dict[str, int]:
    return {"files_removed": len(files), "bytes_freed": sum(info.size or 0 for info in files)}


def maintain_scratch(grace: timedelta = GRACE, *, dry_run: bool = False) -> dict[str, int]:
    """Sweep scratch files, copies to browse, embeddings, training states and spilt queries; return files and bytes."""
    files, before = _list_abandoned(grace), (datetime.now(UTC) - grace).timestamp()
    patterns = ("browse/*", "embeddings/*", "hashes/*", "training/*", "duckdb/*/*")
    paths = [path for pattern in patterns for path in settings.scratch("").glob(pattern) if path.is_file()]
    paths = [path for path in paths if path.stat().st_mtime < before]
    size = sum(info.size or 0 for info in files) + sum(path.stat().st_size for path in paths)
    if not dry_run:
        remove(open_store(locate_scratch())[0], files)
        for path in paths:
            path.unlink(missing_ok=True)
    return {"files_removed": len(files) + len(paths), "bytes_freed": size}
