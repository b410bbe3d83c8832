"""Rows of JSON Lines and of a JSON list of objects, one object in memory at a time."""

from collections.abc import Iterator

from pipeline.errors import BadInput
from pipeline.io.formats.chunk import BadRow, Chunk, Row, Source, chunk_rows
from pipeline.io.lines import parse_object, read_json_items, read_lines


def read_objects(source: Source) -> Iterator[Chunk]:
    """Chunks of a JSON Lines file; empty lines are passed over."""

    def rows() -> Iterator[Row | BadRow]:
        number = 0
        for line_number, line in read_lines(source.path, source.encoding, source.limits):
            if not line.strip():
                continue
            number += 1
            try:
                values = parse_object(line.rstrip("\r\n"), source.path, line_number)
            except BadInput as why:
                yield source.drop("broken_json", number, str(why))
            else:
                yield Row(number, values, 2 * len(line))

    yield from chunk_rows(source, source.path.stem, rows())


def read_list(source: Source) -> Iterator[Chunk]:
    """Chunks of a JSON file that holds one list of objects."""

    def rows() -> Iterator[Row]:
        for number, (values, length) in enumerate(read_json_items(source.path, source.encoding, source.limits), 1):
            if not isinstance(values, dict):
                raise BadInput(f"{source.path}: expected a JSON list of objects, item {number} is {values!r:.40}")
            yield Row(number, values, 2 * length)

    yield from chunk_rows(source, source.path.stem, rows())
