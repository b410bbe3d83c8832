"""Transactions that are tried again."""

import pytest

from pipeline.errors import BadInput, Retry
from pipeline.tasks.record.retry import retry


def test_a_lost_race_is_tried_again() -> None:
    """What loses a race twice and then comes through gives its result; another error comes out of its attempt."""
    errors: list[Exception] = [Retry("another writer was faster")] * 2

    def work() -> str:
        if errors:
            raise errors.pop()
        return "done"

    assert retry(work) == "done"
    errors += [Retry("another writer was faster"), BadInput("row 3 has no text")]
    with pytest.raises(BadInput, match="row 3"):
        retry(work)
    assert len(errors) == 1
