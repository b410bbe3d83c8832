"""The commenting corpus as tasks: articles and their comments to parts, references and counts (AAC-01 to AAC-07)."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import polars as pl

from pipeline import settings, slices, warehouse
from pipeline.errors import Missing
from pipeline.examples.commenting import threads as commenting
from pipeline.examples.commenting.threads import Rules
from pipeline.papers.commenting import VOCABULARY
from pipeline.slices import Staged
from pipeline.tables import TABLES, empty
from pipeline.tasks.record import day_texts, runs
from pipeline.text import segment
from pipeline.text.language import detect_language
from pipeline.text.segment import Tokenizer

ORIGIN = "commenting"
STEP = "threads"
ROWS_PER_SHARD = 5_000  # articles
_CHUNK = 1_000  # articles whose words are held at once

THREAD = ["source", "thread_id"]
COMMENT = [*THREAD, "comment_id"]


class Part(TypedDict):
    """One mapped task's share of a source's articles, as of one state of the table."""

    source: str
    part: int
    parts: int
    snapshot: int | None


def parse_rules(given: Mapping[str, Any]) -> Rules:
    """Rules of a form or a command."""
    return Rules(**{name: value for name, value in given.items() if name in Rules._fields and value is not None})


def load_tokenizers() -> dict[str, Tokenizer]:
    """What cuts the texts of each language: jieba, as in the paper, and nltk."""
    return segment.load_tokenizers(resources=settings.resources())


def format_tokenizer(by: Tokenizer) -> str:
    """Tokenizer and version, as tables and signatures tell them."""
    return f"{by.name} {by.version}"


def plan(rows_per_shard: int = ROWS_PER_SHARD, only: str | None = None) -> list[Part]:
    """Shares of the articles of all sources that have comments, or of one.

    Raises:
        Missing: there are none.
    """
    snapshot = warehouse.snapshot("articles")
    counts = _scan_articles(only, snapshot).group_by("source").len().sort("source").collect()
    if not counts.height:
        of = f" of {only}" if only else ""
        raise Missing(f"no article{of} has comments; bring some: `undertone import archive.jsonl`")
    return [
        Part(source=source, part=part, parts=-(-count // rows_per_shard), snapshot=snapshot)
        for source, count in counts.iter_rows()
        for part in range(-(-count // rows_per_shard))
    ]


def _scan_articles(source: str | None, snapshot: int | None) -> pl.LazyFrame:
    """Articles that somebody commented on."""
    where = pl.lit(value=True) if source is None else pl.col("source") == source
    commented = warehouse.scan("comments", where).select(THREAD).unique()
    return day_texts.scan_articles(where, snapshot).join(commented, on=THREAD, how="semi")


def stage_words(part: Part) -> Staged:
    """The words of a share's articles, into scratch."""
    began, number = runs.start(), pl.col("thread_id").hash(seed=0) % part["parts"]
    rows = _scan_articles(part["source"], part["snapshot"]).filter(number == part["part"]).collect().sort("thread_id")
    by = load_tokenizers()
    made = [
        chunk.select(*THREAD, "category", "lang").with_columns(
            title_tokens=tokenize_texts(chunk["title"].fill_null(""), chunk["lang"], by),
            content_tokens=tokenize_texts(chunk["text"], chunk["lang"], by),
            tokenizer=chunk["lang"].replace_strict({lang: format_tokenizer(one) for lang, one in by.items()}),
        )
        for chunk in rows.iter_slices(_CHUNK)
    ]
    none = empty("threads").drop("comment_count", "like_count", "split", "reason")  # a share by hash may be empty
    told = pl.concat([none, *(part.select(none.columns) for part in made)])
    return runs.time_shard(began, warehouse.stage("threads", told))


def tokenize_texts(said: pl.Series, langs: pl.Series, by: Mapping[str, Tokenizer]) -> pl.Series:
    """Words of texts, each cut as its language wants it."""
    found = [segment.split_words(text, by[lang].cut) for text, lang in zip(said, langs, strict=True)]
    return pl.Series(found, dtype=pl.List(pl.String))


def tokenize_column(rows: pl.DataFrame, column: str) -> pl.Series:
    """Words of a column of texts, each cut as its language wants it."""
    return tokenize_texts(rows[column], rows.select(detect_language(column)).to_series(), load_tokenizers()).alias(
        column
    )


