"""What an erasure is about: a request, checked, and all keys that it leads to in present and former states."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipeline import settings, warehouse
from pipeline.collect.clean import hash_text
from pipeline.collect.privacy import anonymise
from pipeline.errors import BadInput
from pipeline.io.rows import number_rows
from pipeline.tables import DOCUMENTATION, SOURCE
from pipeline.tasks.erasure import pages, rules
from pipeline.tasks.erasure.rules import COMMENT, RULES, THREAD, Targets, create_keys, has_text, is_among, is_one_of
from pipeline.tasks.record import replace

_KINDS = ("user_id", "comment_id", "thread_id")
COLUMNS = ("source", *_KINDS)
_COMMENT_DAY = ("source", "day", "thread_id", "comment_id")
_ARTICLE_TEXTS = ("title", "text", "summary")


class Request(NamedTuple):
    """What an erasure is about."""

    # pseudonyms (32 hexadecimal digits), or ids of the site, which need `source` and the key; with both, an id that
    # looks like a pseudonym is also tried as an id of the site
    user_ids: Sequence[str] = ()
    comment_ids: Sequence[str] = ()  # of all sources, unless `source` is given
    thread_ids: Sequence[str] = ()  # of articles, with their text; comments by others below them stay
    origin: str | None = None  # an imported file, of one source if given: all its rows
    source: str | None = None  # of the ids
    file: Path | None = None  # a table with the columns user_id, comment_id or thread_id, and source


class CheckedRequest(NamedTuple):
    """A request, checked; ids of comments and threads have a source (null: any) and an id."""

    user_ids: list[str]
    raw_ids: list[str]
    comments: pl.DataFrame
    threads: pl.DataFrame
    origin: str | None
    source: str | None
    request_count: int  # of ids and origins
    file: Path | None = None  # it stays until everything is erased

    @property
    def kind(self) -> str:
        """The kinds of its ids, joined by +."""
        lists = (self.user_ids, self.comments.rows(), self.threads.rows(), self.origin)
        return "+".join(kind for kind, ids in zip((*_KINDS, "origin"), lists, strict=True) if ids)


class _Row(NamedTuple):
    place: str
    source: str | None
    kind: str
    value: str


def check_request(request: Request, key: bytes | None) -> CheckedRequest:
    """Check a request, and convert its user ids to pseudonyms; BadInput names file, row and field."""
    if request.source is not None and not re.match(SOURCE, request.source):
        raise BadInput(f"{request.source!r} is no source name; use small letters, digits and _, a letter first")
    key = key or settings.user_key()
    rows = []
    for kind, values in zip(_KINDS, (request.user_ids, request.comment_ids, request.thread_ids), strict=True):
        rows += [_Row(f"--{kind.replace('_', '-')}", request.source, kind, value) for value in values]
    rows += _read_file(request.file, request.source) if request.file else []
    if not rows and not request.origin:
        raise BadInput("name what to erase: user ids, comment ids, thread ids, an origin, or a file of ids")
    if empty := next((row for row in rows if not row.value.strip()), None):
        raise BadInput(f"{empty.place}: expected an id, found nothing")
    users, raw_ids, twins = set(), set(), set()
    for row in (row for row in rows if row.kind == "user_id"):
        pseudonym = anonymise.hash_user(row.source, row.value, key) if row.source else None
        if re.fullmatch("[0-9a-f]{32}", row.value):
            users.add(row.value)
            twins |= {pseudonym} if pseudonym else set()  # Zhihu's own ids look like pseudonyms
        elif not row.source:
            raise BadInput(f"{row.place}: an id of the site needs its source; a pseudonym is 32 hexadecimal digits")
        elif not pseudonym:
            raise BadInput(f"{row.place}: an id of the site needs the key it was hashed with (UNDERTONE_USER_KEY)")
        else:
            raw_ids.add(row.value)
            users.add(pseudonym)
    comments, threads = (_collect_ids(rows, kind, key) for kind in ("comment_id", "thread_id"))
    return CheckedRequest(
        user_ids=sorted(users | twins),
        raw_ids=sorted(raw_ids),
        comments=comments,
        threads=threads,
        origin=request.origin and anonymise.scrub_file_name(request.origin, key),
        source=request.source,
        request_count=len(users) + comments.height + threads.height + bool(request.origin),
        file=request.file and request.file.resolve(),
    )


def _collect_ids(rows: Sequence[_Row], kind: str, key: bytes | None) -> pl.DataFrame:
    """Collect the ids of a kind, and the surrogates of ids that are a mail address or a telephone number."""
    ids = []
    for row in (row for row in rows if row.kind == kind):
        ids.append((row.source, row.value))
        if row.source:
            ids.append((row.source, anonymise.scrub_id(row.value, row.source, key)))
    return pl.DataFrame(ids, schema=create_keys("source", "id").schema, orient="row").unique().sort("id")


def _read_file(path: Path, source: str | None) -> list[_Row]:
    rows: list[_Row] = []
    for number, record in number_rows(path):
        place = f"{path.name}, row {number}"
        if unknown := sorted(set(map(str, record)) - set(COLUMNS)):
            raise BadInput(f"{place}: unknown field {unknown[0][:40]!r}; expected {', '.join(COLUMNS)}")
        values = {name: _parse_cell(place, name, record.get(name)) for name in COLUMNS}
        row_source = values.pop("source") or source
        if row_source is not None and not re.match(SOURCE, row_source):
            raise BadInput(f"{place}: field 'source': expected a source name, found {row_source[:40]!r}")
        if not any(values.values()):
            raise BadInput(f"{place}: expected an id in user_id, comment_id or thread_id, found none")
        ids = {kind: value for kind, value in values.items() if value}
        rows += [_Row(f"{place}, field {kind!r}", row_source, kind, value) for kind, value in ids.items()]
    return rows


def _parse_cell(place: str, name: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return (value or "").strip() or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise BadInput(f"{place}: field {name!r}: expected text, found {type(value).__name__}; it may lose digits of an id")


# --- targets


def resolve(request: CheckedRequest) -> Targets:
    """Resolve a request to what is erased, in present and former states, and the keys of what was derived from it."""
    origins = _find_origins(request)
    is_article = _is_named(request.threads, "thread_id") | is_among(origins)
    if request.user_ids:
        has_user = pl.col("body").str.contains_any(request.user_ids)
        raw_pages = _scan_keys("raw_pages", has_user, "source", "url", "body").collect()
        users = Targets(user_ids=request.user_ids, raw_ids=request.raw_ids)
        is_article |= is_among(pages.find_articles(raw_pages, users))
    is_comment = is_one_of("user_id", request.user_ids) | _is_named(request.comments, "comment_id") | is_among(origins)
    comments = _scan_keys("comments", is_comment, *_COMMENT_DAY, "text", "text_hash").collect()
    articles = _scan_keys("articles", is_article, *THREAD, "day", "origin", *_ARTICLE_TEXTS).collect()
    other_comments = warehouse.scan("comments").filter(~is_comment)
    other_articles = warehouse.scan("articles").filter(~is_article)
    comment_keys = _select_unshared(comments, other_comments, COMMENT)
    other_texts = [other_comments.select("text"), *(other_articles.select(text=name) for name in _ARTICLE_TEXTS)]
    texts, excerpts = _select_own_texts(comments, articles, pl.concat(other_texts).drop_nulls())
    # models may also have been trained on title and body of an article as one text, the context of comments, and on
    # comments before an edit, whose hashes `scores` keeps for longer than any file
    context = pl.concat_str("title", "text", separator=" ", ignore_nulls=True).str.strip_chars().alias("context")
    contexts = _select_unshared(articles.select(context).drop_nulls(), other_articles.select(context), ["context"])
    is_scored = is_among(comments.select(_COMMENT_DAY))
    scored = warehouse.scan_history("scores").filter(is_scored).select("text_hash").unique().collect()
    scored_hashes = _select_unshared(scored, other_comments, ["text_hash"])
    hashes = [hash_text(texts), hash_text(contexts["context"]), scored_hashes["text_hash"]]
    vectors = _scan_keys("embeddings", pl.lit(value=True), "text_hash")
    vectors = vectors.join(other_comments.select("text_hash"), on="text_hash", how="anti")
    replies = other_comments.filter(is_among(comment_keys, "source", "thread_id", "parent_id"))
    targets = Targets(
        comments=comments.select(_COMMENT_DAY).unique(),
        comment_keys=comment_keys,
        replies=replies.select(COMMENT).unique().collect(),
        articles=articles.select("source", "day", "thread_id", "origin").unique(),
        threads=_select_unshared(articles, other_articles, THREAD),
        origins=origins,
        texts=texts,
        hashes=pl.concat(hashes).unique().sort(),
        excerpts=excerpts,
        tokens=_find_stale(comments, other_comments, "tokens", "projections"),
        scores=_find_stale(comments, other_comments, "scores", "scores_explained"),
        vectors=vectors.collect(engine="streaming")["text_hash"],
        user_ids=request.user_ids,
        raw_ids=request.raw_ids,
    )
    targets = _add_derived(targets, request)
    ids = {*targets.user_ids, *targets.hashes, *targets.label_tasks["row_id"], *rules.join_ids(targets)}
    return targets._replace(marks=sorted({*targets.excerpts, *ids}))


def _find_stale(comments: pl.DataFrame, other_comments: pl.LazyFrame, *tables: str) -> pl.DataFrame:
    """Find the keys of rows that no other comment has: of these comments, and of earlier ones that are gone."""
    key = ["source", "day", *replace.KEYS[tables[0]]]
    keys = [_scan_keys(name, pl.lit(value=True), *key) for name in tables]
    rows = pl.concat([comments.select(key).lazy(), *keys]).unique()
    return rows.join(other_comments.select(key), on=key, how="anti").collect(engine="streaming").sort(key)


def _scan_keys(table: str, condition: pl.Expr, *columns: str, **renamed: str) -> pl.LazyFrame:
    return warehouse.scan_history(table).filter(condition).select(*columns, **renamed).unique()


def _select_unshared(rows: pl.DataFrame, other_rows: pl.LazyFrame, columns: Sequence[str]) -> pl.DataFrame:
    keys = rows.select(columns).unique()
    shared = other_rows.select(columns).join(keys.lazy(), on=columns, how="semi").unique()
    return keys.join(shared.collect(engine="streaming"), on=columns, how="anti").sort(columns)


def _is_named(ids: pl.DataFrame, column: str) -> pl.Expr:
    of_any_source = ids.filter(pl.col("source").is_null())["id"]
    return is_one_of(column, of_any_source) | is_among(ids.drop_nulls(), "source", column)


def _is_from(request: CheckedRequest, condition: pl.Expr) -> pl.Expr:
    return condition & (pl.col("source") == request.source) if request.source else condition


def _find_origins(request: CheckedRequest) -> pl.DataFrame:
    if request.origin is None:
        return create_keys("source", "origin")
    condition = _is_from(request, pl.col("origin") == request.origin)
    tables = ("comments", "articles", "raw_pages")
    origins = [_scan_keys(table, condition, "source", "origin").collect() for table in tables]
    return pl.concat(origins).unique().sort("source")


def _select_own_texts(
    comments: pl.DataFrame, articles: pl.DataFrame, other_texts: pl.LazyFrame
) -> tuple[pl.Series, list[str]]:
    """Select the texts that nobody else wrote, and of the long ones the ends, or the whole, that no other contains."""
    texts = pl.concat([comments["text"], *(articles[name] for name in _ARTICLE_TEXTS)]).drop_nulls()
    texts = texts.filter(texts.str.strip_chars() != "")
    texts = _select_unshared(texts.to_frame("text"), other_texts, ["text"])["text"]
    long_texts = texts.filter(~rules.is_short(texts))
    patterns = sorted({part for text in long_texts for part in (text, *_cut_ends(text))})
    shared = {part for part in patterns if part in DOCUMENTATION}
    if patterns:
        matches = other_texts.select(pl.col("text").str.extract_many(patterns, overlapping=True).explode())
        shared |= set(matches.drop_nulls().unique().collect(engine="streaming")["text"])
    own_texts = [text for text in long_texts if text not in shared]
    excerpts = {excerpt for text in own_texts for excerpt in _cut_ends(text) - shared or {text}}
    return texts, sorted({spelling for excerpt in excerpts for spelling in warehouse.list_spellings(excerpt)})


def _cut_ends(text: str) -> set[str]:
    """Cut the two ends of a text by which it is searched, as half a record may be left of it."""
    end = text[-rules.FIRST_CHARS :]
    is_long = len("".join(end.split()).encode()) >= rules.LEAST_BYTES
    start = text[: rules.FIRST_CHARS]
    return {start, end} if is_long else {start}


def _add_derived(targets: Targets, request: CheckedRequest) -> Targets:
    def find_keys(table: str, *columns: str, **renamed: str) -> pl.DataFrame:
        return _scan_keys(table, RULES[table].is_erased(targets), *columns, **renamed).collect()

    targets = targets._replace(
        generated_comments=find_keys("generated_comments", *THREAD, comment_id="generated_id"),
        cloze_items=find_keys("cloze_items", *THREAD, comment_id="item_id"),
    )
    sentences = find_keys("sentences", "source", "item_id")
    if request.origin:
        is_imported = _is_from(request, pl.col("item_id").str.starts_with(f"{request.origin}:"))
        imported = _scan_keys("sentences", is_imported, "source", "item_id").collect()
        sentences = pl.concat([sentences, imported]).unique()
    targets = targets._replace(sentences=sentences)
    sentence_keys = sentences.select("source", thread_id="item_id", comment_id="item_id")
    items = pl.concat([targets.comment_keys, targets.generated_comments, targets.cloze_items, sentence_keys])
    is_task = is_among(items) | rules.has_long_text(targets, "text")
    targets = targets._replace(
        label_tasks=_scan_keys("label_tasks", is_task, "project", "task_id", "row_id").collect(),
        context_row_ids=_scan_keys("label_tasks", is_among(targets.replies), "row_id").collect()["row_id"],
        completion_ids=find_keys("completions", "completion_id")["completion_id"],
    )
    pairs = find_keys("pairs", "pair_id", "source", "explicit", "completion_id", "implicit")
    pairs = pairs.filter(has_text(targets, "implicit") | is_one_of("completion_id", targets.completion_ids))
    completion_ids = pl.concat([targets.completion_ids, pairs["completion_id"].drop_nulls()]).unique()
    targets = targets._replace(pair_ids=pairs["pair_id"], completion_ids=completion_ids)
    other_pairs = warehouse.scan("pairs").filter(~is_one_of("pair_id", targets.pair_ids))
    return targets._replace(explicit_forms=_select_unshared(pairs, other_pairs, ["source", "explicit"]))
