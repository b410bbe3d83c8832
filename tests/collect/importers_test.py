"""Importing: exports known by their columns, raw pages, bad files, and real data."""

import json
import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest
import xlsxwriter
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import left_out
from pipeline.collect import importers
from pipeline.collect.importers import Batch, read
from pipeline.collect.privacy import anonymise
from pipeline.collect.sites.record import Article, Comment
from pipeline.errors import BadInput, SchemaDrift
from tests.docs_test import ROOT
from tests.support.rows.row_files import write_rows

KEY = b"k" * 32
AT = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
SONG = "https://music.163.com/api/v1/resource/comments/R_SO_4_1?limit=20&offset=0"


def one(path: Path, source: str | None = None, **mapping: str) -> Batch:
    """The only batch of a file."""
    (batch,) = read(path, source, mapping, KEY)
    return batch


def test_mediacrawler_weibo(tmp_path: Path) -> None:
    """A Weibo export gives roots and replies, its hash of the user as user, its nickname nowhere."""
    shared = {"note_id": "5100000000000001", "create_time": 1700000000, "creator_hash": "00ff", "nickname": "样例甲"}
    root = {"comment_id": "5100000000000010", "parent_comment_id": "", "content": "蛋挞瘦了", "comment_like_count": "7"}
    reply = {"comment_id": "5100000000000011", "parent_comment_id": "5100000000000010", "content": "是盒子胖了"}
    path = write_rows(
        tmp_path / "a.csv",
        {**shared, **root, "sub_comment_count": 1},
        {**shared, **reply, "comment_like_count": "", "sub_comment_count": 0},
    )
    batch = one(path)
    assert (batch.source, batch.adapter, batch.hashed) == ("weibo", "table/1", False)
    own: Any = {"thread_id": "5100000000000001", "comment_id": "5100000000000010", "row_key": "a.csv-2"}
    root_comment = Comment(**own, text="蛋挞瘦了", like_count=7, reply_count=1, created_at=AT, user="00ff")
    ids = {"comment_id": "5100000000000011", "parent_id": "5100000000000010", "root_id": "5100000000000010"}
    answer = root_comment._replace(**ids, text="是盒子胖了", like_count=None, reply_count=0, row_key="a.csv-3")
    assert batch.page.comments == [root_comment, answer]


def test_mediacrawler_database(tmp_path: Path) -> None:
    """A SQLite export brings posts and comments of one source, SQLite's own tables aside."""
    with closing(sqlite3.connect(tmp_path / "a.db")) as con, con:
        con.execute("create table bilibili_video (n integer primary key autoincrement, video_id int, title, desc)")
        con.execute("insert into bilibili_video values (1, 170001, '修收音机', '外婆的')")
        columns = "comment_id, video_id, parent_comment_id, content, create_time, like_count, sub_comment_count"
        con.execute(f"create table bilibili_video_comment ({columns}, creator_hash)")
        con.execute("insert into bilibili_video_comment values (11, 170001, '0', '好', 1700000000, '5', '0', 'f')")
    videos, comments = read(tmp_path / "a.db", None, {}, KEY)
    assert videos.page.articles == [Article(thread_id="170001", title="修收音机", text="外婆的")]
    assert [(c.thread_id, c.comment_id, c.like_count) for c in comments.page.comments] == [("170001", "11", 5)]
    assert (videos.source, comments.source) == ("bilibili", "bilibili")


def test_weibo_crawler(tmp_path: Path) -> None:
    """weibo-crawler leaves Weibo's times and HTML as they are; its root of a root is the root itself."""
    shared = {"bid": "x", "weibo_id": "51", "user_id": "1", "user_screen_name": "甲"}
    shared |= {"user_avatar_url": "u", "pic_url": ""}
    times = "Thu Nov 06 10:30:00 +0800 2025", "2025-11-06 10:41:02"
    rows = [
        {"id": "71", "root_id": "71", "text": "瘦<img alt=[doge]>", "like_count": "3", "created_at": times[0]},
        {"id": "72", "root_id": "71", "text": "胖", "like_count": "", "created_at": times[1]},
    ]
    path = write_rows(tmp_path / "a.csv", *(row | shared for row in rows))
    batch = one(path)
    root, reply = batch.page.comments
    assert batch.source == "weibo"
    assert (root.text, root.parent_id, root.like_count) == ("瘦[doge]", None, 3)
    assert (reply.parent_id, reply.root_id, reply.like_count) == ("71", "71", None)
    assert root.created_at == datetime(2025, 11, 6, 2, 30, tzinfo=UTC)
    assert reply.created_at == datetime(2025, 11, 6, 2, 41, 2, tzinfo=UTC)  # written in Shanghai


