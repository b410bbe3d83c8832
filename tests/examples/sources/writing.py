"""Small files in published layouts, with sentences of our own."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

from pipeline.examples.sources import Read


def table(path: Path, *rows: Sequence[object], tabs: bool = False) -> Path:
    """A csv or tab-separated file, the header first."""
    out = io.StringIO()
    csv.writer(out, delimiter="\t" if tabs else ",", lineterminator="\n").writerows(rows)
    return text(path, out.getvalue())


def jsonl(path: Path, *rows: object) -> Path:
    """A line of JSON for each row; a string is a line as it stands."""
    return text(path, "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))


def text(path: Path, content: str) -> Path:
    """A file, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def labels(data_set: Read) -> list[tuple[str, str, str | None]]:
    return data_set.rows.select("text", "label", "explicit").rows()


def reasons(data_set: Read) -> list[tuple[str, str]]:
    return data_set.dropped.rows()


def read_count(data_set: Read) -> int:
    return len(data_set.rows) + len(data_set.dropped)
