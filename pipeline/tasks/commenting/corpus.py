"""The commenting corpus as tasks: articles and their comments to splits, references and counts (AAC-01 to AAC-07)."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from pipeline import settings, slices, warehouse
from pipeline.errors import Missing
from pipeline.examples.commenting import threads as commenting
from pipeline.examples.commenting.threads import Rules
from pipeline.papers.commenting import VOCABULARY
from pipeline.tables import TABLES, empty
from pipeline.tasks.record import day_texts, runs
from pipeline.text import segment
from pipeline.text.language import detect_language

ORIGIN = "commenting"
STEP = "threads"
ROWS_PER_SHARD = 5_000  # articles
_CHUNK = 1_000  # articles whose words are in memory at once
THREAD = ["source", "thread_id"]
COMMENT = [*THREAD, "comment_id"]
THREAD_ID, COMMENT_ID, GENERATED_ID = (
    pl.concat_str(key, separator="/") for key in (THREAD, COMMENT, [*THREAD, "generated_id"])
)


def parse_rules(values: Mapping[str, Any]) -> Rules:
    """Make rules from the params of a DAG or the options of a command; null values keep their default."""
    slices.parse_window(values.get("first_day"), values.get("last_day"))
    return Rules(**{name: value for name, value in values.items() if name in Rules._fields and value is not None})


def load_tokenizers() -> dict[str, segment.Tokenizer]:
    """Load the tokenizer of each language: jieba, as in the paper, and nltk."""
    return segment.load_tokenizers(resources=settings.resources())


def plan(rows_per_shard: int = ROWS_PER_SHARD, only: str | None = None) -> list[day_texts.ArticlePart]:
    """Divide the articles that have comments, of all sources or of one, into parts; Missing without any."""
    missing = "no article{} has comments; import some: `undertone import archive.jsonl`"
    return day_texts.plan_articles(_scan_commented, rows_per_shard, only, missing)


def scan_articles() -> pl.LazyFrame:
    """Scan the articles of all days: source, thread_id, title, content, lang."""
    return day_texts.scan_articles(pl.lit(value=True)).select(*THREAD, "title", "lang", content="text")


def _scan_commented(source: str | None, snapshot: int | None) -> pl.LazyFrame:
    condition = pl.lit(value=True) if source is None else pl.col("source") == source
    commented = warehouse.scan("comments", condition).select(THREAD).unique()
    return day_texts.scan_articles(condition, snapshot).join(commented, on=THREAD, how="semi")


def stage_words(part: day_texts.ArticlePart) -> slices.Staged:
    """Tokenize the articles of a part and stage their words."""
    timer = runs.start()
    articles = day_texts.read_part(_scan_commented(part["source"], part["snapshot"]), part)
    tokenizers = load_tokenizers()
    names = {lang: f"{tokenizer.name} {tokenizer.version}" for lang, tokenizer in tokenizers.items()}
    columns = [*THREAD, "category", "lang", "title_tokens", "content_tokens", "tokenizer"]
    frames = [empty("threads").select(columns)]  # a part may hold no article
    for chunk in articles.iter_slices(_CHUNK):
        tokenized = chunk.with_columns(
            title_tokens=tokenize_texts(chunk["title"].fill_null(""), chunk["lang"], tokenizers),
            content_tokens=tokenize_texts(chunk["text"], chunk["lang"], tokenizers),
            tokenizer=chunk["lang"].replace_strict(names),
        )
        frames.append(tokenized.select(columns))
    return runs.time_shard(timer, warehouse.stage("threads", pl.concat(frames)))


def tokenize_texts(texts: pl.Series, langs: pl.Series, tokenizers: Mapping[str, segment.Tokenizer]) -> pl.Series:
    """Tokenize each text with the tokenizer of its language."""
    words = [segment.split_words(text, tokenizers[lang].cut) for text, lang in zip(texts, langs, strict=True)]
    return pl.Series(words, dtype=pl.List(pl.String))


def tokenize_column(rows: pl.DataFrame, column: str) -> pl.Series:
    """Tokenize a column of texts, whose languages are detected."""
    langs = rows.select(detect_language(column)).to_series()
    return tokenize_texts(rows[column], langs, load_tokenizers()).alias(column)


def scan_comments(only: pl.LazyFrame | None = None) -> pl.LazyFrame:
    """Scan the comments of all days, or those with some keys, each once as it was collected last."""
    comments = warehouse.scan("comments")
    if only is not None:
        comments = comments.join(only, on=only.collect_schema().names(), how="semi")
    return comments.sort("day").unique(COMMENT, keep="last")


def join_tokens(comments: pl.LazyFrame) -> pl.LazyFrame:
    """Join `tokens` as the tokenizers in force made them; null for comments that are not tokenized."""
    version = ["tokenizer", "tokenizer_version", "dictionary_hash"]
    in_force = [(lang, tool.name, tool.version, tool.dictionary_hash) for lang, tool in load_tokenizers().items()]
    versions = pl.LazyFrame(in_force, schema=["lang", *version], orient="row")
    key = ["text_hash", *version]
    tokens = warehouse.scan("tokens").select(*key, "tokens").unique(key, keep="any")
    return comments.join(versions, on="lang", how="left").join(tokens, on=key, how="left").drop(version)


def read_tokenized_comments(only: pl.LazyFrame) -> pl.DataFrame:
    """Read some comments with their tokens, in the order of their ids; Missing if some are not tokenized."""
    comments = join_tokens(scan_comments(only)).sort(COMMENT).collect()
    _check_tokenized(comments)
    return comments


def _check_tokenized(comments: pl.DataFrame) -> None:
    if (without_tokens := comments.filter(pl.col("tokens").is_null())).height:
        days = ", ".join(map(str, without_tokens["day"].unique().sort().head(5)))
        raise Missing(f"{without_tokens.height} comments are not tokenized: `undertone tokenize --day DAY` for {days}")


def publish(
    staged: Sequence[slices.Staged], day: str, rules: Rules | None = None, run_id: str = "cli", only: str | None = None
) -> dict[str, int]:
    """Replace the threads of each source, or of `only` one, and their references; count articles by split or reason."""
    timer = runs.start(staged)
    rules = rules or Rules()
    tokenized = warehouse.scan_staged("threads", staged) if staged else empty("threads").lazy()
    articles = tokenized.select(*THREAD, "category", **_WORD_COUNTS).collect()
    rows = join_tokens(scan_comments(articles.lazy().select("source").unique()))
    day_written = pl.coalesce(pl.col("created_at").dt.date(), "day")
    comments = rows.select(*COMMENT, "day", "like_count", written=day_written, tokens=_count_list("tokens")).collect()
    _check_tokenized(comments)
    corpus = commenting.build_corpus(articles, comments.drop("day").rename({"tokens": "words"}), rules)
    columns = TABLES["threads"].schema.column_names()
    for source in [only] if only else list_sources("threads", articles["source"]):
        is_source = pl.col("source") == source
        threads = corpus.threads.filter(is_source).select(*THREAD, "comment_count", "like_count", "split", "reason")
        partition = warehouse.make_slice(source=source)
        thread_rows = tokenized.filter(is_source).join(threads.lazy(), on=THREAD, how="inner").select(columns)
        warehouse.overwrite("threads", partition, thread_rows, run_id)
        warehouse.overwrite("reference_comments", partition, corpus.references.filter(is_source), run_id)
        dropped, kept_count = corpus.dropped.filter(is_source), threads["split"].count()
        runs.record_step(source, day, ORIGIN, STEP, kept_count, dropped, rules._asdict(), run_id, timer)
    parts = corpus.threads.select(pl.coalesce("split", "reason").alias("part")).to_series()
    return dict(parts.value_counts().sort("part").iter_rows())


def _count_list(column: str) -> pl.Expr:
    return pl.col(column).list.len().cast(pl.Int64)


_WORD_COUNTS = {"title_words": _count_list("title_tokens"), "content_words": _count_list("content_tokens")}


def list_sources(table: str, sources: pl.Series, condition: pl.Expr | None = None) -> list[str]:
    """List some sources, and those of rows in a table."""
    existing = warehouse.scan(table, condition).select("source").unique().collect()["source"]
    return pl.concat([sources, existing]).unique().sort().to_list()


def build(day: str, rules: Rules | None = None, only: str | None = None, run_id: str = "cli") -> dict[str, int]:
    """Build the corpus in one process, for the command line."""
    return publish([stage_words(part) for part in plan(only=only)], day, rules, run_id, only)


def read_threads(*splits: str) -> pl.DataFrame:
    """Read the threads of the corpus, or of some splits, in the order of their ids; Missing without any."""
    is_selected = pl.col("split").is_in(splits) if splits else pl.col("split").is_not_null()
    threads = warehouse.scan("threads", is_selected).sort(THREAD).collect()
    if not threads.height:
        of_splits = f" of {' and '.join(splits)}" if splits else ""
        reasons = warehouse.scan("threads").select("reason").drop_nulls().collect()["reason"].value_counts()
        counts = ", ".join(f"{reason} {count}" for reason, count in reasons.sort("reason").iter_rows())
        remedy = f"it dropped {counts}; lower the limits" if counts else "make it: `undertone commenting build`"
        raise Missing(f"the corpus holds no articles{of_splits}; {remedy}")
    return threads


def _scan_corpus(source: str | None) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Scan the threads of a source, or of all, and their tokenized comments; in the test split references alone."""
    threads = warehouse.scan("threads", pl.lit(value=True) if source is None else pl.col("source") == source)
    references = warehouse.scan("reference_comments", pl.col("role") == "reference").select(COMMENT)
    rows = join_tokens(scan_comments(threads.select(THREAD))).filter(pl.col("tokens").is_not_null())
    tested = threads.filter(pl.col("split") == "test").select(THREAD)
    of_test = rows.join(tested, on=THREAD, how="semi").join(references, on=COMMENT, how="semi")
    return threads, pl.concat([rows.join(tested, on=THREAD, how="anti"), of_test])


