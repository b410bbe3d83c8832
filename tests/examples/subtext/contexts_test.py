"""Comments in context from several layouts: rows, drops with a reason, refusals with file and line, splits by topic."""

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import left_out
from pipeline.errors import BadInput
from pipeline.examples.subtext.contexts import (
    COLUMNS,
    read_cold,
    read_own,
    read_published,
    read_tosarcasm,
    split_by_topic,
)
from pipeline.tables import AnnotatedComments
from tests.examples.sources import writing


def test_own_rows_as_csv(tmp_path: Path) -> None:
    """Text, context and label; topic and split where given; else the context is the topic (CSD-02).

    In JSON labels may be numbers, whole or as spreadsheets make them, or true and false; without split there is none.
    """
    path = writing.text(
        tmp_path / "mine.csv",
        "Text,label,context,split,topic\n真准时,True,他又迟到了,dev,迟到\n  今天\t很好 ,false,,train,\n"
        "好,ironic,散步,test,\n",
    )
    rows = read_own(path)
    assert rows.columns == list(COLUMNS)
    assert rows.rows() == [
        ("mine.csv:1", "真准时", "他又迟到了", "1", "迟到", "validation"),
        ("mine.csv:2", "今天 很好", "", "0", "", "train"),
        ("mine.csv:3", "好", "散步", "ironic", "散步", "test"),
    ]
    lines = [json.dumps({"text": f"好{label}", "context": "雨", "label": label}) for label in (1, 0.0, True)]
    rows = read_own(writing.text(tmp_path / "mine.jsonl", "\n".join(lines)))
    assert rows.select("item_id", "label", "topic", "split").rows() == [
        (f"mine.jsonl:{n}", label, "雨", None) for n, label in enumerate("101", 1)
    ]


def test_what_is_left_out(tmp_path: Path) -> None:
    """No text, no label, or the same again in the same context is left out and counted; another label is kept."""
    left_out.clear()
    path = writing.text(tmp_path / "a.csv", "text,context,label\n,雨,1\n好,雨,\n好,雨,1\n好 ,雨,1\n好,雨,0\n好,晴,1\n")
    assert read_own(path)["item_id"].to_list() == ["a.csv:3", "a.csv:5", "a.csv:6"]
    reasons = [(row.reason, row.row_count) for row in left_out.list_rows()]
    assert reasons == [("blank_text", 1), ("no_label", 1), ("repeated_row", 1)]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "text,label\n好,1\n", r"a\.csv: expected the column 'context'"),
        ("a.csv", "text,context,label\n好,1\n", r"a\.csv, line 2: expected 3 fields"),
        ("a.csv", "text,context,label,split\n好,雨,1,dev\n好,雨,1,exam\n", r"line 3: field 'split'.*'exam'"),
        ("a.jsonl", '{"text": ["好"], "context": "", "label": 1}\n', r"a\.jsonl, line 1: field 'text'"),
        ("a.xlsx", "", r"cannot read \.xlsx"),
    ],
)
def test_own_rows_that_cannot_be_read(tmp_path: Path, name: str, text: str, message: str) -> None:
    """BadInput names file, line and field."""
    with pytest.raises(BadInput, match=message):
        read_own(writing.text(tmp_path / name, text))


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_published(tmp_path: Path, ending: str) -> None:
    """Subtext is the label; the unsure and the unlabelled are left out (CSD-13)."""
    cells = [("a", "好", "雨", "1"), ("b", "好", None, "-1"), ("c", "嗯", "雨", "0"), ("d", "哦", "雨", None)]
    frame = pl.DataFrame(cells, schema=["row_id", "text", "context", "subtext"], orient="row")
    frame = frame.with_columns(row_id=pl.concat_str(["row_id"] * 16))
    assert set(frame.columns) <= set(AnnotatedComments.column_names())
    path = tmp_path / f"out.{ending}"
    {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "parquet": frame.write_parquet}[ending](path)
    rows = read_published(path).select("item_id", "text", "context", "label").rows()
    assert rows == [("a" * 16, "好", "雨", "1"), ("b" * 16, "好", "", "0")]


