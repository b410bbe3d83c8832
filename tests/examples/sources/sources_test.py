"""The thirteen by name, one's own sentences, what all readers refuse, and the counts of the real files."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.examples.sources import SOURCES, files, read, read_own
from pipeline.tables import Sentences
from tests.examples.sources.writing import jsonl, labels, read_count, reasons, table, text

FOLDERS = {
    "toxigen": "toxigen_annotated_en", "latent_hatred": "latent_hatred_en", "ishate": "ishate_en",
    "imppres": "imppres_en", "ludwig": "ludwig_en", "semeval_irony": "semeval2018_irony_en",
    "absa": "absa_implicit_en", "r3": "r3_sarcasm_en",
}  # fmt: skip
LABELS = ("implicit", "explicit", "neither")


def test_the_thirteen_of_table_6() -> None:
    """Their pairs add up to the paper's total, and models wrote 33,862 and 1,496 of them (IMP-12, IMP-15).

    A name that is not among them is refused with those that are.
    """
    with pytest.raises(BadInput, match=r"no source 'reddit'; there are toxigen, .*, pdtb, davidson$"):
        read("reddit", Path("any"))
    assert len(SOURCES) == 13
    assert sum(source.table6 for source in SOURCES.values()) == 56_290
    counts = Counter()
    for source in SOURCES.values():
        counts[source.writer] += source.table6
    assert counts == {"labels": 20_932, "gpt-3.5-turbo-0125": 33_862, "gpt-4o": 1_496}
    prompts = {source.prompt for source in SOURCES.values()} - {None}
    assert prompts == {"hate_en", "dialogue_en", "review_en", "irony_en", "sarcasm_en"}


@pytest.mark.parametrize("name", SOURCES)
def test_missing_files_are_named(tmp_path: Path, name: str) -> None:
    """An absent path and an empty folder are bad input that says which files are expected."""
    with pytest.raises(BadInput, match=r"there is no such file or folder; expected .+\.(csv|tsv|txt|jsonl|xml|json)"):
        read(name, tmp_path / "none")
    with pytest.raises(BadInput, match=r"the folder holds no .+\.(csv|tsv|txt|jsonl|xml|json)"):
        read(name, tmp_path)


def test_own_sentences_and_their_defaults(tmp_path: Path) -> None:
    """Only the text must be there; label, language and id have defaults; a prompt stays where a form is wanted."""
    path = jsonl(
        tmp_path / "mine.jsonl", {"text": " It is\tlate. "}, {"text": "你可真准时。", "prompt": "explicit_zh"},
        {"text": "Nice.", "explicit": "Bad.", "prompt": "explicit_en", "lang": "en", "item_id": 7},
        {"text": "Ça va.", "label": "Neither", "lang": "fr"}, {"text": None}, {"text": "So.", "explicit": "So. "},
        {"text": "I am cross.", "label": "explicit", "prompt": "explicit_en"},
    )  # fmt: skip
    data_set = read_own(path)
    assert data_set.rows.rows() == [
        ("mine.jsonl:1", "en", "It is late.", "implicit", None, None),
        ("mine.jsonl:2", "zh", "你可真准时。", "implicit", None, "explicit_zh"),
        ("7", "en", "Nice.", "implicit", "Bad.", None),
        ("mine.jsonl:4", "fr", "Ça va.", "neither", None, None),
        ("mine.jsonl:7", "en", "I am cross.", "explicit", None, None),
    ]
    assert reasons(data_set) == [("blank_text", "mine.jsonl:5"), ("same_text", "mine.jsonl:6")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "words\nHello.\n", r"a\.csv: expected the column 'text'; found 'words'"),
        ("a.csv", "text,text\na,b\n", r"line 1: the column 'text' is repeated"),
        ("a.csv", 'text,label\n"Two\nlines.",implicit\nHello.\n', "line 4: expected 2 fields as in the first row"),
        ("a.csv", 'text\n"Hello.\n', "line 2: unexpected end of data"), ("a.csv", "text\n", "the file holds no rows"),
        ("a.csv", "text,label\nHello.,rude\n", "line 2: field 'label' should be one of implicit, explicit, neither"),
        ("a.csv", "text,lang\nHello.,English\n", "line 2: field 'lang' should be two or three small letters"),
        ("a.csv", "text,item_id\nHello.,1\nYou.,1\n", "line 3: field 'item_id' should be one that no other row has"),
        ("a.jsonl", '{"text": "Hello."}\n\n{"text": }\n', "line 3: broken JSON"),
        ("a.jsonl", '{"text": "Hello."}\n{"words": "Hello."}\n', "line 2: expected the column 'text'"),
        ("a.jsonl", '{"text": ["Hello."]}\n', "line 1: field 'text' should be text or a number"),
        ("a.parquet", "text", "not a parquet file"), ("a.docx", "text", "cannot read .docx"),
    ],
)  # fmt: skip
def test_bad_files_are_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    """What breaks the layout stops the reading, with file, line, field and what was expected."""
    with pytest.raises(BadInput, match=message) as caught:
        read_own(text(tmp_path / name, content))
    assert str(tmp_path / name) in str(caught.value)


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        ('<!DOCTYPE s [<!ENTITY a "aaaa">]><s><i>&a;</i></s>', "line 1: the entity 'a'; expected none"),
        ('<!DOCTYPE s SYSTEM "s.dtd"><s>\n<i>&b;</i></s>', "line 2: the entity 'b'; expected none"),
        ("<s>\n<i></s>", "line 2: broken XML: mismatched tag"),
        ("<s></s>", "the file holds no element 'i'"),
    ],
)
def test_xml_that_is_refused(tmp_path: Path, xml: str, message: str) -> None:
    """Entities are not expanded but refused; broken XML is named by line."""
    with pytest.raises(BadInput, match=message):
        files.read_elements(text(tmp_path / "a.xml", xml), "i")


def test_keep_filters_sentences(tmp_path: Path) -> None:
    """Sentences for which the expression is false or unknown are dropped as filtered (IMP-18)."""
    rows = [("I drove my car.", "I have a car."), ("Brr.", "I am cold."), ("Hm.", "")]
    path = table(tmp_path / "a.csv", ("text", "explicit"), *rows)
    data_set = read_own(path, keep=~pl.col("explicit").str.contains("car"))
    assert labels(data_set) == [("Brr.", "implicit", "I am cold.")]
    assert reasons(data_set) == [("filtered", "a.csv:1"), ("filtered", "a.csv:3")]


words = st.sampled_from(["", " ", "Hello.", " Hello. ", "It is late.", "&amp;", "早。"])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(words, words, st.sampled_from(["", "implicit", "explicit", "neither"])), min_size=1))
def test_no_row_is_lost(rows: list[tuple[str, str, str]]) -> None:
    """Sentences and dropped together are the rows read, each once, and the sentences keep their contract."""
    with TemporaryDirectory() as folder:
        data_set = read_own(table(Path(folder) / "a.csv", ("text", "explicit", "label"), *rows))
    ids = [*data_set.rows["item_id"], *data_set.dropped["row_key"]]
    assert sorted(ids) == sorted(f"a.csv:{row}" for row in range(1, len(rows) + 1))
    assert Sentences.is_valid(data_set.rows.with_columns(source=pl.lit("own")))


COUNTS = {  # rows read, implicit, those with an explicit form, explicit, neither
    "toxigen": (8_960, 2_622, 0, 1_529, 4_809),
    "latent_hatred": (33_516, 12_942, 12_035, 1_087, 13_290),
    "ishate": (8_735, 372, 0, 3_002, 5_354),
    "imppres": (3_600, 300, 300, 0, 0),
    "ludwig": (718, 718, 718, 0, 0),
    "semeval_irony": (4_618, 2_222, 0, 0, 2_396),
    "absa": (7_686, 933, 0, 3_011, 0),
    "r3": (150, 150, 150, 0, 0),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_the_real_files(data: Path, name: str) -> None:
    """Every row of the published files is accounted for; four sources give the number of Table 6 exactly."""
    folder = data / FOLDERS[name]
    if not folder.is_dir():
        pytest.skip(f"UNDERTONE_DATA has no folder {FOLDERS[name]}")
    data_set = read(name, folder)
    implicit, explicit, neither = (data_set.rows.filter(label=label) for label in LABELS)
    counts = (len(implicit), implicit["explicit"].count(), len(explicit), len(neither))
    assert (read_count(data_set), *counts) == COUNTS[name]
    assert data_set.rows["prompt"].count() == (len(implicit) if SOURCES[name].prompt else 0)
    if name in {"imppres", "ludwig", "absa", "r3"}:
        assert len(implicit) == SOURCES[name].table6


def test_own_sentences_are_anonymised(tmp_path: Path) -> None:
    """Text, explicit form, prompt and id of a sentence of one's own keep no mail and no telephone."""
    values = "ask a.b@example.com,打13812345678,,a.b@example.com\nwho,,写给 a.b@example.com,2"
    path = text(tmp_path / "own.csv", f"text,explicit,prompt,item_id\n{values}\n")
    rows = {row["text"]: row for row in read_own(path).rows.iter_rows(named=True)}
    assert rows["ask [EMAIL]"]["explicit"] == "打[PHONE]"
    assert rows["ask [EMAIL]"]["item_id"].startswith("anon-")
    assert rows["who"]["prompt"] == "写给 [EMAIL]"
