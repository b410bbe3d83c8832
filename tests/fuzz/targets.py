"""What is fuzzed: for each target a function of a random generator, which makes one input, has it read, and checks.

A target may end in one of our own errors; anything else that is raised is a finding. What is read obeys the contract of
its table, and each row that came in is kept, or dropped with a reason.
"""

import csv
import io
import json
import random
import sqlite3
import zipfile
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipeline import sample, settings
from pipeline.collect import columns, importers
from pipeline.collect.clean import clean, normalise
from pipeline.collect.privacy import anonymise
from pipeline.collect.sites.adapters import ADAPTERS, find_next_url, parse
from pipeline.collect.sites.record import ARTICLE_SCHEMA, COMMENT_SCHEMA, Page, build_frame
from pipeline.collect.threads import add_context, deduplicate, refuse_circles
from pipeline.errors import BadInput
from pipeline.examples import sources
from pipeline.examples.impscore import groups
from pipeline.examples.ndd import compression, pairs
from pipeline.examples.recam import items as cloze
from pipeline.examples.recam import summaries
from pipeline.examples.subtext import contexts
from pipeline.io.lines import parse_value, read_json_lines
from pipeline.label import compression as grading
from pipeline.label import label_files, label_studio, questionnaire, schema
from pipeline.llm import batch, request
from pipeline.llm.ledger import cost
from pipeline.llm.questions import explicit, graded, problematic
from pipeline.llm.questions import recovery as recovering
from pipeline.llm.service import replies as llm_replies
from pipeline.slices import parse_day
from pipeline.tables import TABLES
from pipeline.text import concreteness, trees
from tests.fuzz import damaged, hostile

Try = Callable[[random.Random, Path], object]
KEY = b"0123456789abcdef"
PLACE = Path("fuzz")


class Target(NamedTuple):
    """What is fuzzed: its share of a million inputs, and what makes an input in a folder, has it read, and checks."""

    share: int
    try_one: Try


def must(holds: object, what: str) -> None:
    """An AssertionError unless it holds: a finding."""
    if not holds:
        raise AssertionError(what)


# ------------------------------------------------------------------------------------------------------------ adapters


@cache
def pages(source: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in sample.list_pages(source)[0].read_text(encoding="utf-8").splitlines()]


def _cut(node: Any, most: int = 4) -> Any:
    """The page with at most so many items in each list, so that a change more often hits what matters."""
    if isinstance(node, list):
        return [_cut(item) for item in node[:most]]
    return {name: _cut(value) for name, value in node.items()} if isinstance(node, dict) else node


@cache
def _small_pages(source: str) -> list[dict[str, Any]]:
    return [{**page, "body": _cut(page["body"])} for page in pages(source)]


def _page(rng: random.Random, source: str) -> tuple[dict[str, Any], str]:
    row = rng.choice(_small_pages(source))
    body = parse_value(hostile.spelt(rng, hostile.mutated(rng, row["body"])), PLACE)
    if not isinstance(body, dict):
        raise BadInput("not an object")  # as `json_object` and the fetcher have it
    url = row["url"] if rng.randrange(10) else hostile.text(rng, row["url"]).encode("utf-8", "replace").decode()
    return body, url


def _check_page(page: Page, _source: str = "") -> tuple[pl.DataFrame, pl.DataFrame]:
    comments, articles = build_frame(page.comments, COMMENT_SCHEMA), build_frame(page.articles, ARTICLE_SCHEMA)
    must((comments.height, articles.height) == (len(page.comments), len(page.articles)), "a record was lost")
    must(comments.schema == COMMENT_SCHEMA and articles.schema == ARTICLE_SCHEMA, "another schema")
    must(all(isinstance(text, str) for row in page.skipped for text in row), "a skipped row without text")
    for comment in page.comments:
        texts = (comment.thread_id, comment.comment_id, comment.text, comment.row_key)
        must(all(isinstance(text, str) for text in texts), "no text")
    return comments, articles


def adapter(source: str, rng: random.Random, folder: Path) -> None:
    """A site's page, as it is redacted, read and followed."""
    body, url = _page(rng, source)
    body = anonymise.redact(body, source, KEY)
    page = parse(source, body, url, None)
    must(all(isinstance(comment.comment_id, str) for comment in page.comments), "an id that is no text")
    if not rng.randrange(4):
        _check_page(page)
    must(isinstance(find_next_url(source, body, url), str | None), "a next address that is no text")


