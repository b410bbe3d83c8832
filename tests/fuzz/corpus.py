"""Hostile files, made when asked for: small ones that took all memory, hours, or the process, and more in their manner.

Each is imported as a user would. It must end as a right import, or with one error that names it, within `SECONDS` and
`MEGABYTES`.
"""

import contextlib
import io
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import psutil

FINE = ("right", "clear error")
SECONDS, MEGABYTES = 20, 1_100  # of CPU, and with what a watcher sees beyond 1 GB before it acts
MEGA = 1_000_000

Write = Callable[[Path], Any]


class Case(NamedTuple):
    """A hostile file: what kind it is, its ending, what writes it, and the records it holds where that is certain.

    With 0 records it must be refused.
    """

    kind: str
    suffix: str
    write: Write
    rows: int | None = None


class Outcome(NamedTuple):
    """What importing a case came to: `right`, `clear error`, or what else happened."""

    name: str
    kind: str
    verdict: str
    seconds: float  # of CPU
    megabytes: float
    message: str


# ---------------------------------------------------------------------------------------------------------------- texts

_NESTED = 10_000

TEXTS: Mapping[str, str] = {
    "ampersands in ampersands 40 kB": "&" + "amp;" * _NESTED,  # R6
    "ampersands in ampersands 400 kB": "&" + "amp;" * 100_000,
    "ampersands by number in ampersands": "&" + "#38;" * _NESTED,
    "digits of entities as entities": "&#" * _NESTED + "53;" + "3;" * _NESTED,
    "entity of 5,000 digits": "&#" + "9" * 5_000 + ";",
    "entity of a million zeros": "&#" + "0" * MEGA + "65;",
    "entity of a million letters": "&" + "a" * MEGA,
    "a million ampersands": "&" * MEGA,
    "entities without end": "&#x" * 300_000,
    "tags that never end 120 kB": "<a " * 40_000,  # R6
    "tags that never end 1 MB": "<a " * 330_000,
    "attributes that never end": "<a b='" * 100_000,
    "both quotation marks": "<a b=\"'" * 100_000,
    "comments that never end": "<!--" * 200_000,
    "character data that never ends": "<![CDATA[" * 100_000,
    "declarations that never end": "<!DOCTYPE " * 100_000,
    "instructions that never end": "<?" * 300_000,
    "end tags that never end": "</a " * 200_000,
    "scripts that never end": "<script>" * 100_000,
    "tags in tags": "<p>" * 300_000,
    "an alt text of a megabyte": '<img alt="' + "x" * MEGA + '">',
    "a million of <": "<" * MEGA,
    "marks of two classes above a letter": "e" + "\u0301\u0323" * 300_000,
    "handle after handle": "qq1" * 200_000,
    "mention after mention": "@a" * 300_000,
    "digits": "1" * MEGA,
    "digits and blanks": "138 " * 200_000,
    "addresses of mail without end": "a@a." * 200_000,
    "addresses of mail that never begin": "a." * 300_000 + "@",
    "addresses of pages": "http://" * 100_000,
    "replies to replies": "回复@a:" * 100_000,
    "invisible characters": "\u200b\u202e" * 300_000,
    "codes that never end": "[" * MEGA,
    "blanks": "a" + " " * MEGA + "b",
    "one letter": "啊" * 300_000,
    "combined emoji": "👨\u200d👩\u200d" * 100_000,
}
"""Comments whose reading took the square of their length, or might."""


def _csv_text(text: str, path: Path) -> None:
    path.write_text('text,comment_id\n"' + text.replace('"', '""') + '",1\nnice hat,2\n', encoding="utf-8")


# ----------------------------------------------------------------------------------------------------- csv, tsv, json


def _written(text: str | bytes, path: Path) -> None:
    path.write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)


def _lines(make: Callable[[int], object], count: int, path: Path, header: str = "") -> None:
    path.write_text(header + "".join(f"{make(n)}\n" for n in range(count)), encoding="utf-8")


