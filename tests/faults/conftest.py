"""A home for the tests of faults."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline import warehouse


@pytest.fixture
def in_force(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Sets up a home and puts it, and what else is set, in force in this process."""

    def set_up(folder: Path, **env: str) -> Path:
        warehouse.close()
        for name, value in {"UNDERTONE_HOME": str(folder), **env}.items():
            monkeypatch.setenv(name, value)
        warehouse.create()
        return folder

    yield set_up
    warehouse.close()
