"""Tokenize: the distinct texts of a day that no row has tokens for yet, in shards, then one commit a tokenizer."""

from collections.abc import Callable, Sequence

import polars as pl

from pipeline import settings, slices, warehouse
from pipeline.errors import Retry
from pipeline.slices import Shard, Staged
from pipeline.tables import empty
from pipeline.tasks.record import day_texts, runs
from pipeline.text.segment import Tokenizer, load_tokenizers, tokenize

ROWS_PER_SHARD = 20_000
_BY = ["tokenizer", "tokenizer_version", "dictionary_hash"]
_ROW = ["source", "text_hash", *_BY]


def pin_snapshots() -> dict[str, int | None]:
    """Snapshots that every task of a run reads."""
    return {"comments": warehouse.snapshot("comments"), "tokens": warehouse.snapshot("tokens")}


def plan_shards(
    day: str,
    pins: dict[str, int | None],
    chinese: str = "jieba",
    english: str = "nltk",
    rows_per_shard: int = ROWS_PER_SHARD,
) -> list[Shard]:
    """Shards of the texts still to be cut; none if all are known."""
    text_count = int(_scan_untokenized(day, pins, _load_tokenizers(chinese, english)).select(pl.len()).collect().item())
    return slices.plan(day, text_count, rows_per_shard, pins)


def tokenize_shard(shard: Shard, chinese: str = "jieba", english: str = "nltk") -> Staged:
    """Cut a shard's texts into scratch."""
    started = runs.start()
    tokenizers_by_lang = _load_tokenizers(chinese, english)
    texts = (
        _scan_untokenized(shard["day"], shard["snapshots"], tokenizers_by_lang)
        .filter(day_texts.is_in_shard(shard))
        .collect()
    )
    return runs.time_shard(started, warehouse.stage("tokens", tokenize(texts.sort("text_hash"), tokenizers_by_lang)))


def publish(
    staged: Sequence[Staged],
    day: str,
    pins: dict[str, int | None],
    chinese: str = "jieba",
    english: str = "nltk",
    run_id: str = "cli",
) -> int:
    """Make the day's rows of the tokenizers in force exactly the tokens of its texts; return their count.

    Rows by other tokenizers or versions stay, as long as their text is in the day.
    """
    started = runs.start(staged)
    by_language = _load_tokenizers(chinese, english)
    wanted = _scan_pairs(day, pins, by_language, "source", "day").collect()
    known = _scan_tokens(pins).select("text_hash", "tokens", *_BY)
    known = known.join(wanted.lazy().select("text_hash", *_BY).unique(), on=["text_hash", *_BY], how="semi")
    fresh = [warehouse.staged_rows("tokens", staged)] if staged else []
    have = pl.concat([known, *fresh]).unique(["text_hash", *_BY], keep="any")
    rows = wanted.lazy().join(have, on=["text_hash", *_BY], how="inner").collect()
    if rows.height != wanted.height:
        raise Retry(f"tokens of {wanted.height - rows.height} texts are missing: run the shards again")
    names = rows.select(empty("tokens").columns)
    ours = pl.DataFrame([by[:3] for by in by_language.values()], schema=_BY, orient="row").unique().lazy()

    def with_others(present: pl.LazyFrame) -> pl.LazyFrame:
        # the day may have changed since, and a run begun later may have published: what it made of it stays
        now = _scan_pairs(day, pin_snapshots(), by_language, "source", "day").collect().lazy()
        others = present.join(ours, on=_BY, how="anti").join(now, on=["source", "text_hash"], how="semi")
        both = pl.concat([names.lazy(), present.select(names.columns)]).unique(_ROW, keep="first", maintain_order=True)
        return pl.concat([others.select(names.columns), both.join(now, on=_ROW, how="semi")])

    warehouse.replace("tokens", warehouse.slice_of(day=day), with_others, run_id)
    there = warehouse.scan("tokens", pl.col("day") == slices.parse_day(day)).join(ours, on=_BY, how="semi")
    counts = there.group_by("source").agg(kept_count=pl.len().cast(pl.Int64)).sort("source").collect()
    config = {"chinese": chinese, "english": english}
    runs.record_counts(counts, day, f"{chinese}, {english}", "tokenize", config, run_id, started)
    return rows.height


def run(
    day: str, chinese: str = "jieba", english: str = "nltk", on_progress: Callable[[int], None] = lambda _: None
) -> int:
    """All of it in one process, for the command line. `on_progress` is told how many texts each shard held."""
    pins = pin_snapshots()
    staged = []
    for shard in plan_shards(day, pins, chinese, english):
        staged.append(tokenize_shard(shard, chinese, english))
        on_progress(staged[-1]["rows"])
    return publish(staged, day, pins, chinese, english)


def _load_tokenizers(chinese: str, english: str) -> dict[str, Tokenizer]:
    return load_tokenizers(chinese, english, settings.resources())


def _scan_pairs(day: str, pinned: dict[str, int | None], by_language: dict[str, Tokenizer], *also: str) -> pl.LazyFrame:
    """The day's texts with the tokenizer each should be cut by, once per text (and per `also`)."""
    by = pl.DataFrame(
        [(lang, t.name, t.version, t.dictionary_hash) for lang, t in by_language.items()],
        schema=["lang", *_BY], orient="row",
    )  # fmt: skip
    rows = day_texts.scan_comments(day, pinned["comments"], "text_hash", "lang", *also)
    return rows.unique(["text_hash", *also], keep="any").join(by.lazy(), on="lang")


def _scan_tokens(pinned: dict[str, int | None]) -> pl.LazyFrame:
    return warehouse.scan("tokens", snapshot_id=pinned["tokens"]) if pinned["tokens"] else empty("tokens").lazy()


def _scan_untokenized(day: str, pinned: dict[str, int | None], by_language: dict[str, Tokenizer]) -> pl.LazyFrame:
    wanted = _scan_pairs(day, pinned, by_language).drop("lang")
    unknown = wanted.join(_scan_tokens(pinned).select("text_hash", *_BY), on=["text_hash", *_BY], how="anti")
    return day_texts.scan_texts(day, pinned["comments"]).join(unknown, on="text_hash", how="semi")
