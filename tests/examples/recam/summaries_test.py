"""Articles with summaries are read from each published layout, and what is left out has its reason (REC-03)."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.errors import BadInput
from pipeline.examples.recam.summaries import read
from tests.examples.sources.writing import jsonl

RIVER = "The river rose in the night.\nPeople left their houses."
FLOOD = "A village has been abandoned because of a flood."


def article(summary: Any = FLOOD, text: Any = RIVER, **changes: object) -> dict[str, object]:
    """A row as XSum's copies have it."""
    return {"id": "1", "document": text, "summary": summary, **changes}


@pytest.mark.parametrize(
    ("column", "ending"), [("document", "csv"), ("article", "tsv"), ("text", "parquet"), ("text", "jsonl")]
)
def test_formats_and_columns(tmp_path: Path, ending: str, column: str) -> None:
    """The text is known by three names, in whatever format; ids may be the rows' places."""
    frame = pl.DataFrame({column: [RIVER, "It came."], "summary": [FLOOD, "Hope is back."]})
    path = tmp_path / f"a.{ending}"
    writers = {"csv": frame.write_csv, "parquet": frame.write_parquet, "jsonl": frame.write_ndjson}
    writers.get(ending, lambda file: frame.write_csv(file, separator="\t"))(path)
    rows = read(path).rows
    first = 2 if ending in {"csv", "tsv"} else 1  # a header is a row
    assert rows["article_id"].to_list() == [f"a.{ending}:{first}", f"a.{ending}:{first + 1}"]
    assert rows.select("text", "summary").rows() == [(RIVER, FLOOD), ("It came.", "Hope is back.")]


def test_what_is_dropped_has_its_reason(tmp_path: Path) -> None:
    """No text, no summary, a placeholder in it, an id again, the same texts again; the rest is kept."""
    rows = [
        article(id="a"), article(id="b", document=" \n"), {"id": "c", "summary": "No text."}, article(" ", id="d"),
        article(None, id="e"), article("A @placeholder.", id="f"), article("Other.", id="a"),
        article(FLOOD.upper(), id="g"), article("Another summary.", id="h"), article("Other.", id="i"),
    ]  # fmt: skip
    articles = read(jsonl(tmp_path / "x.jsonl", *rows))
    assert articles.rows["article_id"].to_list() == ["a", "h", "i"]  # what is dropped makes no duplicate
    assert articles.dropped.rows() == [
        ("no_text", "b"), ("no_text", "c"), ("no_summary", "d"), ("no_summary", "e"), ("has_placeholder", "f"),
        ("duplicate", "a"), ("duplicate", "g"),
    ]  # fmt: skip


def write_article(folder: Path, name: str, summary: str = FLOOD, text: str = RIVER, mark: str = "XSUM") -> None:
    """A file of one article with our texts, as EdinburghNLP's script writes it, or as its authors' files are."""
    folder.mkdir(exist_ok=True)
    first = "INTRODUCTION" if mark == "XSUM" else "FIRST-SENTENCE"
    title = "" if mark == "XSUM" else "[SN]TITLE[SN]\nFlood\n\n"
    (folder / name).write_text(
        f"[{mark}]URL[{mark}]\nhttp://example.org/20\n\n{title}[{mark}]{first}[{mark}]\n{summary}\n\n"
        f"[{mark}]RESTBODY[{mark}]\n{text}\n",
        encoding="utf-8",
    )


def test_a_folder_of_articles(tmp_path: Path) -> None:
    """Both kinds of files, in the order of their names; names of buttons are no text; other files are ignored."""
    folder = tmp_path / "bbc"
    write_article(folder, "31.summary", text=f"Share this with\nEmail\nLinkedIn\nCopy this link\n{RIVER}", mark="SN")
    write_article(folder, "20.data", summary="Hope is back.")
    write_article(folder, "9.data", text="\n")
    (folder / "README.md").write_text("About", encoding="utf-8")
    articles = read(folder)
    assert articles.rows.rows() == [("20", RIVER, "Hope is back.", None), ("31", RIVER, FLOOD, None)]
    assert articles.dropped.rows() == [("no_text", "9")]
    (tmp_path / "none").mkdir()
    with pytest.raises(BadInput, match=r"expected articles in files <id>.data or <id>.summary, found none"):
        read(tmp_path / "none")


