"""CIDEr written plainly, over cases."""

import math
from collections import Counter
from collections.abc import Sequence

from tests.support.overlap_cases import Case

Grams = Counter[tuple[str, ...]]


def grams(text: Sequence[str], n: int) -> Grams:
    """n-grams of a text."""
    return Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))


def documents(references: list[list[list[str]]], order: int) -> Grams:
    """How many reference sets have each n-gram."""
    return Counter(
        gram for owned in references
        for gram in set().union(*(grams(text, n) for text in owned for n in range(1, order + 1)))
    )  # fmt: skip


def plainly(case: Case, order: int, *, is_d: bool, sigma: float = 6.0) -> list[float]:
    """(B.5), or CIDEr-D with weights, one pair of texts at a time."""
    known, total = documents(case.references, order), math.log(len(case.references))

    def vector(text: Sequence[str], n: int) -> dict[tuple[str, ...], float]:
        return {gram: times * (total - math.log(max(1, known[gram]))) for gram, times in grams(text, n).items()}

    scores = []
    for candidate, references, weights in zip(*case, strict=True):
        found, ours = 0.0, [vector(candidate, n) for n in range(1, order + 1)]
        norms = [math.hypot(*own.values()) for own in ours]
        for reference, weight in zip(references, weights, strict=True):
            apart = max(len(candidate) - 1, 0) - max(len(reference) - 1, 0)
            factor = 10 * math.exp(-(apart**2) / (2 * sigma**2)) if is_d else 1
            for n in range(1, order + 1):
                own, theirs = ours[n - 1], vector(reference, n)
                dot = sum((min(v, theirs[g]) if is_d else v) * theirs[g] for g, v in own.items() if g in theirs)
                norm = norms[n - 1] * math.hypot(*theirs.values())
                found += weight * factor * (dot / norm if norm else 0) / order
        scores.append(found / len(references))
    return scores
