"""The quality of pairs by a judge: a sample to judge, and ratings of the answers (ImpScore, appendix A.2).

A pair is appropriate if its first sentence is the more implicit one, and both mean the same if and only if the pair is
positive. The published ratings are those of the paper's linguist for its pairs.
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
"""Ratings of table 7, from 1 to 5, by our names of the sources; `ishate` is its Adversarial."""
VERDICTS = {
    "": None, **dict.fromkeys(("1", "1.0", "yes", "true"), True), **dict.fromkeys(("0", "0.0", "no", "false"), False),
}  # fmt: skip


def sample(pairs: pl.DataFrame, per_source: int = PER_SOURCE, seed: int = SEED) -> pl.DataFrame:
    """Draw sentence pairs to judge, half of them positive, each from another pair, in random order.

    A source with fewer pairs gives all it has, or one fewer if that is odd.

    Returns:
        item (from 1), source, first, second, which the judge sees; kind (positive or negative), which is hidden.
    """
    rng = np.random.default_rng(seed)
    parts = []
    for source in pairs.sort("source", "pair_id").partition_by("source", maintain_order=True):
        half = min(per_source, len(source)) // 2
        picks = source[rng.permutation(len(source))[: 2 * half]]
        is_positive = pl.int_range(pl.len()) < half
        parts.append(
            picks.select(
                "source",
                first="implicit",
                second=pl.when(is_positive).then("explicit").otherwise("negative"),
                kind=pl.when(is_positive).then(pl.lit("positive")).otherwise(pl.lit("negative")),
            )
        )
    texts = dict.fromkeys(("source", "first", "second", "kind"), pl.String)
    rows = pl.concat([pl.DataFrame(schema=texts), *parts])
    return rows[rng.permutation(len(rows))].with_row_index("item", 1)


def rate_share(share: float) -> int:
    """Rate a share of appropriate pairs: 1 below 20 %, 2 below 40 %, 3 below 60 %, 4 below 80 %, else 5."""
    if not 0 <= share <= 1:
        raise ValueError(f"expected a share between 0 and 1, got {share}")
    return bisect_right(BOUNDS, share) + 1


def read_judgements(path: Path, key: Path) -> pl.DataFrame:
    """Read a judge's file with its key, for `rate_sources`: source, appropriate (null where an answer is blank).

    Args:
        path: the file of `sample` with `same_meaning` and `first_more_implicit` filled with 1 or 0.
        key: item, source, kind.

    Raises:
        BadInput: naming file, row and field.
    """
    kinds = {_get_text(row, "item"): row for _, row in _number_rows(key)}
    rows = []
    for number, row in _number_rows(path):
        key_row = kinds.get(_get_text(row, "item"))
        if key_row is None:
            raise BadInput(
                f"{path}, row {number}: field 'item' is {_get_text(row, 'item')!r}, expected an item of {key}"
            )
        is_same, is_implicit = (
            _parse_verdict(path, number, row, name) for name in ("same_meaning", "first_more_implicit")
        )
        is_complete = is_same is not None and is_implicit is not None
        is_appropriate = bool(is_implicit) and is_same == (_get_text(key_row, "kind") == "positive")
        rows.append((_get_text(key_row, "source"), is_appropriate if is_complete else None))
    return pl.DataFrame(rows, schema={"source": pl.String, "appropriate": pl.Boolean}, orient="row")


def _number_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for chunk in read_chunks(path):
        yield from enumerate(chunk.rows, chunk.first)


def _get_text(row: dict[str, Any], name: str) -> str:
    return "" if row.get(name) is None else str(row[name]).strip()


def _parse_verdict(path: Path, number: int, row: dict[str, Any], name: str) -> bool | None:
    if name not in row or (text := _get_text(row, name).lower()) not in VERDICTS:
        raise BadInput(f"{path}, row {number}: field {name!r} should be 1 or 0, found {row.get(name)!r}")
    return VERDICTS[text]


def rate_sources(answers: pl.DataFrame) -> pl.DataFrame:
    """Rate the sources of judged pairs (source, appropriate: bool): source, n, share, rating, published.

    Pairs without a judgement do not count; published is null for sources that are not in table 7.
    """
    return (
        answers.drop_nulls("appropriate")
        .group_by("source")
        .agg(n=pl.len().cast(pl.Int64), share=pl.col("appropriate").mean())
        .sort("source")
        .with_columns(
            rating=pl.col("share").map_elements(rate_share, return_dtype=pl.Int64),
            published=pl.col("source").replace_strict(PUBLISHED, default=None, return_dtype=pl.Int64),
        )
    )
