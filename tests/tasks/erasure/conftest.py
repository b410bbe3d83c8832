"""What the tests of erasures share."""

from pathlib import Path

import pytest

from pipeline import settings
from tests.support.rows.filled import DAY


@pytest.fixture
def inbox(tables: Path) -> Path:
    """A day in the inbox of a home with empty tables."""
    folder = settings.inbox() / "weibo" / DAY.isoformat()
    folder.mkdir(parents=True)
    return folder
