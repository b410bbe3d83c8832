"""What a request is about: ids, files of ids, and the texts, records and lines that come from them."""

import json
from pathlib import Path

import polars as pl
import pytest
import xlsxwriter  # type: ignore[import-untyped]
from polars.testing import assert_frame_equal

from pipeline import settings, warehouse
from pipeline.collect.privacy import anonymise
from pipeline.errors import BadInput, Retry
from pipeline.tables import TABLES
from pipeline.tasks.erasure import run
from pipeline.tasks.erasure.request import Request
from tests.support.rows.held import held
from tests.tasks.erasure.forgotten import (
    ERASED,
    KEY,
    MARK,
    PERSON,
    RAW,
    TASK,
    USER,
    WORDS,
    build_request,
    hash_of,
    put_comments,
    put_rows,
    put_world,
)


def test_a_line_ends_where_the_importer_ends_it(inbox: Path) -> None:
    """A record that has U+2028 or another of Unicode's line ends in it goes whole, and what others said so stays."""
    ends = "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e"
    comment = f"{ERASED}{ends}the other half of it, known to nobody else"
    put_comments(comment)
    rows = [json.dumps({"text": text}, ensure_ascii=False) for text in (comment, f"others{ends}say so", "fine")]
    (inbox / "a.jsonl").write_text("\r\n".join(rows), encoding="utf-8", newline="")
    for name in ("a.txt", "a.log"):
        (inbox / name).write_text(f"{comment}\rothers{ends}say so\n", encoding="utf-8", newline="")
    run.forget(PERSON)
    assert (inbox / "a.jsonl").read_bytes().decode() == "\r\n".join(rows[1:])
    for name in ("a.txt", "a.log"):
        assert (inbox / name).read_bytes().decode() == f"others{ends}say so\n"


def test_text_beside_the_records_of_a_file(inbox: Path) -> None:
    """Records are found by lists and fields in them too; a file that has it where no record is goes, and is named."""
    put_comments()
    threads = [
        {"thread": name, "comments": [{"text": "fine"}, {"text": text}]}
        for name, text in (("1", ERASED), ("2", "others"))
    ]
    pl.DataFrame(threads).write_parquet(inbox / "a.parquet")
    with xlsxwriter.Workbook(str(inbox / "a.xlsx")) as book:
        book.add_worksheet("said").write_row(0, 0, ["text"])
        book.set_properties({"comments": ERASED})
    outcome = run.forget(PERSON)
    assert pl.read_parquet(inbox / "a.parquet").to_dicts() == threads[1:]
    assert outcome.removed_paths == [str(inbox / "a.xlsx")]
    assert outcome.receipts.filter(store="inbox").select("row_count", "file_count").rows() == [(2, 2)]
    assert warehouse.search(WORDS[:-1]) == []


def test_an_id_that_looks_like_a_pseudonym(tables: Path) -> None:
    """Members of Zhihu have ids of 32 hexadecimal digits: with source and key at hand, these are hashed as well."""
    surrogate = "0" * 16 + "a" * 16
    users = {"0": anonymise.hash_user("zhihu", surrogate, KEY), "1": surrogate, "2": "b" * 32}
    comments = [{"comment_id": name, "text": name, "user_id": user} for name, user in users.items()]
    put_rows("comments", [{**comment, "source": "zhihu"} for comment in comments])
    assert run.preview(Request(user_ids=[surrogate], source="zhihu"))["row_count"].to_list() == [1]
    outcome = run.forget(Request(user_ids=[surrogate], source="zhihu"), key=KEY)
    assert held("comments")["user_id"].to_list() == ["b" * 32]
    assert outcome.receipts["request_count"].unique().to_list() == [1]


def test_a_short_text_is_no_label_and_no_number(inbox: Path) -> None:
    """Whose whole comments are `1`, `user` and `text` takes nothing with them that others said, answered or counted."""
    put_comments("1", "user", "text")
    remaining = {
        "labels": [{"value": "1"}], "annotations": [{"state": "adopted", "value": "1"}],
        "runs": [{"step": "ask", "config": '{"kind": "text"}'}],
        "pairs": [{"implicit": "a remark", "explicit": "text", "negative": "user"}],
        "completions": [build_request("what others say", "1")], "sentences": [{"text": "1"}],
    }  # fmt: skip
    for name, rows in remaining.items():
        put_rows(name, rows)
    before = {name: held(name) for name in remaining}
    of_theirs = [build_request(text, "what it means") for text in ("user", json.dumps({"text": "1"}))]
    put_rows("completions", [*remaining["completions"], *of_theirs])
    (inbox / "a.csv").write_text("text,likes,comment_id\n1,7,8\nfine,1,9\n")
    (inbox / "a.json").write_text('[{"text": "fine", "user": 1, "kind": "user"}, {"text": "user"}]')
    run.forget(PERSON)
    for name, rows_before in before.items():
        assert_frame_equal(held(name), rows_before)
    assert (inbox / "a.csv").read_text() == "text,likes,comment_id\nfine,1,9\n"
    assert json.loads((inbox / "a.json").read_text()) == [{"text": "fine", "user": 1, "kind": "user"}]


