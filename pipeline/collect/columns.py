"""Column mappings: which column of a file is which field of a comment, for exports people already have.

A mapping is a flat dictionary from our field to their column; `timezone` is of times without an offset.
"""

from collections.abc import Iterable, Mapping, Sequence
from zoneinfo import ZoneInfo

from pipeline.errors import BadInput
from pipeline.io.formats.chunk import list_names

FIELDS = (
    "text", "comment_id", "thread_id", "parent_id", "root_id", "context", "like_count", "reply_count", "created_at",
    "user", "article_title", "article_text", "category", "summary", "comments", "timezone",
)  # fmt: skip
# looked for inside the list of comments, where there is one, rather than in the row
_NESTED = {"text", "comment_id", "parent_id", "root_id", "like_count", "reply_count", "created_at", "user"}
_CONTENT = {"text", "comments", "article_title", "article_text"}
Columns = Mapping[str, str]


def parse(text: str | None, fields: Sequence[str] = FIELDS) -> dict[str, str]:
    """`text=content,like_count=likes` as a mapping of `fields`."""
    mapping: dict[str, str] = {}
    for part in text.split(",") if text else ():
        name, equals, column = (piece.strip() for piece in part.partition("="))
        if not equals or not column:
            expected = f"{fields[0]}=their_column,{fields[1]}=their_column"
            raise BadInput(f"cannot read the mapping {part!r:.60}; write it as {expected}")
        if name in mapping:
            raise BadInput(f"the mapping names {name!r} twice, as {mapping[name]!r} and {column!r}; choose one")
        mapping[name] = column
    return check_mapping(mapping, fields)


def check_mapping(mapping: Columns, fields: Sequence[str] = FIELDS) -> dict[str, str]:
    """The mapping, if it names only fields we know."""
    if unknown := sorted(set(mapping) - set(fields)):
        raise BadInput(f"unknown fields in the mapping: {', '.join(unknown)}; there are {', '.join(fields)}")
    if empty := [name for name, column in mapping.items() if not column]:
        raise BadInput(f"the mapping names no column for {', '.join(empty)}; leave it out, or name one")
    try:
        ZoneInfo(mapping.get("timezone", "UTC"))
    except (KeyError, ValueError, OSError) as why:
        raise BadInput(f"there is no time zone {mapping['timezone']!r}; name one such as Asia/Shanghai") from why
    return dict(mapping)


_MEDIACRAWLER = (
    "comment_id=comment_id,parent_id=parent_comment_id,text=content,reply_count=sub_comment_count,user=creator_hash"
)
_WEIBO_CRAWLER = "comment_id=id,root_id=root_id,text=text,like_count=like_count,created_at=created_at,user=user_id"
_NEWS = "article_title=title,article_text=content,category=category,comments=comments"
# exports of MediaCrawler, weibo-crawler, XSum and the article-commenting archive: the source that a table stands for,
# its mapping, and other columns that tell it from other tables; the first whose columns are all there is taken
_EXPORTS = [
    (source, parse(mapping), set(marks.split()))
    for source, mapping, marks in (
        ("weibo", f"{_MEDIACRAWLER},thread_id=note_id,like_count=comment_like_count,created_at=create_time", ""),
        ("bilibili", f"{_MEDIACRAWLER},thread_id=video_id,like_count=like_count,created_at=create_time", ""),
        ("zhihu", f"{_MEDIACRAWLER},thread_id=content_id,like_count=like_count,created_at=publish_time", ""),
        ("weibo", "thread_id=note_id,article_text=content", ""),
        ("bilibili", "thread_id=video_id,article_title=title,article_text=desc", ""),
        ("zhihu", "thread_id=content_id,article_title=title,article_text=content_text", ""),
        ("weibo", f"{_WEIBO_CRAWLER},thread_id=weibo_id,timezone=Asia/Shanghai", ""),
        ("weibo", "thread_id=id,article_text=text", "bid attitudes_count reposts_count"),
        ("xsum", "thread_id=id,article_text=document,summary=summary", ""),
        ("tencent_news", f"{_NEWS},text=text,like_count=upvotes,created_at=created_at", ""),
    )
]


def choose(mapping: Columns, present: Iterable[str], place: str) -> tuple[str | None, Columns]:
    """The source, if an export stands for one, and the mapping of a table.

    It is the given one if that names a text; else it is an export's, or of our names, and the given one counts first.
    """
    columns, mapping = set(present), check_mapping(mapping)
    export = find_export(columns)
    if not _CONTENT.isdisjoint(mapping) and (not export or columns.issuperset(list_row_columns(mapping))):
        return None, mapping
    if export:
        return export[0], {**export[1], **mapping}
    fields = {field: field for field in FIELDS if field in columns and field != "timezone"} | mapping
    if "text" in fields or {"thread_id", "article_text"} <= set(fields):
        return None, fields
    problem = f"{place}: no column `text` and no known export; there are {list_names(columns)}"
    if "comments" in columns:
        lacking = list_names(set(parse(_NEWS).values()) - columns)
        hint = "--map comments=comments,text=text,article_title=COLUMN,article_text=COLUMN,…"
        raise BadInput(f"{problem}; articles with comments need {lacking} as well; or assign them with {hint}")
    raise BadInput(f"{problem}; assign them with --map text=COLUMN,…")


def check_present(mapping: Columns, present: Iterable[str], place: str) -> None:
    """Refuse a given mapping of which a column is in no row."""
    columns = set(present)
    if absent := [column for column in list_row_columns(mapping) if column not in columns]:
        raise BadInput(f"{place}: no column {', '.join(map(repr, absent))}; there are {list_names(columns)}")


def find_export(present: Iterable[str]) -> tuple[str, Columns] | None:
    """The known export that a table with these columns is: its source and mapping."""
    columns = set(present)
    exports = (
        (source, mapping) for source, mapping, marks in _EXPORTS if columns >= {*list_row_columns(mapping), *marks}
    )
    return next(exports, None)


def list_row_columns(mapping: Columns) -> list[str]:
    """The columns that a mapping reads of a row itself: fields of nested comments are looked for in these."""
    elsewhere = _NESTED | {"timezone"} if "comments" in mapping else {"timezone"}
    return [column for field, column in mapping.items() if field not in elsewhere]
