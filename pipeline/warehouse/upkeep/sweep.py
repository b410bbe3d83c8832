"""Sweeping: old snapshots expire, and files that nothing refers to are removed."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from pyarrow import fs
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.table import Table

from pipeline import settings
from pipeline.errors import BadInput, Retry
from pipeline.warehouse import catalog, scratch
from pipeline.warehouse.files import list_folder, list_table, open_store, path_of, remove, store_time
from pipeline.warehouse.lineage import head_of, read_states, referenced, sort_states
from pipeline.warehouse.upkeep.limits import GRACE, KEEP

log = logging.getLogger(__name__)


def expire(name: str, keep: timedelta = KEEP) -> int:
    """Forget snapshots that stopped being current longer than `keep` ago; return how many.

    The current one and tagged ones stay. With no time to keep, all others go, whatever their writers' clocks said.
    """
    handle = catalog.table(name)
    old = superseded_snapshots(handle, keep)
    try:
        if old:
            handle.maintenance.expire_snapshots().by_ids(old).commit()
    except (CommitFailedException, ValidationException, ValueError) as why:  # ValueError: another has expired them
        raise Retry(f"another writer changed {name} meanwhile; nothing was expired") from why
    return len(old)


def superseded_snapshots(handle: Table, keep: timedelta) -> list[int]:
    """Snapshots that another took the place of longer than `keep` ago.

    Their own age is not asked: what was current for a month may have been pinned by a run a minute before it was
    replaced. A snapshot that never was current, such as the first half of an overwrite, is as old as itself.
    """
    metadata = handle.metadata
    before = (datetime.now(UTC) - keep).timestamp() * 1000
    until = {s.snapshot_id: s.timestamp_ms for s in metadata.snapshots}
    for one, following in pairwise(metadata.snapshot_log):
        until[one.snapshot_id] = following.timestamp_ms
    held = {ref.snapshot_id for ref in metadata.refs.values()}
    return [s for s, at in until.items() if s not in held and (at < before or keep <= timedelta(0))]


def sweep(name: str, grace: timedelta = GRACE) -> int:
    """Remove files below the table that no snapshot refers to and that are older than `grace`; return their count."""
    orphans = find_orphans(name, grace)
    return len(remove(open_store(catalog.table(name).location())[0], orphans))


def find_orphans(name: str, grace: timedelta) -> list[fs.FileInfo]:
    """What `sweep` would remove, metadata files first: a kill in between leaves none whose files are gone.

    Listed first, compared second: what is committed in between is among the references.
    """
    handle = catalog.table(name)
    system, root = open_store(handle.location())
    before = store_time(system, f"{root}/metadata") - grace
    listed = list_table(system, root)
    states = read_states(system, listed, handle.io, head_of(handle.location()))
    handle = catalog.table(name)
    metadata = handle.metadata
    lineage = sort_states(handle, states)
    # a state that the current one came from goes with the snapshots that it has and the current one has no more
    old = {s.path for s in lineage.replaced if not s.snapshot_ids <= {x.snapshot_id for x in metadata.snapshots}}
    old |= {s.path for s in lineage.unpublished if s.written_at < before}
    others = [s for s in (*lineage.pending, *lineage.unpublished, *lineage.unknown) if s.path not in old]
    if unread := [state.path for state in others if state.metadata is None and state.is_published]:
        raise BadInput(
            f"{name}: nobody knows which files the damaged {unread[0]} refers to, so nothing was swept; bring it back "
            "from a copy, or move it away if its rows are not needed"
        )
    if lineage.unknown:
        log.warning(
            "%s: the catalog does not know %d states that were published, such as %s; their files are kept. `undertone "
            "recover-catalog --dry-run` shows them", name, len(lineage.unknown), lineage.unknown[-1].path,
        )  # fmt: skip
    keep = {path_of(handle.metadata_location)} | referenced(handle.io, metadata)
    if handle.current_snapshot() and not keep.intersection(info.path for info in listed):
        raise BadInput(f"{name}: nothing that the table refers to was found below {root}; nothing was swept")
    keep |= {state.path for state in (*lineage.replaced, *others)}
    keep |= referenced(handle.io, metadata, others)
    gone = [info for info in listed if info.path in old]
    keep |= old
    return gone + [info for info in listed if info.path not in keep and info.mtime < before]


def sweep_scratch(grace: timedelta = GRACE) -> int:
    """Remove the folders of attempts that have written nothing for `grace`; return the count of their files."""
    return len(remove(open_store(scratch.root())[0], _abandoned(grace)))


def _abandoned(grace: timedelta) -> list[fs.FileInfo]:
    """Scratch files of attempts whose newest file is older than `grace`: a long attempt keeps its first files."""
    system, root = open_store(scratch.root())
    if system.get_file_info(root).type is fs.FileType.NotFound:
        return []
    before = store_time(system, root) - grace
    attempts = defaultdict(list)
    for info in list_folder(system, root):
        attempts[tuple(info.path.removeprefix(f"{root}/").split("/")[:2])].append(info)
    return [info for files in attempts.values() if max(f.mtime for f in files) < before for info in files]


def sweep_home(grace: timedelta = GRACE) -> int:
    """Remove embeddings, training states and what a killed query spilt that nobody used for `grace`; their count."""
    old = _unused(grace)
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


def _unused(grace: timedelta) -> list[Path]:
    before = (datetime.now(UTC) - grace).timestamp()
    return [
        path
        for name in ("embeddings/*", "training/*", "duckdb/*/*")
        for path in settings.scratch("").glob(name)
        if path.is_file() and path.stat().st_mtime < before
    ]


def count_sizes(files: Sequence[fs.FileInfo]) -> dict[str, int]:
    return {"files_removed": len(files), "bytes_freed": sum(info.size or 0 for info in files)}


def maintain_scratch(grace: timedelta = GRACE, *, dry_run: bool = False) -> dict[str, int]:
    """Sweep what is not a table: scratch files, embeddings, training states; return files and bytes."""
    files = _abandoned(grace)
    paths = _unused(grace)
    size = sum(info.size or 0 for info in files) + sum(path.stat().st_size for path in paths)
    if not dry_run:
        remove(open_store(scratch.root())[0], files)
        sweep_home(grace)
    return {"files_removed": len(files) + len(paths), "bytes_freed": size}