def chain(source: str, rng: random.Random, folder: Path) -> None:
    """A site's page on its whole way: cleaned, deduplicated, put under its context, checked against the contract."""
    body, url = _page(rng, source)
    page = parse(source, anonymise.redact(body, source, KEY), url, None)
    _through(page, source, hashed=True)


def _through(page: Page, source: str, *, hashed: bool) -> None:
    comments, articles = _check_page(page)
    if not hashed:
        comments = comments.with_columns(anonymise.hash_users(comments["user"], source, KEY))
    kept, dropped = clean(comments)
    must(kept.height + dropped.height == comments.height, "cleaning lost rows")
    unique, copies = deduplicate(kept)
    must(unique.height + copies.height == kept.height, "deduplicating lost rows")
    refuse_circles(unique)
    articles = articles.with_columns(normalise(articles[name]) for name in ("title", "text", "summary"))
    articles = articles.unique("thread_id", keep="last", maintain_order=True)
    rows = add_context(unique, articles).rename({"user": "user_id"})
    must(rows.height == unique.height, "putting under a context changed the number of rows")
    constants = {"source": source, "day": parse_day(sample.DAY), "origin": "x", "adapter": "x/1"}
    rows = rows.with_columns(pl.lit(value).alias(name) for name, value in constants.items())
    if rows.height:
        TABLES["comments"].schema.validate(rows.select(TABLES["comments"].schema.column_names()))


# --------------------------------------------------------------------------------------------------------------- texts


def cleaned(rng: random.Random, folder: Path) -> None:
    """Texts, cleaned: cleaning again changes nothing, and nothing invisible is left."""
    seeds = [comment.text for comment in _comments()]
    texts = [hostile.text(rng, rng.choice(seeds)).encode("utf-8", "replace").decode() for _ in range(8)]
    first = normalise(pl.Series("text", texts, dtype=pl.String))
    must(normalise(first).equals(first), f"cleaning again changes {texts}")
    must(not first.str.contains(r"[\x{202A}-\x{202E}\x{2066}-\x{2069}\x00-\x08]").any(), "an invisible character")


@cache
def _comments() -> list[Any]:
    return [c for source in ADAPTERS for p in pages(source) for c in parse(source, p["body"], p["url"], None).comments]


def mappings(rng: random.Random, folder: Path) -> None:
    """What is typed for a mapping of columns, a masked language model, a day."""
    seeds = ["text=content,like_count=likes", "timezone=Asia/Shanghai,text=t", "en=a@b,zh=c", "2026-11-19"]
    told = hostile.text(rng, rng.choice(seeds))
    must(isinstance(settings.masked_lm(rng.choice(["en", "zh", ""]), told), str), "no name")
    kind = rng.randrange(3)
    if kind == 0:
        columns.parse(told)
    elif kind == 1:
        parse_day(told)
    else:
        columns.choose({}, {told, "text"} if rng.random() < 0.5 else {told}, "here")


# ----------------------------------------------------------------------------------------------------------- importers


def _table_rows(rng: random.Random) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {"text": f"第{n}条 comment", "comment_id": f"c{n}", "thread_id": "t1", "like_count": n, "created_at": 1763524800 + n,
         "user": f"u{n}", "parent_id": f"c{n - 1}" if n else None, "article_text": "文章"} for n in range(rng.randrange(1, 5))
    ]  # fmt: skip
    if rng.randrange(4) == 0:
        rows = [{"id": "1", "title": "t", "content": "x", "category": "c",
                 "comments": [{"text": "a", "upvotes": 2}, {"text": "b", "upvotes": 0}]}]  # fmt: skip
    return _mutated_rows(rng, rows)


def _mutated_rows(rng: random.Random, rows: list[Any]) -> list[Any]:
    mutated = hostile.mutated(rng, rows)
    return mutated if isinstance(mutated, list) else [mutated]


