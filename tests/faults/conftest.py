"""What the fault tests share: a made-up file of comments, and all rows of a home."""

import csv
import random
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from pipeline import warehouse
from pipeline.tables import PROVENANCE

TABLES = ("comments", "articles", "dropped", "runs", "raw_pages")


@pytest.fixture
def comments_csv(tmp_path: Path) -> Callable[[int], Path]:
    """Writes a csv of so many comments; some answer others, some are empty, some say the same."""

    def write(rows: int) -> Path:
        path = tmp_path / f"made_up_{rows}.csv"
        chance = random.Random(rows)
        vocabulary = ["".join(chance.choices("abcdefghijklmnoprstuvw", k=6)) for _ in range(5_000)]
        with path.open("w", encoding="utf-8", newline="") as file:
            out = csv.writer(file)
            out.writerow(["thread_id", "comment_id", "parent_id", "text", "like_count", "article_text"])
            for i in range(rows):
                words = " ".join(chance.choices(vocabulary, k=9))
                text = "" if i % 97 == 0 else "the same again" if i % 31 == 0 else f"{words} {i}"
                parent = f"c{i - 8}" if i % 5 == 0 and i >= 8 else ""
                out.writerow([f"t{i % 8}", f"c{i}", parent, text, chance.randrange(99), f"article {i % 8}"])
        return path

    return write


@pytest.fixture
def rows_of_home(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], dict[str, pl.DataFrame]]:
    """Reads every row that a collection writes, in an order of its own."""

    def read(folder: Path) -> dict[str, pl.DataFrame]:
        monkeypatch.setenv("UNDERTONE_HOME", str(folder))
        return {
            name: warehouse.scan(name).drop(PROVENANCE if name == "runs" else [], strict=False).collect().sort(pl.all())
            for name in TABLES
        }

    return read
