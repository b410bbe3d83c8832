"""The wrong options of cloze items: who may answer what, which words are left out, which are taken."""

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.examples.recam import building
from pipeline.examples.recam import items as cloze
from pipeline.text import wordnet
from pipeline.text.wordnet import Pools

LEMMAS = {"hopes": "hope", "hoping": "hope", "wishes": "wish"}


@pytest.fixture(autouse=True)
def without_wordnet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lemmas of a short list."""
    monkeypatch.setattr(wordnet, "lemmatize", lambda word, _: LEMMAS.get(word, word))
    monkeypatch.setattr(wordnet, "find_pools", find_pools)


def find_pools(word: str) -> Pools:
    """Hope and wish are synonyms."""
    near = {"hope": {"wish"}, "wish": {"hope"}}.get(word, set())
    return Pools(frozenset(near), frozenset())


def make_items(*answers: str) -> pl.DataFrame:
    """Items with these answers, each with its own article."""
    rows = [(f"i{n}", f"Article {n}.", "She has @placeholder.", answer) for n, answer in enumerate(answers)]
    return pl.DataFrame(rows, schema=["item_id", "article", "question", "answer"], orient="row")


def name_words(*readers: str, item: str = "i0") -> pl.DataFrame:
    """What readers answer, best first."""
    rows = [(item, word, rank) for reader in readers for rank, word in enumerate(reader.split(), 1)]
    return pl.DataFrame(rows, schema=["item_id", "word", "rank"], orient="row")


def test_the_four_most_frequent() -> None:
    """Words that more readers name go first, then those ranked better, then the alphabet (REC-16).

    An item with fewer than four words left, or none at all, is dropped and counted.
    """
    words = name_words("time rain fear", "rain time dust", "rain idea area")
    few = name_words("rain dust idea wish", item="i1")
    result = building.choose_options(make_items("Hope", "hope", "time"), pl.concat([words, few]))
    assert result.dropped.rows() == [("too_few_choices", "i1"), ("too_few_choices", "i2")]
    (row,) = result.rows.to_dicts()
    # rain 3, time 2, then once: area and idea by rank 3 and 2, fear 3, dust 3
    assert set(row["options"]) == {"Hope", "rain", "time", "idea", "area"}
    assert row["options"][row["label"]] == "Hope"


def test_what_would_be_right_as_well() -> None:
    """The gold word, its forms and synonyms and what is nearer than 0.85 are left out; what is as near stays."""
    vector_of = {"hope": [1.0, 0.0], "trust": [0.9, np.sqrt(0.19)], "time": [0.0, 1.0]}

    def choose(threshold: float = building.SIMILAR) -> set[str]:
        vectors = lambda words: np.array([vector_of.get(LEMMAS.get(word, word), [0.0, 0.0]) for word in words])  # noqa: E731
        words = name_words("Hopes hoping wishes trust time rain dust idea")
        return {*building.choose_options(make_items("hopes"), words, vectors, threshold).rows["options"][0]}

    assert choose() == {"hopes", "time", "rain", "dust", "idea"}
    vector_of["trust"] = [0.85, np.sqrt(1 - 0.85**2)]
    assert choose(0.85 + 1e-9) == {"hopes", "trust", "time", "rain", "dust"}


def test_the_place_of_the_right_one_tells_nothing() -> None:
    """Over many items the gold word stands in each place about as often, and always in the same for the same item."""
    items = make_items(*["hope"] * 500)
    words = pl.concat([name_words("rain dust idea time", item=item) for item in items["item_id"]])
    rows = building.choose_options(items, words).rows
    counts = Counter(rows["label"].to_list())
    assert all(70 <= counts[place] <= 130 for place in range(cloze.OPTIONS))
    assert building.choose_options(items.reverse(), words).rows.sort("item_id").equals(rows.sort("item_id"))
    assert not building.choose_options(items, words, seed=7).rows["label"].equals(rows["label"])


@given(st.lists(st.integers(0, 12), min_size=1, max_size=60), st.integers(0, 3))
def test_no_article_is_in_two_folds(articles: list[int], seed: int) -> None:
    """Each item is in one fold, all of an article in the same, and folds differ by one article at most (REC-15)."""
    frame = pl.DataFrame({"article": [f"Article  {n}" if i % 2 else f"article {n} " for i, n in enumerate(articles)]})
    folds = building.assign_folds(frame, seed=seed)
    assert set(folds) <= set(range(4))
    folds_by_article = {n: {fold for fold, m in zip(folds, articles, strict=True) if m == n} for n in articles}
    assert all(len(article_folds) == 1 for article_folds in folds_by_article.values())
    sizes = Counter(fold for (fold,) in folds_by_article.values())
    assert max(sizes.values()) - min(sizes.get(fold, 0) for fold in range(4)) <= 1
