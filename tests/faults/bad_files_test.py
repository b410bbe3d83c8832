"""Files that break their contract are refused whole."""

import json
from pathlib import Path

import pytest

from pipeline import warehouse
from pipeline.errors import BadInput
from pipeline.sample import pages_of
from pipeline.tables import TABLES
from pipeline.tasks.collect import import_files

DAY = "2026-11-19"
GOOD = [{"thread_id": "t", "comment_id": str(i), "text": f"comment {i}", "like_count": i} for i in range(1, 10)]
LINES = [json.dumps(row) for row in GOOD]

BAD: dict[str, tuple[str, bytes, str]] = {
    "wrong encoding": ("a.csv", "text,like_count\n好的,1\n".encode("gb18030"), r"a\.csv, .*is not UTF-8.*gb18030"),
    "missing column": ("a.csv", b"content,likes\nhello,1\n", r"a\.csv.*no column `text`.*content, likes"),
    "broken JSON in line 7": (
        "a.jsonl", "\n".join([*LINES[:6], LINES[6][:-4], *LINES[7:]]).encode(), r"a\.jsonl, line 7: broken JSON"
    ),
    "wrong type": (
        "a.jsonl", "\n".join([*LINES, json.dumps({**GOOD[0], "like_count": "many"})]).encode(),
        r"a\.jsonl, row 10, field 'like_count': expected a whole number, found 'many'",
    ),
    "empty": ("a.csv", b"", r"a\.csv: the file is empty"),
}  # fmt: skip


@pytest.fixture
def filled_home(tables: Path) -> Path:
    """A home that already holds the same slice."""
    import_files(pages_of("weibo"), "weibo", DAY, origin="sample")
    return tables


@pytest.mark.parametrize("company", [False, True], ids=["alone", "after a good file"])
@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_one_bad_input_and_changes_nothing(
    filled_home: Path, tmp_path: Path, name: str, company: bool
) -> None:
    """BadInput names file, place and what was expected; every table keeps its snapshot, even after a good file."""
    file, content, told = BAD[name]
    path = tmp_path / file
    path.write_bytes(content)
    good = tmp_path / "0.jsonl"
    good.write_text("\n".join(LINES), encoding="utf-8")
    before = {table: warehouse.snapshot(table) for table in TABLES}
    with pytest.raises(BadInput, match=told):
        import_files([good, path] if company else [path], "weibo", DAY, origin="sample")
    assert {table: warehouse.snapshot(table) for table in TABLES} == before


def test_the_good_lines_alone_pass(filled_home: Path, tmp_path: Path) -> None:
    """The lines around the broken ones are fine, so the refusals above are about what is broken."""
    good = tmp_path / "0.jsonl"
    good.write_text("\n".join(LINES), encoding="utf-8")
    (done,) = import_files([good], "weibo", DAY)
    assert (done["read"], done["kept"], done["dropped"]) == (9, 9, 0)
