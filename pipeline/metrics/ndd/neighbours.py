"""Neighbouring words: those that two sentences share in order (NDD, section 2.2; NDD-03), and how far each is from a
difference (NDD-05).
"""

import numpy as np

from pipeline.metrics.ndd.model import IndexArray, Sentence


def align(first: Sentence, second: Sentence) -> IndexArray:
    """Align two sentences by their longest common subsequence: places in both, [k, 2], ascending.

    Of several longest subsequences one is fixed: first the common start and end, then from the left it skips words of
    the sentence that sorts first, as long as possible. So the result is the same for (A, B) and (B, A).
    """
    if tuple(second) < tuple(first):
        return align(second, first)[:, ::-1]
    start, limit = 0, min(len(first), len(second))
    while start < limit and first[start] == second[start]:
        start += 1
    end = 0
    while end < limit - start and first[-1 - end] == second[-1 - end]:
        end += 1
    middle = _align_middle(first[start : len(first) - end], second[start : len(second) - end])
    prefix = [(i, i) for i in range(start)]
    suffix = [(len(first) - i, len(second) - i) for i in range(end, 0, -1)]
    pairs = [*prefix, *((i + start, j + start) for i, j in middle), *suffix]
    return np.array(pairs, np.int64).reshape(-1, 2)


def _align_middle(first: Sentence, second: Sentence) -> list[tuple[int, int]]:
    longest = np.zeros((len(first) + 1, len(second) + 1), np.int64)  # of what begins at both places
    for i in range(len(first) - 1, -1, -1):
        for j in range(len(second) - 1, -1, -1):
            is_same = first[i] == second[j]
            longest[i, j] = longest[i + 1, j + 1] + 1 if is_same else max(longest[i + 1, j], longest[i, j + 1])
    pairs, i, j = [], 0, 0
    while i < len(first) and j < len(second):
        if first[i] == second[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif longest[i + 1, j] >= longest[i, j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def measure_gaps(places: IndexArray, lengths: tuple[int, int]) -> IndexArray:
    """Count the words between each neighbour and the nearest word, in either sentence, that is none: [k].

    Next to such a word it is 0, as the released code counts; |k - i| as printed in appendix C would be 1 more, which is
    a factor μ in every weight. Where all words are neighbours it is 0. Places are those of `align`.
    """
    distance = np.full(len(places), np.iinfo(np.int64).max)
    for side, length in enumerate(lengths):
        is_other = np.ones(length, bool)
        is_other[places[:, side]] = False
        if not is_other.any():
            continue
        side_places, other_places = places[:, side], np.flatnonzero(is_other)
        next_index = np.searchsorted(other_places, side_places)
        previous = other_places[np.clip(next_index - 1, 0, None)]
        following = other_places[np.clip(next_index, None, len(other_places) - 1)]
        gaps = np.minimum(np.abs(previous - side_places), np.abs(following - side_places))
        distance = np.minimum(distance, gaps - 1)
    return np.where(distance == np.iinfo(np.int64).max, 0, distance)