def _as_csv(rng: random.Random, rows: list[Any], dialect: str) -> str:
    objects = [row for row in rows if isinstance(row, dict)] or [{"text": "x"}]
    names = list(dict.fromkeys(str(name) for row in objects for name in row))
    out = io.StringIO()
    csv.writer(out, dialect=dialect).writerows([names, *([_cell(row.get(name)) for name in names] for row in objects)])
    text = out.getvalue()
    if names and rng.randrange(12) == 0:  # the header's first name twice
        text = text.replace(names[0], f"{names[0]},{names[0]}", 1)
    return text


def _cell(value: object) -> str:
    return json.dumps(value) if isinstance(value, dict | list) else "" if value is None else str(value)


def _write_table(rng: random.Random, path: Path) -> None:
    """A table with something done to it, in the format its ending names."""
    suffix, rows = path.suffix, _table_rows(rng)
    if suffix == ".db":
        _sqlite(rng, rows, path)
    elif suffix in (".parquet", ".xlsx"):
        path.write_bytes((_parquet if suffix == ".parquet" else _xlsx)(rng, rows))
    else:
        if suffix in (".csv", ".tsv"):
            text = _as_csv(rng, rows, "excel-tab" if suffix == ".tsv" else "excel")
        elif suffix == ".txt":
            text = "\n".join(hostile.text(rng, "一条评论") for _ in rows)
        elif suffix == ".jsonl":
            rows = rng.choice(_lines_of_pages()) if rng.randrange(3) == 0 else rows
            text = "\n".join(hostile.spelt(rng, row) for row in rows)
        else:
            text = hostile.spelt(rng, rows)
        path.write_bytes(hostile.raw(rng, text))


@cache
def _lines_of_pages() -> list[list[dict[str, Any]]]:
    return [_small_pages(source)[:2] for source in ADAPTERS]


def _parquet(rng: random.Random, rows: list[Any]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    odd = {
        "ns": pa.array([1, 2**62], pa.timestamp("ns")), "late": pa.array([0, 2**62], pa.timestamp("s")),
        "time": pa.array([1, 2], pa.time64("us")), "raw": pa.array([b"\xff", b"a"]), "list": pa.array([["a"], []]),
        "map": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())), "half": pa.array([float("nan"), 1e300]),
        "long": pa.array(["x" * 1000, None]), "date": pa.array([-(10**6), 2**31 - 1], pa.date32()),
        "wide": pa.array([2**64 - 1, 0], pa.uint64()), "dict": pa.array(["a", "b"]).dictionary_encode(),
        "span": pa.array([2**62, 1], pa.duration("s")), "zone": pa.array([1, 2], pa.timestamp("us", "Asia/Shanghai")),
        "nowhere": pa.array([1, 2], pa.timestamp("us", "Mars/Base")), "null": pa.nulls(2),
    }  # fmt: skip
    if rng.random() < 0.6:
        objects = [row for row in rows if isinstance(row, dict)]
        names = list(dict.fromkeys(name for row in objects for name in row))
        columns = {str(n).encode("utf-8", "replace").decode(): [row.get(n) for row in objects] for n in names}
        try:
            table = pa.table(columns)
        except (pa.ArrowException, ValueError, OverflowError, UnicodeError, TypeError):
            table = pa.table({"text": ["a", "b"]})
    else:
        names = [rng.choice(["text", "user", "like_count", "created_at", "thread_id", "x", ""]) for _ in range(3)]
        table = pa.Table.from_arrays([odd[rng.choice(list(odd))] for _ in names], names=names)
    out = io.BytesIO()
    try:
        pq.write_table(table, out)
    except (pa.ArrowException, ValueError):
        pq.write_table(pa.table({"text": ["a"]}), out)
    return hostile.broken(rng, out.getvalue()) if rng.random() < 0.3 else out.getvalue()


def _xlsx(rng: random.Random, _rows: list[Any]) -> bytes:
    if rng.random() < 0.2:
        return hostile.broken(rng, _book())
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(_book())) as book, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as changed:
        for name in book.namelist():
            is_changed = "sheet1" in name or rng.randrange(12) == 0
            if rng.randrange(40):
                changed.writestr(name, _sheet(rng, book.read(name)) if is_changed else book.read(name))
    return out.getvalue()


