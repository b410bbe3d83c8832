"""Neighbouring words: those that two sentences share in order (NDD, section 2.2; NDD-03), and how far each is from a
difference (NDD-05).
"""

import numpy as np

from pipeline.metrics.ndd.model import IndexArray, Sentence


def aligned(one: Sentence, other: Sentence) -> IndexArray:
    """Places of the words of the longest common subsequence in both sentences: [k, 2], ascending.

    A word is matched by where it stands, not by what it is, so a word that is said twice is two neighbours. Of several
    longest ones it is that which takes what both begin and end with and then, from the left, passes over words of the
    sentence that comes first in the order of text, as long as it can; so the words of A and B are the words of B and A.
    """
    if tuple(other) < tuple(one):
        return aligned(other, one)[:, ::-1]
    start, most = 0, min(len(one), len(other))
    while start < most and one[start] == other[start]:
        start += 1
    end = 0
    while end < most - start and one[-1 - end] == other[-1 - end]:
        end += 1
    inside = _within(one[start : len(one) - end], other[start : len(other) - end])
    before = [(at, at) for at in range(start)]
    behind = [(len(one) - at, len(other) - at) for at in range(end, 0, -1)]
    found = [*before, *((i + start, j + start) for i, j in inside), *behind]
    return np.array(found, np.int64).reshape(-1, 2)


def _within(one: Sentence, other: Sentence) -> list[tuple[int, int]]:
    longest = np.zeros((len(one) + 1, len(other) + 1), np.int64)  # of what begins at both places
    for i in range(len(one) - 1, -1, -1):
        for j in range(len(other) - 1, -1, -1):
            is_same = one[i] == other[j]
            longest[i, j] = longest[i + 1, j + 1] + 1 if is_same else max(longest[i + 1, j], longest[i, j + 1])
    found, i, j = [], 0, 0
    while i < len(one) and j < len(other):
        if one[i] == other[j]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif longest[i + 1, j] >= longest[i, j + 1]:
            i += 1
        else:
            j += 1
    return found


def apart(places: IndexArray, lengths: tuple[int, int]) -> IndexArray:
    """How many words stand between each neighbour and the nearest word that is no neighbour, in either sentence: [k].

    Next to such a word it is 0, as the released code counts; |k - i| as printed in appendix C would be 1 more, which is
    a factor μ in every weight. Where all words are neighbours it is 0.

    Args:
        places: of the neighbours in both sentences, [k, 2].
        lengths: of the sentences, in words.
    """
    found = np.full(len(places), np.iinfo(np.int64).max)
    for side, length in enumerate(lengths):
        is_other = np.ones(length, bool)
        is_other[places[:, side]] = False
        if not is_other.any():
            continue
        at, others = places[:, side], np.flatnonzero(is_other)
        right = np.searchsorted(others, at)
        gaps = np.stack([
            np.abs(others[np.clip(right - 1, 0, None)] - at), np.abs(others[np.clip(right, None, len(others) - 1)] - at)
        ])  # fmt: skip
        found = np.minimum(found, gaps.min(axis=0) - 1)
    return np.where(found == np.iinfo(np.int64).max, 0, found)
