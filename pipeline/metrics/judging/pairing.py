"""Which pairs to compare next: those whose outcome is least certain, each in an order that keeps the sides balanced."""

from collections.abc import Iterable

import numpy as np

from pipeline.metrics.resample import Floats

Pair = tuple[int, int]  # the item shown first, and the second


def draw_first_pairs(count: int, seed: int) -> list[Pair]:
    """Draw a random partner for each of `count` items, and compare each pair in both orders.

    The answers show whether the judge looks at the texts or at their places (`reliability`).
    """
    items = np.random.default_rng(seed).permutation(count).tolist()
    if count % 2 and count > 2:
        items.append(items[0])
    pairs = list(zip(items[::2], items[1::2], strict=False))
    return [pair for a, b in pairs for pair in ((a, b), (b, a))]


def choose_pairs(values: Floats, errors: Floats, compared: Iterable[Pair], count: int, seed: int) -> list[Pair]:
    """Choose up to `count` further pairs by Swiss rounds.

    For each round of n / 2 pairs all values are drawn from what is known of them, N(value, error); neighbours in the
    drawn order meet. So close items meet often, and uncertain ones meet many. The item that was first less often is
    first. No ordered pair is chosen twice, and no pair in both orders while there are others.
    """
    rng = np.random.default_rng(seed)
    used = set(compared)
    lead = [0] * len(values)  # how much more often an item was first than second
    for a, b in used:
        lead[a] += 1
        lead[b] -= 1
    new_pairs: list[Pair] = []
    while len(new_pairs) < count:
        order = np.argsort(values + errors * rng.standard_normal(len(values)), kind="stable").tolist()
        matched = _match(order, used, is_strict=True) or _match(order, used, is_strict=False)
        if not matched:
            break
        for a, b in matched:
            is_swapped = (a, b) in used or ((b, a) not in used and (lead[a], rng.random()) > (lead[b], 0.5))
            pair = (b, a) if is_swapped else (a, b)
            used.add(pair)
            lead[pair[0]] += 1
            lead[pair[1]] -= 1
            new_pairs.append(pair)
    return new_pairs[:count]


def _match(order: list[int], used: set[Pair], *, is_strict: bool) -> list[Pair]:
    """Match each item with the nearest after it that is free and not used up; strictly, in neither order."""
    free = dict.fromkeys(order)
    pairs = []
    for item in order:
        if item not in free:
            continue
        del free[item]
        for partner in free:  # in order
            is_used = ((item, partner) in used) + ((partner, item) in used)
            if is_used < (1 if is_strict else 2):
                del free[partner]
                pairs.append((item, partner))
                break
    return pairs