_CELLS = (
    "XFD1048576 A1048576 XFD1 A0 ZZZZ99999999 A-1 1  A99999999999999999999 1A1 $XFD$9 A5000000000 A4294967297 "
    "AAAAAAAAAAAAAA1 a9 XFE1 &#88;FD9"
)
_SHEET_CHANGES = [  # what is in a sheet, and what takes its place
    ('r="A2"', [f'r="{cell}"' for cell in [*_CELLS.split(" "), "A 1"]]),
    ("<v>", ["<f>1+1</f><v>", "<f>HYPERLINK(&quot;x&quot;)</f><v>", "<v>9"]),
    ("<sheetData>", ['<!DOCTYPE x [<!ENTITY a "aaaa">]><sheetData>&a;']),
    ('ref="A1:H4"', [f'ref="{cells}"' for cells in ("A1:XFD1048576", "A1:A1", "B2:A1", "x", "A1:ZZZZZZ9")]),
    ('t="s"', ['t="b"', 't="e"', 't="d"', 't="str"', 't="inlineStr"', 't="z"', ""]),
    ("<v>1</v>", [f"<v>{value}</v>" for value in ("99999", "-1", "x", "1e400", "NaN", "")]),
    ("<row", ["<rov", "<c/><row", '<row r="9"', "<row><row"]),
]


def _sheet(rng: random.Random, data: bytes) -> bytes:
    if rng.randrange(9) == 0:
        return hostile.broken(rng, data)
    old, others = rng.choice(_SHEET_CHANGES)
    return data.decode("utf-8", "replace").replace(old, rng.choice(others), 1).encode()


@cache
def _book() -> bytes:
    import xlsxwriter  # type: ignore[import-untyped]

    out = io.BytesIO()
    with xlsxwriter.Workbook(out, {"in_memory": True}) as book:
        for name in ("a", "b"):
            page = book.add_worksheet(name)
            for number, row in enumerate([("text", "comment_id", "like_count"), ("一", "c1", 1), ("=1+1", "c2", 2.5)]):
                for place, cell in enumerate(row):
                    (page.write_string if isinstance(cell, str) else page.write_number)(number, place, cell)
    return out.getvalue()


def _sqlite(rng: random.Random, rows: list[Any], path: Path) -> None:
    path.unlink(missing_ok=True)
    name = rng.choice(["comments", 'a"b', "x; drop table y", "sqlite", "名", "a b", "weibo"]).replace('"', '""')
    more = rng.choice([
        "", "create view v as select * from comments", "create trigger t after insert on u begin delete from u; end",
        "create table g (a, b as (printf('%.*c', 20000000, 'x')))", "create table g (text as (printf('%.*c', a, 'x')), a)",
        "create virtual table f using fts5(text)", "create table blobs (text blob)", "create table e (text)",
    ])  # fmt: skip
    with closing(sqlite3.connect(path)) as con:
        con.execute(f'create table "{name}" (text, comment_id, like_count, created_at)')
        con.execute("create table u (a)")
        for row in (row for row in rows if isinstance(row, dict)):
            cells = [row.get(n) for n in ("text", "comment_id", "like_count", "created_at")]
            is_storable = [isinstance(c, str | float | None) or (isinstance(c, int) and abs(c) < 2**63) for c in cells]
            cells = [cell if fits else str(cell) for cell, fits in zip(cells, is_storable, strict=True)]
            if rng.randrange(6) == 0:
                cells[rng.randrange(4)] = rng.choice([b"\xff\xfe", b"", b"a" * 2000])
            with suppress(UnicodeEncodeError, OverflowError):
                con.execute(f'insert into "{name}" values (?, ?, ?, ?)', cells)
                if rng.randrange(9) == 0:
                    con.execute(f'insert into "{name}" values (cast(? as text), 1, 2, 3)', [b"\xff\xfe\xfd"])
        if more:
            con.execute(more)
        if more.startswith("create table g"):
            con.execute("insert into g (a) values (90000)")
        if rng.randrange(6) == 0:
            change = rng.choice(["sql = 'x'", "name = null", "name = 7", "rootpage = 99"])
            con.executescript(f"pragma writable_schema = on; update sqlite_master set {change}")
        con.commit()
    if rng.randrange(4) == 0:
        path.write_bytes(hostile.broken(rng, path.read_bytes()))


