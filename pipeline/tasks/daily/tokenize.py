"""Tokenize: tokenize the new texts of a day in shards; then write the day's tokens in one commit."""

from collections.abc import Sequence

import polars as pl

from pipeline import settings, slices, warehouse
from pipeline.progress import OnProgress
from pipeline.slices import Shard, Staged
from pipeline.tables import empty
from pipeline.tasks.record import day_texts, runs
from pipeline.tasks.record.replace import replace_day
from pipeline.text.segment import Tokenizer, load_tokenizers, tokenize

Pins = dict[str, int | None]  # the snapshots that all tasks of a run read
ROWS_PER_SHARD = 250_000  # fifteen to thirty seconds; to start costs a task three
_TOKENIZER = ["tokenizer", "tokenizer_version", "dictionary_hash"]
_TEXT = ["text_hash", *_TOKENIZER]


def pin_snapshots() -> Pins:
    """Pin the snapshots that all tasks of a run read."""
    return {name: warehouse.get_snapshot_id(name) for name in ("comments", "tokens")}


def plan_shards(
    day: str, pins: Pins, chinese: str = "jieba", english: str = "nltk", rows_per_shard: int = ROWS_PER_SHARD
) -> list[Shard]:
    """Divide the texts without tokens into shards; none if all have tokens."""
    texts = _scan_texts(day, pins, load_tokenizers(chinese, english, settings.resources()), "text")
    return day_texts.plan_shards(day, texts, _TEXT, _scan_tokens(pins), rows_per_shard)


def tokenize_shard(shard: Shard, chinese: str = "jieba", english: str = "nltk") -> Staged:
    """Tokenize the texts of a shard and stage the tokens."""
    started = runs.start()
    tokens = tokenize(day_texts.read_shard(shard), load_tokenizers(chinese, english, settings.resources()))
    return runs.time_shard(started, warehouse.stage("tokens", tokens))


def publish(
    staged: Sequence[Staged], day: str, pins: Pins, chinese: str = "jieba", english: str = "nltk", run_id: str = "cli"
) -> int:
    """Write the tokens of the day's texts by the tokenizers in force; return the count. Rows by others stay."""
    started = runs.start(staged)
    by_lang = load_tokenizers(chinese, english, settings.resources())
    texts = _scan_texts(day, pins, by_lang, "source", "day")
    tokens = _scan_tokens(pins).select("text_hash", "tokens", *_TOKENIZER)
    rows = day_texts.join_staged("tokens", texts, _TEXT, tokens, staged, "texts").select(empty("tokens").columns)
    makers = pl.DataFrame([tokenizer[:3] for tokenizer in by_lang.values()], schema=_TOKENIZER, orient="row").unique()

    def list_texts() -> pl.LazyFrame:
        return _scan_texts(day, pin_snapshots(), by_lang, "source", "day")

    replace_day("tokens", day, rows, makers, list_texts, ["source", "text_hash"], ["source", *_TEXT], run_id)
    published = warehouse.scan("tokens", pl.col("day") == slices.parse_day(day))
    published = published.join(makers.lazy(), on=_TOKENIZER, how="semi")
    counts, config = runs.count_sources(published), {"chinese": chinese, "english": english}
    runs.record_counts(counts, day, f"{chinese}, {english}", "tokenize", config, run_id, started)
    return int(rows.select(pl.len()).collect().item())


def run(day: str, chinese: str = "jieba", english: str = "nltk", on_progress: OnProgress = lambda _: None) -> int:
    """Tokenize a day in this process, for the command line; `on_progress` gets the row count of each shard."""
    pins = pin_snapshots()
    staged = []
    for shard in plan_shards(day, pins, chinese, english):
        staged.append(tokenize_shard(shard, chinese, english))
        on_progress(staged[-1]["rows"])
    return publish(staged, day, pins, chinese, english)


def _scan_texts(day: str, pins: Pins, by_lang: dict[str, Tokenizer], *columns: str) -> pl.LazyFrame:
    """Select the texts of the day, some more than once, and `columns`, with the tokenizer of their language."""
    tokenizers = [(lang, *tokenizer[:3]) for lang, tokenizer in by_lang.items()]
    makers = pl.DataFrame(tokenizers, schema=["lang", *_TOKENIZER], orient="row")
    rows = day_texts.scan_comments(day, pins["comments"], "text_hash", "lang", *columns)
    return rows.join(makers.lazy(), on="lang")


def _scan_tokens(pins: Pins) -> pl.LazyFrame:
    return warehouse.scan("tokens", snapshot_id=pins["tokens"]) if pins["tokens"] else empty("tokens").lazy()
