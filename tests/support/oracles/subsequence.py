"""The longest common subsequence by the textbook's table, for tests."""

from collections.abc import Sequence


def measure_longest(first: Sequence[str], second: Sequence[str]) -> int:
    """Measure how many words it has."""
    above = [0] * (len(second) + 1)
    for word in first:
        row = [0]
        for place, other_word in enumerate(second):
            row.append(above[place] + 1 if word == other_word else max(above[place + 1], row[place]))
        above = row
    return above[-1]
