"""What every adapter and importer returns, whatever the site (CSD-06), before anonymising and cleaning."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

import polars as pl

from pipeline.errors import Refused, SchemaDrift


class Article(NamedTuple):
    """A post, song, video, answer or news article that comments are about."""

    thread_id: str
    title: str | None
    text: str
    category: str | None = None
    summary: str | None = None


class Comment(NamedTuple):
    """One comment as its site gives it. `user` is the site's user id: it never leaves memory unhashed."""

    thread_id: str
    comment_id: str
    text: str
    parent_id: str | None = None
    root_id: str | None = None
    context: str | None = None
    like_count: int | None = None
    reply_count: int | None = None
    created_at: datetime | None = None
    user: str | None = None
    is_hot: bool = False
    row_key: str = ""


@dataclass(slots=True)
class Page:
    """What one page holds. `skipped` names rows the site itself marks as gone: (reason, row key)."""

    articles: list[Article] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


_TYPES: dict[Any, Any] = {int | None: pl.Int64(), datetime | None: pl.Datetime("us", "UTC"), bool: pl.Boolean()}
ARTICLE_SCHEMA, COMMENT_SCHEMA = (
    pl.Schema({name: _TYPES.get(kind, pl.String()) for name, kind in record.__annotations__.items()})
    for record in (Article, Comment)
)


def build_frame(records: list[Article] | list[Comment], schema: pl.Schema) -> pl.DataFrame:
    """Build the frame of records: `ARTICLE_SCHEMA` or `COMMENT_SCHEMA`."""
    return pl.DataFrame(dict(zip(schema, zip(*records, strict=True), strict=True)) if records else None, schema=schema)


def need(obj: Any, key: str, kind: type | tuple[type, ...], site: str) -> Any:
    """`obj[key]`, which must be of type `kind`; otherwise the site's format has changed."""
    value = obj.get(key) if isinstance(obj, dict) else None
    if not isinstance(value, kind):
        expected = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
        state = f"is {type(value).__name__}" if isinstance(obj, dict) and key in obj else "is absent"
        raise SchemaDrift(f"{site}: field {key!r} should be {expected} but {state}; the adapter needs an update")
    return value


_KINDS = {"created_at": datetime, "is_hot": bool, "like_count": int, "reply_count": int}  # the other fields are texts


def refuse_odd(record: Article | Comment, site: str) -> None:
    """Raise SchemaDrift for a field that no table can hold, such as an object where a text was, or an empty id."""
    for name in record._fields:
        value = getattr(record, name)
        fits = type(value) is _KINDS.get(name, str)
        if name in ("thread_id", "comment_id"):
            fits = fits and value != ""
        elif name.endswith("_count"):
            fits = value is None or (fits and 0 <= value < 2**63)
        elif value is None:
            fits = True
        if not fits:
            raise SchemaDrift(f"{site}: field {name!r} should not be {value!r:.60}; the adapter needs an update")


def refuse(site: str, code: object, meaning: str) -> Refused:
    """A refusal that the site put inside an HTTP 200."""
    return Refused(f"{site} refused inside its answer (code {code}): {meaning}")


def parse_id(value: object) -> str | None:
    """An id as text; the sites' ways of saying none (0, "0", "", null) as None. Floats would have lost digits."""
    if isinstance(value, float):
        raise SchemaDrift(f"id {value!r} came as a floating-point number and has lost digits; read ids as text")
    if not isinstance(value, str | int | None):
        raise SchemaDrift(f"an id should be a number or text, found {value!r:.60}")
    return None if value in (None, "", "0", 0) else str(value)


def count(value: object) -> int | None:
    """A count that may come as text; one below zero is none and a ValueError."""
    number = None if value in (None, "") else int(str(value))
    if number is not None and number < 0:
        raise ValueError(f"a count of {number}")
    return number


def parse_time(value: object, per_second: int = 1) -> datetime | None:
    """An epoch time in 1/`per_second` seconds, perhaps as text, as UTC; None for none and for 0."""
    number = 0 if value in (None, "") else int(str(value))
    return datetime.fromtimestamp(number / per_second, UTC) if number else None


def set_query(url: str, **changes: str) -> str:
    """The address with these fields in its query."""
    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()} | changes
    return urlunsplit(parts._replace(query=urlencode(query)))
