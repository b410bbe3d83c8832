"""How much a context changes what a comment's words lead to expect: f(s) against f(c ⊕ s) (CSD, section 1; CSD-01).

Here f is what a masked language model expects at the places of the comment's words, ⊕ prepends the context's words, and
the difference is the divergence of the two distributions at each word, as in NDD. A large number shows that the context
matters to the words, not that their meaning changes. It goes with length: the words of a short comment stand next to
the context. `correlate_shift` measures the rest at equal length.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from pipeline.metrics.commenting.correlation import correlate
from pipeline.metrics.ndd import distance
from pipeline.metrics.ndd.distance import MU, Divergence, Floats, MaskedModel, Sentence, Weights
from pipeline.metrics.resample import DRAWS

WORDS = 64  # of a context that count: its last ones
SHIFT, LENGTH, GROUP = "context_shift", "word_count", "thread_id"
_BLOCK_WORDS = 4096  # words that are compared at a time


def context_shift(
    model: MaskedModel,
    comments: Sequence[Sentence],
    contexts: Sequence[Sentence],
    *,
    divergence: Divergence = "hellinger",
    weights: Weights = "mean",
) -> Floats:
    """Compute the weighed divergence at a comment's words without and with its context: [n].

    With Hellinger's distance and `mean` it is from 0 to 1. Weights are those of `distances`, and the distance of a word
    is the number of words between it and the context. The shift is 0 where the context is empty, NaN where the comment
    is. Both are given as words.
    """
    shifts = np.array([0.0 if len(comment) else np.nan for comment in comments])
    rows = [row for row, pair in enumerate(zip(comments, contexts, strict=True)) if all(map(len, pair))]
    for block in distance.split_blocks([len(comments[row]) for row in rows], _BLOCK_WORDS):
        block_comments, block_contexts = ([texts[row] for row in rows[block]] for texts in (comments, contexts))
        word_shifts = measure_words(model, block_comments, block_contexts, divergence)
        shifts[rows[block]] = [values @ _weigh(len(values), weights) for values in word_shifts]
    return shifts


def _weigh(count: int, weights: Weights) -> Floats:
    if weights == "distance":
        return np.float64(MU) ** np.arange(count)
    return np.full(count, 1 / count if weights == "mean" else 1.0)


def measure_words(
    model: MaskedModel, comments: Sequence[Sentence], contexts: Sequence[Sentence], divergence: Divergence = "hellinger"
) -> list[Floats]:
    """Compute the divergence at each word of each comment, of which none is empty: n times [words]."""
    last_words = [list(context)[-WORDS:] for context in contexts]
    length = np.array([*map(len, comments)])
    pair = np.repeat(np.arange(len(comments)), length)
    place = np.concatenate([np.arange(count) for count in length])
    first_places = np.stack([pair, place], axis=1)
    second_places = np.stack([pair + len(comments), place + np.array([*map(len, last_words)])[pair]], axis=1)
    sentences = [*comments, *([*words, *comment] for words, comment in zip(last_words, comments, strict=True))]
    values = distance.divergences(model, sentences, first_places, second_places, divergence)
    return np.split(values, np.cumsum(length)[:-1])


def correlate_shift(frame: pl.DataFrame, columns: Sequence[str], *, draws: int = DRAWS) -> pl.DataFrame:
    """Correlate the shift with other measures of the same comments, plain and at equal length.

    At equal length is Spearman's partial correlation: Pearson's of what a straight line in the rank of the length
    leaves of both ranks. Its interval draws these residuals and does not fit the line again.

    A row is a comment: context_shift, word_count, thread_id (the bootstrap draws whole threads) and the columns, of
    which the length itself has no partial correlation. Rows with a null or NaN in what is compared are left out of n.

    Returns a row a column: metric, spearman, low, high, partial, partial_low, partial_high, n. Null where fewer than
    three comments remain or one side is constant.
    """
    metric_rows = []
    for name in columns:
        numbers = {"shift": pl.col(SHIFT), "length": pl.col(LENGTH), "value": pl.col(name)}
        rows = frame.select(GROUP, **{key: column.cast(pl.Float64) for key, column in numbers.items()})
        rows = rows.filter(pl.all_horizontal(pl.col(*numbers).is_finite().fill_null(value=False)))
        plain = correlate(rows["shift"], rows["value"], rows[GROUP], draws=draws)
        row = [name, plain.spearman, plain.spearman_low, plain.spearman_high, None, None, None, plain.n]
        if name != LENGTH and plain.spearman is not None:
            residuals = _rank_residuals(rows, "shift"), _rank_residuals(rows, "value")
            partial = correlate(*residuals, rows[GROUP], draws=draws)
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
    return np.asarray(rank - length * (float(rank @ length) / spread if spread else 0.0))