def imported(suffix: str, rng: random.Random, folder: Path) -> None:
    """A file of a format, imported; every so often on the whole way into the table."""
    path = folder / f"in{suffix}"
    _write_table(rng, path)
    mapping = {"text": "text"} if rng.randrange(5) == 0 else {}
    odd = rng.choice(["gb18030", "utf-16", "ascii", "hex", "idna", "utf-7", "x\0"])
    encoding = "utf-8-sig" if rng.randrange(20) else odd
    goes_through = rng.randrange(8) == 0
    for part in importers.read(path, None, mapping, KEY, encoding):
        if goes_through:
            _through(part.page, part.source, hashed=part.hashed)
        else:
            _check_page(part.page)


# -------------------------------------------------------------------------------------------------------------- labels

_IDS = [f"{n:032x}" for n in range(3)]
_TASKS = pl.DataFrame({"task_id": _IDS, "text": ["你可真准时", "=cmd|x", "a\u202eb"], "context": ["上文", None, "c"]})

_ITEMS = _TASKS.with_columns(item_id=pl.col("task_id"), context=pl.col("context").fill_null("a b"))


def _label_rows(rng: random.Random, form: Any) -> list[Any]:
    fields = {name: rng.choice(field.values) for name, field in form.fields.items()}
    if rng.random() < 0.5:
        answers = [(n, name, value) for n in (0, 1) for name, value in list(fields.items())[:3]]
        rows = [{"task_id": _IDS[n], "rater_id": "anna", "field": name, "value": value} for n, name, value in answers]
    else:
        task = {"rater_id": "anna", "round": 1, "stage": 1, **fields}
        rows = [{"task_id": _IDS[n], "text": _TASKS["text"][n], **task} for n in (0, 1)]
    return _mutated_rows(rng, rows)


def labelled(suffix: str, rng: random.Random, folder: Path) -> None:
    """Sheets and tables of labels, for each of the three forms, and what they come to."""
    path = folder / f"labels{suffix}"
    form = rng.choice([schema.CSD, questionnaire.FORM, grading.FORM])
    rows = _label_rows(rng, form)
    text = _as_csv(rng, rows, "excel") if suffix == ".csv" else "\n".join(hostile.spelt(rng, row) for row in rows)
    path.write_bytes(hostile.raw(rng, text))
    tasks = rng.choice([_ITEMS, _ITEMS, None])
    labels = label_files.read(path, tasks, form)
    must(labels.schema == label_files.COLUMNS, "another schema")
    if labels.height and tasks is not None:
        TABLES["labels"].schema.validate(labels.with_columns(project=pl.lit("p")))
    if form is questionnaire.FORM and tasks is not None:
        must(questionnaire.build_answers(labels, _ITEMS).height <= labels.height, "answers out of nothing")
    if form is grading.FORM:
        found = grading.collect_grades(labels, _ITEMS.select("task_id", "item_id", system=pl.lit("s")))
        must(found.grades["n"].sum() + found.dropped.height == labels.height, "grades were lost")


def studio(rng: random.Random, folder: Path) -> None:
    """Exports of Label Studio."""
    path = folder / "export.json"
    span = {"start": 0, "end": 2, "text": "你可", "labels": ["span"]}
    result = [{"from_name": name, "to_name": "text", "type": kind, "value": value} for name, kind, value in (
        ("subtext", "choices", {"choices": ["1"]}), ("span", "labels", span), ("plain", "textarea", {"text": ["迟到了"]}),
    )]  # fmt: skip
    annotation = {"id": 1, "completed_by": {"id": 7, "email": "a@example.org"}, "was_cancelled": False, "lead_time": 4.5,
                  "created_at": "2026-11-20T08:00:00Z", "updated_at": "2026-11-20T08:00:00Z", "result": result}  # fmt: skip
    seed = [{"id": 1, "data": {"task_id": _IDS[0], "round": 1, "stage": 1, "fields": ["subtext"]},
             "annotations": [annotation, {**annotation, "id": 2}], "predictions": [{}], "drafts": []}]  # fmt: skip
    path.write_bytes(hostile.raw(rng, hostile.spelt(rng, hostile.mutated(rng, seed))))
    export = label_studio.parse_export(label_studio.read_export(path), _TASKS, name="export")
    must(export.labels.schema == label_files.COLUMNS, "another schema")