def measure_corpus(source: str | None = None) -> pl.DataFrame:
    """Measure the corpus, or that of a source, beside the paper's (table 2; `_scan_corpus`)."""
    rows, comments = _scan_corpus(source)
    columns = [*THREAD, "category", "comment_count", "like_count", "split", "reason"]
    threads = rows.select(*columns, **_WORD_COUNTS).collect()
    if not threads.height:
        raise Missing("there is no corpus; make it: `undertone commenting build`")
    words = comments.select(*COMMENT, "like_count", words=_count_list("tokens")).collect()
    return commenting.compute_statistics(threads, words)


def count_vocabulary(source: str | None = None) -> int:
    """Count the distinct words of the articles of the corpus and of the comments that `measure_corpus` counts."""
    threads, rows = _scan_corpus(source)
    threads = threads.drop_nulls("split")
    comments = rows.join(threads.select(THREAD), on=THREAD, how="semi")
    lists = [threads.select(word="title_tokens"), threads.select(word="content_tokens"), comments.select(word="tokens")]
    words = pl.concat([rows.explode("word").unique() for rows in lists])
    return int(words.select(pl.col("word").n_unique()).collect(engine="streaming").item())


def list_statistics(statistics: pl.DataFrame, source: str | None = None) -> pl.DataFrame:
    """List statistics and the vocabulary (of a source, or of all): split, metric, value, paper (may be null)."""
    rows = statistics.with_columns(pl.exclude("split").cast(pl.Float64)).unpivot(index="split", variable_name="metric")
    is_paper = pl.col("metric").str.starts_with("paper_")
    paper = rows.filter(is_paper).select("split", pl.col("metric").str.strip_prefix("paper_"), paper="value")
    values = rows.filter(~is_paper).join(paper, on=["split", "metric"], how="left", maintain_order="left")
    vocabulary = ("all", "vocabulary", float(count_vocabulary(source)), float(VOCABULARY))
    columns = values.select("split", "metric", "value", "paper")
    return columns.vstack(pl.DataFrame([vocabulary], schema=columns.schema, orient="row"))


def tabulate_statistics(statistics: pl.DataFrame, source: str | None = None) -> pl.DataFrame:
    """Tabulate statistics for display: a row for each number, a column for each split, the paper's in brackets."""
    paper = pl.when(pl.col("paper").is_not_null()).then(pl.format(" ({})", _shorten("paper"))).otherwise(pl.lit(""))
    value = pl.concat_str(_shorten("value").fill_null("-"), paper)
    rows = list_statistics(statistics, source).with_columns(value=value)
    return rows.pivot("split", index="metric", values="value", maintain_order=True)


def _shorten(column: str) -> pl.Expr:
    return pl.col(column).round(1).cast(pl.String).str.strip_suffix(".0")
