"""How well ranked candidates hold the word that was left out: MRR and recall at k (ReCAM, tables 3 and 4; REC-22).

In: a ranked list of different words an item, best first, and the right word. All numbers are in [0, 1]. For the share
of right choices among five see `metrics.recovery.choice_accuracy`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ranks = npt.NDArray[np.int64]


class Retrieval(NamedTuple):
    """The numbers of table 3."""

    mrr: float
    recall_1: float
    recall_5: float
    recall_10: float
    row_count: int


def find_ranks(candidates: Sequence[Sequence[str]], right: Sequence[str]) -> Ranks:
    """Find the position of the right word in each list, from 1; 0 where it is absent: int64 [n].

    Raises:
        ValueError: not as many lists as words.
    """
    if len(candidates) != len(right):
        raise ValueError(f"expected a right word for each of {len(candidates)} lists, got {len(right)}")
    positions = (
        next((place for place, candidate in enumerate(ranked_words, 1) if candidate == word), 0)
        for ranked_words, word in zip(candidates, right, strict=True)
    )
    return np.fromiter(positions, np.int64, len(right))


def mrr(ranks: Ranks) -> float:
    """Compute mean reciprocal rank (Craswell, 2009); an absent word counts 0, so short lists lower it.

    Args:
        ranks: of `find_ranks`, [n].
    """
    _check_ranks(ranks)
    return float(np.mean(np.where(ranks > 0, 1 / np.maximum(ranks, 1), 0.0)))


def recall(ranks: Ranks, k: int) -> float:
    """Compute the share of words that are among the first k of their lists.

    Args:
        ranks: of `find_ranks`, [n].
        k: 1 or more; the lists should be as long or hold all there is.
    """
    _check_ranks(ranks)
    if k < 1:
        raise ValueError(f"k should be 1 or more, not {k}")
    return float(np.mean((ranks > 0) & (ranks <= k)))


def _check_ranks(ranks: Ranks) -> None:
    if not len(ranks) or ranks.min() < 0:
        raise ValueError("expected at least one rank, and none below 0")


def report(candidates: Sequence[Sequence[str]], right: Sequence[str]) -> Retrieval:
    """Compute all numbers of ranked lists and their right words."""
    word_ranks = find_ranks(candidates, right)
    return Retrieval(
        mrr(word_ranks), recall(word_ranks, 1), recall(word_ranks, 5), recall(word_ranks, 10), len(word_ranks)
    )
