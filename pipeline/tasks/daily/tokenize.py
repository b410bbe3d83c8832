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


def pins() -> dict[str, int | None]:
    """Snapshots that every task of a run reads."""
    return {"comments": warehouse.snapshot("comments"), "tokens": warehouse.snapshot("tokens")}


def plan(
    day: str, pinned: dict[str, int | None], chinese: str = "jieba", english: str = "nltk", rows: int = ROWS_PER_SHARD
) -> list[Shard]:
    """Shards of the texts still to be cut; none if all are known."""
    todo = int(_todo(day, pinned, _by_language(chinese, english)).select(pl.len()).collect().item())
    return slices.plan(day, todo, rows, pinned)


def cut(shard: Shard, chinese: str = "jieba", english: str = "nltk") -> Staged:
    """Cut a shard's texts into scratch."""
    began = runs.start()
    by_language = _by_language(chinese, english)
    mine = _todo(shard["day"], shard["snapshots"], by_language).filter(day_texts.part_of(shard)).collect()
    return runs.time_shard(began, warehouse.stage("tokens", tokenize(mine.sort("text_hash"), by_language)))


def publish(
    staged: Sequence[Staged],
    day: str,
    pinned: dict[str, int | None],
    chinese: str = "jieba",
    english: str = "nltk",
    run_id: str = "cli",
) -> int:
    """Make the day's rows of the tokenizers in force exactly the tokens of its texts; return their count.

    Rows by other tokenizers or versions stay, as long as their text is in the day.
    """
    began = runs.start(staged)
    by_language = _by_language(chinese, english)
    wanted = _wanted(day, pinned, by_language, "source", "day").collect()
    known = _known(pinned).select("text_hash", "tokens", *_BY)
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
        now = _wanted(day, pins(), by_language, "source", "day").collect().lazy()
        others = present.join(ours, on=_BY, how="anti").join(now, on=["source", "text_hash"], how="semi")
        both = pl.concat([names.lazy(), present.select(names.columns)]).unique(_ROW, keep="first", maintain_order=True)
        return pl.concat([others.select(names.columns), both.join(now, on=_ROW, how="semi")])

    warehouse.replace("tokens", warehouse.slice_of(day=day), with_others, run_id)
    there = warehouse.scan("tokens", pl.col("day") == slices.parse_day(day)).join(ours, on=_BY, how="semi")
    counts = there.group_by("source").agg(kept_count=pl.len().cast(pl.Int64)).sort("source").collect()
    config = {"chinese": chinese, "english": english}
    runs.record_counts(counts, day, f"{chinese}, {english}", "tokenize", config, run_id, began)
    return rows.height


def run(day: str, chinese: str = "jieba", english: str = "nltk", done: Callable[[int], None] = lambda _: None) -> int:
    """All of it in one process, for the command line. `done` is told how many texts each shard held."""
    pinned = pins()
    staged = []
    for shard in plan(day, pinned, chinese, english):
        staged.append(cut(shard, chinese, english))
        done(staged[-1]["rows"])
    return publish(staged, day, pinned, chinese, english)


def _by_language(chinese: str, english: str) -> dict[str, Tokenizer]:
    return load_tokenizers(chinese, english, settings.resources())


def _wanted(day: str, pinned: dict[str, int | None], by_language: dict[str, Tokenizer], *also: str) -> pl.LazyFrame:
    """The day's texts with the tokenizer each should be cut by, once per text (and per `also`)."""
    by = pl.DataFrame(
        [(lang, t.name, t.version, t.dictionary_hash) for lang, t in by_language.items()],
        schema=["lang", *_BY], orient="row",
    )  # fmt: skip
    rows = day_texts.of_day(day, pinned["comments"], "text_hash", "lang", *also)
    return rows.unique(["text_hash", *also], keep="any").join(by.lazy(), on="lang")


def _known(pinned: dict[str, int | None]) -> pl.LazyFrame:
    return warehouse.scan("tokens", snapshot_id=pinned["tokens"]) if pinned["tokens"] else empty("tokens").lazy()


def _todo(day: str, pinned: dict[str, int | None], by_language: dict[str, Tokenizer]) -> pl.LazyFrame:
    wanted = _wanted(day, pinned, by_language).drop("lang")
    unknown = wanted.join(_known(pinned).select("text_hash", *_BY), on=["text_hash", *_BY], how="anti")
    return day_texts.distinct(day, pinned["comments"]).join(unknown, on="text_hash", how="semi")
