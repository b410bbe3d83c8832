"""References of meanings and choices between readings: the readers, and shuffled options."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.errors import BadInput
from pipeline.examples.subtext import contexts
from tests.examples.sources.writing import jsonl

CHOICE = {"text": "好一个准时。", "options": ["他迟到了", "他很准时", "他没来"], "answer": 0}
THREAD: dict[str, Any] = {
    "id": 7, "comments": ["公交等了一小时", " 车太少了", "散步就是养生嘛 "], "classification": "fact",
    "explanation": "公交太慢，不如走路。", "question": "“散步”指什么？", "A": "公交太慢", "B": "喜欢散步",
    "C": "班次太少", "D": "天气很好", "Answer": "CA",
}  # fmt: skip


def bench(folder: Path, *entries: object) -> Path:
    jsonl(folder / "CN-SarcasmBench.json", json.dumps(entries, ensure_ascii=False, indent=1))
    return folder


def test_references_of_a_comment_stay_together(tmp_path: Path) -> None:
    """Rows of one text and context are one item with distinct references; another context makes another item.

    Csv is read the same, with or without the columns that may be absent.
    """
    path = jsonl(
        tmp_path / "notes.jsonl",
        {"text": "真准时", "context": "他又迟到", "plain": "他不准时", "meaning": "他总是迟到"},
        {"text": "真准时 ", "context": "他又迟到", "meaning": "别再等他了", "rater": "r2"},
        {"text": "真准时", "context": "他又迟到", "plain": "他不准时", "meaning": "他总是迟到"},
        "",
        {"text": "真准时", "context": " ", "meaning": "他很准时"},
    )
    assert contexts.read_references(path).rows() == [
        ("notes.jsonl:1", "真准时", "他又迟到", ["他不准时"], ["他总是迟到", "别再等他了"]),
        ("notes.jsonl:4", "真准时", None, [], ["他很准时"]),
    ]
    path = jsonl(tmp_path / "notes.csv", "text,meaning", '"好, 很好",不好')
    assert contexts.read_references(path).rows() == [("notes.csv:1", "好, 很好", None, [], ["不好"])]


@pytest.mark.parametrize(
    ("name", "entries", "message"),
    [
        ("n.csv", ["text,context", "好,坏"], "n.csv: expected the column 'meaning'"),
        ("n.csv", ["text,meaning", "好,不好", "好, "], "n.csv, line 3: field 'meaning' should be a text"),
        ("n.jsonl", [{"text": "", "meaning": "不好"}], "n.jsonl, line 1: field 'text' should be a text"),
        ("n.jsonl", [{"text": "好", "meaning": ["不好"]}], "n.jsonl, line 1: field 'meaning' should be text"),
        ("n.jsonl", [], "holds no rows"),
    ],
)
def test_a_bad_reference_is_named(tmp_path: Path, name: str, entries: list[object], message: str) -> None:
    """File, line and field are named of what is no reference."""
    with pytest.raises(BadInput, match=message):
        contexts.read_references(jsonl(tmp_path / name, *entries))


def test_choices_have_one_answer_or_several(tmp_path: Path) -> None:
    """A place or a list of places comes out as a list in order; context and question may be absent."""
    path = jsonl(tmp_path / "c.jsonl", CHOICE, CHOICE | {"answer": [2, 0], "context": "九点了", "question": "他呢？"})
    assert contexts.read_choices(path).rows() == [
        ("c.jsonl:1", CHOICE["text"], None, None, CHOICE["options"], [0]),
        ("c.jsonl:2", CHOICE["text"], "九点了", "他呢？", CHOICE["options"], [0, 2]),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": " "}, "field 'text' should be a text"), ({"context": 3}, "field 'context' should be a text"),
        ({"options": "他"}, "field 'options' should be a list of texts"),
        ({"options": ["他", "他"]}, "at least two texts, all different"),
        ({"answer": 3}, "index of the right option, from 0 to 2, or a list of such, found"),
        ({"answer": True}, "from 0 to 2"), ({"answer": None}, "from 0 to 2"), ({"answer": []}, "from 0 to 2"),
        ({"answer": [0, 0]}, "from 0 to 2"), ({"answer": "A"}, "from 0 to 2"), ({"answer": [[0]]}, "from 0 to 2"),
    ],
)  # fmt: skip
def test_a_bad_choice_is_named(tmp_path: Path, change: dict[str, object], message: str) -> None:
    """File, line and field are named of what is no choice."""
    with pytest.raises(BadInput, match=f"c.jsonl, line 2: .*{message}"):
        contexts.read_choices(jsonl(tmp_path / "c.jsonl", CHOICE, CHOICE | change))


def test_the_last_comment_is_the_sarcastic_one(tmp_path: Path) -> None:
    """Of a thread the last comment is the text, those before it the context; letters become places."""
    other = THREAD | {"id": 8, "comments": ["好"], "Answer": "B"}
    items = contexts.read_sarcasm_bench(bench(tmp_path, THREAD, other))
    assert items.rows(named=True)[0] == {
        "item_id": "sarcasmbench:7", "text": "散步就是养生嘛", "context": "公交等了一小时\n车太少了", "kind": "fact",
        "meanings": ["公交太慢，不如走路。"], "question": "“散步”指什么？",
        "options": ["公交太慢", "喜欢散步", "班次太少", "天气很好"], "answers": [0, 2],
    }  # fmt: skip
    assert items["context"][1] is None
    assert items["answers"][1].to_list() == [1]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (THREAD | {"comments": []}, "field 'comments' should be a list of texts"),
        (THREAD | {"id": "8"}, "field 'id' should be a whole number, found '8'"),
        (THREAD | {"explanation": None}, "field 'explanation' should be a text"),
        (THREAD | {"D": ""}, "field 'D' should be a text"),
        (THREAD | {"D": "公交太慢"}, "field 'options' should be at least two texts, all different"),
        (THREAD | {"Answer": ""}, "field 'Answer' should be letters of ABCD"),
        (THREAD | {"Answer": "E"}, "field 'Answer' should be letters of ABCD"),
        (THREAD | {"Answer": "AA"}, "field 'answer' should be the index"),
    ],
)
def test_a_bad_item_is_named(tmp_path: Path, entry: object, message: str) -> None:
    """File, item and field are named of what is no thread."""
    with pytest.raises(BadInput, match=f"CN-SarcasmBench.json, item 2: {message}"):
        contexts.read_sarcasm_bench(bench(tmp_path, THREAD, entry))


def test_no_list_no_file_or_an_id_twice(tmp_path: Path) -> None:
    """What is no such file is bad input, and so is an id of two items."""
    with pytest.raises(BadInput, match=r"holds no CN-SarcasmBench\.json"):
        contexts.read_sarcasm_bench(tmp_path)
    with pytest.raises(BadInput, match="field 'id' should differ between items; 7 is repeated"):
        contexts.read_sarcasm_bench(bench(tmp_path, THREAD, THREAD))
    with pytest.raises(BadInput, match="holds no choices"):
        contexts.read_choices(jsonl(tmp_path / "c.jsonl", ""))
    for text, message in (("{}", "expected a JSON list"), ("[]", "holds no items"), ("[", "but for line 2")):
        with pytest.raises(BadInput, match=message):
            contexts.read_sarcasm_bench(jsonl(tmp_path / "other.json", text))


def test_shuffling_keeps_what_is_right() -> None:
    """Shuffled, the same options are there and the same are right; the order of rows does not matter."""
    rows = [(f"item {n}", list("ABCDE"[: 2 + n % 4]), [n % 2, 2][: 1 + n % 2]) for n in range(60)]
    schema = {name: contexts.CHOICES[name] for name in ("item_id", "options", "answers")}
    before = pl.DataFrame(rows, schema=schema, orient="row")
    after = contexts.shuffle_options(before)
    assert len({tuple(options) for options in after["options"]}) > 20
    for (_, options, right), (_, shuffled, answers) in zip(before.iter_rows(), after.iter_rows(), strict=True):
        assert sorted(options) == sorted(shuffled)
        assert {options[i] for i in right} == {shuffled[i] for i in answers}
        assert answers == sorted(answers)
    assert contexts.shuffle_options(before.reverse()).reverse().equals(after)


def test_the_published_file(data: Path) -> None:
    """1,251 items, as its README says; A is right in all but one, so the place of an option gives the answer away."""
    items = contexts.read_sarcasm_bench(data / "cn_sarcasmbench_zh")
    assert (items.height, items["context"].null_count()) == (1251, 0)
    first = [contexts.shuffle_options(items)["answers"].list.contains(0).sum(), items["answers"].list.contains(0).sum()]
    assert first[1] == 1250
    assert 500 < first[0] < 725  # chance: 0.488 of 1,251 = 611, standard error 18
