"""Articles with summaries are read from each published layout, and what is left out has its reason (REC-03)."""

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.examples.recam import summaries as work
from pipeline.examples.recam.summaries import read, read_batches

RIVER = "The river rose in the night.\nPeople left their houses."
FLOOD = "A village has been abandoned because of a flood."


def rows(path: Path, *entries: dict[str, object]) -> Path:
    """A JSON Lines file."""
    path.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in entries), encoding="utf-8")
    return path


def article(summary: str = FLOOD, text: str = RIVER, **more: object) -> dict[str, object]:
    """A row as XSum's copies have it."""
    return {"id": "1", "document": text, "summary": summary, **more}


def test_rows_of_xsum(tmp_path: Path) -> None:
    """id, document and summary are an article; it has no title and, without a split file, no split."""
    found = read(rows(tmp_path / "x.jsonl", article(f" {FLOOD}\n"), article("Hope is back.", "It came.", id=22)))
    assert found.rows.rows() == [("1", None, RIVER, FLOOD, None), ("22", None, "It came.", "Hope is back.", None)]
    assert dict(found.rows.schema) == work.SCHEMA
    assert found.dropped.height == 0


@pytest.mark.parametrize("column", ["document", "article", "text", "text_of_it"])
@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl"])
def test_formats_and_columns(tmp_path: Path, ending: str, column: str) -> None:
    """The text is known by three names and any that a mapping says, in whatever format; ids may be the rows' places."""
    frame = pl.DataFrame({"title": ["Flood", None], column: [RIVER, "It came."], "summary": [FLOOD, "Hope is back."]})
    path = tmp_path / f"a.{ending}"
    {
        "csv": frame.write_csv, "tsv": lambda to: frame.write_csv(to, separator="\t"),
        "parquet": frame.write_parquet, "jsonl": frame.write_ndjson,
    }[ending](path)  # fmt: skip
    found = read(path, {"text": column} if column == "text_of_it" else None).rows
    first = 2 if ending in {"csv", "tsv"} else 1  # a header is a row
    assert found["article_id"].to_list() == [f"a.{ending}:{first}", f"a.{ending}:{first + 1}"]
    assert found.select("title", "text", "summary").rows() == [
        ("Flood", RIVER, FLOOD), (None, "It came.", "Hope is back."),
    ]  # fmt: skip


def test_what_is_dropped_has_its_reason(tmp_path: Path) -> None:
    """No text, no summary, a placeholder in it, an id again, the same texts again; the rest is kept."""
    path = rows(
        tmp_path / "x.jsonl",
        article(id="a"), article(id="b", document=" \n"), {"id": "c", "summary": "No text."}, article(" ", id="d"),
        article(None, id="e"), article("A @placeholder.", id="f"), article("Other.", id="a"),  # type: ignore[arg-type]
        article(FLOOD.upper(), id="g"), article("Another summary.", id="h"),
    )  # fmt: skip
    found = read(path)
    assert found.rows["article_id"].to_list() == ["a", "h"]
    assert found.dropped.rows() == [
        ("no_text", "b"), ("no_text", "c"), ("no_summary", "d"), ("no_summary", "e"), ("has_placeholder", "f"),
        ("duplicate", "a"), ("duplicate", "g"),
    ]  # fmt: skip


def one(folder: Path, name: str = "20.data", summary: str = FLOOD, text: str = RIVER, mark: str = "XSUM") -> None:
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
    """Both kinds of files, in the order of their names; names of buttons are no text; other files are left alone."""
    folder = tmp_path / "bbc"
    one(folder, "31.summary", text=f"Share this with\nEmail\nLinkedIn\nCopy this link\n{RIVER}", mark="SN")
    one(folder, "20.data", summary="Hope is back.")
    one(folder, "9.data", text="\n")
    (folder / "README.md").write_text("About", encoding="utf-8")
    found = read(folder)
    assert found.rows.rows() == [("20", None, RIVER, "Hope is back.", None), ("31", "Flood", RIVER, FLOOD, None)]
    assert found.dropped.rows() == [("no_text", "9")]


