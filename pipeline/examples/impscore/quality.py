"""How good the pairs are, by a reader's judgement: what to show, and what the answers come to (ImpScore, appendix A.2).

A pair is appropriate if its first sentence is the more implicit one and, for a positive pair, both mean the same, for
a negative pair, they do not. Published ratings are of the paper's pairs, judged by its linguist.
"""

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pipeline.errors import BadInput
from pipeline.examples.splits import SEED
from pipeline.io.rows import read_chunks

PER_SOURCE = 20
BOUNDS = (0.2, 0.4, 0.6, 0.8)
PUBLISHED = {
    "toxigen": 5, "latent_hatred": 5, "dghsd": 5, "ishate": 5, "sbic": 5, "implicatures": 4, "imppres": 5,
    "ludwig": 5, "absa": 4, "semeval_irony": 5, "snarks": 5, "r3": 5, "pdtb": 4,
}  # fmt: skip
"""Ratings of table 7, from 1 to 5, by the names of our readers; `ishate` is its Adversarial."""
VERDICTS = {
    "": None, **dict.fromkeys(("1", "1.0", "yes", "true"), True), **dict.fromkeys(("0", "0.0", "no", "false"), False),
}  # fmt: skip


def sample(pairs: pl.DataFrame, per_source: int = PER_SOURCE, seed: int = SEED) -> pl.DataFrame:
    """Sentence pairs to judge, half of them positive, shuffled; each from another pair, the same for the same seed.

    A source with fewer pairs gives as many as it has, one fewer if that is odd.

    Returns:
        item (from 1), source, first, second: what the judge sees; kind (positive or negative): what the judge does not.
    """
    rng = np.random.default_rng(seed)
    parts = []
    for source in pairs.sort("source", "pair_id").partition_by("source", maintain_order=True):
        half = min(per_source, len(source)) // 2
        drawn = source[rng.permutation(len(source))[: 2 * half]]
        is_positive = pl.int_range(pl.len()) < half
        parts.append(
            drawn.select(
                "source",
                first="implicit",
                second=pl.when(is_positive).then("explicit").otherwise("negative"),
                kind=pl.when(is_positive).then(pl.lit("positive")).otherwise(pl.lit("negative")),
            )
        )
    texts = dict.fromkeys(("source", "first", "second", "kind"), pl.String)
    rows = pl.concat([pl.DataFrame(schema=texts), *parts])
    return rows[rng.permutation(len(rows))].with_row_index("item", 1)


def scale(share: float) -> int:
    """Rating of a share of appropriate pairs: 1 below 20 %, 2 below 40 %, 3 below 60 %, 4 below 80 %, else 5."""
    if not 0 <= share <= 1:
        raise ValueError(f"expected a share between 0 and 1, got {share}")
    return bisect_right(BOUNDS, share) + 1


def judged(path: Path, key: Path) -> pl.DataFrame:
    """A judge's file with its key, as `rate` takes it: source, appropriate (null where an answer was left blank).

    A pair is appropriate if its first sentence is the more implicit one and both mean the same just if it is positive.

    Args:
        path: the file of `sample` with `same_meaning` and `first_more_implicit` filled with 1 or 0.
        key: item, source, kind.

    Raises:
        BadInput: naming file, row and field.
    """
    kinds = {_text(row, "item"): row for _, row in _rows(key)}
    rows = []
    for number, row in _rows(path):
        entry = kinds.get(_text(row, "item"))
        if entry is None:
            raise BadInput(f"{path}, row {number}: field 'item' is {_text(row, 'item')!r}, which {key} does not have")
        same, implicit = (_verdict(path, number, row, name) for name in ("same_meaning", "first_more_implicit"))
        known = same is not None and implicit is not None
        fits = bool(implicit) and same == (_text(entry, "kind") == "positive")
        rows.append((_text(entry, "source"), fits if known else None))
    return pl.DataFrame(rows, schema={"source": pl.String, "appropriate": pl.Boolean}, orient="row")


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for chunk in read_chunks(path):
        yield from enumerate(chunk.rows, chunk.first)


def _text(row: dict[str, Any], name: str) -> str:
    return "" if row.get(name) is None else str(row[name]).strip()


def _verdict(path: Path, number: int, row: dict[str, Any], name: str) -> bool | None:
    if name not in row or (said := _text(row, name).lower()) not in VERDICTS:
        raise BadInput(f"{path}, row {number}: field {name!r} should be 1 or 0, found {row.get(name)!r}")
    return VERDICTS[said]


def rate(answers: pl.DataFrame) -> pl.DataFrame:
    """Ratings by source of judged pairs (source, appropriate: bool): source, n, share, rating, published.

    Pairs whose judgement is null are left out; published is null for sources that table 7 does not have.
    """
    return (
        answers.drop_nulls("appropriate")
        .group_by("source")
        .agg(n=pl.len().cast(pl.Int64), share=pl.col("appropriate").mean())
        .sort("source")
        .with_columns(
            rating=pl.col("share").map_elements(scale, return_dtype=pl.Int64),
            published=pl.col("source").replace_strict(PUBLISHED, default=None, return_dtype=pl.Int64),
        )
    )
