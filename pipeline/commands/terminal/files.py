"""Read texts from a file and write scores to one, chunk by chunk."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import polars as pl
import polars.selectors as cs

from pipeline import left_out, settings
from pipeline.commands.terminal import console
from pipeline.errors import BadInput
from pipeline.io.lines import Limits
from pipeline.io.rows import CHUNK, read_chunks
from pipeline.io.spreadsheets import FORMULA, NUMBER, escape_formula

if TYPE_CHECKING:
    import pyarrow.parquet as pq

WRITES = (".csv", ".jsonl", ".parquet", ".tsv", ".txt")


def texts(
    path: Path, column: str | None, encoding: str, names: Sequence[str] = ("text",), *, skip_bad_rows: bool = False
) -> Iterator[tuple[pl.DataFrame, str]]:
    """Yield chunks of a file with the name of its texts: `column`, else one of `names`, else the only column.

    A row that cannot be read is BadInput; with `skip_bad_rows` it is left out with its reason.
    """
    reasons, row_count = Counter[str](), 0
    limits = Limits(*settings.import_limits())
    for chunk in read_chunks(path, encoding, limits=limits, skip_bad_rows=skip_bad_rows):
        for bad_row in chunk.bad_rows:
            if reasons.total() < left_out.LINES:
                left_out.record_note(f"left out {bad_row.message}")
            reasons[bad_row.reason] += 1
        if not chunk.rows:
            continue
        try:
            frame = pl.DataFrame(chunk.rows, infer_schema_length=None, strict=False)
        except pl.exceptions.PolarsError as error:
            raise BadInput(f"{path}: a field is of another type in some rows: {error}") from error
        name = column or _find_column(frame, names) or (frame.columns[0] if frame.width == 1 else names[0])
        if name not in frame.columns:
            column_text = repr(name) if column else " or ".join(f"`{name}`" for name in names)
            existing = ", ".join(frame.columns)
            raise BadInput(f"{path}: no column {column_text}; there are {existing}; name one with --text-column")
        for number, row in zip(chunk.numbers, chunk.rows, strict=True):  # polars makes null of what is no text
            if not isinstance(value := row.get(name), str | None):
                raise BadInput(f"{path}, row {number}, field {name!r}: expected text, found {value!r:.40}")
        if frame.schema[name] != pl.String:
            raise BadInput(f"{path}, column {name!r}: expected text, found {frame.schema[name]}")
        yield frame, name
        row_count += frame.height
    left_out.record_rows("parse", reasons, str(path))
    if not row_count:
        counts = ", ".join(f"{reason} {count}" for reason, count in reasons.items())
        raise BadInput(f"{path}: no row of the file can be read: {counts}")


def _find_column(frame: pl.DataFrame, names: Iterable[str]) -> str | None:
    return next((column for name in names for column in frame.columns if column.strip().lower() == name), None)


def read_comments(path: Path, column: str | None, limit: int | None = None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read a file of comments: all its columns, and `text` with `context`, which is null where there is none."""
    chunks = [*texts(path, column, "utf-8-sig", ("text", "comment"))]
    table = pl.concat([frame for frame, _ in chunks], how="diagonal_relaxed")[:limit]
    column = _find_column(table, ["context"])
    context = pl.col(column).cast(pl.String) if column else pl.lit(None, pl.String)
    return table, table.select(text=chunks[0][1], context=context.str.strip_chars().replace("", None))


def for_spreadsheets(frame: pl.DataFrame) -> pl.DataFrame:
    """Add an apostrophe to text cells that a spreadsheet would run as a formula, and note how many."""
    frame = frame.rename(escape_formula)
    text = pl.col(pl.String)
    is_formula = text.str.contains(FORMULA) & ~text.str.contains(NUMBER)
    if count := sum(int(column.sum()) for column in frame.select(is_formula)):
        note = "csv: an apostrophe stands before texts that begin as a formula (.jsonl and .parquet need none); texts"
        left_out.record_note(note, count)
    return frame.with_columns(pl.when(is_formula).then(text.str.replace("^", "'")).otherwise(text))


def check_folder(path: Path | None) -> None:
    """Refuse a file, if one is named, in a folder that is not there."""
    if path and not path.parent.is_dir():
        raise BadInput(f"{path}: there is no folder {path.parent}")


def draft(path: Path) -> Path:
    """Return the path of a file until it is complete."""
    return path.with_name(f".{path.name}.draft")


