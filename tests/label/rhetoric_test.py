"""Rare names of figures of speech become one category."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pipeline.label.stages import OTHER, fold_rare


def test_49_is_rare_and_50_is_not() -> None:
    """A figure named 49 times is folded, one of 50 is not (CSD-12), whatever its case; null stays null."""
    names = fold_rare(pl.Series("rhetoric", ["反问"] * 50 + ["对比"] * 49))
    assert names.to_list() == ["反问"] * 50 + [OTHER] * 49
    assert names.name == "rhetoric"
    names = fold_rare(pl.Series(["Irony", " irony", "IRONY\n", "pun", None, "  ", ""]), least=3)
    assert names.to_list() == ["irony", "irony", "irony", OTHER, None, None, None]
    assert fold_rare(pl.Series([None, None])).to_list() == [None, None]


@given(st.lists(st.none() | st.sampled_from(["pun", "Pun", "反问", "other", " "]), max_size=40), st.integers(0, 9))
def test_nothing_is_lost(values: list[str | None], least: int) -> None:
    """As many names as before in the same places; a name is unchanged or folded as a whole."""
    names = fold_rare(pl.Series(values, dtype=pl.String), least)
    stripped = [value.strip().lower() or None if value else None for value in values]
    expected = [name if name is None or stripped.count(name) >= least else OTHER for name in stripped]
    assert names.to_list() == expected