def test_an_answer_to_no_comment_answers_its_root(tmp_path: Path) -> None:
    """A parent of 0, as sites write, or the comment itself leaves the root as what is answered; rows may lack both."""
    row = {"text": "好", "comment_id": "c2", "thread_id": "t", "parent_id": "0", "root_id": "c1"}
    path = write_rows(tmp_path / "a.jsonl", {"text": "好"}, row, {**row, "parent_id": "c2"})
    for comment in [comment for batch in read(path, None, {}, KEY, size=1) for comment in batch.page.comments][1:]:
        assert (comment.thread_id, comment.parent_id, comment.root_id) == ("t", "c1", "c1")
    assert left_out.list_lines() == ["a.jsonl: comments that name themselves as parent_id, which is not read: 1"]


TEXTS = st.sampled_from(["好", "", None, 5, "<p>a</p>", ["a"]])
IDS = st.sampled_from([None, "", "0", "1", "1.0", "a b", "NA", 7, True, "1e+20"])
FIELDS = dict.fromkeys(("comment_id", "thread_id", "parent_id", "root_id", "user"), IDS)
FIELDS["context"] = st.sampled_from([None, "", "上", 1.5])
FIELDS["like_count"] = st.sampled_from([None, "", 3, "4", 2.0, -1, 10**18, True])
FIELDS["created_at"] = st.sampled_from([None, "0", 1700000000, "2026-11-19 12:30:00", "yesterday"])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.fixed_dictionaries({"text": TEXTS}, optional=FIELDS), min_size=1, max_size=3))
def test_columns_read_as_rows(tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]) -> None:
    """A chunk that is read column by column gives the comments, and one with a fault the messages, of its rows."""
    path = write_rows(tmp_path_factory.mktemp("a") / "a.jsonl", *rows)

    def read_all() -> tuple[list[Batch], list[str], list[str]]:
        left_out.clear()
        notes = importers.LeftOut()
        batches = [*read(path, None, {}, KEY, skip_bad_rows=True, left_out=notes)]
        return batches, notes.bad_rows, left_out.list_lines()

    with patch.object(importers, "_NOT_COLUMNS", {"text"}):
        expected = read_all()
    assert read_all() == expected


def test_the_article_commenting_archive(tmp_path: Path) -> None:
    """Each line is an article with its comments and their up-votes, as objects."""
    comments = [{"text": "门：请微笑", "upvotes": 57, "created_at": AT.isoformat()}, {"text": "笑不出来", "upvotes": 0}]
    row = {"title": "门禁", "content": "刷脸。", "category": "society", "comments": comments, "date": "2017-04-01"}
    batch = one(write_rows(tmp_path / "Archive 1.jsonl", row))
    assert batch.source == "tencent_news"
    assert left_out.list_lines() == ["Archive 1.jsonl: ignored columns: date"]
    assert [comment.created_at for comment in batch.page.comments] == [AT, None]
    thread = "Archive 1.jsonl-1"
    assert batch.page.articles == [Article(thread_id=thread, title="门禁", text="刷脸。", category="society")]
    found = [(c.thread_id, c.comment_id, c.text, c.like_count) for c in batch.page.comments]
    assert found == [(thread, f"{thread}.1", "门：请微笑", 57), (thread, f"{thread}.2", "笑不出来", 0)]
    left_out.clear()
    (example,) = re.findall(r"```json\n(.+)\n```", (ROOT / "docs" / "commenting.md").read_text(encoding="utf-8"))
    assert one(write_rows(tmp_path / "docs.jsonl", json.loads(example))).page.comments[0].like_count == 3
    assert left_out.list_lines() == []


def test_a_field_of_the_archive_by_another_name(tmp_path: Path) -> None:
    """A field beside or in nested comments that is not read is named; a mapping of it alone leaves the layout."""
    comments = [{"text": "好", "time": AT.isoformat()}]
    row = {"title": "门禁", "content": "刷脸。", "category": "society", "comments": comments, "text": "好"}
    path = write_rows(tmp_path / "a.jsonl", row)
    (batch,) = read(path, None, {}, None)
    unread = {"a.jsonl": "text", "a.jsonl, comments of an article": "time"}
    assert left_out.list_lines() == [f"{place}: ignored columns: {name}" for place, name in unread.items()]
    (batch,) = read(path, None, {"created_at": "time"}, None)
    assert (batch.source, batch.page.articles[0].title) == ("tencent_news", "门禁")
    assert [comment.created_at for comment in batch.page.comments] == [AT]


