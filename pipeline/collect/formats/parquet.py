"""Rows of a Parquet file, a few at a time: 500 bytes of it can stand for gigabytes, as values repeat."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pipeline.collect.formats.chunk import Chunk, Row, Source, check_header, chunk_rows, unnamed_value
from pipeline.errors import BadInput
from pipeline.text.lines import small_enough

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_ROWS = 64  # decoded at a time: with values of 4 MB, 256 MB
_BUFFER = 1 << 20  # bytes of a column chunk that are read at once
_VALUE_BYTES = 32  # of a value, be it null


def read(source: Source) -> Iterator[Chunk]:
    """Chunks of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(source.path, buffer_size=_BUFFER) as file:
            names = file.schema_arrow.names
            check_header(names, str(source.path))
            for index in range(file.num_row_groups):
                _check_group(source, file.metadata.row_group(index))
            yield from chunk_rows(source, source.path.stem, _rows(source, file), [name for name in names if name])
    # times that Python has no number for, and texts that are no UTF-8, show only when a row is made of them
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError, LookupError, TypeError) as why:
        raise BadInput(f"{source.path}: not a readable Parquet file: {why}") from why


def _check_group(source: Source, group: Any) -> None:
    """Refuse a row group by what the file says of it: of bytes, and of values, a billion of which take a few bytes."""
    for index in range(group.num_columns):
        column = group.column(index)
        small_enough(source.path, column.total_uncompressed_size, source.limits, "a column of a row group unpacks to ")
        source.count_unpacked(column.total_uncompressed_size + _VALUE_BYTES * column.num_values)


def _rows(source: Source, file: "pq.ParquetFile") -> Iterator[Row]:
    header, number = file.schema_arrow.names, 0
    has_unnamed = "" in header
    for batch in file.iter_batches(batch_size=_ROWS):
        for values in batch.to_pylist():
            number += 1
            byte_count = _size(values)  # not the batch's, in which a value that repeats may be there once
            source.count_unpacked(byte_count)
            if has_unnamed:
                lost = unnamed_value(source, header, [values[name] for name in header])
                if lost:
                    raise BadInput(f"{source.path}, row {number}: column {lost[0] + 1} has no name; name the column")
                del values[""]
            yield Row(number, values, byte_count)


def _size(value: Any) -> int:
    """Characters and bytes in a value, those of the values in it included."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return 0
    return _VALUE_BYTES + sum(map(_size, value))
