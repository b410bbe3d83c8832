"""The wrong options of cloze items: who may answer what, which words are left out, which are taken."""

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.examples.recam import choices
from pipeline.examples.recam import items as cloze
from pipeline.text import wordnet
from pipeline.text.wordnet import Pools

LEMMAS = {"hopes": "hope", "hoping": "hope", "wishes": "wish"}


@pytest.fixture(autouse=True)
def without_wordnet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lemmas of a short list."""
    monkeypatch.setattr(wordnet, "lemmatize", lambda word, _: LEMMAS.get(word, word))


def pools(word: str) -> Pools:
    """Hope and wish are synonyms."""
    near = {"hope": {"wish"}, "wish": {"hope"}}.get(word, set())
    return Pools(frozenset(near), frozenset())


def items(*answers: str) -> pl.DataFrame:
    """Items with these answers, each with its own article."""
    rows = [(f"i{n}", f"Article {n}.", "She has @placeholder.", answer) for n, answer in enumerate(answers)]
    return pl.DataFrame(rows, schema=["item_id", "article", "question", "answer"], orient="row")


def named(*readers: str, item: str = "i0") -> pl.DataFrame:
    """What readers answer, best first."""
    rows = [(item, word, rank) for reader in readers for rank, word in enumerate(reader.split(), 1)]
    return pl.DataFrame(rows, schema=["item_id", "word", "rank"], orient="row")


def test_the_four_most_frequent() -> None:
    """Words that more readers name go first, then those ranked better, then the alphabet (REC-16)."""
    found = choices.choose(items("Hope"), named("time rain fear", "rain time dust", "rain idea area"), pools=pools)
    (row,) = found.items.to_dicts()
    # rain 3, time 2, then once: area and idea by rank 3 and 2, fear 3, dust 3
    assert set(row["options"]) == {"Hope", "rain", "time", "idea", "area"}
    assert row["options"][row["label"]] == "Hope"
    told = dict(found.candidates.select("word", "reason").iter_rows())
    assert told == {
        "rain": None,
        "time": None,
        "idea": None,
        "area": None,
        "dust": "less_frequent",
        "fear": "less_frequent",
    }


def test_what_would_be_right_as_well() -> None:
    """The gold word, its forms and synonyms and what is nearer than 0.85 are left out with the reason; 0.85 stays."""
    place = {"hope": np.array([1.0, 0.0]), "trust": np.array([0.9, np.sqrt(0.19)]), "time": np.array([0.0, 1.0])}
    found = choices.choose(
        items("hopes"), named("Hopes hoping wishes trust time rain dust idea"),
        lambda words: np.stack([place.get(LEMMAS.get(word, word), np.zeros(2)) for word in words]), pools,
    )  # fmt: skip
    told = dict(found.candidates.select("word", "reason").iter_rows())
    assert told == {
        "hopes": "gold", "hoping": "form_of_gold", "wishes": "synonym_of_gold", "trust": "similar_to_gold",
        "time": None, "rain": None, "dust": None, "idea": None,
    }  # fmt: skip
    at = {"hope": np.array([1.0, 0.0]), "trust": np.array([0.85, np.sqrt(1 - 0.85**2)])}
    found = choices.choose(
        items("hope"),
        named("trust"),
        lambda words: np.stack([at[word] for word in words]),
        pools,
        threshold=0.85 + 1e-9,
    )
    assert found.candidates["reason"].to_list() == [None]


def test_too_few_are_dropped() -> None:
    """An item with fewer than four words left, or none at all, is dropped and counted."""
    found = choices.choose(items("hope", "time"), named("rain dust idea wish"), pools=pools)
    assert found.items.is_empty()
    assert found.dropped.rows() == [("too_few_choices", "i0"), ("too_few_choices", "i1")]


def test_the_place_of_the_right_one_tells_nothing() -> None:
    """Over many items the gold word stands in each place about as often, and always in the same for the same item."""
    every = items(*["hope"] * 500)
    said = pl.concat([named("rain dust idea time", item=item) for item in every["item_id"]])
    found = choices.choose(every, said, pools=pools).items
    counts = Counter(found["label"].to_list())
    assert all(70 <= counts[place] <= 130 for place in range(cloze.OPTIONS))
    assert choices.choose(every.reverse(), said, pools=pools).items.sort("item_id").equals(found.sort("item_id"))
    assert not choices.choose(every, said, pools=pools, seed=7).items["label"].equals(found["label"])


@given(st.lists(st.integers(0, 12), min_size=1, max_size=60), st.integers(0, 3))
def test_no_article_is_in_two_folds(articles: list[int], seed: int) -> None:
    """Each item is in one fold, all of an article in the same, and folds differ by one article at most (REC-15)."""
    frame = pl.DataFrame({"article": [f"Article  {n}" if i % 2 else f"article {n} " for i, n in enumerate(articles)]})
    found = choices.assign_folds(frame, seed=seed)
    assert set(found) <= set(range(4))
    by = {n: {fold for fold, article in zip(found, articles, strict=True) if article == n} for n in articles}
    assert {len(each) for each in by.values()} == {1}
    sizes = Counter(fold for (fold,) in by.values())
    assert max(sizes.values()) - min(sizes.get(fold, 0) for fold in range(4)) <= 1
