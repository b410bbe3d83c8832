"""The words that each item may choose from: those that readers name, and others by how often they are gold."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.examples.recam.balance.barred import CODE, bar_words
from pipeline.examples.recam.balance.fits import Fit
from pipeline.examples.recam.balance.lexicon import Floats, Ids, Lexicon, Masks, Singles, draw_rates, draw_uniform

EXTRA = 120  # words besides the readers', by how often they are gold: readers name few of the rare ones
_LEAST_FIT = 1e-4  # above it a word fits at all


class Pool(NamedTuple):
    """Items, each with the words it may choose from, in the order of item and type: [p] each."""

    item: Ids  # row among the items
    type: Ids
    rank: Ids  # the best that a reader gives it
    times: Ids  # readers that name it
    code: npt.NDArray[np.uint8]  # place in REASONS
    fits: Singles  # how well it fits the question, in several ways: [p, ways]
    golds: Singles  # and the gold word of each item: [items, ways]

    def filter(self, mask: Masks) -> "Pool":
        """Return the rows for which the mask holds."""
        return Pool._make((*(column[mask] for column in self[:-1]), self.golds))


def read_candidates(
    items: pl.DataFrame, candidates: pl.DataFrame, lexicon: Lexicon
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return what readers name: item, type, rank, count; and the words that no type of the item's shape has."""
    rows = items.select("item_id", "shape").with_row_index("item").with_columns(pl.col("item").cast(pl.Int32))
    words = candidates.select("item_id", pl.col("word").str.to_lowercase(), "rank").join(rows, on="item_id")
    words = words.group_by("item", "item_id", "shape", "word").agg(count=pl.len(), rank=pl.col("rank").min())
    words = words.join(lexicon.types, on=["shape", "word"], how="left")
    is_gold = pl.col("word").is_in(lexicon.words.implode())
    untyped = words.filter(pl.col("type").is_null()).select(
        "item_id",
        "word",
        token_count=pl.col("count").cast(pl.Int64),
        best_rank=pl.col("rank").cast(pl.Int64),
        reason=pl.when(is_gold).then(pl.lit("other_shape")).otherwise(pl.lit("no_gold_word")),
    )
    return words.drop_nulls("type").select("item", "type", "rank", "count"), untyped


def build_pool(
    items: pl.DataFrame, reader_words: pl.DataFrame, lexicon: Lexicon, relations: Any, fits: Sequence[Fit], seed: int
) -> Pool:
    """Return the readers' words, and `EXTRA` others of those that may stand, drawn by their rates."""
    gold, shape, draw = (items[name].to_numpy() for name in ("type", "shape", "draw"))
    log_rates = np.log(np.maximum(draw_rates(gold, lexicon, seed), 0.1))
    named_rows = reader_words.sort("item", "type").to_numpy().astype(np.int32).reshape(-1, 4)
    starts = np.searchsorted(named_rows[:, 0], np.arange(items.height + 1))
    way_count = sum(1 + fit.is_of_words for fit in fits)
    no_fits = np.zeros((0, way_count), np.float32)
    blocks: list[tuple[Ids, npt.NDArray[np.uint8], Singles, Singles]] = [
        (np.zeros((0, 4), np.int32), np.zeros(0, np.uint8), no_fits, no_fits)
    ]
    for rows, codes in bar_words(items, lexicon, relations):
        block = named_rows[starts[rows.start] : starts[rows.stop]]
        item, word_type, rank, _ = (block - [rows.start, 0, 0, 0]).T
        uniform = draw_uniform(draw[rows, None], lexicon.draw[lexicon.word], seed + 1)
        keys = log_rates - np.log(-np.log(uniform))  # the greatest are a sample without replacement (Gumbel)
        keys[(shape[rows, None] != lexicon.shape) | (codes[:, lexicon.word] != CODE["not_drawn"])] = -np.inf
        keys[item, word_type] = -np.inf
        extra_item, extra_type = np.nonzero(_mark_greatest(keys, EXTRA))
        last_rank = np.zeros(len(keys), np.int32)
        np.maximum.at(last_rank, item, rank.astype(np.int32))
        extra = np.stack([extra_item + rows.start, extra_type, last_rank[extra_item] + 1, 0 * extra_item], axis=1)
        table = np.concatenate([block, extra.astype(np.int32)])
        table = table[np.lexsort((table[:, 1], table[:, 0]))]
        row, word = table[:, 0] - rows.start, lexicon.word[table[:, 1]]
        code = codes[row, word]
        blocks.append(
            (table, code, *_centre(fits, rows, row, word, code == CODE["not_drawn"], lexicon.word[gold[rows]]))
        )
    table, *columns = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return Pool(*np.ascontiguousarray(table.T), *columns)


def _mark_greatest(keys: Floats, count: int) -> Masks:
    """Mark the greatest keys of each row, except infinitely small ones."""
    marks = np.zeros(keys.shape, np.bool_)
    if keys.shape[1]:
        best = np.argpartition(-keys, min(count, keys.shape[1]) - 1, axis=1)[:, :count]
        np.put_along_axis(marks, best, np.isfinite(np.take_along_axis(keys, best, axis=1)), axis=1)
    return marks


def _centre(
    fits: Sequence[Fit], rows: slice, row: Ids, word: Ids, is_open: Masks, gold: Ids
) -> tuple[Singles, Singles]:
    """Return how well words and gold words fit, and if at all, less the mean of the words open to the item."""
    count = len(gold)
    ways: list[tuple[Singles, Floats]] = []
    marks: list[tuple[Singles, Floats]] = []
    for fit in fits:
        values = fit(rows)
        way = values[row, word], values[np.arange(count), gold] - fit.gold_loss[rows]
        ways.append(way)
        if fit.is_of_words:
            marks.append(((way[0] > _LEAST_FIT).astype(np.float32), (way[1] > _LEAST_FIT).astype(np.float64)))
    size = np.maximum(np.bincount(row, weights=is_open, minlength=count), 1)
    word_fits, gold_fits = [], []
    for of_words, of_golds in ways + marks:
        mean = np.bincount(row, weights=of_words * is_open, minlength=count) / size
        word_fits.append((of_words - mean[row]).astype(np.float32))
        gold_fits.append((of_golds - mean).astype(np.float32))
    return np.stack(word_fits, axis=1), np.stack(gold_fits, axis=1)
