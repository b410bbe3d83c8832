"""Similar articles: the weights are scikit-learn's, the order is a plain sort's, the batch decides nothing."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from pipeline.errors import BadInput
from pipeline.models.commenting.relevance import build_index, find_nearest

ARTICLES = [
    ["雨", "下", "了", "一", "天", "，", "河", "涨", "了"], ["河", "边", "修", "了", "新", "路"],
    ["New", "road", "by", "the", "river", "river"], ["雨", "雨", "雨"], [],
    ["雨", "下", "了", "一", "天", "，", "河", "涨", "了"],
]  # fmt: skip
lists = st.lists(st.lists(st.sampled_from("abcdef"), max_size=5), min_size=1, max_size=8)


def make_series(texts: list[list[str]]) -> pl.Series:
    return pl.Series(texts, dtype=pl.List(pl.String))


def test_cosines_are_those_of_scikit_learn() -> None:
    """They are the products of TfidfVectorizer's rows over the same words, written with blanks (AAC-24)."""
    plain = TfidfVectorizer(token_pattern=r"\S+", lowercase=False, norm="l2")
    rows = plain.fit_transform([" ".join(text) for text in ARTICLES])
    texts = [["河", "涨", "了", "吗"], ["the", "New", "river"], ["new"]]
    expected = (plain.transform([" ".join(text) for text in texts]) @ rows.T).toarray()
    nearest = find_nearest(build_index(make_series(ARTICLES)), make_series(texts), len(ARTICLES))
    for row in range(len(texts)):
        by_place = np.zeros(len(ARTICLES))
        is_neighbour = nearest.places[row] >= 0
        by_place[nearest.places[row][is_neighbour]] = nearest.cosines[row][is_neighbour]
        assert by_place == pytest.approx(expected[row], abs=1e-6)


@settings(max_examples=15)
@given(lists, lists, st.integers(1, 9), st.integers(1, 4))
def test_order_is_that_of_a_plain_sort(articles: list[list[str]], texts: list[list[str]], k: int, batch: int) -> None:
    """The highest cosines come first, of equal ones the lower place, and the size of a batch changes nothing."""
    if not any(articles):
        return
    indexed = build_index(make_series(articles))
    nearest = find_nearest(indexed, make_series(texts), k, batch=batch)
    complete = find_nearest(indexed, make_series(texts), len(articles))
    for row in range(len(texts)):
        pairs = list(zip(-complete.cosines[row], complete.places[row], strict=True))
        neighbours = [pair for pair in pairs if pair[1] >= 0]
        assert neighbours == sorted(neighbours)
        assert {place for _, place in neighbours} == {
            place for place, text in enumerate(articles) if set(text) & set(texts[row])
        }
        expected = [place for _, place in neighbours[:k]]
        assert nearest.places[row].tolist() == expected + [-1] * (k - len(expected))
        assert nearest.cosines[row].tolist() == [-value for value, _ in neighbours[:k]] + [0.0] * (k - len(expected))


def test_equal_articles_are_ordered_by_place() -> None:
    """The same article, indexed twice, is found twice, the first one first, with a cosine of 1."""
    nearest = find_nearest(build_index(make_series(ARTICLES)), make_series([ARTICLES[5]]), 2)
    assert nearest.places.tolist() == [[0, 5]]
    assert nearest.cosines[0] == pytest.approx([1, 1])
    assert nearest.cosines.max() <= 1
    many = build_index(make_series([["a", "b"], ["a"]] * 2000))
    assert find_nearest(many, make_series([["a"]]), 5).places.tolist() == [[1, 3, 5, 7, 9]]


def test_what_cannot_be_indexed_or_found() -> None:
    """Articles without a word, and no neighbours at all; unknown words, also in another case, find nothing."""
    nearest = find_nearest(build_index(make_series(ARTICLES)), make_series([["海"], [], ["new"]]), 2)
    assert nearest.places.tolist() == [[-1, -1]] * 3
    assert not nearest.cosines.any()
    assert find_nearest(build_index(make_series(ARTICLES)), make_series([]), 2).places.shape == (0, 2)
    with pytest.raises(BadInput, match="expected at least one word"):
        build_index(make_series([[], []]))
    with pytest.raises(ValueError, match="expected k from 1"):
        find_nearest(build_index(make_series(ARTICLES)), make_series([["雨"]]), 0)
