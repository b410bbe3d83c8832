"""Quality of measures of distance and similarity: their correlation with people's or with labels, by how far
sentences overlap, and the distributions behind it (NDD, section 3; table 1, figures 3, 7 and 8; NDD-10 to 13, 38, 39).

In: a row a pair, a column a measure. A measure has a direction, -1 for a distance and 1 for a similarity; direction
times measure is correlated, so that a correlation above 0 always agrees with people.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from pipeline.metrics.commenting.correlation import Correlation, correlate
from pipeline.metrics.resample import DRAWS, wilson

ENSEMBLE = 0.0025  # parts of the cosine to one of the distance (section 3)
THRESHOLDS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # of figure 3
QUANTILES = tuple(range(0, 101, 5))  # in percent
Measures = Mapping[str, int]  # columns with the direction of each, -1 or 1


def correlate_measures(
    pairs: pl.DataFrame, measures: Measures, target: str = "similarity", *, group: str | None = None, draws: int = DRAWS
) -> pl.DataFrame:
    """Measure how far each measure agrees with a target: a column of table 1.

    All measures are correlated on the same pairs, those for which each has a finite value; pairs are drawn alike. The
    target is a column without nulls, a number (`similarity`) or true and false (`is_positive`). The bootstrap draws by
    the values of `group`, as sentence_id where a sentence has two edits; by default it draws single pairs.

    Returns measure, the fields of `correlation.Correlation` (of which the paper has Pearson's), left_out (pairs that
    lack a measure).
    """
    complete = pairs.filter(pl.all_horizontal(_is_finite(name) for name in measures))
    groups, targets = complete[group] if group else None, complete[target].cast(pl.Float64)
    rows = []
    for name, direction in measures.items():
        values = direction * complete[name].cast(pl.Float64)
        rows.append((name, *correlate(values, targets, groups, draws=draws), len(pairs) - len(complete)))
    return _build_frame(rows, *Correlation._fields[:-1])


def correlate_by_overlap(pairs: pl.DataFrame, measures: Measures, *, draws: int = DRAWS) -> pl.DataFrame:
    """Run `correlate_measures` on pairs that overlap by more than a threshold (figure 3), by none, and wholly.

    Pairs have `overlap` as well (`examples.ndd.pairs.add_overlap`), a share of the shorter sentence.

    Returns subset ("=0", ">0", ">0.1", …, "=1") and the columns of `correlate_measures`; null for too few pairs.
    """
    share = pl.col("overlap")
    subsets = {"=0": share == 0, **{f">{least:g}": share > least for least in THRESHOLDS}, "=1": share == 1}
    parts = {name: correlate_measures(pairs.filter(subset), measures, draws=draws) for name, subset in subsets.items()}
    return pl.concat(part.select(pl.lit(name).alias("subset"), pl.all()) for name, part in parts.items())


def ensemble(distance: pl.Series, cosine: pl.Series, share: float = ENSEMBLE) -> pl.Series:
    """Combine the distance with a share of the cosine: NDD - 0.0025 S_C (section 3; NDD-12).

    The paper gives "ratio = 1:0.0025" without sign or scale. NDD in [0, 1] and S_C in [-1, 1] make the second term
    0.005 wide at most, while table 1's ensemble lies far from NDD; a share of 400 is the ratio read the other way
    round.
    """
    return (distance - share * cosine).alias("ensemble")


def list_quantiles(pairs: pl.DataFrame, measure: str) -> pl.DataFrame:
    """List the quantiles of a measure over positive and over negative pairs (figures 7 and 8).

    Pairs have `is_positive` and the measure; those without a finite value are left out of n.

    Returns is_positive, quantile (0, 5, …, 100 %), value (interpolated), n (pairs); false first, nothing of a label
    that no pair has.
    """
    complete, rows = pairs.filter(_is_finite(measure)), []
    for label in (False, True):
        values = complete.filter(pl.col("is_positive") == label)[measure].to_numpy()
        if len(values):
            numbers = zip(QUANTILES, np.percentile(values, QUANTILES), strict=True)
            rows += [(label, quantile, float(value), len(values)) for quantile, value in numbers]
    schema = {"is_positive": pl.Boolean, "quantile": pl.Int64, "value": pl.Float64, "n": pl.Int64}
    return pl.DataFrame(rows, schema, orient="row")


def measure_separation(pairs: pl.DataFrame, measures: Measures) -> pl.DataFrame:
    """Compute the share of sentences whose negative edit is farther away than the positive one; chance is 1/2.

    Pairs have sentence_id, is_positive and the measures; a sentence has one pair of each label at most (one test).

    Returns measure, share (a tie counts one half), low, high (Wilson's interval of 95 %), n (sentences with two finite
    values), left_out (the others). Share and bounds are null where there are no sentences.
    """
    positive, negative = (pairs.filter(pl.col("is_positive") == label) for label in (True, False))
    pairs_by_sentence = positive.join(negative, on="sentence_id", suffix="_negative")
    rows = []
    for name, direction in measures.items():
        complete = pairs_by_sentence.filter(_is_finite(name), _is_finite(f"{name}_negative"))
        count = len(complete)
        numbers: list[float | None] = [None] * 3
        if count:
            farther = np.sign(direction * (complete[name] - complete[f"{name}_negative"]).to_numpy())
            share = np.array([(farther + 1).mean() / 2])
            numbers = [float(number[0]) for number in (share, *wilson(share, np.array([count])))]
        rows.append((name, *numbers, count, pairs["sentence_id"].n_unique() - count))
    return _build_frame(rows, "share", "low", "high")


CASES = [(words, edits) for words, *edits in (map(str.split, sentences) for sentences in (
    ("She grew up in a small house .", "She grew up in a little house .",
     "She grew up in a quiet house .", "She grew up in a huge house ."),
    ("They were talking behind the old barn .", "They were chatting behind the old barn .",
     "They were waiting behind the old barn .", "They were melting behind the old barn ."),
    ("You are reading on the balcony .", "You were reading on the balcony .",
     "She is reading on the balcony .", "She are reading on the balcony ."),
))]  # fmt: skip
"""Our own sentences as words, each with edits of it, the nearest first, in the orders that the paper finds in its one
(appendix B, table 10; NDD-39): a near word, one of another aspect, an opposite or implausible one; and another tense,
another person, a broken agreement. A measure has the order where `studies.kendall_tau(range(3), distances)` is 1. Only
a masked model of quality can be held to it."""


def _build_frame(rows: Sequence[Any], *numbers: str) -> pl.DataFrame:
    schema = {"measure": pl.String, **dict.fromkeys(numbers, pl.Float64), "n": pl.Int64, "left_out": pl.Int64}
    return pl.DataFrame(rows, schema, orient="row")


def _is_finite(measure: str) -> pl.Expr:
    return pl.col(measure).cast(pl.Float64).is_finite().fill_null(value=False)