# ------------------------------------------------------------------------------------------------------ language models


def answers(rng: random.Random, folder: Path) -> None:
    """Answers of language models, as each parser reads them."""
    five = [f"这是第{n}句话" for n in range(5)]
    seeds = [
        "Sure! Here is the explicit version:\n\"He is late.\"", "**Answer**: he is late", "<<<x>>> y", "```\nhe\n```", "I can't comply.",
        "<think>hm</think>好的，直白的说法是：他迟到了。", "- q? - he is late", json.dumps({"intent": "x", "sentences": five}),
        '{"plain": "他迟到了", "meaning": "他总迟到"}', "(B) because", "Answer: C", "Yes.", "是的", "抱歉，我不能改写这句话",
    ]  # fmt: skip
    text = hostile.text(rng, rng.choice(seeds))
    asked = rng.choice(["你可真准时", "- Are you coming? - I have work.", "a", ""])
    kind = rng.randrange(5)
    if kind == 0:
        said = explicit.parse(text, asked, rng.choice(["explicit_zh", "dialogue_en"]))
        must((said.explicit is None) != (said.reason is None), "neither a sentence nor a reason, or both")
        must(said.explicit is None or said.explicit.strip(), "a blank sentence")
    elif kind == 1:
        group = graded.parse(text, rng.choice(["en", "zh"]))
        must((group.sentences is None) != (group.reason is None), "neither a group nor a reason, or both")
    elif kind == 2:
        must(problematic.parse(text) in ("yes", "no", "other"), "another answer")
    elif kind == 3:
        steps = recovering.parse(text, asked, rng.choice([None, "en", "zh"]))
        must((steps.meaning is None) == (steps.reason is not None), "neither a meaning nor a reason, or both")
    else:
        place = recovering.parse_choice(text, rng.randrange(9))
        must(place is None or 0 <= place < 8, "no place")


def replies(rng: random.Random, folder: Path) -> None:
    """What a service answers with 200, a moderation, and lines of a batch's output."""
    body = {"id": "x", "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "a"}}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 4}}  # fmt: skip
    line = {"custom_id": "k", "response": {"status_code": 200, "body": body}, "error": None}
    flags = {"model": "m", "results": [{"flagged": True}]}
    kind = rng.randrange(3)
    told = hostile.spelt(rng, hostile.mutated(rng, (body, flags, line)[kind]))
    if kind < 2:
        reply = llm_replies.read_answer(told, is_moderation=kind == 1)
    else:
        key, reply = batch.read_line(told, "line 1")
        must(isinstance(key, str), "no key")
    must(reply.outcome != "answered" or isinstance(reply.response, str), "an answer without text")
    for name in ("response", "served_model", "finish_reason"):
        (getattr(reply, name) or "").encode()
    llm_replies.make_printable(reply.detail or "").encode()


# ------------------------------------------------------------------------------------------------------------- examples


@cache
def _read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[:40]]


def _jsonl(read: Callable[[Path], Any], seeds: Path | list[Any], rng: random.Random, folder: Path) -> None:
    """Lines of JSON with something done to them; what is kept and dropped are the lines that came in."""
    path, lines = folder / "in.jsonl", _read_lines(seeds) if isinstance(seeds, Path) else seeds
    rows = _mutated_rows(rng, rng.sample(lines, min(3, len(lines))))
    path.write_bytes(hostile.raw(rng, "\n".join(hostile.spelt(rng, row) for row in rows)))
    read(path)


def _check_count(row_count: int, content: Any) -> None:
    kept = next(getattr(content, name) for name in ("rows", "items", "sentences") if hasattr(content, name))
    must(kept.height + content.dropped.height == row_count, "rows were lost")


def _all(read: Callable[[Path], Any]) -> Callable[[Path], Any]:
    return lambda path: _check_count(sum(1 for _ in read_json_lines(path)), read(path))


def _validated(read: Callable[[Path], Any], table: str) -> Callable[[Path], Any]:
    return lambda path: TABLES[table].schema.validate(read(path))


