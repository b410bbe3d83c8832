"""Ranking graded groups (ImpScore, section 6.2 and appendix A.3): does the score rise with the level?"""

from collections.abc import Sequence

import numpy as np
from scipy import stats


def kendall_tau(gold: Sequence[float], scores: Sequence[float]) -> float:
    """(concordant - discordant) / all pairs (equation 11), in [-1, 1]; a tie is neither.

    Raises:
        ValueError: fewer than two items, or lengths that differ.
    """
    if len(gold) != len(scores) or len(gold) < 2:
        raise ValueError(
            f"expected two equally long sequences of at least two items, got {len(gold)} and {len(scores)}"
        )
    agreement = np.sign(np.subtract.outer(gold, gold)) * np.sign(np.subtract.outer(scores, scores))
    return float(np.triu(agreement, 1).sum() / (len(gold) * (len(gold) - 1) / 2))


def spearman_rho(gold: Sequence[float], scores: Sequence[float]) -> float:
    """Spearman's rank correlation in [-1, 1], tied ranks averaged; 0 where one side is constant."""
    if len(set(gold)) < 2 or len(set(scores)) < 2:
        return 0.0
    return float(stats.spearmanr(gold, scores).statistic)


def ordered_pairs(gold: Sequence[float], scores: Sequence[float]) -> int:
    """Pairs that rise together: 0 to 6 for four sentences, the linguist's scale of table 11 (IMP-37)."""
    agreement = np.sign(np.subtract.outer(gold, gold)) * np.sign(np.subtract.outer(scores, scores))
    return int((np.triu(agreement, 1) > 0).sum())