def test_by_comment(tables: Path) -> None:
    """A comment goes by its id, with what was made of it; others of the same person stay."""
    put_world("comments", "label_tasks", "labels")
    run.forget(Request(comment_ids=["9001"], source="weibo"))
    assert held("comments").filter(user_id=USER)["comment_id"].sort().to_list() == ["9005", "9006"]
    assert warehouse.search([hash_of(ERASED), TASK]) == []


def test_a_file_of_ids(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The DAG erases by a file of ids, also in the home; it gives counts alone and removes the file at the end."""
    put_world("comments")
    report = settings.reports() / "2026-11-19.html"
    report.parent.mkdir(parents=True)
    report.write_text(ERASED)
    monkeypatch.setattr(run, "PASSES", 1)
    strange = tables / "strange.db"
    strange.write_text(USER)
    path = tables / "ids.csv"
    content = f"source,user_id,comment_id\nweibo,{RAW},\n,{USER},9006\n"
    path.write_text(content)
    params = {"path": str(path), "origin": None, "source": None, "dry_run": False, "retrain": False}
    assert run.forget_file({**params, "dry_run": True}, KEY.decode(), "r")["stores"]
    with pytest.raises(Retry, match="strange"):
        run.forget_file(params, KEY.decode(), "r")
    assert path.read_text() == content
    strange.unlink()
    report.write_text(ERASED)
    summary = run.forget_file(params, KEY.decode(), "r")
    assert not path.exists()
    assert not [word for word in (*WORDS, "9001") if word in json.dumps(summary)]
    assert summary["days_to_report_again"] == ["2026-11-19"]
    assert held("erasures")["kind"].unique().to_list() == ["user_id+comment_id"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("source,user_id\nweibo,4711\n,4712\n", "ids.csv, row 3, field 'user_id': an id of the site needs"),
        ("user,source\n1,weibo\n", "ids.csv, row 2: unknown field 'user'"),
        ("source,comment_id\nweibo,\n", "ids.csv, row 2: expected an id in user_id, comment_id or thread_id"),
        ("source,comment_id\nWeibo!,1\n", "ids.csv, row 2: field 'source': expected a source name"),
    ],
)
def test_wrong_rows_are_named(tmp_path: Path, content: str, message: str) -> None:
    """A wrong row is refused with file, row and field before a table is opened."""
    (tmp_path / "ids.csv").write_text(content)
    with pytest.raises(BadInput, match=message):
        run.forget(Request(file=tmp_path / "ids.csv"), key=KEY)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request(), "name what to erase"), (Request(user_ids=["4711"]), "needs its source"),
        (Request(user_ids=["4711"], source="weibo"), "UNDERTONE_USER_KEY"),
        (Request(comment_ids=[" "]), "expected an id"), (Request(comment_ids=["1"], source="Weibo"), "no source name"),
    ],
)  # fmt: skip
def test_wrong_requests_are_refused(request_: Request, message: str) -> None:
    """What names nobody, or whom nobody can identify, is refused."""
    with pytest.raises(BadInput, match=message):
        run.forget(request_)


def test_a_post_of_the_user_goes_with_them(tables: Path) -> None:
    """Where the raw page shows that the user wrote the post, the article and what was made of it go; comments stay."""
    post = f"{MARK} wrote this whole post"
    body = json.dumps({"ok": 1, "data": {"id": "t1", "text": post, "user": {"id": USER}}})
    put_rows("raw_pages", [{"body": body, "url": "https://m.weibo.cn/statuses/show?id=t1"}])
    put_rows("articles", [{"text": post}, {"thread_id": "t2", "text": "others"}])
    put_rows("comments", [{"text": "nice", "context": post}])
    put_rows("threads", [{}, {"thread_id": "t2"}])
    run.forget(PERSON)
    assert warehouse.search([MARK, USER]) == []
    assert held("articles")["thread_id"].to_list() == held("threads")["thread_id"].to_list() == ["t2"]
    assert held("comments").select("text", "context").rows() == [("nice", None)]
    assert held("raw_pages").height == 0


def test_words_of_others_are_no_trace(inbox: Path) -> None:
    """What others say too, whole or in part, is only looked for by id; nor are the words that document a column."""
    same, part = "these are words that we both wrote down", "a long beginning that both of them have, and"
    texts = [(same, USER), (same, "b" * 32), (f"{part} mine", USER), (f"{part} yours", None)]
    put_rows("comments", [{"text": text, "user_id": user} for text, user in texts])
    ids = held("comments").select("thread_id", "comment_id", "text").sort("comment_id")
    ids.write_csv(inbox / "a.csv")
    sentences = (same, f"{part} mine", part)
    put_rows("sentences", [{"item_id": str(n), "text": text} for n, text in enumerate(sentences, 1)])
    run.forget(PERSON)
    assert held("sentences")["item_id"].to_list() == ["1", "3"]
    assert held("comments").height == 2
    assert pl.read_csv(inbox / "a.csv", infer_schema=False).rows() == ids[[1, 3]].rows()
    put_comments(str(TABLES["comments"].schema.columns()["text"].description))
    run.forget(PERSON)
    assert USER not in held("comments")["user_id"].to_list()
