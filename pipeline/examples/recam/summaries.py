"""Articles with summaries from files, in the layouts in which they are published (ReCAM, section 3.1; REC-03).

- Rows of a file that `io.rows` reads, a column for each field. XSum has id, document and summary.
- A folder with a file for each article, called by its id, as EdinburghNLP/XSum has them: `<id>.data`, with sections
  below `[XSUM]URL[XSUM]`, `[XSUM]INTRODUCTION[XSUM]` and `[XSUM]RESTBODY[XSUM]`; or `<id>.summary`, the files of its
  authors, with `[SN]URL[SN]`, `[SN]TITLE[SN]`, `[SN]FIRST-SENTENCE[SN]` and `[SN]RESTBODY[SN]`. The first sentence is
  the summary; the title is not used.
- The split file of the same repository: a JSON object with lists of ids under train, validation and test.

Texts are kept but for blanks at their ends, and for the lines of the buttons for sharing a page.
"""

import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.recam.items import PLACEHOLDER, normalise
from pipeline.io import rows as files
from pipeline.io.fields import check_field, is_text_list
from pipeline.io.lines import parse_object, read_lines, read_text
from pipeline.reasons import Read, choose_first, split_off

COLUMNS = {  # fields, and the columns that may hold them; the first that exists is taken
    "article_id": ("id", "article_id"), "text": ("document", "article", "text"), "summary": ("summary",),
}  # fmt: skip
SPLITS = ("train", "validation", "test")
_BATCH = 2_000  # articles in memory as Python objects
_MARK = re.compile(r"\[(SN|XSUM)\]([A-Z-]+)\[\1\]")
_SECTIONS = {"FIRST-SENTENCE": "summary", "INTRODUCTION": "summary", "RESTBODY": "text"}
_BUTTONS = frozenset({
    "Share this with", "Email", "Facebook", "Messenger", "Twitter", "Pinterest", "WhatsApp", "Linkedin", "LinkedIn",
    "Copy this link", "These are external links and will open in a new window",
})  # fmt: skip


def read(path: Path, splits: Path | None = None) -> Read:
    """Read all articles with summaries of a file with rows or a folder; the split of an id is that of `splits`.

    Rows have article_id, text, summary, split (or null), and no blank field; reasons are no_text, no_summary,
    has_placeholder, as it can be no question, and duplicate: an article whose id came before, or whose text and summary
    did but for capitals and blanks. BadInput names file, row and field.
    """
    split_of = _read_splits(splits) if splits else {}
    articles = _read_folder(path) if path.is_dir() else _read_file(path)
    batches = iter(lambda: [*islice(articles, _BATCH)], [])
    schema = dict.fromkeys(COLUMNS, pl.String())
    rows = pl.concat([pl.DataFrame(schema=schema), *(pl.DataFrame(batch, schema=schema) for batch in batches)])
    rows = rows.with_columns(split=pl.Series([split_of.get(name) for name in rows["article_id"]], dtype=pl.String))
    reasons = pl.Series(_list_reasons(rows), dtype=pl.String)
    return Read(*split_off(rows, reasons, ["reason", pl.col("article_id").alias("row_key")]))


def _list_reasons(rows: pl.DataFrame) -> list[str | None]:
    """Why each article is dropped, or None; one that is dropped makes no other a duplicate."""
    faults = {f"no_{name}": pl.col(name).is_null() for name in ("text", "summary")}
    faults["has_placeholder"] = pl.col("summary").str.contains(PLACEHOLDER, literal=True)
    text_hash = (normalise("text") + "\n" + normalise("summary")).hash()
    reasons, seen_ids, seen_hashes = [], set(), set()
    columns = {"reason": choose_first(faults), "text_hash": text_hash}
    for name, fault, number in rows.select("article_id", **columns).iter_rows():
        is_repeated = name in seen_ids or number in seen_hashes
        reasons.append(fault or ("duplicate" if is_repeated else None))
        if reasons[-1] is None:
            seen_ids.add(name)
            seen_hashes.add(number)
    return reasons


def _read_file(path: Path) -> Iterator[dict[str, Any]]:
    columns: dict[str, dict[str, str]] = {}
    for chunk in files.read_chunks(path, size=_BATCH):
        if chunk.table not in columns:
            columns[chunk.table] = _find_columns(chunk, path)
        for number, row in zip(chunk.numbers, chunk.rows, strict=True):
            fields = {field: row.get(column) for field, column in columns[chunk.table].items()}
            name = fields.setdefault("article_id", f"{path.name}:{number}")
            is_id = isinstance(name, str | int) and not isinstance(name, bool) and str(name).strip()
            check_field(fields, "article_id", f"{path}, row {number}", "a text or a whole number", is_id)
            for field in ("text", "summary"):
                check_field(fields, field, f"{path}, row {number}", "a text", isinstance(fields[field], str | None))
            yield {name: str(value or "").strip() or None for name, value in fields.items()}


def _find_columns(chunk: files.Chunk, path: Path) -> dict[str, str]:
    names_in_file = dict.fromkeys(chain.from_iterable(chunk.rows))
    columns = {}
    for field, names in COLUMNS.items():
        if column := next((name for name in names if name in names_in_file), None):
            columns[field] = column
        elif field in {"text", "summary"}:
            problem = f"{path}: expected a column {' or '.join(names)} with the {field}; found"
            raise BadInput(f"{problem} {', '.join(map(str, names_in_file))}; rename the column")
    return columns


def _read_folder(path: Path) -> Iterator[dict[str, Any]]:
    paths = sorted(file for file in path.iterdir() if file.suffix in {".data", ".summary"})
    if not paths:
        raise BadInput(f"{path}: expected articles in files <id>.data or <id>.summary, found none")
    return ({"article_id": file.stem, **_read_sections(file)} for file in paths)


def _read_sections(path: Path) -> dict[str, str | None]:
    sections: dict[str, list[str]] = {}
    section: list[str] | None = None
    for number, line in read_lines(path):
        text = line.strip()
        if mark := _MARK.fullmatch(text):
            field = _SECTIONS.get(mark[2], mark[2])
            if field in sections:
                raise BadInput(f"{path}, line {number}: a second section {text}; expected one of each")
            section = sections[field] = []
        elif section is not None:
            section += [text] if text and text not in _BUTTONS else []
        elif text:
            raise BadInput(f"{path}, line {number}: expected a mark such as [SN]URL[SN], found {text!r:.60}")
    for field, marks in (("summary", "FIRST-SENTENCE or INTRODUCTION"), ("text", "RESTBODY")):
        if field not in sections:
            raise BadInput(f"{path}: no section {marks}; is the file complete?")
    return {field: "\n".join(sections[field]) or None for field in ("summary", "text")}


def _read_splits(path: Path) -> dict[str, str]:
    names_by_split = parse_object(read_text(path), path)
    if unknown := sorted(set(names_by_split) - set(SPLITS)):
        raise BadInput(f"{path}: unknown splits {', '.join(unknown)}; expected {', '.join(SPLITS)}")
    split_of: dict[str, str] = {}
    for split, names in names_by_split.items():
        is_valid = is_text_list(names, may_be_blank=True)
        check_field(names_by_split, split, str(path), "a list of ids as texts", is_valid)
        if repeated := next((name for name in names if split_of.get(name, split) != split), None):
            raise BadInput(f"{path}: {repeated!r:.60} is in two splits, {split_of[repeated]} and {split}")
        split_of.update(dict.fromkeys(names, split))
    return split_of