def _object(**fields: object) -> str:
    return json.dumps(fields, ensure_ascii=False)


def _csv_cases() -> Iterator[tuple[str, Case]]:
    def case(name: str, text: str | bytes, rows: int | None = None, suffix: str = ".csv") -> tuple[str, Case]:
        return f"{suffix} {name}", Case(suffix[1:], suffix, partial(_written, text), rows)

    def made(name: str, make: Callable[[int], object], count: int, header: str, rows: int | None = None) -> Any:
        return f".csv {name}", Case("csv", ".csv", partial(_lines, make, count, header=header + "\n"), rows)

    names = ",".join(f"c{n}" for n in range(20_000))
    yield case("20,000 columns", f"text,{names}\n" + "a," * 20_000 + "b\n", 1)  # R6
    yield case("20,000 columns of one name", "text," + "a," * 20_000 + "b\n")
    yield case("200,000 columns", "text," + ",".join(f"c{n}" for n in range(200_000)) + "\nx\n")
    yield case("a million commas", "text,id\n" + "," * MEGA + "\n")
    yield case("a quote that never closes", 'text,id\n"' + "a,b\n" * 500_000)
    yield case("a million quotes", "text,id\n" + '"' * MEGA + ",1\n")
    yield case("a million line ends", "text\n" + "\n" * MEGA)
    yield case("a million carriage returns", "text\n" + "\r" * MEGA)
    yield case("nothing but zero bytes", b"\0" * MEGA)
    yield case("a line of 17 MB", "text\n" + "a" * 17 * MEGA + "\n")
    yield case("a cell of 15 MB", "text\n" + "a" * 15 * MEGA + "\nb\n", 2)
    yield case("a number of a million digits", f"text,like_count\na,{'9' * MEGA}\n")
    yield case("a time of a million digits", f"text,created_at\na,{'9' * MEGA}\n")
    yield case("an id of a megabyte", f"text,comment_id\na,{'x' * MEGA}\nb,2\n", 2)
    yield case("UTF-16 without its mark", "text\nnice hat\n".encode("utf-16-le"))
    yield case("a workbook under another name", b"PK\x03\x04" + os.urandom(1000))
    yield case("gzip under another name", b"\x1f\x8b\x08\0" + os.urandom(1000))
    yield case("a quote that never closes", 'text\tid\n"' + "a\tb\n" * 500_000, suffix=".tsv")
    yield case("a million tabs", "text\tid\n" + "\t" * MEGA + "\n", suffix=".tsv")
    yield case("two million short lines", "a\n" * 2 * MEGA, suffix=".txt")
    yield made("the same comment 100,000 times", lambda n: f"nice hat you have there,{n}", 100_000, "text,comment_id", 100_000)  # fmt: skip
    yield made("20,000 that resemble each other", lambda n: f"nice hat you have there my dear friend of mine {n},{n}",
               20_000, "text,comment_id", 20_000)  # fmt: skip
    yield made("answers 30,000 deep", lambda n: f"answer {n} to it,{n},{n - 1 if n else ''}", 30_000,
               "text,comment_id,parent_id", 30_000)  # fmt: skip
    yield made("answers in a circle", lambda n: f"answer {n} to it,{n + 1},{(n + 1) % 5000 + 1}", 5_000,
               "text,comment_id,parent_id", 0)  # ids from 1: as a parent 0 is none  # fmt: skip
    yield made("50,000 threads", lambda n: f"comment {n},t{n},{n}", 50_000, "text,thread_id,comment_id", 50_000)


