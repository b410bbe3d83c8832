"""What a record of any site may hold."""

import datetime as dt
from typing import Any

import pytest

from pipeline.collect.sites.record import Article, Comment, refuse_odd
from pipeline.errors import SchemaDrift

COMMENT: dict[str, Any] = {"thread_id": "1", "comment_id": "2", "text": "so late again"}


def test_a_whole_record_passes() -> None:
    """Texts, counts, times and flags pass, and None but for ids; false where a title was is refused."""
    refuse_odd(Article(thread_id="1", title=None, text=""), "weibo")
    refuse_odd(Comment(**COMMENT, like_count=2**63 - 1, created_at=dt.datetime.now(dt.UTC), is_hot=True), "weibo")
    with pytest.raises(SchemaDrift, match="bilibili: field 'title' should not be False"):
        refuse_odd(Article(thread_id="1", title=False, text="x"), "bilibili")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("text", False), ("user", True), ("context", ["a"]), ("parent_id", dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),
        ("created_at", "2026-01-01"), ("is_hot", 1), ("like_count", True), ("like_count", -1), ("reply_count", 2**63),
        ("comment_id", ""), ("thread_id", None), ("thread_id", 7),
    ],
)  # fmt: skip
def test_a_field_of_another_kind_is_schema_drift(field: str, value: object) -> None:
    """A value that no column can hold is refused before frames are made, with site and field."""
    with pytest.raises(SchemaDrift, match=f"weibo: field '{field}' should not be"):
        refuse_odd(Comment(**{**COMMENT, field: value}), "weibo")
