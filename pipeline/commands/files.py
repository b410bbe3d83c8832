"""Reading texts from a file and writing scores to one, chunk by chunk."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Self

import polars as pl
import pyarrow.parquet as pq

from pipeline.collect.rows import chunks
from pipeline.errors import BadInput

WRITES = (".csv", ".jsonl", ".parquet", ".tsv")


def texts(path: Path, column: str | None, encoding: str) -> Iterator[tuple[pl.DataFrame, str]]:
    """Chunks of a file and the name of their text column: the one given, else `text`, else the only one there is."""
    for chunk in chunks(path, encoding):
        frame = pl.DataFrame(chunk.rows, infer_schema_length=None, strict=False)
        name = column or ("text" if "text" in frame.columns else frame.columns[0] if frame.width == 1 else None)
        if name is None or name not in frame.columns:
            asked = f"no column {name!r}" if name else "no column `text`"
            raise BadInput(f"{path}: {asked}; there are {', '.join(frame.columns)}; say which with --text-column")
        if frame.schema[name] != pl.String:
            raise BadInput(f"{path}, column {name!r}: expected text, found {frame.schema[name]}")
        yield frame, name


def for_spreadsheets(frame: pl.DataFrame) -> pl.DataFrame:
    """Text cells that a spreadsheet would run as a formula, made plain by a leading apostrophe."""
    return frame.with_columns(
        pl.when(pl.col(name).str.contains(r"^[=+\-@\t\r]")).then(pl.lit("'") + pl.col(name)).otherwise(name).alias(name)
        for name, kind in frame.schema.items()
        if kind == pl.String
    )


class Writer:
    """Appends frames to a file of the format its ending names; nothing is left behind if the work fails."""

    def __init__(self, path: Path) -> None:
        if path.suffix not in WRITES:
            raise BadInput(
                f"{path}: cannot write {path.suffix or 'a file without an ending'}; there are {', '.join(WRITES)}"
            )
        self.path, self.draft = path, path.with_name(f".{path.name}.draft")
        self._text: IO[str] | None = None
        self._parquet: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        return self

    def write(self, frame: pl.DataFrame) -> None:
        """Append."""
        if self.path.suffix == ".parquet":
            batch = frame.to_arrow()
            if self._parquet is None:
                self._parquet = pq.ParquetWriter(self.draft, batch.schema, compression="zstd")
            self._parquet.write_table(batch.cast(self._parquet.schema))
            return
        first = self._text is None
        self._text = self._text or self.draft.open("w", encoding="utf-8", newline="")
        self._text.write(as_text(frame, self.path.suffix, header=first))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for file in (self._text, self._parquet):
            if file is not None:
                file.close()
        if kind is None and self.draft.exists():
            self.draft.replace(self.path)
        self.draft.unlink(missing_ok=True)


def as_text(frame: pl.DataFrame, suffix: str, *, header: bool) -> str:
    """A frame as csv, tsv or jsonl."""
    if suffix == ".jsonl":
        return "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in frame.to_dicts())
    flat = frame.with_columns(pl.col(pl.List).map_elements(_joined, return_dtype=pl.String))
    return for_spreadsheets(flat).write_csv(include_header=header, separator="\t" if suffix == ".tsv" else ",")


def _joined(values: Any) -> str:
    return " ".join(map(str, values))


def to_stdout(frame: pl.DataFrame, suffix: str) -> None:
    """Data on standard output."""
    sys.stdout.write(as_text(frame, suffix, header=True))
