"""How much a context changes what a comment's words lead to expect: f(s) against f(c ⊕ s) (CSD, section 1; CSD-01).

A sentence has subtext where its meaning alone, f(s), is not its meaning in its context, f(c ⊕ s). Here f is what a
masked language model expects at the places of the comment's words, ⊕ prepends the context's words, and
the difference is the divergence of the two distributions at each word, as in NDD.

In: comments and their contexts as lists of words, and a model. Out: a number a comment, or one a word.

A large number shows that the context matters to the words, not that their meaning changes. The shorter a comment, the
larger the part of its words that stand next to the context, so it goes with length: by a model of counts it is little
else (Spearman's -.98 on 2,000 comments of CHECKED). `correlate_shift` measures the rest at equal length.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import polars as pl

from pipeline.errors import BadInput
from pipeline.metrics.commenting.correlation import DRAWS, SEED, correlate
from pipeline.metrics.ndd.distance import DIVERGENCES, Divergence, divergences
from pipeline.metrics.ndd.model import Floats, MaskedModel, Sentence

WORDS = 64  # of a context that are kept: its last ones
SHIFT, LENGTH = "context_shift", "word_count"
_BLOCK_WORDS = 4096  # words that are gone through at a time

Weights = Literal["mean", "sum"]


def context_shift(
    model: MaskedModel,
    comments: Sequence[Sentence],
    contexts: Sequence[Sentence],
    *,
    divergence: Divergence = "hellinger",
    weights: Weights = "mean",
    words: int = WORDS,
) -> Floats:
    """Compute the mean divergence of the distributions at a comment's words without and with its context: [n].

    0 where the context is empty, NaN where the comment is. Hellinger's mean is in [0, 1].

    Args:
        model: gives the distributions.
        comments: n of them, each of its words.
        contexts: of each, maybe empty.
        divergence: hellinger; kl, KL(with ‖ without); kl_reversed.
        weights: mean of a comment's words, or their sum, which grows with its length.
        words: last words of a context that are kept, from 1; a model of pieces accepts some hundreds in all.

    Raises:
        BadInput: a context more or less than comments, an unknown divergence or weight, or no words to keep.
    """
    if weights not in ("mean", "sum"):
        raise BadInput(f"weights: expected mean or sum, found {weights!r:.40}")
    pool = np.mean if weights == "mean" else np.sum
    word_values = measure_words(model, comments, contexts, divergence=divergence, words=words)
    return np.array([pool(values) if len(values) else np.nan for values in word_values], np.float64)


def measure_words(
    model: MaskedModel,
    comments: Sequence[Sentence],
    contexts: Sequence[Sentence],
    *,
    divergence: Divergence = "hellinger",
    words: int = WORDS,
) -> list[Floats]:
    """Compute the divergence at each word of each comment: n times [words].

    Arguments and errors as of `context_shift`.
    """
    if len(comments) != len(contexts):
        raise BadInput(f"expected a context for each of {len(comments)} comments, found {len(contexts)}")
    if divergence not in DIVERGENCES or words < 1:
        raise BadInput(
            f"expected a divergence of {', '.join(DIVERGENCES)} and 1 word or more, found {divergence!r:.40}, {words}"
        )
    values_by_comment = [np.zeros(len(comment)) for comment in comments]
    for rows in _split_blocks(comments, contexts):
        comment_block = [comments[row] for row in rows]
        context_block = [list(contexts[row])[-words:] for row in rows]
        length = np.array([len(comment) for comment in comment_block])
        pair = np.repeat(np.arange(len(rows)), length)
        place = np.concatenate([np.arange(count) for count in length])
        context_place = place + np.array([len(context) for context in context_block])[pair]
        sentences = [
            *comment_block,
            *([*context, *comment] for context, comment in zip(context_block, comment_block, strict=True)),
        ]
        first_places, second_places = (
            np.stack([pair, place], axis=1),
            np.stack([pair + len(rows), context_place], axis=1),
        )
        values = divergences(model, sentences, first_places, second_places, divergence)
        for row, value in zip(rows, np.split(values, np.cumsum(length)[:-1]), strict=True):
            values_by_comment[row] = value
    return values_by_comment


def _split_blocks(comments: Sequence[Sentence], contexts: Sequence[Sentence]) -> Iterator[list[int]]:
    """Yield blocks of rows that have a comment and a context, each of about `_BLOCK_WORDS` words."""
    rows: list[int] = []
    count = 0
    for row, (comment, context) in enumerate(zip(comments, contexts, strict=True)):
        if not len(comment) or not len(context):
            continue
        if rows and count + len(comment) > _BLOCK_WORDS:
            yield rows
            rows, count = [], 0
        rows.append(row)
        count += len(comment)
    if rows:
        yield rows


def correlate_shift(
    frame: pl.DataFrame,
    columns: Sequence[str],
    *,
    shift: str = SHIFT,
    length: str = LENGTH,
    group: str | None = None,
    draws: int = DRAWS,
    seed: int = SEED,
) -> pl.DataFrame:
    """Correlate the shift with other measures of the same comments, plain and at equal length.

    At equal length is Spearman's partial correlation: Pearson's of what a straight line in the rank of the length
    leaves of both ranks. Its interval draws these residuals and does not fit the line again.

    Args:
        frame: a row a comment: the shift, the length, the columns and the group; rows with a null or NaN in what is
            compared are left out of n.
        columns: measures such as implicitness, subtext; the length itself as well, which has no partial one.
        shift: the column of the shift.
        length: that of comments' lengths.
        group: the column of what comments stand below: the bootstrap draws whole groups. By default single comments.
        draws: samples of the bootstrap.
        seed: of the draws.

    Returns:
        A row a column: metric, spearman, low, high, partial, partial_low, partial_high, n. Null where fewer than three
        comments are left or one side is constant.

    Raises:
        BadInput: a column is not there.
    """
    if absent := [name for name in (shift, length, group, *columns) if name and name not in frame.columns]:
        raise BadInput(f"expected columns {', '.join(absent)}; there are {', '.join(frame.columns)}")
    metric_rows = []
    for name in columns:
        numbers = {"shift": pl.col(shift), "length": pl.col(length), "value": pl.col(name)}
        rows = frame.select(
            **{key: column.cast(pl.Float64) for key, column in numbers.items()},
            group=pl.col(group) if group else pl.lit(0),
        ).filter(pl.all_horizontal(pl.col(*numbers).is_finite().fill_null(value=False), pl.col("group").is_not_null()))
        groups = rows["group"] if group else None
        plain = correlate(rows["shift"], rows["value"], groups, draws=draws, seed=seed)
        row = [name, plain.spearman, plain.spearman_low, plain.spearman_high, None, None, None, plain.n]
        if name != length and plain.spearman is not None:
            partial = correlate(
                _rank_residuals(rows, "shift"), _rank_residuals(rows, "value"), groups, draws=draws, seed=seed
            )
            row[4:7] = partial.pearson, partial.pearson_low, partial.pearson_high
        metric_rows.append(row)
    names = ("spearman", "low", "high", "partial", "partial_low", "partial_high")
    schema = {"metric": pl.String, **dict.fromkeys(names, pl.Float64), "n": pl.Int64}
    return pl.DataFrame(metric_rows, schema=schema, orient="row")


def _rank_residuals(rows: pl.DataFrame, name: str) -> Floats:
    """Compute what the rank of the length does not explain of a rank."""
    rank, length = (rows[column].rank().to_numpy() for column in (name, "length"))
    rank, length = rank - rank.mean(), length - length.mean()
    spread = float(length @ length)
    residuals: Floats = rank - length * (float(rank @ length) / spread if spread else 0.0)
    return residuals
