"""CIDEr written plainly, over cases."""

import math
from collections import Counter
from collections.abc import Sequence

from tests.support.oracles.overlap_cases import Case

Grams = Counter[tuple[str, ...]]


def grams(text: Sequence[str], n: int) -> Grams:
    return Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))


def count_plainly(references: list[list[list[str]]], order: int) -> Grams:
    """Count the reference sets that have each n-gram."""
    orders = range(1, order + 1)
    return Counter(
        gram for texts in references for gram in {g for text in texts for n in orders for g in grams(text, n)}
    )


def plainly(case: Case, order: int, *, is_d: bool, sigma: float = 6.0) -> list[float]:
    """Score by (B.5), or by CIDEr-D with weights, one pair of texts at a time."""
    documents, total = count_plainly(case.references, order), math.log(len(case.references))

    def vector(text: Sequence[str], n: int) -> dict[tuple[str, ...], float]:
        return {gram: times * (total - math.log(max(1, documents[gram]))) for gram, times in grams(text, n).items()}

    scores = []
    for candidate, references, weights in zip(*case, strict=True):
        score, firsts = 0.0, [vector(candidate, n) for n in range(1, order + 1)]
        norms = [math.hypot(*first.values()) for first in firsts]
        for reference, weight in zip(references, weights, strict=True):
            difference = max(len(candidate) - 1, 0) - max(len(reference) - 1, 0)
            factor = 10 * math.exp(-(difference**2) / (2 * sigma**2)) if is_d else 1
            for n, (first, norm) in enumerate(zip(firsts, norms, strict=True), 1):
                second = vector(reference, n)
                shared = first.keys() & second.keys()
                dot = sum((min(first[g], second[g]) if is_d else first[g]) * second[g] for g in shared)
                length = norm * math.hypot(*second.values())
                score += weight * factor * (dot / length if length else 0) / order
        scores.append(score / len(references))
    return scores
