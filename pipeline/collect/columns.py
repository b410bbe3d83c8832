"""Column mappings: which column of a file is which field of a comment, for exports people already have.

A mapping is a flat dictionary from our field to their column, so that it can be typed into a form or a flag. Fields:
`text`, `comment_id`, `thread_id`, `parent_id`, `root_id`, `context`, `like_count`, `reply_count`, `created_at`, `user`,
`article_title`, `article_text`, `category`, `summary`; `comments` names a column with a list of comments (texts, or
objects whose fields the other names then mean); `timezone` says where times without an offset were written (UTC by
default).
"""

from collections.abc import Iterable, Mapping
from zoneinfo import ZoneInfo

from pipeline.errors import BadInput
from pipeline.io.formats.chunk import list_names

FIELDS = (
    "text", "comment_id", "thread_id", "parent_id", "root_id", "context", "like_count", "reply_count", "created_at",
    "user", "article_title", "article_text", "category", "summary", "comments", "timezone",
)  # fmt: skip

Columns = Mapping[str, str]

_MEDIACRAWLER = {
    "comment_id": "comment_id",
    "parent_id": "parent_comment_id",
    "text": "content",
    "like_count": "like_count",
    "reply_count": "sub_comment_count",
    "created_at": "create_time",
    "user": "creator_hash",
}

PRESETS: dict[str, tuple[str | None, Columns]] = {
    # name: (source it stands for, mapping); the first whose columns are all there is taken
    "mediacrawler weibo comments": (
        "weibo",
        {**_MEDIACRAWLER, "thread_id": "note_id", "like_count": "comment_like_count"},
    ),
    "mediacrawler bilibili comments": ("bilibili", {**_MEDIACRAWLER, "thread_id": "video_id"}),
    "mediacrawler zhihu comments": (
        "zhihu",
        {**_MEDIACRAWLER, "thread_id": "content_id", "created_at": "publish_time"},
    ),
    "mediacrawler weibo posts": ("weibo", {"thread_id": "note_id", "article_text": "content"}),
    "mediacrawler bilibili videos": (
        "bilibili",
        {"thread_id": "video_id", "article_title": "title", "article_text": "desc"},
    ),
    "mediacrawler zhihu contents": (
        "zhihu",
        {"thread_id": "content_id", "article_title": "title", "article_text": "content_text"},
    ),
    "weibo-crawler comments": (
        "weibo",
        {
            "comment_id": "id",
            "root_id": "root_id",
            "thread_id": "weibo_id",
            "text": "text",
            "like_count": "like_count",
            "created_at": "created_at",
            "user": "user_id",
            "timezone": "Asia/Shanghai",
        },
    ),
    "weibo-crawler posts": ("weibo", {"thread_id": "id", "article_text": "text"}),
    "xsum": ("xsum", {"thread_id": "id", "article_text": "document", "summary": "summary"}),
    "article commenting": (
        "tencent_news",
        {
            "article_title": "title",
            "article_text": "content",
            "category": "category",
            "comments": "comments",
            "text": "text",
            "like_count": "upvotes",
        },
    ),
}

_MARKS = {"weibo-crawler posts": {"bid", "attitudes_count", "reposts_count"}}  # that tell it from other tables

_LITERAL = {"timezone"}


def parse(text: str | None) -> dict[str, str]:
    """`text=content,like_count=likes` as a mapping."""
    if not text:
        return {}
    mapping: dict[str, str] = {}
    for part in text.split(","):
        name, equals, column = (piece.strip() for piece in part.partition("="))
        if not equals or not column:
            raise BadInput(
                f"cannot read the mapping {part!r:.60}; write it as text=their_column,like_count=their_column"
            )
        if name in mapping:
            raise BadInput(f"the mapping names {name!r} twice, as {mapping[name]!r} and {column!r}; choose one")
        mapping[name] = column
    return checked(mapping)


def checked(mapping: Mapping[str, str]) -> dict[str, str]:
    """The mapping, if it names only fields we know."""
    if unknown := sorted(set(mapping) - set(FIELDS)):
        raise BadInput(f"unknown fields in the mapping: {', '.join(unknown)}; there are {', '.join(FIELDS)}")
    if empty := [name for name, column in mapping.items() if not column]:
        raise BadInput(f"the mapping names no column for {', '.join(empty)}; leave it out, or name one")
    try:
        ZoneInfo(mapping.get("timezone", "UTC"))
    except (KeyError, ValueError, OSError) as why:
        raise BadInput(f"there is no time zone {mapping['timezone']!r}; say one such as Asia/Shanghai") from why
    return dict(mapping)


def choose(given: Mapping[str, str], present: Iterable[str], where: str) -> tuple[str | None, Columns]:
    """The mapping for a table with these columns: the given one, else a preset that fits, else columns of our names.

    Returns the source a preset stands for, or None, and the mapping.
    """
    columns = set(present)
    if given:
        return None, checked(given)
    if found := preset(columns):
        return found
    own = {field: field for field in FIELDS if field in columns and field not in _LITERAL}
    if "text" in own or {"thread_id", "article_text"} <= set(own):
        return None, own
    raise BadInput(
        f"{where}: no column `text` and no known export; there are {list_names(columns)}; "
        f"say which is which with --map text=COLUMN,…"
    )


def all_there(given: Mapping[str, str], present: Iterable[str], where: str) -> None:
    """Refuse a given mapping of which a column is in no row."""
    columns = set(present)
    absent = [c for f, c in given.items() if f not in _LITERAL and c not in columns and not _nested(f, given)]
    if absent:
        raise BadInput(f"{where}: no column {', '.join(map(repr, absent))}; there are {list_names(columns)}")


def preset(present: Iterable[str]) -> tuple[str | None, Columns] | None:
    """The known export that a table with these columns is: its source and mapping."""
    columns = set(present)
    for name, (source, mapping) in PRESETS.items():
        wanted = {c for f, c in mapping.items() if f not in _LITERAL and not _nested(f, mapping)}
        if wanted | _MARKS.get(name, set()) <= columns:
            return source, mapping
    return None


def _nested(field: str, mapping: Mapping[str, str]) -> bool:
    """Whether the field is looked for inside the list of comments rather than in the row."""
    return "comments" in mapping and field in (
        "text", "comment_id", "parent_id", "root_id", "like_count", "reply_count", "created_at", "user",
    )  # fmt: skip
