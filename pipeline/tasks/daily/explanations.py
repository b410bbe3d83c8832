"""Explain scores of a day: the words of the comments at both ends of each source, in `scores_explained`."""

from collections.abc import Callable

import polars as pl

from pipeline import warehouse
from pipeline.slices import Staged, parse_day
from pipeline.tables import empty
from pipeline.tasks.impscore import references
from pipeline.tasks.record import day_texts

LIMIT = 20  # comments of each end of a source
TABLE = "scores_explained"
_ITEM = ["source", "thread_id", "comment_id", "text_hash"]


def explain_extremes(
    scores: pl.DataFrame, model_id: str, limit: int = LIMIT, on_progress: Callable[[int], None] = lambda _: None
) -> pl.DataFrame:
    """Explain the comments with the highest and the lowest scores of each source: rows of `scores_explained`.

    `scores` has the scores of a day by the model, with text and like_count. Equal scores are ordered as in the view
    `most_implicit`, so that the comments of the report are among these.
    """
    columns = {"source": False, "value": True, "like_count": True, "thread_id": False, "comment_id": False}
    ranked = scores.sort(*columns, descending=[*columns.values()], nulls_last=True)
    rank = pl.int_range(pl.len()).over("source")
    extremes = ranked.filter((rank < limit) | (rank >= pl.len().over("source") - limit))
    texts = extremes.unique("text_hash", maintain_order=True).select("text_hash", "text", implicitness="value")
    words = references.add_words(texts, "text", model_id, on_progress).select("text_hash", "words")
    words = words.drop_nulls().explode("words").unnest("words")
    return extremes.join(words, on="text_hash", maintain_order="left").select(empty(TABLE).columns)


def publish(staged: Staged | None, day: str, model_id: str, run_id: str) -> None:
    """Replace the explanations of a model, if some are staged, and drop those whose comment is gone or changed."""
    rows = warehouse.scan_staged(TABLE, [staged]) if staged else None
    if rows is None and not warehouse.scan(TABLE, pl.col("day") == parse_day(day)).head(1).collect().height:
        return

    def merge(current: pl.LazyFrame) -> pl.LazyFrame:
        current = current.select(empty(TABLE).columns)
        if rows is not None:
            current = pl.concat([current.filter(pl.col("model_id") != model_id), rows])
        comments = day_texts.scan_comments(day, warehouse.get_snapshot_id("comments"), *_ITEM).collect()
        return current.join(comments.lazy(), on=_ITEM, how="semi")

    warehouse.replace(TABLE, warehouse.make_slice(day=day), merge, run_id)