def _json_cases() -> Iterator[tuple[str, Case]]:
    def case(name: str, text: str, rows: int | None = None, suffix: str = ".jsonl") -> tuple[str, Case]:
        return f"{suffix} {name}", Case(suffix[1:], suffix, partial(_written, text), rows)

    keys = {f"k{n}": n for n in range(20_000)}
    yield case("20,000 fields", _object(text="nice hat", **keys) + "\n", 1)  # R6
    yield case("200,000 fields", _object(text="nice hat", **{f"k{n}": n for n in range(200_000)}) + "\n", 1)
    yield case("20,000 fields, the last twice", _object(text="x", **keys)[:-1] + ', "k19999": 1}\n')
    yield case("other fields in each of 50,000 rows", "".join(_object(text=f"nice hat {n}", **{f"k{n}": n}) + "\n" for n in range(50_000)), 50_000)  # fmt: skip
    yield case("a million brackets", "[" * MEGA)
    yield case("objects in objects", '{"text": ' * 100_000)
    yield case("lists in a field", _object(text="x", more=json.loads("[" * 90 + "]" * 90)) + "\n", 1)
    yield case("a number of a million digits", '{"text": "a", "like_count": ' + "9" * MEGA + "}\n")
    yield case("an exponent without end", '{"text": "a", "like_count": 1e' + "9" * 1000 + "}\n")
    yield case("halves of pairs", '{"text": "' + "\\ud83d" * 160_000 + '"}\n', 1)
    yield case("escapes", '{"text": "' + "\\u0041" * 160_000 + '"}\n', 1)
    yield case("a name of a megabyte", _object(text="nice hat", **{"k" * MEGA: 1}) + "\n", 1)
    yield case("a list of 300,000 comments", _object(thread_id="t", article_text="a", comments=["nice hat"] * 300_000) + "\n")  # fmt: skip
    yield case("300,000 empty objects", "{}\n" * 300_000)
    yield case("a page with 100,000 answers", _object(
        source="weibo", url="https://m.weibo.cn/comments/hotflow?id=1&mid=1",
        body={"ok": 1, "data": {"data": [{"id": n, "text": "<a " * 3, "user": {"id": n}} for n in range(100_000)]}}) + "\n")  # fmt: skip
    yield case("60 MB of []", "[" + "[]," * 20 * MEGA + "[]]", suffix=".json")  # R5
    yield case("6 MB of {}", "[" + "{}," * 2 * MEGA + "{}]", suffix=".json")
    yield case("30 MB of blanks", " " * 30 * MEGA + '[{"text": "nice hat"}]', 1, suffix=".json")
    yield case("a text of 30 MB", '[{"text": "' + "a" * 30 * MEGA + '"}]', suffix=".json")


# ----------------------------------------------------------------------------------------------------- binary formats


def _parquet(make: Callable[[], dict[str, Any]], path: Path, **options: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(make()), path, compression="zstd", **options)


