"""What the tests of erasures share."""

import shutil
from pathlib import Path

import pytest

from pipeline import settings
from pipeline.llm.ledger import answers
from tests.support.rows.filled import DAY


def restore(home: Path, copy: Path, patch: pytest.MonkeyPatch) -> None:
    """Make a home what a copy of it is, as addresses in it are absolute, and put it in force."""
    answers.close()  # it holds the file that goes
    shutil.rmtree(home)
    shutil.copytree(copy, home)
    patch.setenv("UNDERTONE_HOME", str(home))


@pytest.fixture
def inbox(tables: Path) -> Path:
    """A day in the inbox of a home with empty tables."""
    folder = settings.inbox() / "weibo" / DAY.isoformat()
    folder.mkdir(parents=True)
    return folder
