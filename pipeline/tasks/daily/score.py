"""Score: the distinct texts of a day through a model, in shards, then one commit for the day and the model."""

from collections.abc import Callable, Sequence
from typing import TypedDict

import polars as pl

from pipeline import settings, slices, warehouse
from pipeline.errors import Retry
from pipeline.score import signature
from pipeline.score.signature import IMPLICITNESS as METRIC
from pipeline.slices import Shard, Staged, parse_day
from pipeline.tables import empty
from pipeline.tasks.impscore import in_force, scoring
from pipeline.tasks.record import day_texts, runs

ROWS_PER_SHARD = 10_000  # a minute or so; importing torch alone costs a task four seconds
_COMMENT = ["source", "thread_id", "comment_id"]
LANGS = ("zh", "en", "ja", "ko", "und")  # what `text.language` tells apart


class Pins(TypedDict):
    """What every task of a run uses."""

    model_id: str
    snapshots: dict[str, int | None]


def pin(day: str, model_id: str | None = None) -> Pins:
    """The model and the states of the tables that a run works with."""
    snapshots = {name: warehouse.snapshot(name) for name in ("comments", "scores")}
    return Pins(model_id=model_id or in_force.model_for(day), snapshots=snapshots)


def plan_shards(day: str, pins: Pins, rows_per_shard: int = ROWS_PER_SHARD) -> list[Shard]:
    """Shards of the day's texts that have no score by this model yet; none if all are known."""
    count = int(_scan_unscored(day, pins["model_id"], pins["snapshots"]).select(pl.len()).collect().item())
    return slices.plan(day, count, rows_per_shard, pins["snapshots"])


def score_shard(shard: Shard, model_id: str, on_progress: Callable[[int], None] = lambda _: None) -> Staged:
    """Score a shard's texts into scratch."""
    started = runs.start()
    todo = _scan_unscored(shard["day"], model_id, shard["snapshots"])
    mine = todo.filter(day_texts.is_in_shard(shard)).collect()
    return runs.time_shard(
        started, warehouse.stage("scores", scoring.score_texts(mine.sort("text_hash"), model_id, on_progress))
    )


def _scan_scores(model_id: str, snapshots: dict[str, int | None]) -> pl.LazyFrame:
    """Scores there are by this model, encoder, precision and code, of any day: a text's score is made once."""
    if snapshots["scores"] is None:
        return pl.LazyFrame(schema=scoring.VALUES)
    about = in_force.load_model(model_id).config["heads"]
    by = []
    for lang in LANGS:
        head = about[signature.head_for(lang, list(about))]
        by.append(
            signature.implicitness(model_id, head["encoder"], head["encoder_revision"], settings.precision(), lang)
        )
    ours = (pl.col("metric") == METRIC) & (pl.col("model_id") == model_id) & pl.col("signature").is_in(by)
    return (
        warehouse.scan("scores", ours, snapshots["scores"]).select(list(scoring.VALUES)).unique("text_hash", keep="any")
    )


def _scan_unscored(day: str, model_id: str, snapshots: dict[str, int | None]) -> pl.LazyFrame:
    known = _scan_scores(model_id, snapshots).select("text_hash")
    return day_texts.scan_texts(day, snapshots["comments"]).join(known, on="text_hash", how="anti")


def publish(staged: Sequence[Staged], day: str, pins: Pins, run_id: str = "cli") -> int:
    """Give every comment of the day its text's score; return the count.

    Scores by other models stay, as long as their comment is in the day.
    """
    started = runs.start(staged)
    columns = ("source", "day", "thread_id", "comment_id", "text_hash")
    comments = day_texts.scan_comments(day, pins["snapshots"]["comments"], *columns).collect()
    fresh = [warehouse.staged_rows("scores", staged)] if staged else []
    known = pl.concat([_scan_scores(pins["model_id"], pins["snapshots"]), *fresh]).unique("text_hash", keep="any")
    known = known.join(comments.lazy().select("text_hash").unique(), on="text_hash", how="semi")
    rows = comments.join(known.collect(), on="text_hash", how="inner", maintain_order="left").with_columns(
        metric=pl.lit(METRIC), model_id=pl.lit(pins["model_id"])
    )
    if rows.height != comments.height:
        raise Retry(f"scores of {comments.height - rows.height} comments are missing: run the shards again")
    mine = rows.select(empty("scores").columns)

    of_us = (pl.col("metric") == METRIC) & (pl.col("model_id") == pins["model_id"])

    def with_others(present: pl.LazyFrame) -> pl.LazyFrame:
        # the day may have changed since, and a run begun later may have published: what it made of it stays
        now = day_texts.scan_comments(day, warehouse.snapshot("comments"), *columns).collect().lazy()
        others = present.filter(~of_us).join(now, on=_COMMENT, how="semi")
        both = pl.concat([mine.lazy(), present.filter(of_us).select(mine.columns)])
        ours = both.join(now, on=[*_COMMENT, "text_hash"], how="semi")
        return pl.concat([others.select(mine.columns), ours.unique(_COMMENT, keep="first", maintain_order=True)])

    warehouse.replace("scores", warehouse.slice_of(day=day), with_others, run_id)
    there = warehouse.scan("scores", (pl.col("day") == parse_day(day)) & of_us).select("source").collect()
    runs.record_scores(there, day, "score", METRIC, [pins["model_id"]], run_id, started)
    return mine.height


def run(day: str, on_progress: Callable[[int], None] = lambda _: None) -> int:
    """All of it in one process, for the command line."""
    parse_day(day)
    pins = pin(day)
    staged = [score_shard(shard, pins["model_id"], on_progress) for shard in plan_shards(day, pins)]
    return publish(staged, day, pins)
