"""What readers read: words as rows of a table, questions cut at their placeholder, candidates and their glosses."""

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.examples.recam import items as cloze
from pipeline.models.word_vectors import WordVectors
from pipeline.training.recam import reading
from pipeline.training.recam.reading import Lexicon, Recipe

VECTORS = WordVectors(["the", "Sea", "cold", "sea"], np.diag([1.0, 2.0, 3.0, 4.0]).astype(np.float32))


def make_items(*pairs: tuple[str, str]) -> pl.DataFrame:
    options = ["cold", "Warm ", "odd", "calm", "wet"]
    rows = [(f"i{row}", article, question, options, 1) for row, (article, question) in enumerate(pairs)]
    return pl.DataFrame(rows, schema=cloze.SCHEMA, orient="row")


def test_an_article_is_cut_once() -> None:
    """Items of an article share its words, the first of which are kept; of a question those by the placeholder."""
    items = make_items(("The cold sea", "a @placeholder sea"), ("The cold sea", "sea@placeholder"))
    texts = reading.tokenize(items, Recipe())
    assert [[texts.words[i] for i in ids] for ids in texts.articles] == [["The", "cold", "sea"]]
    assert texts.article_of.tolist() == [0, 0]
    questions = [["@" if i < 0 else texts.words[i] for i in ids] for ids in texts.questions]
    assert questions == [["a", "@", "sea"], ["sea", "@"]]
    texts = reading.tokenize(make_items(("one two three", "one two @placeholder three one")), Recipe(longest=1))
    assert [len(texts.articles[0]), texts.words[texts.articles[0][0]]] == [1, "one"]
    assert ["@" if i < 0 else texts.words[i] for i in texts.questions[0]] == ["two", "@", "three"]
    with pytest.raises(BadInput, match=r"item i1: field 'question' should hold @placeholder, found 'nothing'"):
        reading.tokenize(make_items(("one", "@placeholder"), ("one", "nothing")), Recipe())


def test_rows_of_words() -> None:
    """The word as written goes before its small letters, without a vector to row 1; candidates are in small letters."""
    lexicon = Lexicon(VECTORS.words, 3)
    assert lexicon.rows(["The", "Sea", "sea", "SEA", "odd"]).tolist() == [3, 4, 6, 6, 1]
    assert lexicon.rows([]).tolist() == [1]
    row = make_items(("the", "@placeholder"))
    assert reading.list_options(row, "options") == [["cold", "warm", "odd", "calm", "wet"]]
    assert reading.list_options(row, "vocabulary") == [["warm"]]
    assert reading.list_options(row.with_columns(answer=pl.lit("Hot")), "vocabulary") == [["hot"]]


@given(st.sets(st.sampled_from(["THE", "Sea", "sea", "Cold", "odd"])), st.integers(0, 5))
def test_words_that_are_kept(needed: set[str], commonest: int) -> None:
    """The commonest and those needed, in the order of the vectors and sized to about 1; row 0 is zeros."""
    lexicon, table = reading.make_table(needed, VECTORS, 300, 3, torch.Generator().manual_seed(1), commonest)
    forms = needed | {word.lower() for word in needed}
    rows = [row for row, word in enumerate(VECTORS.words) if row < commonest or word in forms]
    assert lexicon.words == [VECTORS.words[row] for row in rows]
    assert table.shape == (3 + len(rows), 4)
    assert not table[0].any()
    if rows:
        assert table[3:].square().mean().item() == pytest.approx(1.0)
        assert torch.equal(table[3:] != 0, torch.from_numpy(VECTORS.vectors[rows] != 0))


def test_long_vectors_keep_what_tells_words_apart() -> None:
    """Vectors of 9 numbers that lie in a plane are as far apart with 2; longest first, and the mean at 0."""
    rng = np.random.default_rng(3)
    plane = rng.normal(size=(20, 2)) * [5.0, 1.0]
    long = WordVectors([f"w{i}" for i in range(20)], (plane @ rng.normal(size=(2, 9)) + 7).astype(np.float32))
    lexicon, table = reading.make_table(long.words, long, 2, 2, torch.Generator().manual_seed(1))
    assert lexicon.words == long.words
    assert table.shape == (22, 2)
    before, after = (torch.cdist(rows, rows) for rows in (torch.from_numpy(long.vectors), table[2:]))
    assert torch.allclose(after, before * (after.max() / before.max()), atol=1e-4)
    assert table[2:].mean(dim=0).abs().max() < 1e-5
    assert table[2:, 0].var() > table[2:, 1].var()
    assert reading.make_table([], long, 2, 2, torch.Generator().manual_seed(1))[1].shape == (2, 2)


def test_inputs_of_batches() -> None:
    """Rows of the table by item, that of the placeholder 2, where it stands, and an article without words unknown."""
    items = make_items(("Cold the", "sea @placeholder"), ("", "@placeholder odd"))
    texts, lexicon = reading.tokenize(items, Recipe()), Lexicon(VECTORS.words, 3)
    options = np.arange(10).reshape(2, 5)
    inputs = reading.make_inputs(items, texts, lexicon, options, np.array([1, 1]))
    assert [ids.tolist() for ids in inputs.articles] == [[5, 3], [1]]
    assert [ids.tolist() for ids in inputs.questions] == [[6, 2], [2, 1]]
    assert inputs.place.tolist() == [1, 0]
    assert inputs.lengths().tolist() == [2, 1]


def test_a_word_without_gloss_is_its_own() -> None:
    """Glosses end at the longest; a reader without glosses gets none."""
    glosses = {"sea": ["NOUN", "much", "water"], "odd": []}
    gloss_of = reading.select_glosses(["sea", "odd", "cold"], glosses, Recipe(has_gloss=True, longest_gloss=2))
    assert gloss_of == {"sea": ["NOUN", "much"], "odd": ["odd"], "cold": ["cold"]}
    assert reading.select_glosses(["sea"], glosses, Recipe()) == {}
