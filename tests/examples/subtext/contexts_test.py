"""Comments in context from several layouts: rows, drops with a reason, refusals with file and line, splits by topic."""

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.examples.subtext.contexts import (
    COLUMNS,
    SOURCES,
    read_cold,
    read_own,
    read_published,
    read_tosarcasm,
    split_by_topic,
)
from pipeline.tables import AnnotatedComments


def saved(folder: Path, name: str, text: str) -> Path:
    """A file with that text."""
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_own_rows_as_csv(tmp_path: Path) -> None:
    """Text, context and label; topic and split where given; else the context is the topic (CSD-02)."""
    path = saved(
        tmp_path, "mine.csv",
        "Text,label,context,split,topic\n真准时,True,他又迟到了,dev,迟到\n  今天\t很好 ,false,,train,\n"
        "好,ironic,散步,test,\n",
    )  # fmt: skip
    found = read_own(path)
    assert found.rows.columns == list(COLUMNS)
    assert found.rows.rows() == [
        ("mine.csv:1", "真准时", "他又迟到了", "1", "迟到", "validation"),
        ("mine.csv:2", "今天 很好", "", "0", "", "train"),
        ("mine.csv:3", "好", "散步", "ironic", "散步", "test"),
    ]
    assert found.dropped.is_empty()


def test_own_rows_as_json_lines(tmp_path: Path) -> None:
    """Labels may be numbers, whole or as spreadsheets make them, or true and false; without split there is none."""
    lines = ['{"text": "好", "context": "雨", "label": 1}', '{"text": "嗯", "context": "雨", "label": 0.0}',
             '{"text": "哦", "context": "雪", "label": true}']  # fmt: skip
    assert read_own(saved(tmp_path, "mine.jsonl", "\n".join(lines))).rows.rows() == [
        ("mine.jsonl:1", "好", "雨", "1", "雨", None),
        ("mine.jsonl:2", "嗯", "雨", "0", "雨", None),
        ("mine.jsonl:3", "哦", "雪", "1", "雪", None),
    ]


def test_what_is_dropped_has_a_reason(tmp_path: Path) -> None:
    """No text, no label, or the same said again in the same context: dropped and told; another label is kept."""
    path = saved(tmp_path, "a.csv", "text,context,label\n,雨,1\n好,雨,\n好,雨,1\n好 ,雨,1\n好,雨,0\n好,晴,1\n")
    found = read_own(path)
    assert found.rows["item_id"].to_list() == ["a.csv:3", "a.csv:5", "a.csv:6"]
    assert found.dropped.rows() == [("blank_text", "a.csv:1"), ("no_label", "a.csv:2"), ("duplicate", "a.csv:4")]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "text,label\n好,1\n", r"a\.csv: expected the column 'context'"),
        ("a.csv", "text,context,label\n好,1\n", r"a\.csv, line 2: expected 3 fields"),
        ("a.csv", "text,context,label,split\n好,雨,1,dev\n好,雨,1,exam\n", r"line 3: field 'split'.*'exam'"),
        ("a.jsonl", '{"text": ["好"], "context": "", "label": 1}\n', r"a\.jsonl, line 1: field 'text'"),
        ("a.jsonl", '{"text": "好", "context": "", "label": 1}\n{"text"', r"a\.jsonl, line 2: broken JSON"),
        ("a.xlsx", "", r"cannot read \.xlsx"),
    ],
)
def test_own_rows_that_cannot_be_read(tmp_path: Path, name: str, text: str, said: str) -> None:
    """BadInput names file, line and field."""
    with pytest.raises(BadInput, match=said):
        read_own(saved(tmp_path, name, text))


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_published(tmp_path: Path, ending: str) -> None:
    """Subtext is the label unless another field is asked for; the unsure and the unlabelled are dropped (CSD-13)."""
    rows = [
        ("a" * 16, "好", "雨", "1", "-1"), ("b" * 16, "好", None, "-1", "1"), ("c" * 16, "嗯", "雨", "0", None),
        ("d" * 16, "哦", "雨", None, None),
    ]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["row_id", "text", "context", "subtext", "sarcasm"], orient="row")
    assert set(frame.columns) <= set(AnnotatedComments.column_names())
    path = tmp_path / f"out.{ending}"
    {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "parquet": frame.write_parquet}[ending](path)
    found = read_published(path)
    wanted = found.rows.select("item_id", "text", "context", "label").rows()
    assert wanted == [("a" * 16, "好", "雨", "1"), ("b" * 16, "好", "", "0")]
    assert found.dropped.rows() == [("no_label", "c" * 16), ("no_label", "d" * 16)]
    assert read_published(path, "sarcasm").rows["label"].to_list() == ["0", "1"]
    with pytest.raises(BadInput, match="expected the column 'irony'"):
        read_published(path, "irony")


