"""Random trees."""

from hypothesis import strategies as st


@st.composite
def heads(draw: st.DrawFn, largest: int = 12) -> list[int]:
    """A random tree, mostly not projective: each word but the first hangs on an earlier one, words then shuffled."""
    size = draw(st.integers(1, largest))
    above = [-1, *(draw(st.integers(0, word - 1)) for word in range(1, size))]
    place = draw(st.permutations(range(size)))
    tree = [0] * size
    for word, head in enumerate(above):
        tree[place[word]] = place[head] if head >= 0 else -1
    return tree
