"""What each neighbour of a deleted span counts (NDD, appendix C; NDD-05, 17 to 20; errata E17).

A span of a sentence is (start, end), from 0, the end not included; its neighbours are the words left of it and those
right of it, in order. d is the number of words between a neighbour and the span. The paper says once that weights go
inversely with nearness; its formula μ^d has the near ones heavier, as here.
"""

from collections.abc import Callable

import numpy as np

from pipeline.metrics.ndd.model import Floats, IndexArray

MU = 0.9  # fixed in the paper (NDD-17)


def exponential(length: int, start: int, end: int, mu: float = MU) -> Floats:
    """Compute μ^d of each neighbour, [length - (end - start)]; the total is less where the span is at an end."""
    return mu ** np.concatenate(_measure_sides(length, start, end))


def balanced(length: int, start: int, end: int, mu: float = MU) -> Floats:
    """Compute μ^d + μ^(d + m), m neighbours on the other side: the same total for every place of the span (E17).

    The total is 2 (1 - μ^n) / (1 - μ) of n neighbours, which the paper claims for its own formula.
    """
    before, after = _measure_sides(length, start, end)
    return np.concatenate([mu**before + mu ** (before + len(after)), mu**after + mu ** (after + len(before))])


def printed(length: int, start: int, end: int, mu: float = MU) -> Floats:
    """Compute a'_k = a_k + a_(n' - k) μ^n' as in appendix C, k from 1 to n' neighbours; a_0 is before the first.

    Here a word that touches the span has μ, as min(|k - i|, |k - j|) is 1 there, and not 1 as in the others. For twelve
    words and a span of two the totals vary by more than a quarter (E17).
    """
    neighbours = length - (end - start)
    k = np.arange(1, neighbours + 1)

    def plain(place: IndexArray) -> Floats:
        return mu ** np.where(place <= start, start - place + 1, place - start).astype(np.float64)

    return plain(k) + plain(neighbours - k) * mu**neighbours


def released(length: int, start: int, end: int, mu: float = MU) -> Floats:
    """Compute the released code's μ^d + μ^(d + n' - d'), d' the distance of the neighbour as far from the other end.

    For twelve words and a span of two the totals go from 10.67 to 11.68 (E17).
    """
    d = np.concatenate(_measure_sides(length, start, end))
    return mu**d + mu ** (d + len(d) - d[::-1])


def decay(length: int, start: int, end: int, nu: float) -> Floats:
    """b: ν^k of the k-th word, from 0, among the neighbours; below 1 later words are dropped more easily (NDD-19)."""
    return np.float64(nu) ** np.arange(length - (end - start))


def _measure_sides(length: int, start: int, end: int) -> tuple[Floats, Floats]:
    """Measure the distances of the neighbours left of the span, and of those right of it."""
    return np.arange(start - 1, -1, -1, dtype=np.float64), np.arange(length - end, dtype=np.float64)


WEIGHTS: dict[str, Callable[..., Floats]]
WEIGHTS = {"balanced": balanced, "exponential": exponential, "printed": printed, "released": released}
"""Weights of all neighbours by name."""
