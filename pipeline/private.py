"""Who may read what is written: below the home its owner alone; elsewhere whoever a person's umask lets.

The command runs under the umask 077; a library leaves the umask, and its home is a folder of its owner alone.
"""

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

OTHERS = stat.S_IRWXG | stat.S_IRWXO
MASK = 0o077
CLOCK_TICK = 0.02  # seconds by which the times of files may lag


@contextmanager
def set_umask() -> Iterator[int]:
    """Files are the owner's alone from here on; yields the umask that was in force."""
    mask = os.umask(MASK)
    try:
        yield mask
    finally:
        os.umask(mask)


def make_folder(folder: Path) -> Path:
    """Make a folder, and those above it that are absent, for its owner alone whatever the umask."""
    absent = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(absent):
        path.mkdir(mode=0o700, exist_ok=True)
    return folder


def make_draft(parent: Path) -> Path:
    """A new folder beside the one that it becomes; unlike one of `tempfile` it follows the umask."""
    parent.mkdir(parents=True, exist_ok=True)
    draft = parent / f".draft-{uuid4().hex}"
    draft.mkdir()
    return draft


def list_readable(folder: Path) -> list[Path]:
    """Files and folders of ours, `folder` among them, that others may read, write or enter."""
    return [path for path in _walk(folder) if _is_ours(path) and path.lstat().st_mode & OTHERS]


def tighten(folder: Path) -> int:
    """Take from others what they may do with `folder` and what is in it; return how many paths this concerned."""
    paths = list_readable(folder)
    for path in paths:
        with suppress(FileNotFoundError):
            path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~OTHERS)
    return len(paths)


class Output:
    """A file or folder that a person names: what is written there gets the rights that their umask gives.

    Paths below `home` stay private, and what was there before keeps its rights, also where it is replaced.
    """

    def __init__(self, path: Path, home: Path) -> None:
        self.path, self.home = path.resolve(), home
        self.started_at = time.time() - CLOCK_TICK
        self.modes: dict[Path, int] = {}
        for part in _walk(path.resolve(), home):
            with suppress(FileNotFoundError):
                self.modes[part] = stat.S_IMODE(part.lstat().st_mode)

    def share(self, mask: int) -> None:
        """Give these rights to what was written since."""
        for part in _walk(self.path, self.home):
            with suppress(FileNotFoundError):  # another command removes its drafts meanwhile
                status = part.lstat()
                if _is_ours(part) and status.st_ctime >= self.started_at:
                    new_mode = (0o777 if stat.S_ISDIR(status.st_mode) else 0o666) & ~mask
                    part.chmod(self.modes.get(part, new_mode))


def _walk(folder: Path, excluded: Path | None = None) -> Iterator[Path]:
    """A folder and all in it, but for `excluded` and what is in that."""
    if excluded and folder.is_relative_to(excluded):
        return
    if folder.exists():
        yield folder
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if Path(parent) / name != excluded]
        yield from (Path(parent) / name for name in (*folders, *files))


def _is_ours(path: Path) -> bool:
    """Whether this is a file or folder, not a link or socket, of the user who runs us."""
    with suppress(FileNotFoundError):
        status = path.lstat()
        return (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)) and status.st_uid == os.geteuid()
    return False
