"""Cloze items: read as they stand, refused by file, line and field, taken back to summaries, kept apart."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.examples.recam import items as cloze
from tests.examples.sources.writing import jsonl

ENTRY: dict[str, Any] = {
    "article": "The bakers kept the old oven.\nNobody asked them why.",
    "question": "A village shows its @placeholder to old things .",
    **{f"option_{i}": option for i, option in enumerate(("anger", "loyalty", "speed", "doubt", "luck"))},
    "label": 1,
}


def test_reads_the_official_format(tmp_path: Path) -> None:
    """An item has file and line as id and its options in order (REC-01); one with an option twice is dropped."""
    items, dropped = cloze.read(jsonl(tmp_path / "dev.jsonl", ENTRY, ENTRY | {"label": 4}))
    options = ["anger", "loyalty", "speed", "doubt", "luck"]
    assert items.row(1) == ("dev.jsonl:2", ENTRY["article"], ENTRY["question"], options, 4)
    assert items.select(cloze.select_right_option())["answer"].to_list() == ["loyalty", "luck"]
    assert dropped.is_empty()
    path = jsonl(tmp_path / "trial.jsonl", ENTRY, ENTRY | {"option_4": "Speed "})
    items, dropped = cloze.read(path)
    assert items["item_id"].to_list() == ["trial.jsonl:1"]
    assert dropped.rows() == [("same_options", "trial.jsonl:2")]
    with pytest.raises(BadInput, match="holds no items"):
        cloze.read(jsonl(tmp_path / "dev.jsonl"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"article": " "}, "field 'article' should be a text that is not blank, found ' '"),
        ({"question": "No place ."}, "field 'question' should hold @placeholder once, found it 0 times"),
        ({"question": "@placeholder @placeholder"}, "found it 2 times"),
        ({"label": 5}, "field 'label' should be a place from 0 to 4, found 5"),
        ({"label": True}, "found True"),
    ],
)
def test_refuses_what_is_no_item(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    """The message names file, line and field, what was expected and what was found."""
    path = jsonl(tmp_path / "dev.jsonl", ENTRY, ENTRY | change)
    with pytest.raises(BadInput, match=rf"dev\.jsonl, line 2: .*{re.escape(message)}"):
        cloze.read(path)


words = st.text(min_size=1, max_size=8).map(lambda text: f"w{text.replace('@', '')}")
options_strategy = st.lists(words, min_size=5, max_size=5, unique_by=lambda word: word.strip().lower())


@settings(max_examples=20)
@given(words, words, words, options_strategy, st.integers(0, 4))
def test_written_items_are_read_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, article: str, before: str, after: str, options: list[str], label: int
) -> None:
    """Whatever the texts hold, writing and reading gives the same items."""
    path = tmp_path_factory.mktemp("cloze") / "items.jsonl"
    row = ["items.jsonl:1", article, f"{before}@placeholder{after}", options, label]
    items = pl.DataFrame([row], schema=cloze.SCHEMA, orient="row")
    cloze.write(path, items)
    assert cloze.read(path).rows.equals(items)


def test_articles_that_stand_elsewhere_are_dropped(tmp_path: Path) -> None:
    """Blanks and capitals make no other article; the order of the rest stays; each drop has its reason."""
    entries = [ENTRY | {"article": f"Number {n}."} for n in (3, 1, 2)]
    items = cloze.read(jsonl(tmp_path / "train.jsonl", *entries)).rows
    other_items = pl.DataFrame({"article": ["\tNUMBER\u00a0\n 1. ", "Number 22."]})
    remaining, dropped = cloze.drop_articles(items, other_items)
    assert remaining["article"].to_list() == ["Number 3.", "Number 2."]
    assert dropped.rows() == [("article_elsewhere", "train.jsonl:2")]
    assert cloze.drop_articles(items, other_items.clear()).rows.equals(items)
    assert cloze.drop_articles(items, items).rows.is_empty()


def test_real_files(data: Path) -> None:
    """Dev: 837 and 851 items, all sound; of the trial files 990, 986 and 998 have five different options (REC-01)."""
    folder = data / "recam"
    dev = [cloze.read(folder / f"Task_{task}_dev.jsonl").rows for task in (1, 2)]
    assert [len(items) for items in dev] == [837, 851]
    trial = [cloze.read(path) for path in sorted(folder.glob("trial_*.jsonl"))]
    assert [len(items) for items, _ in trial] == [990, 986, 998]
    assert all(len(items) + len(dropped) == 1000 for items, dropped in trial)
    remaining, dropped = cloze.drop_articles(pl.concat([items for items, _ in trial]), pl.concat(dev))
    assert (len(remaining), len(dropped)) == (2924, 50)