def _parquet_cases() -> Iterator[tuple[str, Case]]:
    import pyarrow as pa

    def case(name: str, make: Callable[[], Any], rows: int | None = None, **options: Any) -> tuple[str, Case]:
        return f".parquet {name}", Case("parquet", ".parquet", partial(_parquet, make, **options), rows)

    def repeated(value: object, count: int) -> Any:
        return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), count), pa.array([value]))

    def lists(count: int, values: Any) -> Any:
        return pa.ListArray.from_arrays(pa.array(range(0, len(values) + 1, len(values) // count), pa.int32()), values)

    def structs(values: Any, count: int) -> Any:
        return pa.StructArray.from_arrays([values] * count, [f"c{n}" for n in range(count)])

    def nested() -> Any:
        kind: Any = pa.string()
        value: Any = "x"
        for _ in range(90):
            kind, value = pa.list_(kind), [value]
        return {"text": ["nice hat"], "more": pa.array([value], kind)}

    big, large, six = "x" * MEGA, "x" * 60 * MEGA, repeated("nice hat", 6_000)
    empty = pa.array([[]], pa.list_(pa.null()))
    plain = pa.nulls(20_000, pa.string())
    yield case("a megabyte 6,000 times", lambda: {"text": repeated(big, 6_000)})  # R5
    megabytes = [repeated(big, 100)] * 5
    yield case(
        "a megabyte 500 times, as plain text",
        lambda: {"text": pa.chunked_array([part.cast(pa.string()) for part in megabytes])},
    )
    yield case("bytes 6,000 times", lambda: {"text": six, "more": repeated(big.encode(), 6_000)})
    yield case("a kilobyte a million times", lambda: {"text": repeated("x" * 1_000, MEGA)})
    yield case("a word 20 million times", lambda: {"text": repeated("nice hat", 20 * MEGA)})
    yield case("100 million nulls", lambda: {"text": pa.nulls(100 * MEGA)})
    yield case("100 million nulls of text", lambda: {"text": pa.nulls(100 * MEGA, pa.string())})
    yield case("20 million empty lists", lambda: {"text": empty.take(pa.repeat(0, 20 * MEGA))})
    yield case("a list of 20 million", lambda: {"text": ["nice hat"], "comments": lists(1, pa.repeat("x", 20 * MEGA))})
    yield case("a text of 300 MB", lambda: {"text": ["x" * 300 * MEGA]})
    yield case("60 MB 6,000 times", lambda: {"text": six, "user": repeated(large, 6_000)})
    yield case("60 MB 6,000 times, as plain text", lambda: {"text": repeated(large, 6_000)}, 0, store_schema=False)
    delta = {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY", "data_page_size": 1 << 30}
    chunks = [pa.array([large])] * 30
    yield case("60 MB 30 times, by what they begin with", lambda: {"text": pa.chunked_array(chunks)}, 0, **delta)
    nulls = pa.nulls(100_000)
    yield case(
        "structs of 2,000 nulls", lambda: {"text": nulls.cast(pa.string()), "comments": structs(nulls, 2_000)}, 0
    )
    hats = [f"nice hat {n}" for n in range(20_000)]
    columns = {f"c{n}": plain for n in range(500)}
    yield case("500 empty columns that nobody asked for", lambda: {"text": hats, **columns}, 20_000)
    yield case("5,000 columns", lambda: {"text": ["nice hat"], **{f"c{n}": [n] for n in range(5_000)}}, 1)
    yield case("lists 90 deep", nested)
    yield case("a dictionary in a list", lambda: {"text": six, "more": lists(6_000, repeated(big, 6_000))})
    yield case("a struct of a megabyte 6,000 times", lambda: {"text": six, "more": structs(repeated(big, 6_000), 1)})

    def cut(path: Path) -> None:
        _parquet(lambda: {"text": ["nice hat"] * 1_000}, path)
        data = path.read_bytes()
        path.write_bytes(data[:-8] + b"\xff\xff\xff\x7f" + data[-4:])

    yield ".parquet a footer of 2 GB", Case("parquet", ".parquet", cut)


Change = tuple[str, bytes, bytes | Callable[[], bytes]]  # part, what is in it, and what takes its place


def workbook(path: Path, *changes: Change, more: Mapping[str, int] | None = None) -> None:
    """A workbook with `text` and one comment whose parts are changed, and with more of them, of so many blanks.

    A change of no part renames parts too.
    """
    import polars as pl

    out = io.BytesIO()
    pl.DataFrame({"text": ["nice hat"]}).write_excel(out)
    with zipfile.ZipFile(out) as book, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as changed:
        for name in book.namelist():
            new_name, data = name, book.read(name)
            for part, old, new in changes:
                if part in name:
                    assert not part or old in data, f"{name} has no {old!r}: {data[:2000]!r}"
                    replacement = new() if callable(new) else new
                    new_name = new_name if part else new_name.replace(old.decode(), replacement.decode())
                    data = data.replace(old, replacement)
            changed.writestr(new_name, data)
        for name, size in (more or {}).items():
            changed.writestr(name, b" " * size)


def _xlsx_cases() -> Iterator[tuple[str, Case]]:
    sheet, texts = "worksheets/sheet1.xml", "sharedStrings"

    def case(name: str, *changes: Change, more: Mapping[str, int] | None = None) -> tuple[str, Case]:
        return f".xlsx {name}", Case(
            "zip" if more else "xlsx", ".xlsx", lambda path: workbook(path, *changes, more=more)
        )

    def rows(make: Callable[[], bytes]) -> Change:
        return sheet, b"</sheetData>", lambda: make() + b"</sheetData>"

    def shared(name: str, count: int, size: int) -> tuple[str, Case]:
        cells = (b'<row r="%d"><c r="A%d" t="s"><v>1</v></c></row>' % (n, n) for n in range(3, count + 2))
        return case(name, (texts, b"nice hat", lambda: b"x" * size), rows(lambda: b"".join(cells)))

    def all_columns() -> bytes:
        letters = (chr(65 + n // 26 % 26) + chr(65 + n % 26) for n in range(676))
        cells = (b'<c r="%s3"><v>1</v></c>' % column.encode() for column in letters)
        return b'<row r="3">' + b"".join(cells) + b"</row>"

    entities = b"".join(b'<!ENTITY l%d "%s">' % (n, b"&l%d;" % (n - 1) * 10 if n else b"lol" * 10) for n in range(10))
    elsewhere = ("", b"worksheets/sheet1.xml", b"other/page.bin")
    yield case("a far cell in a sheet under another name", elsewhere, (sheet, b'r="A2"', b'r="XFD1048576"'))  # R5
    yield shared("a megabyte 6,000 times", 6_000, MEGA)  # R5
    yield shared("10 kB 60,000 times", 60_000, 10_000)
    yield case("a cell far off", (sheet, b'r="A2"', b'r="XFD1048576"'))
    yield case("a row far off", (sheet, b'<row r="2"', b'<row r="4294967295"'))
    yield case("a size without end", (sheet, b'ref="A1:A2"', b'ref="A1:XFD1048576"'))
    yield case("4 billion shared texts", (texts, b'uniqueCount="2"', b'uniqueCount="4294967295"'))
    yield case("entities of entities", (sheet, b"<worksheet", b"<!DOCTYPE x [" + entities + b"]><worksheet"))
    yield case("entities of entities in texts", (texts, b"nice hat", b"&l9;" * 1_000))
    yield case("blanks of 300 MB", rows(lambda: b" " * 300 * MEGA))
    yield case("blanks of 1,200 MB beside", more={f"xl/more{n}.bin": 300 * MEGA for n in range(4)})
    yield case("300,000 rows of nothing", rows(lambda: b"<row/>" * 300_000))
    one_place = b'<c r="A3"><v>1</v></c>'
    yield case("100,000 cells of one place", rows(lambda: b'<row r="3">' + one_place * 100_000 + b"</row>"))
    yield case("cells of every column", rows(all_columns))
    yield case("tags in tags", rows(lambda: b"<row><c>" * 200_000))
    yield case("20,000 files", more={f"xl/worksheets/more{n}.xml": 0 for n in range(20_000)})
    outside = "../../../../etc/passwd"
    yield case(
        "a path out of the archive",
        ("workbook.xml.rels", b"worksheets/sheet1.xml", outside.encode()),
        more={outside: 1},
    )

    def lying(path: Path) -> None:
        workbook(path)
        data = bytearray(path.read_bytes())
        at = data.rfind(b"PK\x01\x02")
        data[at + 24 : at + 28] = b"\xff\xff\xff\x7f"  # the unpacked size in the directory
        path.write_bytes(bytes(data))

    def half(path: Path) -> None:
        workbook(path)
        path.write_bytes(path.read_bytes()[:3000])

    yield ".xlsx a size that lies", Case("zip", ".xlsx", lying)
    yield ".xlsx half of it", Case("zip", ".xlsx", half)


def _sqlite(script: str, path: Path, fill: str = "", count: int = 0, after: str = "") -> None:
    with closing(sqlite3.connect(path)) as con:
        con.executescript(script)
        if fill:
            con.executemany(fill, ((n,) for n in range(count)))
        con.commit()
        con.executescript(after)  # a computed column that is added is not computed yet


def _sqlite_cases() -> Iterator[tuple[str, Case]]:
    def case(name: str, script: str, rows: int | None = None) -> tuple[str, Case]:
        return f".db {name}", Case("sqlite", ".db", partial(_sqlite, script), rows)

    def computed(name: str, column: str, count: int) -> tuple[str, Case]:
        add = f"alter table g add column {column}"
        write = partial(_sqlite, "create table g (a)", fill="insert into g values (?)", count=count, after=add)
        return f".db {name}", Case("sqlite", ".db", write)

    one = "create table t (text); insert into t values ('nice hat');"
    pattern = f"'{'a' * 4_000}' like '{'%a' * 2_000}b'"
    yield computed("a megabyte for each row", "text as (printf('%.*c', 1000000, 'x'))", 6_000)  # R5
    yield computed("a gigabyte in a cell", "text as (hex(zeroblob(490000000)))", 1)
    yield computed("15 MB in a column that nobody asked for", "text as (printf('%.*c', 15000000, 'x'))", 200)
    yield computed("work without end in a cell", "text as (length(replace(hex(zeroblob(7000000)), '0', '11')))", 5_000)
    yield computed("a pattern without end", f"text as ({pattern})", 100_000)
    columns = ", ".join(f"c{n}" for n in range(1_900))
    yield case("1,900 columns", f"create table g (text, {columns}); insert into g (text) values ('nice hat')", 1)
    tables = ";".join(f"create table t{n} (text)" for n in range(2_000))
    yield case("2,000 tables", f"begin;{tables};{one}commit")
    endless = "with recursive x(text) as (select 1 union all select text + 1 from x) select text from x"
    yield case("a view without end", f"{one}create view v as {endless}", 1)
    yield case("a full-text table", one + "create virtual table f using fts5(text); insert into f values ('nice hat')")

    def circle(path: Path) -> None:
        """A tree of pages whose inner page names itself as a child."""
        _sqlite("pragma page_size = 512; create table t (text)", path, "insert into t values ('nice hat ' || ?)", 2_000)
        data = bytearray(path.read_bytes())
        page = next(n for n in range(1, len(data) // 512) if data[n * 512] == 5)
        pointer = int.from_bytes(data[page * 512 + 12 : page * 512 + 14], "big")
        data[page * 512 + pointer : page * 512 + pointer + 4] = (page + 1).to_bytes(4, "big")
        path.write_bytes(bytes(data))

    def overflow(path: Path) -> None:
        """A chain of overflow pages that leads back to its first."""
        fill = "insert into t values (printf('%.*c', 100000, 'x') || ?)"
        _sqlite("pragma page_size = 512; create table t (text)", path, fill, 1)
        data = bytearray(path.read_bytes())
        for page in range(3, len(data) // 512):
            data[page * 512 : page * 512 + 4] = (4).to_bytes(4, "big")
        path.write_bytes(bytes(data))

    yield ".db pages in a circle", Case("sqlite", ".db", circle)
    yield ".db a value in a circle", Case("sqlite", ".db", overflow)


def _other_cases() -> Iterator[tuple[str, Case]]:
    def arrow(path: Path) -> None:
        import pyarrow as pa

        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, pa.schema([("text", pa.string())])) as writer:
            writer.write_table(pa.table({"text": ["nice hat"]}))

    yield ".arrow", Case("other", ".arrow", arrow)
    yield ".zip", Case("zip", ".zip", lambda path: zipfile.ZipFile(path, "w").writestr("a.csv", "text\nnice hat\n"))
    yield ".csv.gz", Case("zip", ".gz", partial(_written, b"\x1f\x8b\x08\0"))
    yield ".parquet of nothing", Case("parquet", ".parquet", partial(_written, b"PAR1PAR1"))
    yield ".xlsx of nothing", Case("xlsx", ".xlsx", partial(_written, b"PK\x05\x06" + b"\0" * 18))
    yield ".db of nothing", Case("sqlite", ".db", partial(_written, b"SQLite format 3\0" + b"\0" * 84))


@cache
def cases() -> dict[str, Case]:
    """All, by name."""
    texts = {f".csv {name}": Case("text", ".csv", partial(_csv_text, text), 2) for name, text in TEXTS.items()}
    groups = (_csv_cases(), _json_cases(), _parquet_cases(), _xlsx_cases(), _sqlite_cases(), _other_cases())
    return texts | {name: case for group in groups for name, case in group}


# ------------------------------------------------------------------------------------------------------------- import


def import_as_user(name: str, case: Case, folder: Path) -> Outcome:
    """Write a case and import it with `undertone import`; CPU seconds and memory are those of the largest process."""
    path = folder / f"hostile{case.suffix}"
    case.write(path)
    env = {**os.environ, "UNDERTONE_HOME": str(folder / "home"), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "pipeline.cli", "import", str(path), "--source", "hostile"]
    out = folder / "out"
    seconds = megabytes = 0.0
    with out.open("wb") as file, subprocess.Popen(command, env=env, stdout=file, stderr=file) as process:
        started_at = time.monotonic()
        while process.poll() is None:
            time.sleep(0.02)
            with contextlib.suppress(psutil.Error):
                for running in [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]:
                    megabytes = max(megabytes, running.memory_info().rss / MEGA)
                    times = running.cpu_times()
                    seconds = max(seconds, times.user + times.system)
            if time.monotonic() - started_at > 30 * SECONDS:
                process.kill()
    message = out.read_text(encoding="utf-8", errors="replace").strip()
    verdict = _verdict(case, path, process.returncode, message)
    if seconds > SECONDS or megabytes > MEGABYTES:
        verdict = f"too large: {seconds:.0f} s, {megabytes:.0f} MB"
    return Outcome(name, case.kind, verdict, seconds, megabytes, message)


def _verdict(case: Case, path: Path, code: int, message: str) -> str:
    errors = [line for line in message.splitlines() if line.startswith("undertone: ")]
    if code == 2 and len(errors) == 1 and path.name in errors[0] and "Traceback" not in message:
        return "clear error"
    if code == 0:
        (row,) = (line for line in message.splitlines() if line.startswith("hostile "))
        read, kept, dropped = (int(cell.replace(",", "")) for cell in row.split()[-3:])
        if read == kept + dropped and case.rows in (None, read):
            return "right"
        return f"read {read}, kept {kept}, dropped {dropped}, expected {case.rows}"
    return f"exit code {code}"


def table(outcomes: list[Outcome]) -> str:
    """Kind, tried, right, clear error, anything else, slowest, largest."""
    lines = [
        f"{'kind':<10} {'tried':>6} {'right':>6} {'clear error':>12} {'else':>5} {'slowest s':>10} {'largest MB':>11}"
    ]
    for kind in [*dict.fromkeys(outcome.kind for outcome in outcomes), "all"]:
        group = [outcome for outcome in outcomes if kind in (outcome.kind, "all")]
        right, clear = (sum(o.verdict == verdict for o in group) for verdict in FINE)
        lines.append(
            f"{kind:<10} {len(group):>6} {right:>6} {clear:>12} {len(group) - right - clear:>5} "
            f"{max(o.seconds for o in group):>10.1f} {max(o.megabytes for o in group):>11.0f}"
        )
    return "\n".join(lines)


def run(names: list[str]) -> list[Outcome]:
    """Import the cases of these names, one after the other; what is neither right nor a clear error is printed."""
    everything, outcomes = cases(), []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            outcome = import_as_user(name, everything[name], Path(folder))
        outcomes.append(outcome)
        print(f"{outcome.verdict:<12} {outcome.seconds:5.1f} s {outcome.megabytes:6.0f} MB  {name}", flush=True)
        if outcome.verdict not in FINE:
            print(f"FINDING {name}: {outcome.verdict}: {outcome.message[-300:]}", flush=True)
    return outcomes


if __name__ == "__main__":
    chosen = [name for name in cases() if any(part in name for part in sys.argv[1:] or [""])]
    results = run(chosen)
    print(table(results))
