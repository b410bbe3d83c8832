"""Days, runs and shards."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.slices import check_params, parse_day, resolve

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@settings(deadline=None)
@given(st.text())
def test_any_text_is_a_day_or_bad_input(text: str) -> None:
    """No text is read as a day that is written otherwise."""
    with suppress(BadInput):
        assert parse_day(text).isoformat() == text


@pytest.mark.parametrize(
    ("key", "param", "expected"),
    [
        ("2026-11-01", None, "2026-11-01"), (None, "2026-11-02", "2026-11-02"),
        ("2026-11-03", "2026-11-03", "2026-11-03"), (None, None, "2026-11-19"), (None, "", "2026-11-19"),
    ],
)  # fmt: skip
def test_the_day_is_key_then_parameter_then_yesterday(key: str | None, param: str | None, expected: str) -> None:
    """The partition key comes first, then the parameter, then the last whole day of UTC, which is behind Shanghai."""
    assert resolve(key, param, NOON) == expected
    assert resolve(None, None, datetime(2026, 11, 20, 1, 30, tzinfo=timezone(timedelta(hours=8)))) == "2026-11-18"


def test_key_and_parameter_must_agree() -> None:
    """Two different days, and a parameter that the DAG does not declare, are BadInput that names them."""
    with pytest.raises(BadInput, match=r"2026-11-01.*2026-11-02"):
        resolve("2026-11-01", "2026-11-02", NOON)
    with pytest.raises(BadInput, match=r"unknown parameters: dai; this DAG has day, source"):
        check_params({"dai": "2026-11-19", "day": None}, {"source": "all", "day": None})
