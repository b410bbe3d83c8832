"""Similar articles: the weights are scikit-learn's, the order is a plain sort's, the batch decides nothing."""

from math import log, sqrt
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from sklearn.feature_extraction.text import TfidfVectorizer

from pipeline.errors import BadInput
from pipeline.models.commenting.similar_articles import index, nearest, of_tensors

ARTICLES = [
    ["雨", "下", "了", "一", "天", "，", "河", "涨", "了"],
    ["河", "边", "修", "了", "新", "路"],
    ["New", "road", "by", "the", "river", "river"],
    ["雨", "雨", "雨"],
    [],
    ["雨", "下", "了", "一", "天", "，", "河", "涨", "了"],
]
lists = st.lists(st.lists(st.sampled_from("abcdef"), max_size=5), min_size=1, max_size=8)


def words(texts: list[list[str]]) -> pl.Series:
    """Texts as `index` takes them."""
    return pl.Series(texts, dtype=pl.List(pl.String))


def test_cosines_are_those_of_scikit_learn() -> None:
    """They are the products of TfidfVectorizer's rows over the same words, written with blanks (AAC-24)."""
    plain = TfidfVectorizer(token_pattern=r"\S+", lowercase=False, norm="l2")
    rows = plain.fit_transform([" ".join(text) for text in ARTICLES])
    asked = [["河", "涨", "了", "吗"], ["the", "New", "river"], ["new"]]
    expected = (plain.transform([" ".join(text) for text in asked]) @ rows.T).toarray()
    found = nearest(index(words(ARTICLES)), words(asked), len(ARTICLES))
    for row in range(len(asked)):
        by_place = np.zeros(len(ARTICLES))
        there = found.places[row] >= 0
        by_place[found.places[row][there]] = found.cosines[row][there]
        assert by_place == pytest.approx(expected[row], abs=1e-6)


def test_a_cosine_by_hand() -> None:
    """Of two articles "a b" and "b c": ln(3/2) + 1 is the weight of a, 1 that of b, which both have."""
    found = nearest(index(words([["a", "b"], ["b", "c"]])), words([["a"], ["b"]]), 2)
    rare = log(3 / 2) + 1
    assert found.places.tolist() == [[0, -1], [0, 1]]
    assert found.cosines[0] == pytest.approx([rare / sqrt(rare**2 + 1), 0])
    assert found.cosines[1] == pytest.approx([1 / sqrt(rare**2 + 1)] * 2)


@settings(max_examples=50)
@given(lists, lists, st.integers(1, 9), st.integers(1, 4))
def test_order_is_that_of_a_plain_sort(known: list[list[str]], asked: list[list[str]], k: int, batch: int) -> None:
    """The highest cosines come first, of equal ones the lower place, and the size of a batch changes nothing."""
    if not any(known):
        return
    indexed = index(words(known))
    found = nearest(indexed, words(asked), k, batch=batch)
    every = nearest(indexed, words(asked), len(known))
    for row in range(len(asked)):
        pairs = list(zip(-every.cosines[row], every.places[row], strict=True))
        there = [pair for pair in pairs if pair[1] >= 0]
        assert there == sorted(there)
        assert {place for _, place in there} == {
            place for place, text in enumerate(known) if set(text) & set(asked[row])
        }
        expected = [place for _, place in there[:k]]
        assert found.places[row].tolist() == expected + [-1] * (k - len(expected))
        assert found.cosines[row].tolist() == [-value for value, _ in there[:k]] + [0.0] * (k - len(expected))


def test_equal_articles_are_ordered_by_place() -> None:
    """The same article, indexed twice, is found twice, the first one first, with a cosine of 1."""
    found = nearest(index(words(ARTICLES)), words([ARTICLES[5]]), 2)
    assert found.places.tolist() == [[0, 5]]
    assert found.cosines[0] == pytest.approx([1, 1])
    assert found.cosines.max() <= 1
    many = index(words([["a", "b"], ["a"]] * 2000))
    assert nearest(many, words([["a"]]), 5).places.tolist() == [[1, 3, 5, 7, 9]]


def test_an_article_is_not_its_own_neighbour() -> None:
    """The place named in `but` is left out, and the others move up; -1 leaves out none."""
    indexed, asked = index(words(ARTICLES)), words([ARTICLES[0]] * 2)
    found = nearest(indexed, asked, 3, but=[0, -1], batch=1)
    every = nearest(indexed, asked, 4)
    assert found.places[0].tolist() == every.places[0, 1:].tolist()
    assert found.places[1].tolist() == every.places[1, :3].tolist()


def test_no_word_in_common_is_no_neighbour() -> None:
    """Unknown words, and no words, find nothing; words in another case are others."""
    found = nearest(index(words(ARTICLES)), words([["海"], [], ["new"]]), 2)
    assert found.places.tolist() == [[-1, -1]] * 3
    assert not found.cosines.any()
    assert nearest(index(words(ARTICLES)), words([]), 2).places.shape == (0, 2)


def test_a_kept_index_finds_the_same(tmp_path: Path) -> None:
    """Words and tensors are the whole index."""
    indexed = index(words(ARTICLES))
    save_file(indexed.tensors, tmp_path / "index.safetensors")
    again = of_tensors(indexed.words, load_file(tmp_path / "index.safetensors"))
    one, other = (nearest(known, words(ARTICLES), 3) for known in (indexed, again))
    assert np.array_equal(one.places, other.places)
    assert np.array_equal(one.cosines, other.cosines)


def test_what_cannot_be_asked() -> None:
    """Articles without a word, no neighbours at all, and places for other texts."""
    with pytest.raises(BadInput, match="expected at least one word"):
        index(words([[], []]))
    with pytest.raises(ValueError, match="expected k from 1"):
        nearest(index(words(ARTICLES)), words([["雨"]]), 0)
    with pytest.raises(ValueError, match="a place for each of 1 texts"):
        nearest(index(words(ARTICLES)), words([["雨"]]), 1, but=[0, 1])
