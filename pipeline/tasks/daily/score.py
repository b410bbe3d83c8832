"""Score: score the distinct texts of a day with a model, in shards; then write the day's scores in one commit.

If asked to, the words that carry the highest and the lowest scores of each source go into `scores_explained`, and the
places of texts in a map into `projections`.
"""

from collections.abc import Sequence
from typing import TypedDict

import polars as pl

from pipeline import settings, warehouse
from pipeline.left_out import record_note
from pipeline.progress import OnProgress
from pipeline.score import signature
from pipeline.score.signature import IMPLICITNESS as METRIC
from pipeline.slices import Shard, Staged, parse_day
from pipeline.tables import empty
from pipeline.tables.collected import BUCKETS
from pipeline.tasks.daily import embeddings
from pipeline.tasks.impscore import references, scoring
from pipeline.tasks.record import day_texts, runs
from pipeline.tasks.record.encoders import choose_precision, load_encoder
from pipeline.tasks.record.replace import replace_day

ROWS_PER_SHARD = 50_000  # seconds in Chinese, a minute or two in English; to start costs a task six seconds
EXPLAINED = 20  # comments of each end of a source
_ITEM = ["source", "thread_id", "comment_id", "text_hash"]
_COLUMNS = ["day", *_ITEM]
LANGS = ("zh", "en", "ja", "ko", "und")  # the languages of `text.language`


class Pins(TypedDict):
    """The model, the precision and the snapshots that all tasks of a run use."""

    model_id: str
    precision: str
    snapshots: dict[str, int | None]


def pin(day: str, model_id: str | None = None) -> Pins:
    """Pin the model, the precision and the snapshots that a run works with."""
    snapshots = {name: warehouse.get_snapshot_id(name) for name in ("comments", "scores")}
    model_id = model_id or scoring.load_model(None, day).model_id
    return Pins(model_id=model_id, precision=choose_precision(for_scores=True), snapshots=snapshots)


def plan_shards(day: str, pins: Pins, rows_per_shard: int = ROWS_PER_SHARD) -> list[Shard]:
    """Divide the day's texts without a score by this model into shards; none if all have one."""
    texts = day_texts.scan_comments(day, pins["snapshots"]["comments"], "text_hash", "text", "lang")
    largest_count = BUCKETS if settings.keep_embeddings() else None  # so that no two tasks write the same partition
    return day_texts.plan_shards(day, texts, ["text_hash"], _scan_scores(pins), rows_per_shard, largest_count)


def score_shard(shard: Shard, pins: Pins, on_progress: OnProgress = lambda _: None, run_id: str = "cli") -> Staged:
    """Score the texts of a shard, if so set by kept embeddings, and stage the scores."""
    started = runs.start()
    texts = day_texts.read_shard(shard)
    if settings.keep_embeddings():
        scores = embeddings.score_texts(texts, pins["model_id"], on_progress, pins["precision"], shard["day"], run_id)
    else:
        scores = scoring.score_texts(texts, pins["model_id"], on_progress, pins["precision"])
    return runs.time_shard(started, warehouse.stage("scores", scores))


def _scan_scores(pins: Pins) -> pl.LazyFrame:
    """Select the scores of any day by this model, encoder, precision and code: a text is scored once."""
    model_id, snapshot = pins["model_id"], pins["snapshots"]["scores"]
    if snapshot is None:
        return pl.LazyFrame(schema=scoring.SCORE_SCHEMA)
    heads = scoring.load_model(model_id).config["heads"]
    signatures = []
    for lang in LANGS:
        head = heads[signature.choose_head(lang, list(heads))]
        encoder, is_kept = (head["encoder"], head["encoder_revision"]), embeddings.is_kept(head["encoder"])
        signatures.append(signature.implicitness(model_id, *encoder, pins["precision"], lang, is_kept=is_kept))
    is_current = _is_by(model_id) & pl.col("signature").is_in(signatures)
    scores = warehouse.scan("scores", is_current, snapshot)
    return scores.select(list(scoring.SCORE_SCHEMA))


def _is_by(model_id: str) -> pl.Expr:
    return (pl.col("metric") == METRIC) & (pl.col("model_id") == model_id)


def stage_words(
    staged: Sequence[Staged], day: str, pins: Pins, limit: int, on_progress: OnProgress = lambda _: None
) -> Staged:
    """Explain the comments with the highest and the lowest scores of each source, and stage their words."""
    scores = _join_scores(staged, day, pins, "text", "like_count").collect()
    # ordered as in the view `most_implicit`, so that the comments of the report are among these
    columns = {"source": False, "value": True, "like_count": True, "thread_id": False, "comment_id": False}
    ranked = scores.sort(*columns, descending=[*columns.values()], nulls_last=True)
    rank = pl.int_range(pl.len()).over("source")
    extremes = ranked.filter((rank < limit) | (rank >= pl.len().over("source") - limit))
    texts = extremes.unique("text_hash", maintain_order=True).select("text_hash", "text", implicitness="value")
    words = references.add_words(texts, "text", pins["model_id"], on_progress).select("text_hash", "words")
    words = words.drop_nulls().explode("words").unnest("words")
    rows = extremes.join(words, on="text_hash", maintain_order="left").select(empty("scores_explained").columns)
    return warehouse.stage("scores_explained", rows)


