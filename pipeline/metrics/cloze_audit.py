"""What a cloze set gives away without reading: by how often options are right elsewhere, by the passage (REC-32).

A reader is worth what it has above these. On the official files nobody has published them: of the trial file
Intersection 60 of 100 items are answered by taking the option that is most often right elsewhere (errata E15), and of
the dev files, by taking the one that is right most often of the times it is offered, 30 and 32, where chance is 20.
"""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.float64]

_WORD = re.compile(r"\w+")
_PRIOR = 1.0  # items that an option nobody has seen elsewhere is taken to have been in, a fifth of them right


def audit(items: pl.DataFrame) -> pl.DataFrame:
    """Accuracy of answering without reading, each item told from all others.

    - `often_right`: the option that is most often right in other items.
    - `right_when_offered`: the one with the largest share of right among its offers in other items.
    - `often_offered`: the one that is offered most in other items; `seldom_offered`: least.
    - `absent`: one of those that the passage does not hold, as gold words never stand there (errata E15).
    - `longest`: the longest option; `in_question`: one that the question holds.

    Where several options are as good, the share of them that is right counts, so that nothing is drawn.

    Args:
        items: article, question, options (k of them), label, as of `examples.cloze`.

    Returns:
        baseline, accuracy, error (its standard error over items), chance, n.
    """
    if items.is_empty():
        return pl.DataFrame(schema={"baseline": pl.String, **_NUMBERS})
    options = np.array([[option.strip().lower() for option in row] for row in items["options"].to_list()])
    labels = items["label"].to_numpy()
    words, ids = np.unique(options, return_inverse=True)
    ids = ids.reshape(options.shape)
    is_right = np.arange(options.shape[1]) == labels[:, None]
    right = np.bincount(ids[is_right], minlength=len(words))[ids] - is_right
    offered = np.bincount(ids.ravel(), minlength=len(words))[ids] - 1.0
    chance = 1 / options.shape[1]
    scores = {
        "often_right": right.astype(np.float64),
        "right_when_offered": (right + _PRIOR * chance) / (offered + _PRIOR),
        "often_offered": offered,
        "seldom_offered": -offered,
        "absent": -_held(options, items["article"].to_list()),
        "in_question": _held(options, items["question"].to_list()),
        "longest": np.char.str_len(options).astype(np.float64),
    }
    rows = [(name, *_accuracy(score, is_right), chance, len(labels)) for name, score in scores.items()]
    return pl.DataFrame(rows, schema={"baseline": pl.String, **_NUMBERS}, orient="row")


_NUMBERS = {"accuracy": pl.Float64, "error": pl.Float64, "chance": pl.Float64, "n": pl.Int64}


def _held(options: npt.NDArray[np.str_], texts: Sequence[str]) -> Floats:
    """1 where a text holds the option as a word, else 0: [n, k]."""
    words = [set(_WORD.findall(text.lower())) for text in texts]
    return np.array([[option in held for option in row] for row, held in zip(options, words, strict=True)], np.float64)


def _accuracy(scores: Floats, is_right: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """The mean share of right options among the best ones of each item, and its standard error."""
    best = scores == scores.max(axis=1, keepdims=True)
    share = (best & is_right).sum(axis=1) / best.sum(axis=1)
    return float(share.mean()), float(share.std() / np.sqrt(len(share)))
