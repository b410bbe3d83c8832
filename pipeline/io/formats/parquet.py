"""Rows of a Parquet file, a few at a time: 500 bytes of it can stand for gigabytes, as values repeat."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pipeline.errors import BadInput
from pipeline.io.formats.chunk import Chunk, Row, Source, check_header, chunk_rows, find_unnamed_value
from pipeline.io.lines import check_size

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_ROWS, _FEWEST_ROWS = 64, 8  # decoded at a time
_DECODED = 1 << 28  # bytes: a column's largest value may be as large as all it unpacks to, and be there in each row
_BUFFER = 1 << 20  # bytes of a column chunk that are read at once
_ROW_BYTES = 32  # of a row, be all its values null; each of them is a byte more, for the time it takes
_ITEM_BYTES = 32  # of a value within a value, be it null


def read(source: Source) -> Iterator[Chunk]:
    """Chunks of a Parquet file; of its columns, those that the source wants."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(source.path, buffer_size=_BUFFER) as file:
            names = file.schema_arrow.names
            check_header(names, str(source.path))
            columns = {"", *source.choose(source.path.stem, names)}
            rows = _rows(source, file, [name for name in names if name in columns], _check(source, file, columns))
            yield from chunk_rows(source, source.path.stem, rows, [name for name in names if name])
    # times that Python has no number for, and texts that are no UTF-8, show only when a row is made of them
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError, LookupError, TypeError) as why:
        raise BadInput(f"{source.path}: not a readable Parquet file: {why}") from why


def _check(source: Source, file: "pq.ParquetFile", names: set[str]) -> int:
    """Refuse a file by what it says of the columns that are read, and return how many rows to decode at a time."""
    paths = [file.schema.column(index).path.split(".") for index in range(file.metadata.num_columns)]
    # `a.b` is a column's name, or the field `b` of `a`
    prefixes = [{".".join(parts[: end + 1]) for end in range(len(parts))} for parts in paths]
    columns = [index for index, path_prefixes in enumerate(prefixes) if path_prefixes & names]
    largest = 1
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        source.count_unpacked((_ROW_BYTES + len(columns)) * group.num_rows)
        for index in columns:
            column = group.column(index)
            size = column.total_uncompressed_size
            check_size(source.path, size, source.limits, "a column of a row group unpacks to ")
            has_lists = file.schema.column(index).max_repetition_level > 0
            source.count_unpacked(size + has_lists * _ITEM_BYTES * column.num_values)
            largest = max(largest, size)
    return max(_FEWEST_ROWS, min(_ROWS, _DECODED // largest))


def _rows(source: Source, file: "pq.ParquetFile", names: list[str], row_count: int) -> Iterator[Row]:
    number = 0
    for batch in file.iter_batches(batch_size=row_count, columns=names):
        header = batch.schema.names
        # row by row: a value that repeats may be in the batch once, and is made anew for each row
        for cells in zip(*map(_to_microseconds, batch.columns), strict=True):
            number += 1
            values = {name: cell.as_py() for name, cell in zip(header, cells, strict=True)}
            byte_count = sum(map(_size, values.values()))
            source.count_unpacked(byte_count)
            if unnamed := find_unnamed_value(source, header, list(values.values())):
                raise BadInput(f"{source.path}, row {number}: {unnamed}")
            values.pop("", None)
            yield (number, values, byte_count)


def _to_microseconds(column: "pa.Array") -> "pa.Array":
    """Times of nanoseconds as Python can hold them: cut, as those in texts are."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        return column.cast(pa.timestamp("us", column.type.tz), safe=False)
    return column


def _size(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return 0
    return _ITEM_BYTES * (1 + len(value)) + sum(map(_size, value))