def entry(text: str, topic: str, label: str) -> dict[str, str]:
    return {"text": text, "topic": topic, "label": label}


def test_tosarcasm(tmp_path: Path) -> None:
    """The topic is the context; train, dev and test are the parts."""
    for name in ("train", "dev", "test"):
        entries = [entry(f"{name}真行", "他迟到了", "1"), entry("不错", f"{name}下雨了", "0")]
        writing.text(tmp_path / f"{name}.json", json.dumps(entries, ensure_ascii=False, indent=1))
    rows = read_tosarcasm(tmp_path)
    assert rows.height == 6
    assert rows.row(0) == ("dev.json:1", "dev真行", "他迟到了", "1", "他迟到了", "validation")
    assert read_tosarcasm(tmp_path / "test.json")["split"].unique().to_list() == ["test"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"text": "好", "topic": "雨", "label": "0"}, 3]', "a JSON list of objects, but for line 1"),
        ('[{"text": "好", "topic": null, "label": "0"}]', "entry 1: field 'topic' should be text, found None"),
        ('[{"text": "好", "topic": "雨", "label": "2"}]', "entry 1: field 'label' should be 0 or 1, found '2'"),
    ],
)
def test_tosarcasm_that_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    """BadInput names file, entry and field."""
    with pytest.raises(BadInput, match=rf"train\.json.*{message}"):
        read_tosarcasm(writing.text(tmp_path / "train.json", text))
    with pytest.raises(BadInput, match="the folder holds no dev"):
        read_tosarcasm(tmp_path)


def test_cold(tmp_path: Path) -> None:
    """A column without a name is passed over; dev.csv holds the training part as well, as the split column says."""
    writing.text(tmp_path / "dev.csv", "\ufeff,split,topic,label,TEXT\n1,train,region,0,都挺好\n2,dev,race,1,真讨厌\n")
    assert read_cold(tmp_path).select("text", "context", "label", "split").rows() == [
        ("都挺好", "region", "0", "train"),
        ("真讨厌", "race", "1", "validation"),
    ]


topics = st.lists(st.sampled_from([*"abcdefghijklmnopqrst", ""]), min_size=1, max_size=80)


@given(topics)
def test_no_topic_is_on_two_sides(names: list[str]) -> None:
    """Each topic is in one part, whatever the order of rows; rows without one are each their own."""
    rows = pl.DataFrame({"text": [f"t{i}" for i in range(len(names))], "topic": names})
    split = split_by_topic(rows)
    assert split.select("text", "topic").equals(rows)
    topic_rows = split.filter(pl.col("topic") != "")
    assert (topic_rows.group_by("topic").agg(pl.col("split").n_unique())["split"] == 1).all()
    assert split_by_topic(rows.reverse()).reverse().equals(split)


def test_shares_are_met() -> None:
    """Of 500 rows in 100 topics 300, 100 and 100, give or take half a topic; without topics as well."""
    rows = pl.DataFrame({"text": [f"t{i}" for i in range(500)], "topic": [f"topic {i % 100}" for i in range(500)]})
    for frame in (rows, rows.with_columns(topic=pl.lit(""))):
        count = dict(split_by_topic(frame)["split"].value_counts().iter_rows())
        assert count == {"train": 300, "validation": 100, "test": 100}


def test_real_files(data: Path) -> None:
    """ToSarcasm: 2,925, 973 and 973; COLD without its train.csv: 6,431 and 5,323, of which 12 repeat (NOTE.txt)."""
    rows = read_tosarcasm(data / "tosarcasm_zh")
    assert dict(rows["split"].value_counts().iter_rows()) == {"train": 2925, "validation": 973, "test": 973}
    cold = read_cold(data / "cold_zh")
    assert cold.height == 6431 + 5323 - 12
    assert cold.select("text", "context", "label").is_unique().all()
    split = split_by_topic(rows)
    test_topics = split.filter(pl.col("split") == "test")["topic"].unique()
    assert not split.filter(pl.col("split") == "train")["topic"].is_in(test_topics.implode()).any()
