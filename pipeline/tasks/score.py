"""Score: the distinct texts of a day through a model, in shards, then one commit for the day and the model."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import polars as pl

from pipeline import settings, slices, warehouse
from pipeline.errors import Retry
from pipeline.score import signature
from pipeline.score.signature import IMPLICITNESS as METRIC
from pipeline.slices import Shard, Staged, parse_day
from pipeline.tables import empty
from pipeline.tasks import funnel, impscore, texts
from pipeline.text.language import language

if TYPE_CHECKING:
    from pipeline.models.encoder import Encoder
    from pipeline.models.impscore import Meaning
    from pipeline.score.implicitness import Head

ROWS_PER_SHARD = 10_000  # a minute or so; importing torch alone costs a task four seconds
_COMMENT = ["source", "thread_id", "comment_id"]
LANGS = ("zh", "en", "ja", "ko", "und")  # what `text.language` tells apart
VALUES = {"text_hash": pl.String, "value": pl.Float64, "signature": pl.String}


class Pinned(TypedDict):
    """What every task of a run uses."""

    model_id: str
    snapshots: dict[str, int | None]


def pin(day: str, model_id: str | None = None) -> Pinned:
    """The model and the states of the tables that a run works with."""
    snapshots = {name: warehouse.snapshot(name) for name in ("comments", "scores")}
    return Pinned(model_id=model_id or impscore.model_for(day), snapshots=snapshots)


def plan(day: str, pinned: Pinned, rows: int = ROWS_PER_SHARD) -> list[Shard]:
    """Shards of the day's texts that have no score by this model yet; none if all are known."""
    count = int(_todo(day, pinned["model_id"], pinned["snapshots"]).select(pl.len()).collect().item())
    return slices.plan(day, count, rows, pinned["snapshots"])


def implicitness(shard: Shard, model_id: str, done: Callable[[int], None] = lambda _: None) -> Staged:
    """Score a shard's texts into scratch."""
    began = funnel.start()
    todo = _todo(shard["day"], model_id, shard["snapshots"])
    mine = todo.filter(texts.part_of(shard)).collect()
    return funnel.shard(began, warehouse.stage("scores", values(mine.sort("text_hash"), model_id, done)))


def values(rows: pl.DataFrame, model_id: str | None, done: Callable[[int], None] = lambda _: None) -> pl.DataFrame:
    """Implicitness and signature of (text_hash, text, lang) rows, in their order.

    `model_id` may be whatever `impscore.opened` knows.
    """
    from pipeline.score import implicitness as scoring

    loaded = heads(model_id)
    names = list(loaded.heads)
    rows = rows.with_row_index("_at")
    found = [pl.DataFrame(schema={"_at": pl.UInt32, **VALUES})]
    for (lang,), part in rows.partition_by("lang", as_dict=True).items():
        head = loaded.heads[signature.head_for(str(lang), names)]
        by = signature.implicitness(
            loaded.model_id, head.encoder.name, head.encoder.revision, head.encoder.precision, str(lang)
        )
        scored = pl.Series(scoring.implicitness(part["text"].to_list(), head, done), dtype=pl.Float64)
        found.append(part.select("_at", "text_hash", value=scored, signature=pl.lit(by)))
    return pl.concat(found).sort("_at").select(list(VALUES))


def triples(rows: pl.DataFrame, model_id: str | None, done: Callable[[int], None] = lambda _: None) -> pl.DataFrame:
    """What a model says of rows of `pairs`: pair_id, source, split, i1, i2, i3, near, far."""
    from pipeline.score import implicitness as scoring

    loaded = heads(model_id)
    found = []
    for (lang,), part in rows.partition_by("lang", as_dict=True).items():
        head = loaded.heads[signature.head_for(str(lang), list(loaded.heads))]
        found.append(part.select("pair_id", "source", "split").hstack(scoring.triples(part, head, done)))
    return pl.concat(found) if found else rows.select("pair_id", "source", "split")


def meanings(said: Sequence[str], lang: str, model_id: str | None) -> "Meaning":
    """Meanings of texts of one language by a model."""
    from pipeline.score import implicitness as scoring

    known = heads(model_id).heads
    return scoring.meanings(said, known[signature.head_for(lang, list(known))])


class Loaded(NamedTuple):
    """A model ready to score."""

    model_id: str
    heads: "dict[str, Head]"


def heads(ref: str | None) -> Loaded:
    """The heads of a model; a few are kept loaded."""
    return _heads(ref, impscore.opened(ref).model_id, settings.precision(), settings.threads())


@lru_cache(maxsize=2)
def _heads(ref: str | None, model_id: str, precision: str, threads: int) -> Loaded:
    from pipeline.models import encoder as encoders
    from pipeline.score import implicitness as scoring

    def load(about: dict[str, Any]) -> "Encoder":
        name, revision = about["encoder"], about["encoder_revision"]
        pinned = f"{name}@{revision}" if len(revision) == 40 and not Path(name).exists() else name  # a hub commit
        return encoders.load(pinned, precision, threads, pooling=about["recipe"].get("pooling", "model"))

    model = impscore.opened(ref)
    if model.model_id != model_id:
        raise Retry(f"{ref}: the model was replaced while it was read")
    return Loaded(model.model_id, model.build(scoring.heads_from, load))


