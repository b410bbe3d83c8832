"""Whom or what an erasure is about: a request as it was given, checked, and everything that it comes to.

What is erased is found from the comments, their old states included, and followed into what was made of them by the
rules of `rules`.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipeline import settings, warehouse
from pipeline.collect.clean import text_hash
from pipeline.collect.privacy import anonymise
from pipeline.errors import BadInput
from pipeline.io.rows import read_chunks
from pipeline.tables import SOURCE
from pipeline.tasks.erasure import pages, rules
from pipeline.tasks.erasure.rules import (
    COMMENT,
    FIRST_CHARS,
    LEAST_BYTES,
    RULES,
    THREAD,
    Targets,
    has_text,
    is_among,
    is_one_of,
    mentions,
)

COLUMNS = ("source", "user_id", "comment_id", "thread_id")
_PSEUDONYM = re.compile("[0-9a-f]{32}")


class Request(NamedTuple):
    """Whom or what an erasure is about.

    Attributes:
        user_ids: pseudonyms (32 hexadecimal digits), or ids as the site has them, which need `source` and the key;
            with both at hand, what looks like a pseudonym is taken for a site's own id as well.
        comment_ids: of comments; of all sources, unless `source` is given.
        thread_ids: of articles, with their text; comments by others below them stay.
        origin: everything that an imported file brought (of one source, if given).
        source: of what is named.
        file: csv, tsv, jsonl, xlsx or parquet with the columns user_id, comment_id or thread_id, and source.
    """

    user_ids: Sequence[str] = ()
    comment_ids: Sequence[str] = ()
    thread_ids: Sequence[str] = ()
    origin: str | None = None
    source: str | None = None
    file: Path | None = None


class CheckedRequest(NamedTuple):
    """A request, checked: source (null: any) and id of each kind."""

    user_ids: list[str]
    raw_ids: list[str]
    comments: pl.DataFrame
    threads: pl.DataFrame
    origin: str | None
    source: str | None
    request_count: int  # of those who, and what, are named
    file: Path | None = None  # it names who is erased, and must be there as long as they are not

    @property
    def kind(self) -> str:
        given = {"user_id": self.user_ids, "comment_id": self.comments.rows(), "thread_id": self.threads.rows(),
                 "origin": [self.origin] if self.origin else []}  # fmt: skip
        return "+".join(name for name, ids in given.items() if ids)


def check_request(request: Request, key: bytes | None) -> CheckedRequest:
    """A request checked, its user ids as pseudonyms.

    Raises:
        BadInput: nothing or something strange is named, or an id of a user cannot be hashed; with file, row and field.
    """
    if request.source is not None and not re.match(SOURCE, request.source):
        raise BadInput(f"{request.source!r} is no source name; use small letters, digits and _, a letter first")
    rows = [(f"--{name.replace('_', '-')}", request.source, name, value) for name, values in (
        ("user_id", request.user_ids), ("comment_id", request.comment_ids), ("thread_id", request.thread_ids)
    ) for value in values]  # fmt: skip
    rows += _read_file(request.file, request.source) if request.file else []
    if not rows and not request.origin:
        raise BadInput("name whom or what to forget: user ids, comment ids, thread ids, an origin, or a file of ids")
    found: dict[str, list[tuple[str | None, str]]] = {"user_id": [], "comment_id": [], "thread_id": []}
    raw, twins = [], set()
    for where, source, name, value in rows:
        if not value.strip():
            raise BadInput(f"{where}: expected an id, found nothing")
        if name == "user_id" and not _PSEUDONYM.fullmatch(value):
            raw.append(value)
            value = _hash_user(where, source, value, key)  # noqa: PLW2901
        elif name == "user_id" and source and (made := anonymise.surrogate(source, value, key or settings.user_key())):
            twins.add(made)  # Zhihu's own ids look like pseudonyms
        elif name != "user_id" and source:  # an id that is a mail or a telephone is stored as a surrogate
            found[name].append((source, anonymise.scrub_id(value, source, key or settings.user_key())))
        found[name].append((source, value))
    schema = {"source": pl.String, "id": pl.String}
    frames = {name: pl.DataFrame(ids, schema=schema, orient="row").unique().sort("id") for name, ids in found.items()}
    users = {user for _, user in found["user_id"]}
    origin = request.origin and anonymise.scrub_file_name(request.origin, key or settings.user_key())
    number = len(users) + frames["comment_id"].height + frames["thread_id"].height + bool(request.origin)
    return CheckedRequest(
        sorted(users | twins), sorted(set(raw)), frames["comment_id"], frames["thread_id"],
        origin, request.source, number, request.file and request.file.resolve(),
    )  # fmt: skip


def _hash_user(where: str, source: str | None, user: str, key: bytes | None) -> str:
    if source is None:
        raise BadInput(f"{where}: an id as the site has it needs its source; a pseudonym is 32 hexadecimal digits")
    if not (made := anonymise.surrogate(source, user, key or settings.user_key())):
        raise BadInput(f"{where}: an id as the site has it needs the key it was hashed with (UNDERTONE_USER_KEY)")
    return made


def _read_file(path: Path, source: str | None) -> list[tuple[str, str | None, str, str]]:
    """Rows of a file as (where, source, kind of id, id)."""
    found: list[tuple[str, str | None, str, str]] = []
    for chunk in read_chunks(path):
        for number, row in enumerate(chunk.rows, chunk.first):
            where = f"{path.name}, row {number}"
            if strange := sorted(set(map(str, row)) - set(COLUMNS)):
                raise BadInput(f"{where}: unknown field {strange[0][:40]!r}; expected {', '.join(COLUMNS)}")
            given = {name: _parse_cell(where, name, row.get(name)) for name in COLUMNS}
            own = given.pop("source") or source
            if own is not None and not re.match(SOURCE, own):
                raise BadInput(f"{where}: field 'source': expected a source name, found {own[:40]!r}")
            ids = [(f"{where}, field {name!r}", own, name, value) for name, value in given.items() if value]
            if not ids:
                raise BadInput(f"{where}: expected an id in user_id, comment_id or thread_id, found none")
            found += ids
    return found


def _parse_cell(where: str, name: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return (value or "").strip() or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise BadInput(f"{where}: field {name!r}: expected text, found {type(value).__name__}; long ids lose digits so")


# --- what it comes to


def resolve(asked: CheckedRequest) -> Targets:
    """What is erased, of the present and of former states, and the keys of what was made of it."""
    origins = _find_origins(asked)
    users = is_one_of("user_id", asked.user_ids)
    threads = _is_named(asked.threads, "thread_id")
    if asked.user_ids:
        threads |= is_among(_find_articles(asked))
    is_meant = users | _is_named(asked.comments, "comment_id") | is_among(origins)
    is_article = threads | is_among(origins)
    mine = warehouse.history("comments").filter(is_meant).select("source", "day", "thread_id", "comment_id", "text",
                                                                 "text_hash").unique().collect()  # fmt: skip
    about = warehouse.history("articles").filter(is_article).select(
        "source", "day", "thread_id", "origin", "title", "text", "summary"
    ).unique().collect()  # fmt: skip
    others, other_articles = (
        warehouse.scan("comments").filter(~is_meant),
        warehouse.scan("articles").filter(~is_article),
    )

    def without(rows: pl.DataFrame, there: pl.LazyFrame, columns: Sequence[str]) -> pl.DataFrame:
        keys = rows.select(columns).unique()
        return keys.join(there.select(columns).unique().collect(), on=columns, how="anti").sort(columns)

    commented = without(mine, others, COMMENT)
    texts, words = _select_own_texts(mine, about, others, other_articles)
    replies = others.filter(is_among(commented, "source", "thread_id", "parent_id")).select(COMMENT).unique().collect()
    gone = Targets(
        comments=mine.select("source", "day", "thread_id", "comment_id").unique(),
        commented=commented,
        replies=replies,
        articles=about.select("source", "day", "thread_id", "origin").unique(),
        threads=without(about, other_articles, THREAD),
        origins=origins,
        texts=texts,
        hashes=pl.concat([text_hash(texts), _select_more_hashes(mine, about, others, other_articles)]).unique().sort(),
        words=words,
        tokens=without(mine, others, ("source", "day", "text_hash")),
        generated=_empty_keys(*COMMENT),
        items=_empty_keys(*COMMENT),
        sentences=_empty_keys("source", "item_id"),
        tasks=_empty_keys("project", "task_id", "row_id"),
        shown=pl.Series(dtype=pl.String),
        pairs=pl.Series(dtype=pl.String),
        explicit=_empty_keys("source", "explicit"),
        completions=pl.Series(dtype=pl.String),
        user_ids=asked.user_ids,
        raw_ids=asked.raw_ids,
    )
    return rules.add_marks(_add_derived(gone, asked))


def _empty_keys(*columns: str) -> pl.DataFrame:
    return pl.DataFrame(schema=dict.fromkeys(columns, pl.String))


def _is_named(ids: pl.DataFrame, column: str) -> pl.Expr:
    anywhere = ids.filter(pl.col("source").is_null())["id"]
    return is_one_of(column, anywhere) | is_among(ids.drop_nulls(), "source", column)


def _find_origins(asked: CheckedRequest) -> pl.DataFrame:
    if asked.origin is None:
        return _empty_keys("source", "origin")
    is_it = pl.col("origin") == asked.origin
    if asked.source:
        is_it &= pl.col("source") == asked.source
    names = ("comments", "articles", "raw_pages")
    found = [warehouse.history(name).filter(is_it).select("source", "origin").unique().collect() for name in names]
    return pl.concat(found).unique().sort("source")


def _find_articles(asked: CheckedRequest) -> pl.DataFrame:
    bodies = warehouse.history("raw_pages").filter(pl.col("body").str.contains_any(asked.user_ids))
    rows = bodies.select("source", "url", "body").unique().collect()
    none = _empty_keys(*COMMENT)
    return pages.find_articles(rows, _UserTargets(none, asked.user_ids, asked.raw_ids))  # type: ignore[arg-type]


class _UserTargets(NamedTuple):
    """Of `Gone`, what cutting a page by its users needs."""

    commented: pl.DataFrame
    user_ids: Sequence[str]
    raw_ids: Sequence[str]
    texts: pl.Series = pl.Series(dtype=pl.String)
    marks: Sequence[str] = ()


def _select_own_texts(
    mine: pl.DataFrame, about: pl.DataFrame, others: pl.LazyFrame, articles: pl.LazyFrame
) -> tuple[pl.Series, list[str]]:
    """Texts that nobody else wrote, and both ends of the long ones (or the wholes) that no other text has in it."""
    every = pl.concat([mine["text"], *(about[name] for name in ("title", "text", "summary"))])
    own = every.drop_nulls().unique().sort()
    own = own.filter(own.str.strip_chars() != "")
    theirs = pl.concat([
        others.select("text"), *(articles.select(text=name) for name in ("title", "text", "summary"))
    ]).drop_nulls()  # fmt: skip
    texts = own.filter(~own.is_in(theirs.filter(is_one_of("text", own)).collect(engine="streaming")["text"].implode()))
    long = texts.filter(texts.str.len_bytes() >= LEAST_BYTES)
    patterns = sorted({part for text in long for part in (text, *_cut_ends(text))})
    met: set[str] = set()
    if patterns:
        hits = theirs.select(pl.col("text").str.extract_many(patterns, overlapping=True).explode()).drop_nulls()
        met = set(hits.unique().collect(engine="streaming")["text"])
    words = {part for text in long if text not in met for part in _cut_ends(text) - met or {text}}
    return texts, sorted({spelling for word in words for spelling in warehouse.spellings(word)})


def _select_more_hashes(
    mine: pl.DataFrame, about: pl.DataFrame, others: pl.LazyFrame, articles: pl.LazyFrame
) -> pl.Series:  # fmt: skip
    """Hashes of what models may have learnt from besides: titles and bodies as one, which comments have for a context,
    and comments as they were before they were edited, of which `scores` has the hashes for longer than any file.
    """
    whole = pl.concat_str("title", "text", separator=" ", ignore_nulls=True).str.strip_chars()
    contexts = about.select(whole).to_series().drop_nulls().unique()
    theirs = articles.select(whole.alias("whole")).filter(is_one_of("whole", contexts)).collect()["whole"]
    keys = mine.select("source", "day", "thread_id", "comment_id")
    scored = (
        warehouse.history("scores").filter(is_among(keys)).select(pl.col("text_hash").unique()).collect()["text_hash"]
    )
    shared = others.filter(is_one_of("text_hash", scored)).select("text_hash").collect()["text_hash"]
    contexts = contexts.filter(~contexts.is_in(theirs.implode())).rename("text_hash")
    return pl.concat([text_hash(contexts), scored.filter(~scored.is_in(shared.implode()))])


def _cut_ends(text: str) -> set[str]:
    """What a text is looked for by: how it begins, and how it ends, as half a record may be left of it."""
    return {
        text[:FIRST_CHARS],
        *(end for end in [text[-FIRST_CHARS:]] if len("".join(end.split()).encode()) >= LEAST_BYTES),
    }


def _add_derived(gone: Targets, asked: CheckedRequest) -> Targets:
    """With the keys of what was made of it, one kind after the other."""
    rule = {name: RULES[name].is_erased for name in RULES}

    def found(name: str, *columns: str, **renamed: str) -> pl.DataFrame:
        is_it = rule[name]
        assert is_it is not None
        return warehouse.history(name).filter(is_it(gone)).select(*columns, **renamed).unique().collect()

    gone = gone._replace(
        generated=found("generated_comments", *THREAD, comment_id="generated_id"),
        items=found("cloze_items", *THREAD, comment_id="item_id"),
    )
    sentences = found("sentences", "source", "item_id")
    if asked.origin:
        brought = pl.col("item_id").str.starts_with(f"{asked.origin}:")
        if asked.source:
            brought &= pl.col("source") == asked.source
        sentences = pl.concat([
            sentences, warehouse.history("sentences").filter(brought).select("source", "item_id").unique().collect()
        ]).unique()  # fmt: skip
    gone = gone._replace(sentences=sentences)
    of_items = pl.concat([
        gone.commented, gone.generated, gone.items,
        gone.sentences.select("source", thread_id="item_id", comment_id="item_id"),
    ])  # fmt: skip
    tasks = warehouse.history("label_tasks")
    mine = (
        tasks.filter(is_among(of_items) | mentions(gone, "text"))
        .select("project", "task_id", "row_id")
        .unique()
        .collect()
    )
    shown = tasks.filter(is_among(gone.replies)).select("row_id").unique().collect()["row_id"]
    gone = gone._replace(tasks=mine, shown=shown, completions=found("completions", "completion_id")["completion_id"])
    made = found("pairs", "pair_id", "source", "explicit", "completion_id", "implicit")
    asked_for = made.filter(has_text(gone, "implicit") | is_one_of("completion_id", gone.completions))
    gone = gone._replace(
        pairs=asked_for["pair_id"],
        completions=pl.concat([gone.completions, asked_for["completion_id"].drop_nulls()]).unique(),
    )
    others = warehouse.scan("pairs").filter(~is_one_of("pair_id", gone.pairs)).select("source", "explicit").unique()
    told = asked_for.select("source", "explicit").unique()
    return gone._replace(explicit=told.join(others.collect(), on=["source", "explicit"], how="anti"))