def test_comments_with_articles_but_no_threads(tmp_path: Path) -> None:
    """Each comment stays with the article of its row, equal ones are one thread; XSum's columns are articles."""
    (path := tmp_path / "c.csv").write_text("text,title\nfirst,Title One\nsecond,Title Two\nthird,Title One\n")
    (batch,) = read(path, "forum", {"text": "text", "article_title": "title"}, None)
    titles = {article.thread_id: article.title for article in batch.page.articles}
    assert [titles[c.thread_id] for c in batch.page.comments] == ["Title One", "Title Two", "Title One"]
    assert len(titles) == 2
    batch = one(write_rows(tmp_path / "val.jsonl", {"id": "7", "document": "A dog ran.", "summary": "Escape"}))
    assert batch.source == "xsum"
    assert batch.page.articles == [Article(thread_id="7", title=None, text="A dog ran.", summary="Escape")]
    assert batch.page.comments == []


def test_nested_comments_as_texts(tmp_path: Path) -> None:
    """Comments may be a list of plain texts, or a JSON list inside a cell of a table."""
    path = write_rows(
        tmp_path / "a.jsonl", {"id": "p", "body": "文", "replies": ["一", "二"]}, {"id": "q", "body": "x"}
    )
    mapping = {"thread_id": "id", "article_text": "body", "comments": "replies"}
    batch = one(path, "mine", **mapping)
    assert [(c.thread_id, c.text) for c in batch.page.comments] == [("p", "一"), ("p", "二")]
    assert [a.thread_id for a in batch.page.articles] == ["p", "q"]
    cell = write_rows(tmp_path / "b.csv", {"id": "p", "body": "文", "replies": '["一"]'})
    assert [c.text for c in one(cell, "mine", **mapping).page.comments] == ["一"]


def test_a_plain_table_in_any_format(tmp_path: Path) -> None:
    """Our own column names need no mapping in csv, xlsx and parquet; the source is named after the file."""
    row = {"text": "好", "like_count": 3, "created_at": "2023-11-14T22:13:20Z", "context": "文"}
    for ending in ("csv", "parquet", "xlsx"):
        batch = one(write_rows(tmp_path / f"2 My File.{ending}", row))
        (comment,) = batch.page.comments
        assert batch.source == "my_file"
        assert (comment.text, comment.context) == ("好", "文")
        assert comment.thread_id.startswith(f"2 My File.{ending}")
        assert (comment.like_count, comment.created_at) == (3, AT)


@pytest.mark.parametrize("written", [
    "1700000000", "1700000000000", "1700000000.0", "1700000000000.0", "2023-11-15 06:13:20", "20231115061320",
])  # fmt: skip
def test_times(written: str, tmp_path: Path) -> None:
    """Seconds, milliseconds, a float of a spreadsheet, and local time where a zone is said."""
    path = write_rows(tmp_path / "a.csv", {"t": "好", "at": written})
    batch = one(path, "s", text="t", created_at="at", timezone="Asia/Shanghai")
    assert batch.page.comments[0].created_at == AT


def test_ids_of_pandas_and_r(tmp_path: Path) -> None:
    """A whole number that pandas or R made a float is that number; NaN or a word for none is none."""
    path = tmp_path / "a.csv"
    fields = "text,comment_id,parent_id,user,like_count,created_at"
    path.write_text(f"{fields}\nNA,2.0,1.0,NaN,NA,null\n1.0,3,0.0,nan,2.0,0.0\n", encoding="utf-8")
    columns = [(c.text, c.comment_id, c.parent_id, c.user, c.like_count, c.created_at) for c in one(path).page.comments]
    assert columns == [("NA", "2", "1", None, None, None), ("1.0", "3", None, None, 2, None)]
    pl.DataFrame({"text": ["一", "二"], "comment_id": [7.0, float("nan")]}).write_parquet(tmp_path / "a.parquet")
    assert [c.comment_id for c in one(tmp_path / "a.parquet").page.comments] == ["7", "a.parquet-2"]


