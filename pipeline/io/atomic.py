"""Write a file or folder complete or not at all: a draft beside its place, then one rename.

Drafts begin with `.draft-`, by which a sweep knows those of a process that was killed.
"""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.errors import BadInput
from pipeline.private import make_draft


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Yield a draft to write to, which replaces `path` at the end; after an error `path` is as it was.

    Folders above it are made. The draft ends like the file, as some writers go by the ending.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".draft-{secrets.token_hex(4)}{path.suffix}")
    draft.touch(0o600)
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Replace a file by this text in UTF-8."""
    with replace_file(path) as draft:
        draft.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def create_folder(folder: Path, *, may_exist: bool = False) -> Iterator[Path]:
    """Yield a draft to fill, which becomes `folder` at the end; after an error nothing remains of it.

    OSError if `folder` holds something, unless it may exist: another process may have filled it meanwhile with the same
    content, which then stays.
    """
    draft = make_draft(folder.parent)
    try:
        yield draft
        try:
            draft.rename(folder)
        except OSError:
            if not (may_exist and folder.is_dir()):
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def check_empty(folder: Path) -> None:
    """Raise BadInput unless a folder is absent or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder}: is there already; choose another folder")
