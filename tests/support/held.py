"""What a table holds, which files it reads, and making them old."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from pipeline import warehouse


def held(name: str) -> pl.DataFrame:
    """The table's rows in order."""
    return warehouse.scan(name).collect().sort(pl.all().exclude(pl.List))


def age(home: Path, hours: float = 48) -> None:
    """Make every file below the home look that old."""
    then = time.time() - hours * 3600
    for path in home.rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))


def data_files(name: str) -> Iterator[Path]:
    """Data files that the table's current state reads."""
    for location in warehouse.table(name).inspect.files()["file_path"].to_pylist():
        yield Path(location.removeprefix("file://"))