def test_raw_pages(tmp_path: Path) -> None:
    """Raw pages of several sites give a batch each, redacted, users hashed; a refusal is a dropped row."""
    body = {"code": 200, "comments": [{"commentId": 5, "content": "@甲 好", "user": {"userId": 9, "nickname": "甲"}}]}
    page = {"source": "netease", "url": SONG, "fetched_at": "2026-11-19T02:00:00+00:00", "body": body}
    refused = {"source": "weibo", "url": "https://m.weibo.cn/x", "body": {"ok": -100}}
    path = write_rows(tmp_path / "a.jsonl", page, refused)
    netease, weibo = read(path, None, {}, KEY)
    hashed = anonymise.hash_user("netease", "9", KEY)
    assert (netease.source, netease.adapter, netease.hashed) == ("netease", "netease/1", True)
    assert [(c.user, c.text) for c in netease.page.comments] == [(hashed, "[MENTION] 好")]
    ((_, fetched_at, redacted_body),) = netease.raw
    assert redacted_body["comments"][0] == {"commentId": 5, "content": "[MENTION] 好", "user": {"userId": hashed}}
    assert fetched_at == datetime(2026, 11, 19, 2, tzinfo=UTC)
    assert (weibo.page.skipped, weibo.raw) == ([("refused_page", "https://m.weibo.cn/x")], [])
    assert [b.source for b in read(path, "weibo", {}, KEY)] == ["weibo"]
    (keyless,) = read(path, "netease", {}, None)
    assert keyless.page.comments[0].user is None


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"words": "a", "likes": 1}, "table 'bad': no column `text` and no known export; there are likes, words"),
        ({"like_count": "many"}, "row 2, field 'like_count': expected a whole number, found 'many'"),
        ({"like_count": 1.5}, "row 2, field 'like_count': expected a whole number, found '1.5'"),
        ({"created_at": "soon"}, r"row 2, field 'created_at': expected a time \(epoch or ISO 8601\)"),
        ({"created_at": 99999999999999999}, "row 2, field 'created_at': .* no time between years 1 and 9999"),
        ({"created_at": 17011122101239}, "row 2, field 'created_at': .*, which is 2509-"),
        ({"created_at": 202302311230}, "row 2, field 'created_at': .* a day that no month has"),
        ({"comment_id": "6.29E+18"}, "row 2, field 'comment_id': expected an id as text, found '6.29E.18'"),
    ],
)
def test_bad_tables(row: dict[str, object], why: str, tmp_path: Path) -> None:
    """A missing column and a value of another type are each one BadInput that says where and what."""
    path = write_rows(tmp_path / "bad.csv", row if "words" in row else {"text": "a", **row})
    with pytest.raises(BadInput, match=rf"bad\.csv, {why}"):
        list(read(path, None, {}, KEY))


ARCHIVE = {"title": "a", "content": "b", "category": "c"}
PAGE = {"source": "netease", "url": SONG, "body": {"code": 200}}


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"text": "a", "comment_id": 6.29e18}, "row 1, field 'comment_id': expected an id as text, found 6.29e"),
        (ARCHIVE | {"comments": 5}, "row 1, field 'comments': expected a list of comments"),
        (ARCHIVE | {"comments": "["}, "row 1, field 'comments': expected a JSON list"),
        (PAGE | {"source": "moon"}, r"row 1: a raw page has source \(one of weibo, "),
        (PAGE | {"source": None}, "row 1: a raw page has source"),
        (PAGE | {"body": []}, r"row 1: a raw page has .* body \(object\)"),
        (PAGE, "row 1: netease: field 'comments' should be list but is absent"),
    ],
)
def test_bad_json(row: dict[str, object], why: str, tmp_path: Path) -> None:
    """Ids that lost digits, comments that are no list, raw pages without their fields or of another shape are named."""
    with pytest.raises(BadInput, match=rf"bad\.jsonl, {why}") as error:
        list(read(write_rows(tmp_path / "bad.jsonl", row), None, {}, KEY))
    assert isinstance(error.value, SchemaDrift) == (row is PAGE)


def test_real_files(data: Path) -> None:
    """The counts are those of the files' NOTE.txt: 2,102 posts of at most 20 comments; two videos of 8,000 each."""
    mapping = {"thread_id": "id", "article_text": "text", "category": "label", "comments": "comments"}
    path = data / "checked_weibo_news_comments_zh" / "checked_posts_comments20.jsonl"
    posts = list(read(path, "checked", mapping, None))
    assert sum(len(batch.page.articles) for batch in posts) == 2_102
    assert sum(len(batch.page.comments) for batch in posts) == 37_451
    videos = sorted((data / "bilibili_likes_zh").glob("*.jsonl"))
    likes = {"text": "text", "like_count": "like"}
    comments = [c for path in videos for batch in read(path, "bilibili", likes, None) for c in batch.page.comments]
    assert len(comments) == 16_000
    assert all(c.like_count is not None and c.text for c in comments)


