"""Judges with a known truth, who compare or grade texts with noise, or do not look at them."""

from collections.abc import Callable, Sequence

import numpy as np

from pipeline.metrics.judging import bradley_terry
from pipeline.metrics.judging.bradley_terry import Comparisons, Pair

Compare = Callable[[int, int], int]


def draw_truth(count: int, sd: float, seed: int) -> np.ndarray:
    """Draw values with mean 0."""
    truth = np.random.default_rng(seed).normal(0, sd, count)
    return truth - truth.mean()


def make_judge(truth: np.ndarray, seed: int, bias: float = 0.0, tie: float = 0.0) -> Compare:
    """Make a judge who chooses by Davidson's probabilities."""
    rng = np.random.default_rng(seed)

    def compare(a: int, b: int) -> int:
        x = (truth[a] - truth[b] + bias) / 2
        weights = np.array([np.exp(x), np.exp(-x), tie])
        return int(rng.choice([1, -1, 0], p=weights / weights.sum()))

    return compare


def collect(pairs: Sequence[Pair], outcomes: Sequence[int]) -> Comparisons:
    """Collect comparisons as arrays."""
    return Comparisons(*np.array(pairs, np.int64).reshape(-1, 2).T, np.array(outcomes, np.int64))


def compare_adaptively(count: int, compare: Compare, seed: int, rounds: int = 10, per_item: int = 10) -> Comparisons:
    """Compare items round by round, as `tasks.judging` does."""
    pairs = bradley_terry.draw_first_pairs(count, seed)
    outcomes = [compare(*pair) for pair in pairs]
    for number in range(1, rounds):
        comparisons = collect(pairs, outcomes)
        fit = bradley_terry.fit_values(comparisons, count)
        errors = bradley_terry.approximate_errors(comparisons, fit)
        chosen = bradley_terry.choose_pairs(fit.values, errors, pairs, per_item * count // rounds, seed + number)
        outcomes += [compare(*pair) for pair in chosen]
        pairs += chosen
    return collect(pairs, outcomes)
