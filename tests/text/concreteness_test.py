"""Lists of concreteness ratings: read, scaled, refused with file and line; what is an imperceptible word."""

import re
from pathlib import Path

import polars as pl
import pytest

from pipeline.errors import BadInput
from pipeline.text.concreteness import CONTENT_POS, LIST, load_embedded, read
from pipeline.text.trees import UPOS

# in the layout of MRC's lists; the ratings are ours, the least and the greatest those of section 3.2
MRC = "WORD,FAM,CONC,IMAG\nhence,5,1.58,2\nlamp,5,6.7,\nrule,,3.372,\nodd,4,,3\n"
RAW = "word,fam,conc,imag\nhence,500,158.0,2\nlamp,500,670,\nrule,,337.2,\nodd,400,,3\n"


def file_of(folder: Path, text: str, name: str = "rated.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("text", [MRC, RAW], ids=["hundredths", "raw"])
def test_mrc_is_scaled_as_in_the_paper(tmp_path: Path, text: str) -> None:
    """158 becomes 0 and 670 becomes 1, and 337.2 is 0.35, on either of the scales MRC comes in (REC-04)."""
    found = read(file_of(tmp_path, text))
    assert found.rows["word"].to_list() == ["hence", "lamp", "rule"]
    assert found.rows["rating"].to_list() == [158, 670, 337.2]
    assert found.rows["score"].to_list() == pytest.approx([0, 1, 0.35])
    assert (found.low, found.high) == (158, 670)
    assert found.dropped.rows() == [(5, "odd", "no_rating")]


def test_any_list_with_a_stated_scale(tmp_path: Path) -> None:
    """Tabs, comments before the header, another column's name, empty lines, a mark at the beginning: least and greatest
    of the list become 0 and 1.
    """
    text = "\ufeff# ours\r\n# more\r\nId\tWord\tMean\r\n\r\n1\tIce cream\t5\r\n2\tLoyal\t2\r\n3\t#\t1.5\r\n"
    found = read(file_of(tmp_path, text, "rated.tsv"), "mean", (1, 5))
    assert found.rows.select("word", "rating").rows() == [("ice cream", 5.0), ("loyal", 2.0), ("#", 1.5)]
    assert found.rows["score"].to_list() == pytest.approx([1, 0.5 / 3.5, 0])
    assert (found.low, found.high) == (1.5, 5)


def test_a_word_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    """Case tells no words apart; the first of two rows that agree is kept; what is dropped has its reason."""
    found = read(file_of(tmp_path, "word,rating\nMarch,3\nice,5\nmarch ,3.0\nice,\n ,4\n"), bounds=(1, 5))
    assert found.rows["word"].to_list() == ["march", "ice"]
    assert found.dropped.rows() == [(4, "march", "duplicate"), (5, "ice", "no_rating"), (6, "", "no_word")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("word,conc\na,2\nb,7.5\n", "line 2: field 'conc' should be from 100 to 700; found 2 for 'a'"),
        ("word,conc\na,2\nb,0.5\n", "line 3: field 'conc' should be from 100 to 700; found 50 for 'b'"),
        ("word,conc\na,200\nb,701\n", "line 3: field 'conc' should be from 100 to 700; found 701 for 'b'"),
        ("word,conc\na,200\nb,many\n", "line 3: field 'conc' should be a number; found 'many'"),
        ("word,conc\na,200\nb,nan\n", "line 3: field 'conc' should be a number; found 'nan'"),
        ("word,conc\na,200\nb,٣٠٠\n", "line 3: field 'conc' should be a number; found '٣٠٠'"),
        ("word,conc\na,200\nb,300\nA,201\n", "line 4: 'a' has another rating further up; keep one of them"),
        ("word,conc\na,200\n\nb,300,4\n", "line 4: expected 2 fields as in the first row, found 3"),
        ('word,conc\na,200\n"b"c,300\n', "line 3: ',' expected after '\"'"),
        ("word,conc\na,200\nb,200\n", "expected ratings in 'conc' of which two differ; found 2 rated words"),
        ("word,conc\na,\n", "expected ratings in 'conc' of which two differ; found 0 rated words"),
        ("word,conc\n", "expected ratings in 'conc' of which two differ; found 0 rated words"),
        ("word;conc\na;200\n", "expected the column word, rating; found word;conc"),
        ("", "expected the column word, rating; found no header"),
        ("word,rating\na,2\nb,3\n", "on what scale is 'rating'? give its least and greatest rating"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, text: str, message: str) -> None:
    """File, line, field, what was found and what was expected."""
    path = file_of(tmp_path, text)
    with pytest.raises(BadInput, match=re.escape(str(path)) + ".*" + re.escape(message)):
        read(path)
    with pytest.raises(BadInput, match="there is no such file"):
        read(tmp_path / "absent.csv")


def test_the_shipped_list() -> None:
    """At least 600 words, each once, over the whole scale and all four parts of speech, and it says what it is."""
    found = load_embedded()
    assert found.rows["word"].n_unique() == found.rows.height >= 600
    assert found.dropped.is_empty()
    assert (found.low, found.high) == (158, 670)  # the ends of the paper's scale, section 3.2
    assert found.rows["word"].str.contains("^[a-z-]+$").all()
    tags = pl.read_csv(LIST, separator="\t", comment_prefix="#")["upos"].value_counts()
    assert set(tags["upos"]) == {"NOUN", "VERB", "ADJ", "ADV"}
    assert tags["count"].min() >= 100
    tenths = found.rows.group_by((pl.col("score") * 9.99).floor()).len()
    assert tenths.height == 10
    assert tenths["len"].min() >= 50
    assert found.signature.startswith("ratings by a language model embedded@")
    text = LIST.read_text(encoding="utf-8")
    assert "not human ratings" in text
    assert "Apache-2.0" in text


def test_content_words() -> None:
    """Nouns, verbs, adjectives and adverbs; neither names nor auxiliaries (REC-07)."""
    assert [upos for upos in UPOS if upos in CONTENT_POS] == ["ADJ", "ADV", "NOUN", "VERB"]


def test_the_real_lists(data: Path) -> None:
    """MRC holds 4,295 rated words from 158 to 670 (section 3.2), the same in both files."""
    folder = data / "concreteness"
    found, raw = read(folder / "mrc.csv"), read(folder / "mrc2_raw_scale.csv")
    assert (found.rows.height, found.low, found.high) == (4295, 158, 670)
    assert found.rows.equals(raw.rows)
    assert found.dropped["reason"].value_counts().rows() == [("no_rating", 628)]


@pytest.mark.parametrize(("name", "column", "bounds"), [("mrc", None, None), ("brysbaert", "Conc.M", (1, 5))])
def test_the_shipped_list_agrees_with_people(
    data: Path, name: str, column: str | None, bounds: tuple[float, float] | None
) -> None:
    """Pearson's r with human ratings: 0.957 on the 658 words shared with MRC, and on 970 with Brysbaert's list (ours,
    measured after it was written). The human lists agree with each other at 0.918.
    """
    path = data / "concreteness" / {"mrc": "mrc.csv", "brysbaert": "brysbaert_concreteness_40k.csv"}[name]
    both = load_embedded().rows.join(read(path, column, bounds).rows, on="word", suffix="_by_people")
    assert both.height == {"mrc": 658, "brysbaert": 970}[name]
    assert both.select(pl.corr("score", "score_by_people")).item() == pytest.approx(0.957, abs=5e-4)
