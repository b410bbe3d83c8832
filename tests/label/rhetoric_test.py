"""Rare names of figures of speech become one category."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pipeline.label.rhetoric import OTHER, fold_rare


def test_49_is_rare_and_50_is_not() -> None:
    """A figure that appears 49 times is folded, one that appears 50 times is not (CSD-12)."""
    names, counts = fold_rare(pl.Series("rhetoric", ["反问"] * 50 + ["对比"] * 49))
    assert names.to_list() == ["反问"] * 50 + [OTHER] * 49
    assert counts.rows() == [("反问", 50, "反问"), ("对比", 49, OTHER)]
    assert names.name == "rhetoric"


def test_case_and_spaces_make_no_difference() -> None:
    """Spellings that differ by case or by spaces around them are counted together."""
    names, counts = fold_rare(pl.Series(["Irony", " irony", "IRONY\n", "pun"]), least=3)
    assert names.to_list() == ["irony", "irony", "irony", OTHER]
    assert counts.rows() == [("irony", 3, "irony"), ("pun", 1, OTHER)]


def test_no_name_stays_none() -> None:
    """Null stays null in its place; spaces alone are no name; a column of nulls is read."""
    names, counts = fold_rare(pl.Series([None, "pun", "  ", "", None]), least=1)
    assert names.to_list() == [None, "pun", None, None, None]
    assert counts.rows() == [("pun", 1, "pun")]
    assert fold_rare(pl.Series([None, None])).names.to_list() == [None, None]
    assert fold_rare(pl.Series([], dtype=pl.String)).counts.height == 0


@given(
    st.lists(st.none() | st.sampled_from(["pun", "Pun", "反问", "对比", "other", " "]), max_size=40), st.integers(0, 9)
)
def test_nothing_is_lost(given_names: list[str | None], least: int) -> None:
    """As many names as before in the same places; the counts add up; a name is kept or folded as a whole."""
    names, counts = fold_rare(pl.Series(given_names, dtype=pl.String), least)
    assert names.is_null().to_list() == [name is None or not name.strip() for name in given_names]
    assert counts["count"].sum() == names.drop_nulls().len()
    for name, count, category in counts.iter_rows():
        places = [n for n, told in enumerate(given_names) if told and told.strip().lower() == name]
        assert len(places) == count
        assert category == (name if count >= least else OTHER)
        assert {names[n] for n in places} == {category}
