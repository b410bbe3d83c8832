"""Files of the warehouse in a folder or an object store: list, date, remove."""

import logging
import re
import uuid
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from pyarrow import fs

log = logging.getLogger(__name__)


def get_path(location: str) -> str:
    """An address as its file system writes it: no scheme."""
    return location.partition("://")[2] or location.removeprefix("file:")  # other engines write file:/folder


def get_scheme(location: str) -> str:
    """What makes a path of the location's file system an address, such as `s3://`; nothing for a local path."""
    return f"{location.partition('://')[0]}://" if "://" in location else ""


def get_version(path: str) -> int:
    """Read the number that begins a metadata file's name: how many commits led to it; -1 for other names."""
    number = re.match(r"v?(\d+)[-.].*metadata\.json$", path.rpartition("/")[2])
    return int(number[1]) if number else -1


def open_store(location: str) -> tuple[fs.FileSystem, str]:
    """The file system of an address and the path in it. pyarrow cannot parse a local address with a blank."""
    is_local = location.startswith("file:") or "://" not in location
    return fs.LocalFileSystem() if is_local else fs.FileSystem.from_uri(location)[0], get_path(location)


def is_file(system: fs.FileSystem, path: str) -> bool:
    """Test if there is a file of this path."""
    return bool(system.get_file_info(path).type is fs.FileType.File)


def list_table(system: fs.FileSystem, root: str) -> list[fs.FileInfo]:
    """The files of a table: those below its folders for data and metadata, nothing else that lies there."""
    return [info for folder in ("data", "metadata") for info in list_folder(system, f"{root}/{folder}")]


def list_folder(system: fs.FileSystem, folder: str) -> list[fs.FileInfo]:
    """All files below a folder; a link that leads out of it is not followed."""
    infos = system.get_file_info(fs.FileSelector(folder, recursive=True, allow_not_found=True))
    files = [info for info in infos if info.type is fs.FileType.File]
    if not isinstance(system, fs.LocalFileSystem):
        return files
    root = Path(folder).resolve()
    is_inside = {parent: parent.resolve().is_relative_to(root) for parent in {Path(info.path).parent for info in files}}
    return [info for info in files if is_inside[Path(info.path).parent]]


def store_time(system: fs.FileSystem, folder: str) -> datetime:
    """The time by the clock that dates the files: that of the store, not ours."""
    path = f"{folder}/clock-{uuid.uuid4()}"
    with system.open_output_stream(path) as stream:
        stream.write(b"0")
    now: datetime = system.get_file_info(path).mtime
    system.delete_file(path)
    return now


def remove(system: fs.FileSystem, files: list[fs.FileInfo]) -> list[fs.FileInfo]:
    """Delete the files; return those that were still there."""
    removed = []
    for info in files:
        with suppress(FileNotFoundError):  # another sweep was faster
            system.delete_file(info.path)
            removed.append(info)
    log.info("removed %d files", len(removed))
    return removed
