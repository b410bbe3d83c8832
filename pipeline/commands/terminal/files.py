"""Reading texts from a file and writing scores to one, chunk by chunk."""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

import polars as pl

from pipeline import settings
from pipeline.commands.terminal import console
from pipeline.errors import BadInput
from pipeline.io.lines import Limits
from pipeline.io.rows import CHUNK, read_chunks
from pipeline.io.spreadsheets import FORMULA

if TYPE_CHECKING:
    import pyarrow.parquet as pq

WRITES = (".csv", ".jsonl", ".parquet", ".tsv", ".txt")


_NUMBER = r"^[+-]?[0-9]+([.,][0-9]+)?$"


def texts(path: Path, column: str | None, encoding: str) -> Iterator[tuple[pl.DataFrame, str]]:
    """Chunks of a file and the name of their text column: the one given, else `text`, else the only one there is."""
    for chunk in read_chunks(path, encoding, limits=Limits(*settings.import_limits())):
        try:
            frame = pl.DataFrame(chunk.rows, infer_schema_length=None, strict=False)
        except pl.exceptions.PolarsError as why:
            raise BadInput(f"{path}: a field is of another type in some rows: {why}") from why
        name = column or ("text" if "text" in frame.columns else frame.columns[0] if frame.width == 1 else None)
        if name is None or name not in frame.columns:
            asked = f"no column {name!r}" if name else "no column `text`"
            raise BadInput(f"{path}: {asked}; there are {', '.join(frame.columns)}; say which with --text-column")
        for number, row in zip(chunk.numbers, chunk.rows, strict=True):  # polars makes null of what is no text
            if not isinstance(value := row.get(name), str | None):
                raise BadInput(f"{path}, row {number}, field {name!r}: expected text, found {value!r:.40}")
        if frame.schema[name] != pl.String:
            raise BadInput(f"{path}, column {name!r}: expected text, found {frame.schema[name]}")
        yield frame, name


def for_spreadsheets(frame: pl.DataFrame) -> pl.DataFrame:
    """Text cells that a spreadsheet would run as a formula, made plain by a leading apostrophe."""
    frame = frame.rename({name: f"'{name}" for name in frame.columns if re.match(FORMULA, name)})
    return frame.with_columns(
        pl.when(pl.col(name).str.contains(FORMULA) & ~pl.col(name).str.contains(_NUMBER))
        .then(pl.lit("'") + pl.col(name))
        .otherwise(name)
        .alias(name)
        for name, kind in frame.schema.items()
        if kind == pl.String
    )


def draft(path: Path) -> Path:
    """Where a file is written until it is whole."""
    return path.with_name(f".{path.name}.draft")


class Writer:
    """Appends frames to a file of the format its ending names; nothing is left behind if the work fails.

    The first frame's columns are the file's: a later frame may lack some, which stay empty, but not bring new ones.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.draft, self.suffix = path, draft(path), path.suffix.lower()
        if self.suffix not in WRITES:
            raise BadInput(
                f"{path}: cannot write {path.suffix or 'a file without an ending'}; there are {', '.join(WRITES)}"
            )
        if not path.parent.is_dir():
            raise BadInput(f"{path}: there is no folder {path.parent}")
        self._schema: pl.Schema | None = None
        self._text: IO[str] | None = None
        self._parquet: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        return self

    def write(self, frame: pl.DataFrame) -> None:
        """Append."""
        first = self._schema is None
        if self.suffix != ".jsonl":
            frame = self._fitted(frame)
        if self.suffix == ".parquet":
            import pyarrow.parquet as pq

            batch = frame.to_arrow()
            self._parquet = self._parquet or pq.ParquetWriter(self.draft, batch.schema, compression="zstd")
            self._parquet.write_table(batch.cast(self._parquet.schema))
            return
        self._text = self._text or self.draft.open("w", encoding="utf-8", newline="")
        self._text.write(as_text(frame, self.suffix, header=first))

    def _fitted(self, frame: pl.DataFrame) -> pl.DataFrame:
        self._schema = self._schema or frame.schema
        if new := [name for name in frame.columns if name not in self._schema]:
            raise BadInput(
                f"{self.path}: rows further on have fields that the first {CHUNK:,} have not: {', '.join(new)}; "
                "write .jsonl, or give every row the same fields"
            )
        try:
            return frame.select(
                pl.col(name).cast(kind) if name in frame.columns else pl.lit(None, kind).alias(name)
                for name, kind in self._schema.items()
            )
        except pl.exceptions.PolarsError as why:
            raise BadInput(f"{self.path}: a column changes its type further on; write .jsonl instead: {why}") from why

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for file in (self._text, self._parquet):
            if file is not None:
                file.close()
        if kind is None and self.draft.exists():
            self.draft.replace(self.path)
        self.draft.unlink(missing_ok=True)


def put(frames: Iterable[pl.DataFrame], out: Path | None, *, as_json: bool = False) -> None:
    """Frames one after another into a file; without one as csv, or JSON Lines, on standard output."""
    if out is None:
        for number, frame in enumerate(frames):
            sys.stdout.write(as_text(frame, ".jsonl" if as_json else ".csv", header=number == 0))
        return
    with Writer(out) as writer:
        for frame in frames:
            writer.write(frame)
    console.say(f"wrote {out}")


def as_text(frame: pl.DataFrame, suffix: str, *, header: bool) -> str:
    """A frame as csv, tsv or jsonl; as txt, its scores alone, one a line."""
    if suffix == ".txt":
        return "".join(f"{'' if value is None else value}\n" for value in frame["implicitness"])
    if suffix == ".jsonl":
        return "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in frame.to_dicts())
    flat = frame.with_columns(pl.col(pl.List).map_elements(_joined, return_dtype=pl.String))
    try:
        return for_spreadsheets(flat).write_csv(include_header=header, separator="\t" if suffix == ".tsv" else ",")
    except pl.exceptions.ComputeError as why:  # structs, arrays, bytes
        raise BadInput(f"{suffix[1:]} cannot hold {', '.join(map(str, frame.dtypes))}; write JSON or Parquet") from why


def _joined(values: Any) -> str:
    return " ".join(map(str, values))


def to_stdout(frame: pl.DataFrame, suffix: str) -> None:
    """Data on standard output."""
    sys.stdout.write(as_text(frame, suffix, header=True))
