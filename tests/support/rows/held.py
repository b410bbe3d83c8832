"""What a table holds and which files it has, comments for it, and files made old."""

import os
import time
from datetime import date
from pathlib import Path

import polars as pl

from pipeline import settings, warehouse
from pipeline.warehouse.files import get_path
from tests.support.rows.filled import DAY, filled


def held(name: str) -> pl.DataFrame:
    """The table's rows in order."""
    return warehouse.scan(name).collect().sort(pl.all().exclude(pl.List))


def write(*texts: str, source: str = "weibo", day: date = DAY) -> None:
    """Make the slice of comments one comment a text."""
    partition = warehouse.make_slice(source=source, day=day)
    warehouse.overwrite("comments", partition, filled("comments", *({"text": text, **partition} for text in texts)))


def texts() -> list[str]:
    """The texts of the comments in order."""
    return sorted(warehouse.scan("comments").collect()["text"])


def age(home: Path, hours: float = 48) -> None:
    """Make every file below the home look that old."""
    then = time.time() - hours * 3600
    for path in home.rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))


def data_files(name: str) -> list[Path]:
    """Data files that the table's current state reads."""
    locations = warehouse.load_table(name).inspect.files()["file_path"].to_pylist()
    return [Path(get_path(location)) for location in sorted(locations)]


def list_files(name: str = "comments") -> set[Path]:
    """All files of a table."""
    folder = Path(settings.warehouse()) / "undertone" / name
    return {path for path in folder.rglob("*") if path.is_file()}


def die(*_: object) -> None:
    """End here."""
    raise KeyboardInterrupt


def put_articles(*origins: str, day: date = DAY, **columns: str) -> pl.DataFrame:
    """Write articles, a file an origin; return the rows of the table."""
    for origin in origins:
        partition = {"source": "weibo", "day": day, "origin": origin}
        warehouse.overwrite("articles", partition, filled("articles", {**partition, "thread_id": origin, **columns}))
    return held("articles")