_CLOZE = [{"article": f"Passage {n}.", "question": "He is @placeholder here.", "label": n % 5,
           **{f"option_{k}": f"word{n}{k}" for k in range(5)}} for n in range(5)]  # fmt: skip
_QUESTIONS = [{"reference": f"r{n}", "options": ["a", "b", f"c{n}"], "answer": n % 3} for n in range(5)]
_CHOICES = [{"text": f"t{n}", "options": ["a", "b"], "answer": [n % 2], "context": "c"} for n in range(4)]
_NOTES = [{"text": f"t{n}", "meaning": "m", "context": "c", "plain": "p"} for n in range(4)]
_GOOGLE = [{"text": "The old house on the hill burned down, police said.", "summaries": ["The house burned down."]}]
_OWN = [{"text": f"So {n}.", "label": "implicit", "explicit": f"Yes {n}.", "lang": "en", "item_id": str(n)}
        for n in range(3)]  # fmt: skip
_COLLOQUIAL = {
    "alldata-2.txt": "0\t['今', '天', '好']\n\t['1', '0', '1']\n1\t['我', '来']\n\t['1', '1']\n",
    "shuffled_idx-2.txt": "[1, 0]",
}
_BROADCAST = {
    "input.txt": "the old house burned down .\nhe said so .\n",
    "gold.1.comp": "the house burned .\nhe said .\n",
}
_RATED = {"words.csv": "# a list\nword,rating\ntree,4.5\nidea,1.2\nlove,2\n"}
_SNARKS = {"examples": [{"input": "(a) Great. (b) Fine.", "target_scores": {"(a)": 1, "(b)": 0}}]}


def conllu(rng: random.Random, folder: Path) -> None:
    """Trees of CoNLL-U files."""
    path = folder / "in.conllu"
    seeds = sample.TREES.read_text(encoding="utf-8").split("\n\n")
    cells = _mutated_rows(rng, [line.split("\t") for line in rng.choice(seeds).splitlines()])
    lines = ["\t".join(map(str, row)) if isinstance(row, list) else str(row) for row in cells]
    path.write_bytes(hostile.raw(rng, "\n".join(lines) + "\n\n"))
    for tree in trees.read(path):
        must(len(tree.words) == len(tree.heads) == len(tree.upos), "columns of different lengths")
        trees.find_subtrees(tree.heads)


def _texts(read: Callable[[Path], object], seeds: Mapping[str, str], rng: random.Random, folder: Path) -> None:
    """Files of texts, one or more of them with something done to it; `read` takes their folder."""
    for name, seed in seeds.items():
        text = hostile.text(rng, seed) if len(seeds) == 1 or rng.random() < 0.6 else seed
        (folder / name).write_bytes(hostile.raw(rng, text))
    read(folder)


def prices(rng: random.Random, folder: Path) -> None:
    """Price tables of one's own."""
    more = 'output = 1.5\nnoted = 2026-11-20\nbatch = 0.5\n["n"]\ninput = 1\noutput = 2\nnoted = 2026-11-20\n'
    tables = [f'["m"]\ninput = {number}\n{more}' for number in (0.5, *hostile.NUMBERS)]
    seed, path = tables[0] if rng.random() < 0.7 else rng.choice(tables), folder / "prices.toml"
    path.write_bytes(hostile.raw(rng, hostile.text(rng, seed) if rng.random() < 0.7 else seed))
    must(all(price.cost(10, 10) >= 0 for price in cost.load_prices(path).values()), "a negative price")


def ratings(folder: Path) -> None:
    """Rated words, all of whose scores are in [0, 1]."""
    rows = concreteness.read(folder / "words.csv", bounds=(1, 5)).rows
    must(rows["score"].is_between(0, 1).all(), "a score outside")


_ASPECT = '<aspectTerms><aspectTerm term="x" implicit_sentiment="True"/></aspectTerms>'
_DATA_SETS = {
    "absa.xml": f'<Reviews><sentence id="1"><text>It took an hour.</text>{_ASPECT}</sentence></Reviews>',
    "snarks.json": json.dumps(_SNARKS), "task.json": json.dumps(_SNARKS),
    "own.csv": "text,label,explicit\nA.,implicit,B.\n", "own.tsv": "text\tlabel\nA.\timplicit\n",
}  # fmt: skip