def entry(text: str, topic: str, label: str) -> dict[str, str]:
    """An entry of ToSarcasm."""
    return {"text": text, "topic": topic, "label": label}


def test_tosarcasm(tmp_path: Path) -> None:
    """The topic is the context; train, dev and test are the parts."""
    for name in ("train", "dev", "test"):
        entries = [entry(f"{name}真行", "他迟到了", "1"), entry("不错", f"{name}下雨了", "0")]
        saved(tmp_path, f"{name}.json", json.dumps(entries, ensure_ascii=False, indent=1))
    found = read_tosarcasm(tmp_path)
    assert len(found.rows) == 6
    assert found.rows.row(0) == ("dev.json:1", "dev真行", "他迟到了", "1", "他迟到了", "validation")
    assert read_tosarcasm(tmp_path / "test.json").rows["split"].unique().to_list() == ["test"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"text": "好"}', "expected a JSON list"),
        ('[{"text": "好", "topic": "雨", "label": "0"}, 3]', "entry 2: field 'text' should be text"),
        ('[{"text": "好", "topic": null, "label": "0"}]', "entry 1: field 'topic' should be text but is None"),
        ('[{"text": "好", "topic": "雨", "label": "2"}]', "entry 1: field 'label' should be 0 or 1 but is '2'"),
        ('[{"text": ', "line 1: broken JSON"),
    ],
)
def test_tosarcasm_that_cannot_be_read(tmp_path: Path, text: str, said: str) -> None:
    """BadInput names file, entry and field."""
    with pytest.raises(BadInput, match=rf"train\.json.*{said}"):
        read_tosarcasm(saved(tmp_path, "train.json", text))
    with pytest.raises(BadInput, match="the folder holds no dev"):
        read_tosarcasm(tmp_path)


def test_cold(tmp_path: Path) -> None:
    """A column without a name is passed over; dev.csv holds the training part as well, as the split column says."""
    saved(tmp_path, "dev.csv", "\ufeff,split,topic,label,TEXT\n1,train,region,0,都挺好\n2,dev,race,1,真讨厌\n")
    assert read_cold(tmp_path).rows.select("text", "context", "label", "split").rows() == [
        ("都挺好", "region", "0", "train"),
        ("真讨厌", "race", "1", "validation"),
    ]


topics = st.lists(st.sampled_from([*"abcdefghijklmnopqrst", ""]), min_size=1, max_size=80)


@given(topics, st.integers(0, 9))
def test_no_topic_is_on_two_sides(some: list[str], seed: int) -> None:
    """Each topic is in one part, whatever the order of rows; rows without one are each their own."""
    rows = pl.DataFrame({"text": [f"t{i}" for i in range(len(some))], "topic": some})
    found = split_by_topic(rows, seed=seed)
    assert found.select("text", "topic").equals(rows)
    named = found.filter(pl.col("topic") != "")
    assert (named.group_by("topic").agg(pl.col("split").n_unique())["split"] == 1).all()
    assert split_by_topic(rows.reverse(), seed=seed).reverse().equals(found)


def test_shares_are_met() -> None:
    """Of 500 rows in 100 topics 300, 100 and 100, give or take half a topic; without topics as well; seeds differ."""
    rows = pl.DataFrame({"text": [f"t{i}" for i in range(500)], "topic": [f"topic {i % 100}" for i in range(500)]})
    for frame in (rows, rows.with_columns(topic=pl.lit(""))):
        count = dict(split_by_topic(frame)["split"].value_counts().iter_rows())
        assert count == {"train": 300, "validation": 100, "test": 100}
    assert not split_by_topic(rows, seed=1).equals(split_by_topic(rows, seed=2))
    assert split_by_topic(rows, (0.5, 0.0, 0.5))["split"].unique().sort().to_list() == ["test", "train"]


def test_real_files(data: Path) -> None:
    """ToSarcasm: 2,925, 973 and 973; COLD without its train.csv: 6,431 and 5,323 with repeats (NOTE.txt)."""
    count = dict(read_tosarcasm(data / "tosarcasm_zh").rows["split"].value_counts().iter_rows())
    assert count == {"train": 2925, "validation": 973, "test": 973}
    found = read_cold(data / "cold_zh")
    assert len(found.rows) + len(found.dropped) == 6431 + 5323
    assert found.dropped["reason"].unique().to_list() == ["duplicate"]
    split = split_by_topic(read_tosarcasm(data / "tosarcasm_zh").rows)
    held = split.filter(pl.col("split") == "test")["topic"].unique()
    assert not split.filter(pl.col("split") == "train")["topic"].is_in(held.implode()).any()


def test_readers_by_name() -> None:
    """Every layout has a name."""
    assert set(SOURCES) == {"own", "published", "tosarcasm", "cold"}
