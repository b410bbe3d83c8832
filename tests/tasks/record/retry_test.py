"""Transactions that are tried again."""

import pytest

from pipeline.errors import BadInput, Retry
from pipeline.tasks.record.retry import retry


def test_a_lost_race_is_tried_again() -> None:
    """What loses a race twice and then comes through gives its result, after three attempts."""
    losses = [Retry("another writer was faster")] * 2

    def work() -> str:
        if losses:
            raise losses.pop()
        return "done"

    assert retry(work) == "done"
    assert not losses


def test_another_error_is_not_tried_again() -> None:
    """An error that trying again cannot mend comes out of the first attempt."""
    attempts = []

    def work() -> None:
        attempts.append(1)
        raise BadInput("row 3 has no text")

    with pytest.raises(BadInput, match="row 3"):
        retry(work)
    assert attempts == [1]