def test_splits_by_the_official_file(tmp_path: Path) -> None:
    """An article has the split that lists its id, or none."""
    (tmp_path / "splits.json").write_text('{"test": ["1", "7"], "train": ["2"], "validation": []}', encoding="utf-8")
    entries = [article(f"Summary {name}.", id=name) for name in ("1", "2", "3")]
    articles = read(jsonl(tmp_path / "x.jsonl", *entries), tmp_path / "splits.json")
    assert articles.rows["split"].to_list() == ["test", "train", None]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"dev": ["1"]}', "unknown splits dev; expected train, validation, test"),
        ('{"test": "1"}', "field 'test' should be a list of ids as texts, found '1'"),
        ('{"test": [1]}', r"field 'test' should be a list of ids as texts, found \[1\]"),
        ('{"test": ["1"], "train": ["1"]}', "'1' is in two splits, test and train"),
        ("[]", "expected a JSON object"),
    ],
)
def test_a_split_file_of_another_shape(tmp_path: Path, text: str, message: str) -> None:
    """It is refused with its name and the field."""
    (tmp_path / "splits.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=rf"splits.json.*{message}"):
        read(jsonl(tmp_path / "x.jsonl", article()), tmp_path / "splits.json")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (article(summary=3), "row 2: field 'summary' should be a text, found 3"),
        (article(text=["a"]), r"row 2: field 'text' should be a text, found \['a'\]"),
        (article(id=None), "row 2: field 'article_id' should be a text or a whole number, found None"),
        (article(id=" "), "row 2: field 'article_id' should be a text or a whole number, found ' '"),
        (article(id=True), "row 2: field 'article_id' should be a text or a whole number, found True"),
    ],
)
def test_a_broken_row_is_named(tmp_path: Path, entry: dict[str, object], message: str) -> None:
    """By file, row and field; a file without a column is refused, too."""
    with pytest.raises(BadInput, match=rf"x.jsonl, {message}"):
        read(jsonl(tmp_path / "x.jsonl", article("First."), entry))
    path = jsonl(tmp_path / "x.jsonl", {"id": "1", "body": RIVER, "summary": FLOOD})
    with pytest.raises(BadInput, match=r"expected a column document or article or text .*; found id, body, summary"):
        read(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[SN]URL[SN]\nx\n[SN]RESTBODY[SN]\ny\n", "20.summary: no section FIRST-SENTENCE or INTRODUCTION"),
        ("[SN]FIRST-SENTENCE[SN]\nx\n", "20.summary: no section RESTBODY"),
        ("x\n[SN]RESTBODY[SN]\n", r"20.summary, line 1: expected a mark such as \[SN\]URL\[SN\], found 'x'"),
        ("[SN]RESTBODY[SN]\nx\n[SN]RESTBODY[SN]\n", "20.summary, line 3: a second section"),
        ("[SN]RESTBODY[XSUM]\nx\n", "20.summary, line 1: expected a mark"),
        ("", "20.summary: no section FIRST-SENTENCE"),
    ],
)
def test_a_broken_article_is_named(tmp_path: Path, text: str, message: str) -> None:
    """A file of one article without its sections, or with one twice, is refused by file and line."""
    (tmp_path / "20.summary").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=message):
        read(tmp_path)


def test_the_real_files(data: Path) -> None:
    """The 1,000 articles of XSum's validation part are read whole, and all are in that split (its NOTE.txt)."""
    folder = data / "xsum"
    articles = read(folder / "xsum_validation_1000.jsonl", folder / "XSum-TRAINING-DEV-TEST-SPLIT-90-5-5.json")
    assert articles.rows["split"].value_counts().rows() == [("validation", articles.rows.height)]
    assert articles.rows.height + articles.dropped.height == 1000
    assert articles.dropped.rows() == [("no_text", articles.dropped["row_key"][0])]  # the file has no document of it