def _join_scores(staged: Sequence[Staged], day: str, pins: Pins, *columns: str) -> pl.LazyFrame:
    """Join the comments of the day with the scores of their texts, staged and earlier; Retry if some are missing."""
    comments = day_texts.scan_comments(day, pins["snapshots"]["comments"], *_COLUMNS, *columns)
    scores = _scan_scores(pins)
    rows = day_texts.join_staged("scores", comments, ["text_hash"], scores, staged, "comments")
    return rows.with_columns(metric=pl.lit(METRIC), model_id=pl.lit(pins["model_id"]))


def publish(staged: Sequence[Staged], day: str, pins: Pins, run_id: str = "cli", words: Staged | None = None) -> int:
    """Write the score of every comment of the day, and staged words; return the count. Scores by other models stay."""
    started = runs.start(staged)
    model_id = pins["model_id"]
    rows = _join_scores(staged, day, pins).select(empty("scores").columns)
    makers = pl.DataFrame({"metric": [METRIC], "model_id": [model_id]})

    def list_comments() -> pl.LazyFrame:
        return day_texts.scan_comments(day, warehouse.get_snapshot_id("comments"), *_COLUMNS)

    replace_day("scores", day, rows, makers, list_comments, _ITEM, _ITEM, run_id)
    _publish_words(words, day, model_id, run_id)
    published = warehouse.scan("scores", (pl.col("day") == parse_day(day)) & _is_by(model_id)).select("source")
    runs.record_scores(published, day, "score", METRIC, [model_id], run_id, started)
    return int(rows.select(pl.len()).collect().item())


def _publish_words(staged: Staged | None, day: str, model_id: str, run_id: str) -> None:
    """Replace the explanations of a model, if some are staged, and drop those whose comment is gone or changed."""
    rows = warehouse.scan_staged("scores_explained", [staged]) if staged else None
    is_of_day = pl.col("day") == parse_day(day)
    if rows is None and not warehouse.scan("scores_explained", is_of_day).head(1).collect().height:
        return

    def merge(current: pl.LazyFrame) -> pl.LazyFrame:
        current = current.select(empty("scores_explained").columns)
        if rows is not None:
            current = pl.concat([current.filter(pl.col("model_id") != model_id), rows])
        comments = day_texts.scan_comments(day, warehouse.get_snapshot_id("comments"), *_ITEM).collect()
        return current.join(comments.lazy(), on=_ITEM, how="semi")

    warehouse.replace("scores_explained", warehouse.make_slice(day=day), merge, run_id)


def run(day: str, on_progress: OnProgress = lambda _: None, explained: int = 0) -> int:
    """Score a day in this process, and explain so many comments of each end; return the count of comments."""
    pins = pin(day)
    staged = [score_shard(shard, pins, on_progress) for shard in plan_shards(day, pins)]
    words = stage_words(staged, day, pins, explained, on_progress) if explained else None
    return publish(staged, day, pins, words=words)


def place_texts(day: str, run_id: str = "cli", on_progress: OnProgress = lambda _: None) -> int:
    """Place a day's distinct texts by the encoder of their language, of too many a sample; return the row count."""
    from pipeline.models.encoder import limit_rows
    from pipeline.score import projection

    started = runs.start()
    snapshot = warehouse.get_snapshot_id("comments")
    comments = day_texts.scan_comments(day, snapshot, "text_hash", "text", "lang")
    texts = comments.unique("text_hash", keep="any").sort("text_hash").collect()
    heads = scoring.load_model(None, day).config["heads"]
    head_of = {lang: signature.choose_head(lang, list(heads)) for lang in texts["lang"].unique()}
    revision_of = {lang: heads[head]["encoder_revision"] for lang, head in head_of.items()}
    groups = texts.with_columns(revision=pl.col("lang").replace_strict(revision_of, return_dtype=pl.String))
    parts = [empty("projections").select("text_hash", "x", "y", "signature")]
    for group in groups.partition_by("revision", maintain_order=True):
        encoder = load_encoder(heads[head_of[group["lang"][0]]])
        if group.height > (limit := limit_rows(encoder.dim)):
            record_note(f"{encoder.name}: {limit:,} of {group.height:,} texts of {day} are placed, a sample")
        group = group.head(limit)  # noqa: PLW2901
        x, y = map(pl.Series, projection.place(group["text"].to_list(), encoder, on_progress).T)
        parts.append(group.select("text_hash", x=x, y=y, signature=pl.lit(projection.sign(encoder))))
    places = pl.concat(parts)

    def list_rows(_: pl.LazyFrame) -> pl.LazyFrame:
        """List the places of texts that the day has when they are written."""
        snapshot = warehouse.get_snapshot_id("comments")
        items = day_texts.scan_comments(day, snapshot, "source", "day", "text_hash").unique()
        return items.join(places.lazy(), on="text_hash").sort("source", "text_hash")

    count = warehouse.replace("projections", warehouse.make_slice(day=day), list_rows, run_id)
    counts = runs.count_sources(warehouse.scan("projections", pl.col("day") == parse_day(day)))
    config = {"signature": sorted(places["signature"].unique())}
    runs.record_counts(counts, day, "comments", "project", config, run_id, started)
    return count
