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


def ranks(candidates: Sequence[Sequence[str]], right: Sequence[str]) -> Ranks:
    """Place of the right word in each list, from 1; 0 where it is not there: int64 [n].

    Raises:
        ValueError: not as many lists as words.
    """
    if len(candidates) != len(right):
        raise ValueError(f"expected a right word for each of {len(candidates)} lists, got {len(right)}")
    found = (
        next((place for place, one in enumerate(listed, 1) if one == word), 0)
        for listed, word in zip(candidates, right, strict=True)
    )
    return np.fromiter(found, np.int64, len(right))


def mrr(found: Ranks) -> float:
    """Mean reciprocal rank (Craswell, 2009); a word that is not in its list counts 0, so short lists lower it.

    Args:
        found: of `ranks`, [n].
    """
    _checked(found)
    return float(np.mean(np.where(found > 0, 1 / np.maximum(found, 1), 0.0)))


def recall(found: Ranks, k: int) -> float:
    """Share of words that are among the first k of their lists.

    Args:
        found: of `ranks`, [n].
        k: 1 or more; the lists should be as long or hold all there is.
    """
    _checked(found)
    if k < 1:
        raise ValueError(f"k should be 1 or more, not {k}")
    return float(np.mean((found > 0) & (found <= k)))


def _checked(found: Ranks) -> None:
    if not len(found) or found.min() < 0:
        raise ValueError("expected at least one rank, and none below 0")


def report(candidates: Sequence[Sequence[str]], right: Sequence[str]) -> Retrieval:
    """All numbers of some lists and their right words."""
    found = ranks(candidates, right)
    return Retrieval(mrr(found), recall(found, 1), recall(found, 5), recall(found, 10), len(found))