def data_sets(rng: random.Random, folder: Path) -> None:
    """Data sets of table 6: tables of text and XML."""
    name = rng.choice(list(_DATA_SETS))
    path = folder / name
    path.write_bytes(hostile.raw(rng, hostile.text(rng, _DATA_SETS[name])))
    if name.startswith("own"):
        sources.read_own(path)
    else:
        sources.read("absa" if name == "absa.xml" else "snarks", path)


def summarised(rng: random.Random, folder: Path) -> None:
    """Articles with summaries: rows, an article a file, and splits."""
    rows = [{"id": str(n), "document": f"Text {n}.", "summary": f"Short {n}."} for n in range(4)]
    if rng.random() < 0.6:
        _jsonl(_all(summaries.read), rows, rng, folder)
        return
    path, splits = folder / "bbc" / "1.data", folder / "splits.json"
    path.parent.mkdir(exist_ok=True)
    seed = "[SN]URL[SN]\nx\n[SN]TITLE[SN]\nt\n[SN]FIRST-SENTENCE[SN]\ns\n[SN]RESTBODY[SN]\nb\n"
    path.write_bytes(hostile.raw(rng, hostile.text(rng, seed)))
    splits.write_bytes(hostile.raw(rng, hostile.spelt(rng, hostile.mutated(rng, {"train": ["1"], "test": ["2"]}))))
    _check_count(1, summaries.read(path.parent, splits=splits))


SUFFIXES = {".csv": 20_000, ".tsv": 8_000, ".txt": 5_000, ".jsonl": 20_000, ".json": 10_000, ".parquet": 4_000,
            ".xlsx": 3_000, ".db": 1_500}  # fmt: skip

TARGETS: Mapping[str, Target] = {
    **{f"adapter {source}": Target(20_000, partial(adapter, source)) for source in ADAPTERS},
    **{f"chain {source}": Target(1_000, partial(chain, source)) for source in ADAPTERS},
    **{f"import {suffix}": Target(share, partial(imported, suffix)) for suffix, share in SUFFIXES.items()},
    **{
        f"damaged {suffix}": Target(share, partial(damaged.target, suffix, _check_page))
        for suffix, share in damaged.SUFFIXES.items()
    },
    "clean": Target(4_000, cleaned),
    "mappings, days, model names": Target(130_000, mappings),
    "labels .csv": Target(6_000, partial(labelled, ".csv")),
    "labels .jsonl": Target(6_000, partial(labelled, ".jsonl")),
    "label studio": Target(10_000, studio),
    "answers": Target(480_000, answers),
    "replies": Target(120_000, replies),
    "cassettes": Target(4_000, partial(_jsonl, _validated(request.read_cassette, "completions"), sample.COMPLETIONS)),
    "prices": Target(4_000, prices),
    "cloze": Target(6_000, partial(_jsonl, _all(cloze.read), _CLOZE)),
    "questions": Target(4_000, partial(_jsonl, groups.read_questions, _QUESTIONS)),
    "choices": Target(4_000, partial(_jsonl, contexts.read_choices, _CHOICES)),
    "references": Target(5_000, partial(_jsonl, contexts.read_references, _NOTES)),
    "groups": Target(4_000, partial(_jsonl, groups.read, sample.GROUPS["en"])),
    "similar": Target(4_000, partial(_jsonl, _all(pairs.read_graded), sample.SIMILAR)),
    "compressions": Target(4_000, partial(_jsonl, _all(compression.read), sample.COMPRESSIONS)),
    "google": Target(5_000, partial(_jsonl, _all(compression.read_google), _GOOGLE)),
    "own sentences": Target(3_000, partial(_jsonl, _all(sources.read_own), _OWN)),
    "colloquial": Target(4_000, partial(_texts, compression.read_colloquial, _COLLOQUIAL)),
    "broadcast": Target(4_000, partial(_texts, compression.read_broadcast, _BROADCAST)),
    "data sets": Target(2_000, data_sets),
    "conllu": Target(8_000, conllu),
    "rated words": Target(5_000, partial(_texts, ratings, _RATED)),
    "summaries": Target(5_000, summarised),
}
"""By name; the shares add up to a little over a million."""