class Writer(AbstractContextManager["Writer"]):
    """Append frames to a file in the format of its ending; if the work fails, no file remains.

    The first frame decides the columns: a later one may lack some, which stay empty, but not have others.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.draft, self.suffix = path, draft(path), path.suffix.lower()
        if self.suffix not in WRITES:
            ending = path.suffix or "a file without an ending"
            raise BadInput(f"{path}: cannot write {ending}; there are {', '.join(WRITES)}")
        check_folder(path)
        self._schema: pl.Schema | None = None
        self._text: IO[str] | None = None
        self._parquet: pq.ParquetWriter | None = None

    def write(self, frame: pl.DataFrame) -> None:
        is_first = self._schema is None
        if self.suffix != ".jsonl":
            frame = self._fit_schema(frame)
        if self.suffix == ".parquet":
            import pyarrow.parquet as pq

            batch = frame.to_arrow()
            self._parquet = self._parquet or pq.ParquetWriter(self.draft, batch.schema, compression="zstd")
            self._parquet.write_table(batch.cast(self._parquet.schema))
            return
        self._text = self._text or self.draft.open("w", encoding="utf-8", newline="")
        self._text.write(as_text(frame, self.suffix, header=is_first))

    def _fit_schema(self, frame: pl.DataFrame) -> pl.DataFrame:
        self._schema = self._schema or frame.schema
        if new_names := [name for name in frame.columns if name not in self._schema]:
            raise BadInput(
                f"{self.path}: rows further on have fields that the first {CHUNK:,} have not: {', '.join(new_names)}; "
                "write .jsonl, or give every row the same fields"
            )
        try:
            return frame.select(
                pl.col(name).cast(kind) if name in frame.columns else pl.lit(None, kind).alias(name)
                for name, kind in self._schema.items()
            )
        except pl.exceptions.PolarsError as error:
            message = f"{self.path}: a column changes its type further on; write .jsonl instead: {error}"
            raise BadInput(message) from error

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for file in (self._text, self._parquet):
            if file is not None:
                file.close()
        if kind is None and self.draft.exists():
            self.draft.replace(self.path)
        self.draft.unlink(missing_ok=True)


def check_table(path: Path | None) -> None:
    """Refuse a file that a whole table cannot be written to; txt holds scores alone."""
    if path and path.suffix.lower() == ".txt":
        raise BadInput(f"{path}: a table cannot be written as txt; csv, tsv, jsonl and parquet can")
    if path:
        Writer(path)


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame to a file, without a message."""
    check_table(path)
    with Writer(path) as writer:
        writer.write(frame)


def write_frames(frames: Iterable[pl.DataFrame], out: Path | None, *, as_json: bool = False) -> None:
    """Write frames one after another to a file; without one print them as csv, or as JSON Lines."""
    if out is None:
        for number, frame in enumerate(frames):
            sys.stdout.write(as_text(frame, ".jsonl" if as_json else ".csv", header=number == 0))
        return
    with Writer(out) as writer:
        for frame in frames:
            writer.write(frame)
    console.report(f"wrote {out}")


def count_unscored(frames: Iterable[pl.DataFrame], column: str, step: str) -> Iterator[pl.DataFrame]:
    """Yield scored frames, and record how many rows have no score, as they hold no text."""
    count = 0
    for frame in frames:
        count += frame[column].null_count()
        yield frame
    left_out.record_rows(step, {"no_text": count})


def as_text(frame: pl.DataFrame, suffix: str, *, header: bool) -> str:
    """Format a frame as csv, tsv or jsonl; as txt, a score and its percentile a line."""
    if suffix == ".txt":
        readings = frame.select(pl.col("implicitness", "percentile").cast(pl.String).fill_null(""))
        return "".join(f"{score}\t{percentile}\n" for score, percentile in readings.iter_rows())
    if suffix == ".jsonl":
        frame = frame.with_columns(pl.when(cs.float().is_finite()).then(cs.float()))  # JSON has no NaN
        return "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in frame.to_dicts())
    lists = pl.col(pl.List)
    flat = frame.with_columns(lists.map_elements(lambda values: " ".join(map(str, values)), return_dtype=pl.String))
    try:
        return for_spreadsheets(flat).write_csv(include_header=header, separator="\t" if suffix == ".tsv" else ",")
    except pl.exceptions.ComputeError as error:  # structs, arrays, bytes
        kinds = ", ".join(map(str, frame.dtypes))
        raise BadInput(f"{suffix[1:]} cannot hold {kinds}; write JSON or Parquet") from error
