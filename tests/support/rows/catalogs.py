"""Catalogs that are lost, copied or restored, and commits that die, for the tests of recovery."""

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline import warehouse
from pipeline.warehouse import catalog
from pipeline.warehouse.upkeep import recovery
from pipeline.warehouse.upkeep.limits import Limits
from tests.support.rows.held import die, list_files, write

EAGER = Limits(keep=timedelta(0), grace=timedelta(seconds=-5), quiet=timedelta(0), files=1)


def actions(**options: Any) -> dict[str, str]:
    """What a recovery did with the tables that it did not leave as they were."""
    return {row.table: row.action for row in warehouse.recover(**options) if row.action != "kept"}


def recover_comments(**options: Any) -> recovery.Recovered:
    """What a recovery did with the comments."""
    (row,) = [row for row in warehouse.recover(**options) if row.table == "comments"]
    return row


def list_states() -> set[Path]:
    """Metadata files of the comments."""
    return {path for path in list_files() if path.name.endswith(".metadata.json")}


def write_dying(text: str, source: str = "zhihu", owner: Any = catalog.Session, step: str = "commit") -> None:
    """Write a comment and die, by default before it is published."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, step, die)
        with pytest.raises(KeyboardInterrupt):
            write(text, source=source)


def copy_catalog(home: Path) -> Callable[[], Path]:
    """Copy the catalog; the result puts the copy in its place."""
    copy = Path(shutil.copy(home / "catalog.db", home / "old.db"))
    return lambda: copy.replace(home / "catalog.db")
