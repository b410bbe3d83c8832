"""The words that each item may choose from: those its readers name, and others by how often they are gold."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.examples.recam.balance.barred import CODE, bar_words
from pipeline.examples.recam.balance.fits import Fit
from pipeline.examples.recam.balance.lexicon import Floats, Ids, Lexicon, Masks, Singles, draw_uniform
from pipeline.examples.recam.balance.rates import draw_rates

EXTRA = 120  # words beside the readers', by how often they are gold: they name few of the rare ones
_SOME = 1e-4  # a fit that is not nothing


class Pool(NamedTuple):
    """Items, each with the words it may choose from, in the order of item and type: [p] each."""

    item: Ids  # row among the items
    type: Ids
    rank: Ids  # the best that a reader gives it
    times: Ids  # readers that name it
    code: npt.NDArray[np.uint8]  # place in REASONS
    fits: Singles  # how well it goes with the question, in several ways: [p, ways]
    golds: Singles  # and the gold word of each item: [items, ways]

    def where(self, mask: Masks) -> "Pool":
        item, type_, rank, times = (column[mask] for column in (self.item, self.type, self.rank, self.times))
        return Pool(item, type_, rank, times, self.code[mask], self.fits[mask], self.golds)


def read_candidates(
    kept: pl.DataFrame, candidates: pl.DataFrame, lexicon: Lexicon
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What readers name for the items: item, type, rank, count; and words that are of no type of the item's shape."""
    rows = kept.select("item_id", "shape").with_row_index("item").with_columns(pl.col("item").cast(pl.Int32))
    found = candidates.select("item_id", pl.col("word").str.to_lowercase(), "rank").join(rows, on="item_id")
    found = found.group_by("item", "shape", "word").agg(
        count=pl.len().cast(pl.Int32), rank=pl.col("rank").min().cast(pl.Int32)
    )
    found = found.join(lexicon.types, on=["shape", "word"], how="left")
    odd = found.filter(pl.col("type").is_null()).join(rows.select("item", "item_id"), on="item")
    is_gold = pl.col("word").is_in(lexicon.words.implode())
    odd = odd.select(
        "item_id", "word", token_count=pl.col("count").cast(pl.Int64), best_rank=pl.col("rank").cast(pl.Int64),
        reason=pl.when(is_gold).then(pl.lit("other_shape")).otherwise(pl.lit("no_gold_word")),
    )  # fmt: skip
    return found.filter(pl.col("type").is_not_null()).select("item", "type", "rank", "count"), odd


def build_pool(
    kept: pl.DataFrame, named: pl.DataFrame, lexicon: Lexicon, relations: Any, fits: Sequence[Fit], seed: int
) -> Pool:
    """The readers' words and `EXTRA` others of those that may stand, drawn by their rates."""
    gold, shape, draw = (kept[name].to_numpy() for name in ("type", "shape", "draw"))
    usual = np.log(np.maximum(draw_rates(gold, lexicon, seed), 0.1))
    says = named.sort("item", "type").to_numpy().astype(np.int32).reshape(-1, 4)
    starts = np.searchsorted(says[:, 0], np.arange(kept.height + 1))
    parts, golds = [], []
    for rows, codes in bar_words(kept, lexicon, relations):
        said = says[starts[rows.start] : starts[rows.stop]]
        values = [fit(rows) for fit in fits]
        key = usual - np.log(-np.log(draw_uniform(draw[rows, None], lexicon.draw[lexicon.word], seed + 1)))
        key[(shape[rows, None] != lexicon.shape) | (codes[:, lexicon.word] != CODE["not_drawn"])] = -np.inf
        key[said[:, 0] - rows.start, said[:, 1]] = -np.inf
        at, column = np.nonzero(_mark_greatest(key, EXTRA))
        deepest = np.zeros(len(key), np.int32)
        np.maximum.at(deepest, said[:, 0] - rows.start, said[:, 2])
        more = np.stack([at + rows.start, column, deepest[at] + 1, np.zeros_like(at)], axis=1)
        both = np.concatenate([said, more.astype(np.int32)])
        both = both[np.lexsort((both[:, 1], both[:, 0]))]
        row, word = both[:, 0] - rows.start, lexicon.word[both[:, 1]]
        code = codes[row, word]
        is_open = code == CODE["not_drawn"]
        found, own = _centre(values, fits, row, word, is_open, lexicon.word[gold[rows]], rows)
        parts.append((both, code, found))
        golds.append(own)
    ways = sum(1 + fit.is_of_words for fit in fits)
    none, nothing = np.zeros((0, 4), np.int32), np.zeros((0, ways), np.float32)
    table = np.concatenate([none, *(part[0] for part in parts)])
    code = np.concatenate([np.zeros(0, np.uint8), *(part[1] for part in parts)])
    found = np.concatenate([nothing, *(part[2] for part in parts)])
    item, type_, rank, times = np.ascontiguousarray(table.T)
    return Pool(item, type_, rank, times, code, found, np.concatenate([nothing, *golds]))


def _mark_greatest(keys: Floats, count: int) -> Masks:
    """Which are the greatest of each row, of those that are not infinitely small."""
    found = np.zeros(keys.shape, np.bool_)
    if keys.shape[1]:
        best = np.argpartition(-keys, min(count, keys.shape[1]) - 1, axis=1)[:, :count]
        np.put_along_axis(found, best, np.isfinite(np.take_along_axis(keys, best, axis=1)), axis=1)
    return found


def _centre(
    values: Sequence[Singles], fits: Sequence[Fit], row: Ids, word: Ids, is_open: Masks, gold: Ids, rows: slice
) -> tuple[Singles, Singles]:
    """How well words go with an item, and its gold word, and if at all, less the mean of words that may stand in it."""
    count = len(gold)
    known = [(value[row, word], value[np.arange(count), gold] - fit.less[rows])
             for fit, value in zip(fits, values, strict=True)]  # fmt: skip
    known += [
        ((one > _SOME).astype(np.float32), (other > _SOME).astype(np.float64))
        for (one, other), fit in zip(known, fits, strict=True)
        if fit.is_of_words
    ]
    found, own = np.empty((len(row), len(known)), np.float32), np.empty((count, len(known)), np.float32)
    size = np.maximum(np.bincount(row, weights=is_open, minlength=count), 1)
    for way, (one, other) in enumerate(known):
        mean = np.bincount(row, weights=one * is_open, minlength=count) / size
        found[:, way] = one - mean[row]
        own[:, way] = other - mean
    return found, own