def test_splits_by_the_official_file(tmp_path: Path) -> None:
    """An article has the split that lists its id, or none."""
    (tmp_path / "splits.json").write_text('{"test": ["1", "7"], "train": ["2"], "validation": []}', encoding="utf-8")
    entries = [article(f"Summary {name}.", id=name) for name in ("1", "2", "3")]
    found = read(rows(tmp_path / "x.jsonl", *entries), splits=tmp_path / "splits.json")
    assert found.rows["split"].to_list() == ["test", "train", None]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"dev": ["1"]}', "unknown splits dev; expected train, validation, test"),
        ('{"test": "1"}', "field 'test' should be a list of ids as texts, found '1'"),
        ('{"test": [1]}', r"field 'test' should be a list of ids as texts, found \[1\]"),
        ('{"test": ["1"], "train": ["1"]}', "'1' is in two splits, test and train"),
        ("[]", "expected a JSON object"),
    ],
)
def test_a_split_file_of_another_shape(tmp_path: Path, text: str, why: str) -> None:
    """It is refused with its name and the field."""
    (tmp_path / "splits.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=rf"splits.json.*{why}"):
        read(rows(tmp_path / "x.jsonl", article()), splits=tmp_path / "splits.json")


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (article(summary=3), "row 2: field 'summary' should be a text, found 3"),  # type: ignore[arg-type]
        (article(text=["a"]), r"row 2: field 'text' should be a text, found \['a'\]"),  # type: ignore[arg-type]
        (article(id=None), "row 2: field 'article_id' should be a text or a whole number, found None"),
        (article(id=" "), "row 2: field 'article_id' should be a text or a whole number, found ' '"),
        (article(id=1.5), "row 2: field 'article_id' should be a text or a whole number, found 1.5"),
        (article(id=True), "row 2: field 'article_id' should be a text or a whole number, found True"),
    ],
)
def test_a_broken_row_is_named(tmp_path: Path, entry: dict[str, object], why: str) -> None:
    """By file, row and field."""
    with pytest.raises(BadInput, match=rf"x.jsonl, {why}"):
        read(rows(tmp_path / "x.jsonl", article("First."), entry))


def test_absent_columns_are_named(tmp_path: Path) -> None:
    """A file without the columns, a mapping to a column that is not there or of an unknown field are refused."""
    path = rows(tmp_path / "x.jsonl", {"id": "1", "body": RIVER, "summary": FLOOD})
    with pytest.raises(BadInput, match="no column document or article or text with the text; found id, body, summ"):
        read(path)
    assert read(path, {"text": "body"}).rows.height == 1
    with pytest.raises(BadInput, match="no column lead with the summary"):
        read(path, {"text": "body", "summary": "lead"})
    with pytest.raises(BadInput, match="no column key with the article_id"):
        read(path, {"text": "body", "article_id": "key"})
    with pytest.raises(BadInput, match="unknown fields in the mapping: body; there are article_id, title, text, summ"):
        read(path, {"body": "text"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[SN]URL[SN]\nx\n[SN]RESTBODY[SN]\ny\n", "20.summary: no section FIRST-SENTENCE or INTRODUCTION"),
        ("[SN]FIRST-SENTENCE[SN]\nx\n", "20.summary: no section RESTBODY"),
        ("x\n[SN]RESTBODY[SN]\n", r"20.summary, line 1: expected a mark such as \[SN\]URL\[SN\], found 'x'"),
        ("[SN]RESTBODY[SN]\nx\n[SN]RESTBODY[SN]\n", "20.summary, line 3: a second section"),
        ("[SN]INTRODUCTION[SN]\nx\n[SN]FIRST-SENTENCE[SN]\n", "20.summary, line 3: a second section"),
        ("[SN]RESTBODY[XSUM]\nx\n", "20.summary, line 1: expected a mark"),
        ("", "20.summary: no section FIRST-SENTENCE"),
    ],
)
def test_a_broken_article_is_named(tmp_path: Path, text: str, why: str) -> None:
    """A file of one article without its sections, or with one twice, is refused by file and line."""
    (tmp_path / "20.summary").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=why):
        read(tmp_path)


def test_a_folder_without_articles(tmp_path: Path) -> None:
    """It is refused, and so is a mapping for a folder."""
    with pytest.raises(BadInput, match=r"expected articles in files <id>.data or <id>.summary, found none"):
        read(tmp_path)
    one(tmp_path)
    with pytest.raises(BadInput, match="has no columns, expected no mapping"):
        read(tmp_path, {"text": "body"})


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["x", "Y", " ", None])), min_size=1), st.integers(1, 5)
)
def test_batches_are_the_whole(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[str, str | None]], size: int
) -> None:
    """However many at a time, the same articles are kept and dropped; together they are those that came in."""
    path = tmp_path_factory.mktemp("rows") / "x.jsonl"
    rows(path, *({"id": name, "text": text, "summary": "S"} for name, text in entries))
    whole, parts = read(path), [*read_batches(path, size=size)]
    assert pl.concat(part.rows for part in parts).equals(whole.rows)
    assert pl.concat(part.dropped for part in parts).equals(whole.dropped)
    assert whole.rows.height + whole.dropped.height == len(entries)
    assert all(part.rows.height + part.dropped.height <= size for part in parts)
    assert whole.rows["article_id"].is_unique().all()


def test_the_real_files(data: Path) -> None:
    """The 1,000 articles of XSum's validation part are read whole, and all are in that split (its NOTE.txt)."""
    folder = data / "xsum"
    found = read(folder / "xsum_validation_1000.jsonl", splits=folder / "XSum-TRAINING-DEV-TEST-SPLIT-90-5-5.json")
    assert found.rows["split"].value_counts().rows() == [("validation", found.rows.height)]
    assert found.rows.height + found.dropped.height == 1000
    assert found.dropped.rows() == [("no_text", found.dropped["row_key"][0])]  # of one the file has no document