def test_weibo_crawler_database(tmp_path: Path) -> None:
    """Of a weibo-crawler database, comments and posts are read; its table of users is left out."""
    path = tmp_path / "weibo.db"
    post = "id text, bid text, user_id text, screen_name text, text text, attitudes_count integer"
    comment = "id text, bid text, root_id text, created_at text, weibo_id text, user_id text, user_screen_name text"
    with closing(sqlite3.connect(path)) as con:
        con.executescript(
            "create table user (id text, screen_name text, gender text);"
            f"create table weibo ({post}, comments_count integer, reposts_count integer, created_at text);"
            f"create table comments ({comment}, user_avatar_url text, text text, pic_url text, like_count integer);"
            "insert into user values ('7', '样例用户', 'f');"
            "insert into weibo values ('500', 'B', '7', '样例用户', '面包店关门了', 1, 1, 0, '2026-11-18 08:00:00');"
            "insert into comments values"
            " ('501', 'B', '', '2026-11-18 09:00:00', '500', '8', '样例', '', '再见了蛋挞', '', 4);"
        )
    batches = list(read(path, None, {}, None))
    assert {batch.source for batch in batches} == {"weibo"}
    assert [(c.thread_id, c.comment_id, c.text) for b in batches for c in b.page.comments] == [
        ("500", "501", "再见了蛋挞")
    ]
    assert [(a.thread_id, a.text) for b in batches for a in b.page.articles] == [("500", "面包店关门了")]


def test_rows_without_ids_never_collide(tmp_path: Path) -> None:
    """Sheets of one file, and files that differ in their ending, give ids of their own to rows that have none."""
    with xlsxwriter.Workbook(tmp_path / "day.xlsx") as book:
        for name in ("one", "two"):
            book.add_worksheet(name).write_column(0, 0, ["text", f"of {name}"])
    (tmp_path / "day.csv").write_text("text\nof csv\n", encoding="utf-8")
    (tmp_path / "day.jsonl").write_text('{"text": "of jsonl"}\n', encoding="utf-8")
    found = [c for path in sorted(tmp_path.iterdir()) for b in read(path, "mine", {}, None) for c in b.page.comments]
    assert len({(c.thread_id, c.comment_id) for c in found}) == len(found) == 4


def test_tables_without_texts(tmp_path: Path) -> None:
    """Of a workbook and a database a table without texts is left out by name, unless there is no other."""
    for names in (["note"], ["note", "body"]):
        with xlsxwriter.Workbook(tmp_path / f"{names[-1]}.xlsx") as book:
            for name in names:
                book.add_worksheet(name).write_column(0, 0, [name, f"of {name}"])
    notes, mapping = importers.LeftOut(), {"text": "body"}
    (batch,) = read(tmp_path / "body.xlsx", "mine", mapping, None, left_out=notes)
    assert [comment.text for comment in batch.page.comments] == ["of body"]
    assert notes.ignored == ["the table 'note', which has no column of texts"]
    wrong = {"note": mapping, "body": {**mapping, "like_count": "likes"}}  # the second has texts, and is not left out
    for (name, columns), absent in zip(wrong.items(), ("body", "likes"), strict=True):
        with pytest.raises(BadInput, match=f"table '{name}': no column '{absent}'; there are {name}"):
            list(read(tmp_path / f"{name}.xlsx", "mine", columns, None))


def test_a_field_that_only_later_rows_have(tmp_path: Path) -> None:
    """A mapped field may be absent from whole chunks of a jsonl file, but not from the file."""
    path = tmp_path / "sparse.jsonl"
    path.write_text('{"text": "a"}\n{"text": "b"}\n{"text": "c", "note": "x"}\n', encoding="utf-8")
    batches = list(read(path, None, {"text": "text", "context": "note"}, None, size=1))
    assert [c.context for b in batches for c in b.page.comments] == [None, None, "x"]
    with pytest.raises(BadInput, match="no column 'nowhere'"):
        list(read(path, None, {"text": "text", "context": "nowhere"}, None, size=1))
