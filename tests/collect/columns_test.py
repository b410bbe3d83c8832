"""Column mappings: typed ones, presets, and what is said when none fits."""

import pytest

from pipeline.collect import columns
from pipeline.errors import BadInput

SHARED = "comment_id parent_comment_id content sub_comment_count creator_hash"
WEIBO = f"{SHARED} note_id create_time comment_like_count nickname"
BILIBILI = f"{SHARED} video_id create_time like_count"
ZHIHU = f"{SHARED} publish_time like_count content_id user_nickname"
CRAWLER = "id bid root_id created_at weibo_id user_id user_screen_name user_avatar_url text pic_url like_count"


def test_a_typed_mapping() -> None:
    """The form of a flag or a form field: ours=theirs, with commas between; nothing typed is no mapping."""
    assert columns.parse("text=content, like_count = likes") == {"text": "content", "like_count": "likes"}
    assert columns.parse("") == columns.parse(None) == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("content", "cannot read the mapping 'content'"), ("text=a,likes", "cannot read the mapping 'likes'"),
        ("text=a,text=b", "names 'text' twice, as 'a' and 'b'"), ("text=", "cannot read the mapping 'text='"),
        ("words=content", "unknown fields in the mapping: words; there are text, "),
        ("text=a,timezone=Mars/Base", "no time zone 'Mars/Base'"),
    ],
)  # fmt: skip
def test_a_mistyped_mapping(text: str, why: str) -> None:
    """What cannot be read is named together with what could."""
    with pytest.raises(BadInput, match=why):
        columns.parse(text)


@pytest.mark.parametrize(
    ("present", "source", "thread", "likes"),
    [
        (WEIBO, "weibo", "note_id", "comment_like_count"), (BILIBILI, "bilibili", "video_id", "like_count"),
        (ZHIHU, "zhihu", "content_id", "like_count"), (CRAWLER, "weibo", "weibo_id", "like_count"),
    ],
)  # fmt: skip
def test_exports_are_known_by_their_columns(present: str, source: str, thread: str, likes: str) -> None:
    """The columns are those that known tools export; none of a person's but the hashed id is mapped."""
    found, mapping = columns.choose({}, present.split(), "here")
    assert (found, mapping["thread_id"], mapping["like_count"]) == (source, thread, likes)
    assert not {"nickname", "user_nickname", "user_screen_name", "user_avatar_url"} & set(mapping.values())


def test_posts_and_archives_are_known_too() -> None:
    """Tables of posts give articles; the article-commenting archive gives both, its comments nested."""
    assert columns.choose({}, ["note_id", "content", "nickname"], "")[1]["article_text"] == "content"
    assert columns.choose({}, ["video_id", "title", "desc"], "")[0] == "bilibili"
    assert columns.choose({}, ["content_id", "title", "content_text"], "")[0] == "zhihu"
    assert columns.choose({}, ["title", "content", "category", "comments"], "")[0] == "tencent_news"


def test_a_given_mapping_wins() -> None:
    """What is typed is taken over any preset, a table with our names needs nothing, and a missing column is named."""
    assert columns.choose({}, ["text", "like_count", "mood"], "") == (
        None,
        {"text": "text", "like_count": "like_count"},
    )
    mine = {"thread_id": "thread_id", "article_text": "article_text"}
    assert columns.choose({}, ["thread_id", "article_text"], "") == (None, mine)
    given = {"text": "content", "timezone": "Asia/Shanghai"}
    assert columns.choose(given, WEIBO.split(), "") == (None, given)
    assert (
        columns.choose({"created_at": "saved"}, BILIBILI.split(), "")[1]["thread_id"] == "video_id"
    )  # one field of it
    ours = {"comment_id": "id", "text": "text"}
    assert columns.choose({"comment_id": "id"}, ["id", "text"], "") == (None, ours)  # of rows without text none is kept
    nested = {"comments": "replies", "text": "body", "like_count": "ups"}
    assert columns.choose(nested, ["replies"], "") == (None, nested)
    with pytest.raises(BadInput, match=r"^f\.csv, table 'f': no column 'words'; there are likes, text$"):
        columns.check_present({"text": "words"}, ["text", "likes"], "f.csv, table 'f'")
    with pytest.raises(BadInput, match=r"^f\.csv: no column `text` and no known export; there are a, b; assign them"):
        columns.choose({}, ["b", "a"], "f.csv")
    with pytest.raises(BadInput, match=r"^f\.csv: no column `text`"):
        columns.choose({"comment_id": "a"}, ["b", "a"], "f.csv")
    natural = ["thread_id", "title", "content", "comments"]
    with pytest.raises(BadInput, match="articles with comments need category as well; or assign them with --map comm"):
        columns.choose({}, natural, "f.jsonl")
    mapping = columns.parse("comments=comments,text=text,article_title=title,article_text=content")
    assert columns.choose(mapping, natural, "f.jsonl") == (None, mapping)
