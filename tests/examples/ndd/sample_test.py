"""The sample's compressions, similar pairs and trees: what whoever calculates with them may count on."""

from collections import Counter
from pathlib import Path

import jieba
import polars as pl
import pytest

import pipeline.sample
from pipeline.examples.ndd import compression
from pipeline.text import conllu
from pipeline.text.segment import UNIT
from tests.support.oracles.overlap_cases import measure_longest

FOLDER = Path(pipeline.sample.__file__).parent
LENGTHS = {"en": (12, 35), "zh": (7, 20)}  # words, marks among them
RATIOS = {"en": (0.42, 0.48), "zh": (0.62, 0.70)}  # mean part that is kept
HIGH = 0.8  # of the words of the shorter sentence (NDD, section 3)


@pytest.fixture(scope="module")
def compressions() -> pl.DataFrame:
    """Sentences with their compressions."""
    rows, dropped = compression.read(FOLDER / "compressions.jsonl")
    assert dropped.is_empty()
    return rows


@pytest.fixture(scope="module")
def similar() -> pl.DataFrame:
    """Pairs of sentences with their grade."""
    return pl.read_ndjson(FOLDER / "similar.jsonl")


@pytest.fixture(scope="module")
def trees() -> dict[str, list[list[str]]]:
    """The ten columns of each word of each tree, by item; ranges of words are left out."""
    rows_by_item = {}
    for block in (FOLDER / "trees.conllu").read_text(encoding="utf-8").strip().split("\n\n"):
        name, _, *rows = block.split("\n")
        words = [row.split("\t") for row in rows]
        rows_by_item[name.removeprefix("# sent_id = ")] = [word for word in words if word[0].isdigit()]
    return rows_by_item


def cut(text: str, lang: str) -> list[str]:
    """Split a text into words, jieba's in Chinese."""
    return list(jieba.cut(text)) if lang == "zh" else UNIT.findall(text)


def test_compressions_are_as_many_as_stated(compressions: pl.DataFrame) -> None:
    """Sixty English and forty Chinese sentences, half of them for validation and half for testing, none twice."""
    assert Counter(compressions.select("lang", "split").iter_rows()) == {
        ("en", "validation"): 30, ("en", "test"): 30, ("zh", "validation"): 20, ("zh", "test"): 20,
    }  # fmt: skip
    assert compressions["words"].list.join(" ").n_unique() == compressions["item_id"].n_unique() == 100


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_lengths_and_ratios_are_in_the_stated_ranges(compressions: pl.DataFrame, lang: str) -> None:
    """Each compression drops words and keeps two or more; the mean ratio is like that of the published data."""
    counts = compressions.filter(lang=lang).select(
        words=pl.col("words").list.len(), kept=pl.col("kept").list.eval(pl.element().cast(pl.Int64)).list.sum()
    )
    least, most = LENGTHS[lang]
    assert counts["words"].is_between(least, most).all()
    assert counts.select(((pl.col("kept") >= 2) & (pl.col("kept") < pl.col("words"))).all()).item()
    mean = counts.select((pl.col("kept") / pl.col("words")).mean()).item()
    assert RATIOS[lang][0] <= mean <= RATIOS[lang][1]


def test_chinese_words_are_those_of_jieba(compressions: pl.DataFrame) -> None:
    """Another cut of the same text would not fit what is kept."""
    for words in compressions.filter(lang="zh")["words"]:
        assert list(jieba.cut("".join(words))) == words.to_list()


def test_compressions_end_like_sentences(compressions: pl.DataFrame) -> None:
    """Each keeps the mark at its end, and no comma stands at its beginning or before that mark."""
    for words in compressions["compression"].to_list():
        assert words[-1] in {".", "。", "？", "”"}
        assert not {words[0], words[-2]} & {",", "，"}


def test_trees_are_of_the_sentences(compressions: pl.DataFrame, trees: dict[str, list[list[str]]]) -> None:
    """Forty or more short English sentences have a tree with the same words, which the reader takes without errors."""
    words = dict(compressions.filter(lang="en").select("item_id", "words").iter_rows())
    assert len(trees) >= 40
    for name, rows in trees.items():
        assert [row[1] for row in rows] == words[name]
        assert len(rows) <= 20
    forms = [[word.form for word in sentence.words] for sentence in conllu.read(FOLDER / "trees.conllu")]
    assert forms == [words[name] for name in trees]


def test_most_compressions_drop_whole_subtrees(compressions: pl.DataFrame, trees: dict[str, list[list[str]]]) -> None:
    """What keeps a word keeps its head, so that a search among subtrees can reach most of them (NDD-21)."""
    masks = dict(compressions.select("item_id", "kept").iter_rows())
    is_reached = []
    for name, rows in trees.items():
        heads = [int(row[6]) for row, stays in zip(rows, masks[name], strict=True) if stays and row[6] != "0"]
        is_reached.append(all(masks[name][head - 1] for head in heads))
    assert sum(is_reached) >= 0.8 * len(is_reached)


@pytest.mark.parametrize(("lang", "count"), [("en", 80), ("zh", 40)])
def test_similarities_are_spread(similar: pl.DataFrame, lang: str, count: int) -> None:
    """Grades go from 0 to 5 in halves, and each whole grade, with its half, has an eighth of the pairs or more."""
    grades = similar.filter(lang=lang)["similarity"]
    assert len(grades) == count
    assert set((2 * grades).to_list()) <= set(range(11))
    assert min(Counter(grades.cast(pl.Int64)).values()) >= count / 8
    assert sorted(set(grades.cast(pl.Int64))) == [*range(6)]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_half_of_the_pairs_overlap_highly(similar: pl.DataFrame, lang: str) -> None:
    """At least half share four fifths of the words of the shorter one, and these have grades of every sort above 0."""
    pairs = similar.filter(lang=lang).select("one", "other", "similarity").rows()
    assert all(first != second for first, second, _ in pairs)
    assert len({frozenset(pair[:2]) for pair in pairs}) == len(pairs)
    high = []
    for first, second, grade in pairs:
        words = [cut(first, lang), cut(second, lang)]
        if measure_longest(*words) >= HIGH * min(map(len, words)):
            high.append(int(grade))
    assert len(high) >= len(pairs) / 2
    assert all(Counter(high)[grade] >= 5 for grade in range(1, 6))
