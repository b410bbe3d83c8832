"""The sample's compressions and trees: what whoever calculates with them may count on."""

from collections import Counter
from pathlib import Path

import jieba
import polars as pl
import pytest

import pipeline.sample
from pipeline.examples.ndd import compression
from pipeline.text.trees import read_sentences

FOLDER = Path(pipeline.sample.__file__).parent


@pytest.fixture(scope="module")
def compressions() -> pl.DataFrame:
    rows, dropped = compression.read(FOLDER / "compressions.jsonl")
    assert dropped.is_empty()
    return rows


@pytest.fixture(scope="module")
def trees() -> dict[str, list[list[str]]]:
    """The ten columns of each word of each tree, by item; ranges of words are left out."""
    rows_by_item = {}
    for block in (FOLDER / "trees.conllu").read_text(encoding="utf-8").strip().split("\n\n"):
        name, _, *rows = block.split("\n")
        words = [row.split("\t") for row in rows]
        rows_by_item[name.removeprefix("# sent_id = ")] = [word for word in words if word[0].isdigit()]
    return rows_by_item


def test_compressions_are_as_many_as_stated(compressions: pl.DataFrame) -> None:
    """Sixty English, forty Chinese sentences, half for testing, none twice; Chinese words are those of jieba."""
    assert Counter(compressions.select("lang", "split").iter_rows()) == {
        ("en", "validation"): 30, ("en", "test"): 30, ("zh", "validation"): 20, ("zh", "test"): 20,
    }  # fmt: skip
    assert compressions["words"].list.join(" ").n_unique() == compressions["item_id"].n_unique() == 100
    for words in compressions.filter(lang="zh")["words"]:
        assert list(jieba.cut("".join(words))) == words.to_list()


def test_trees_are_of_the_sentences(compressions: pl.DataFrame, trees: dict[str, list[list[str]]]) -> None:
    """Forty or more short English sentences have a tree with the same words, which the reader takes without errors."""
    words = dict(compressions.filter(lang="en").select("item_id", "words").iter_rows())
    assert len(trees) >= 40
    for name, rows in trees.items():
        assert [row[1] for row in rows] == words[name]
        assert len(rows) <= 20
    forms = [[word.form for word in sentence.words] for sentence in read_sentences(FOLDER / "trees.conllu")]
    assert forms == [words[name] for name in trees]
