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
    """Find the position of the right word in each list, from 1; 0 where it is absent: int64 [n]."""
    pairs = zip(candidates, right, strict=True)
    return np.array([words.index(word) + 1 if word in words else 0 for words, word in pairs], np.int64)


def mrr(ranks: Ranks) -> float:
    """Compute mean reciprocal rank (Craswell, 2009) of `find_ranks`; an absent word counts 0."""
    if not len(ranks):
        raise ValueError("expected at least one rank")
    return float(np.mean(np.where(ranks > 0, 1 / np.maximum(ranks, 1), 0.0)))


def report(candidates: Sequence[Sequence[str]], right: Sequence[str]) -> Retrieval:
    """Compute MRR of ranked lists and their right words, and the share of words among the first 1, 5 and 10."""
    ranks = find_ranks(candidates, right)
    recalls = (float(np.mean((ranks > 0) & (ranks <= k))) for k in (1, 5, 10))
    return Retrieval._make((mrr(ranks), *recalls, len(ranks)))