def scan_comments(only: pl.LazyFrame | None = None) -> pl.LazyFrame:
    """Comments of all days, each once as it was collected last: the columns of `scan_comments`.

    Args:
        only: those wanted, by columns of `COMMENT`; all by default.
    """
    rows = warehouse.scan("comments")
    if only is not None:
        rows = rows.join(only, on=only.collect_schema().names(), how="semi")
    return rows.sort("day").unique(COMMENT, keep="last")


def join_tokens(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Comments with `tokens`, as the tokenizers in force cut them; null where they have not."""
    by = pl.DataFrame(
        [(lang, one.name, one.version, one.dictionary_hash) for lang, one in load_tokenizers().items()],
        schema=["lang", "tokenizer", "tokenizer_version", "dictionary_hash"], orient="row",
    ).lazy()  # fmt: skip
    key = ["text_hash", "tokenizer", "tokenizer_version", "dictionary_hash"]
    cut_ = warehouse.scan("tokens").select(*key, "tokens").unique(key, keep="any")
    return rows.join(by, on="lang", how="left").join(cut_, on=key, how="left").drop(key[1:])


def read_tokenized_comments(only: pl.LazyFrame) -> pl.DataFrame:
    """Comments that are wanted with their words, in the order of their ids: the columns of `scan_comments`, and tokens.

    Raises:
        Missing: some were not cut into words.
    """
    rows = join_tokens(scan_comments(only)).sort(COMMENT).collect()
    _check_tokenized(rows)
    return rows


def _check_tokenized(rows: pl.DataFrame) -> None:
    """Missing where tokens are null."""
    uncut = rows.filter(pl.col("tokens").is_null())
    if uncut.height:
        days = ", ".join(map(str, uncut["day"].unique().sort().head(5)))
        raise Missing(f"{uncut.height} comments were not cut into words: `undertone tokenize --day DAY` for {days}")


def publish(
    staged: Sequence[Staged], day: str, rules: Rules | None = None, run_id: str = "cli", only: str | None = None
) -> dict[str, int]:
    """Make the threads of each source and their references exactly these; articles by part, or by why left out.

    Args:
        staged: what `stage_words` wrote.
        day: of the run.
        rules: the rules; the paper's by default.
        run_id: of Airflow.
        only: the source that the shares are of; a source that has no articles any more is emptied with the others.

    Raises:
        Missing: comments were not cut into words.
    """
    slices.parse_day(day)
    began = runs.start(staged)
    rules = rules or Rules()
    cut_ = warehouse.staged_rows("threads", staged) if staged else empty("threads").lazy()
    sizes = {"title_words": pl.col("title_tokens").list.len(), "content_words": pl.col("content_tokens").list.len()}
    told = cut_.select(*THREAD, "category", **sizes).cast(dict.fromkeys(sizes, pl.Int64)).collect()
    found = commenting.build_corpus(told, _count_words(told), rules)
    for source in [only] if only else _list_sources(told["source"]):
        mine = pl.col("source") == source
        parts = found.threads.filter(mine).select(*THREAD, "comment_count", "like_count", "split", "reason")
        rows = cut_.filter(mine).join(parts.lazy(), on=THREAD, how="inner")
        where = warehouse.slice_of(source=source)
        warehouse.overwrite("threads", where, rows.select(TABLES["threads"].schema.column_names()), run_id)
        warehouse.overwrite("reference_comments", where, found.references.filter(mine), run_id)
        gone = found.dropped.filter(mine)
        kept = parts["split"].count()
        runs.record_step(source, day, ORIGIN, STEP, kept, gone, rules._asdict(), run_id, began)
        began = runs.start()  # what sources share is counted with the first
    every = found.threads.select(pl.coalesce("split", "reason").alias("part")).to_series()
    return dict(every.value_counts().sort("part").iter_rows())


def _count_words(threads: pl.DataFrame) -> pl.DataFrame:
    """The comments of some sources with the number of their words: source, thread_id, comment_id, words, like_count."""
    rows = join_tokens(scan_comments(threads.lazy().select("source").unique()))
    count = pl.col("tokens").list.len().cast(pl.Int64)
    found = rows.select(*COMMENT, "day", "like_count", tokens=count).collect()
    _check_tokenized(found)
    return found.drop("day").rename({"tokens": "words"})


def _list_sources(found: pl.Series) -> list[str]:
    """Sources that are found or in the table."""
    there = warehouse.scan("threads").select(pl.col("source").unique()).collect()["source"]
    return pl.concat([found, there]).unique().sort().to_list()


def build(day: str, rules: Rules | None = None, only: str | None = None, run_id: str = "cli") -> dict[str, int]:
    """All of it in one process, for the command line."""
    return publish([stage_words(part) for part in plan(only=only)], day, rules, run_id, only)


def read_threads(*splits: str) -> pl.DataFrame:
    """Threads of the corpus, or of some parts of it, in the order of their ids.

    Raises:
        Missing: there are none.
    """
    wanted = pl.col("split").is_in(splits) if splits else pl.col("split").is_not_null()
    found = warehouse.scan("threads", wanted).sort(THREAD).collect()
    if not found.height:
        of = f" of {' and '.join(splits)}" if splits else ""
        raise Missing(f"the corpus holds no articles{of}; make it: `undertone commenting build`")
    return found


def read_thread_comments(*splits: str) -> pl.DataFrame:
    """Comments of threads of some parts with their words, in the order of their ids: source, thread_id, comment_id,
    text, tokens.

    Raises:
        Missing: some were not cut into words.
    """
    wanted = pl.col("split").is_in(splits) if splits else pl.col("split").is_not_null()
    return read_tokenized_comments(warehouse.scan("threads", wanted).select(THREAD)).select(*COMMENT, "text", "tokens")


def measure_corpus() -> pl.DataFrame:
    """What there is beside what the paper has (table 2); of the test part the references count, as there."""
    rows = warehouse.scan("threads").select(
        *THREAD, "category", "comment_count", "like_count", "split", "reason",
        title_words=pl.col("title_tokens").list.len().cast(pl.Int64),
        content_words=pl.col("content_tokens").list.len().cast(pl.Int64),
    ).collect()  # fmt: skip
    if not rows.height:
        raise Missing("there is no corpus; make it: `undertone commenting build`")
    drawn = warehouse.scan("reference_comments", pl.col("role") == "reference").select(COMMENT).collect()
    tested = rows.filter(pl.col("split") == "test").select(THREAD)
    counted = join_tokens(scan_comments(rows.lazy().select(THREAD))).select(
        *COMMENT, "like_count", words=pl.col("tokens").list.len().cast(pl.Int64)
    ).drop_nulls("words").collect()  # fmt: skip
    of_test = counted.join(tested, on=THREAD, how="semi").join(drawn, on=COMMENT, how="semi")
    return commenting.compute_statistics(rows, pl.concat([counted.join(tested, on=THREAD, how="anti"), of_test]))


def count_vocabulary() -> int:
    """How many different words the articles of the corpus and their comments have (AAC-06)."""
    kept = warehouse.scan("threads", pl.col("split").is_not_null())
    parts = [kept.select(word=name) for name in ("title_tokens", "content_tokens")]
    parts.append(join_tokens(scan_comments(kept.select(THREAD))).select(word="tokens"))
    every = pl.concat([part.explode("word").unique() for part in parts])
    return int(every.select(pl.col("word").n_unique()).collect(engine="streaming").item())


def list_statistics(found: pl.DataFrame) -> pl.DataFrame:
    """Statistics as rows, with the vocabulary: split, metric, value, paper (null where the paper tells none)."""
    names = [name for name in found.columns if name != "split" and not name.startswith("paper_")]
    absent = [pl.lit(None).alias(f"paper_{name}") for name in names if f"paper_{name}" not in found.columns]
    every = found.with_columns(absent)
    parts = [
        every.select("split", metric=pl.lit(name), value=pl.col(name).cast(pl.Float64),
                     paper=pl.col(f"paper_{name}").cast(pl.Float64)) for name in names
    ]  # fmt: skip
    words = {
        "split": "all",
        "metric": "vocabulary",
        "value": float(count_vocabulary()),
        "paper": float(VOCABULARY),
    }
    return pl.concat([*parts, pl.DataFrame([words])])


def tabulate_statistics(found: pl.DataFrame) -> pl.DataFrame:
    """Statistics as people read them: a row a number, a column a part, the paper's beside ours in brackets."""
    beside = pl.when(pl.col("paper").is_not_null()).then(pl.format(" ({})", _short("paper"))).otherwise(pl.lit(""))
    rows = list_statistics(found).with_columns(value=pl.concat_str(_short("value").fill_null("-"), beside))
    return rows.pivot("split", index="metric", values="value", maintain_order=True)


def _short(column: str) -> pl.Expr:
    return pl.col(column).round(1).cast(pl.String).str.strip_suffix(".0")