def _known(model_id: str, snapshots: dict[str, int | None]) -> pl.LazyFrame:
    """Scores there are by this model, encoder, precision and code, of any day: a text's score is made once."""
    if snapshots["scores"] is None:
        return pl.LazyFrame(schema=VALUES)
    about = impscore.opened(model_id).config["heads"]
    by = []
    for lang in LANGS:
        head = about[signature.head_for(lang, list(about))]
        by.append(
            signature.implicitness(model_id, head["encoder"], head["encoder_revision"], settings.precision(), lang)
        )
    ours = (pl.col("metric") == METRIC) & (pl.col("model_id") == model_id) & pl.col("signature").is_in(by)
    return warehouse.scan("scores", ours, snapshots["scores"]).select(list(VALUES)).unique("text_hash", keep="any")


def _todo(day: str, model_id: str, snapshots: dict[str, int | None]) -> pl.LazyFrame:
    known = _known(model_id, snapshots).select("text_hash")
    return texts.distinct(day, snapshots["comments"]).join(known, on="text_hash", how="anti")


def frame(
    rows: pl.DataFrame,
    column: str,
    model_id: str | None,
    done: Callable[[int], None] = lambda _: None,
    lang: pl.Expr | None = None,
) -> pl.DataFrame:
    """Any frame with `implicitness` and `signature` of its text column added; both null where there is no text.

    `lang`, over the frame, is each text's own language unless it is given.
    """
    text = rows[column].fill_null("").str.strip_chars().rename("text")
    langs = pl.DataFrame({"text": text}).select(lang=language()) if lang is None else rows.select(lang=lang)
    said = langs.with_columns(text=text, text_hash=pl.lit(""))
    held = text != ""
    said = said.filter(held)
    scored = values(said, model_id, done)
    at = pl.DataFrame({"at": held.arg_true()}).hstack(scored.select(implicitness="value", signature="signature"))
    every = pl.DataFrame({"at": pl.int_range(rows.height, eager=True, dtype=pl.UInt32)})
    found = every.join(at, on="at", how="left", maintain_order="left").drop("at")
    return rows.drop(found.columns, strict=False).hstack(found)  # without what an earlier scoring added


def publish(staged: Sequence[Staged], day: str, pinned: Pinned, run_id: str = "cli") -> int:
    """Give every comment of the day its text's score; return the count.

    Scores by other models stay, as long as their comment is in the day.
    """
    began = funnel.start(staged)
    columns = ("source", "day", "thread_id", "comment_id", "text_hash")
    comments = texts.of_day(day, pinned["snapshots"]["comments"], *columns).collect()
    fresh = [warehouse.staged_rows("scores", staged)] if staged else []
    known = pl.concat([_known(pinned["model_id"], pinned["snapshots"]), *fresh]).unique("text_hash", keep="any")
    known = known.join(comments.lazy().select("text_hash").unique(), on="text_hash", how="semi")
    rows = comments.join(known.collect(), on="text_hash", how="inner", maintain_order="left").with_columns(
        metric=pl.lit(METRIC), model_id=pl.lit(pinned["model_id"])
    )
    if rows.height != comments.height:
        raise Retry(f"scores of {comments.height - rows.height} comments are missing: run the shards again")
    mine = rows.select(empty("scores").columns)

    of_us = (pl.col("metric") == METRIC) & (pl.col("model_id") == pinned["model_id"])

    def with_others(present: pl.LazyFrame) -> pl.LazyFrame:
        # the day may have changed since, and a run begun later may have published: what it made of it stays
        now = texts.of_day(day, warehouse.snapshot("comments"), *columns).collect().lazy()
        others = present.filter(~of_us).join(now, on=_COMMENT, how="semi")
        both = pl.concat([mine.lazy(), present.filter(of_us).select(mine.columns)])
        ours = both.join(now, on=[*_COMMENT, "text_hash"], how="semi")
        return pl.concat([others.select(mine.columns), ours.unique(_COMMENT, keep="first", maintain_order=True)])

    warehouse.replace("scores", warehouse.slice_of(day=day), with_others, run_id)
    there = warehouse.scan("scores", (pl.col("day") == parse_day(day)) & of_us).select("source").collect()
    funnel.scored(there, day, "score", METRIC, [pinned["model_id"]], run_id, began)
    return mine.height


def run(day: str, done: Callable[[int], None] = lambda _: None) -> int:
    """All of it in one process, for the command line."""
    parse_day(day)
    pinned = pin(day)
    staged = [implicitness(shard, pinned["model_id"], done) for shard in plan(day, pinned)]
    return publish(staged, day, pinned)
