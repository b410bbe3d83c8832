"""Lines of files: numbered as a person counts them, decoded or named, and as JSON objects."""

import json
import re
import tempfile
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.io import lines
from pipeline.io.lines import Limits, parse_object, read_json_items, read_json_lines, read_lines

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.dictionaries(TEXT, TEXT | st.integers() | st.lists(TEXT))), st.sampled_from(["\n", "\r\n", "\r"]))
def test_objects_come_back_under_their_lines(objects: list[dict[str, object]], end: str) -> None:
    """JSON objects written a line each are read again with their numbers, whatever ends the lines."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        path.write_bytes("".join(json.dumps(o, ensure_ascii=False) + end for o in objects).encode())
        assert list(read_json_lines(path)) == list(enumerate(objects, 1))


VALUES = ["1", '"x"', '"\\": y"', '"[笑]"', "[]", '["a"]', "{}", '"\\ud83d"', "NaN", '"a:b"', "9" * 5_000]


@given(
    st.lists(st.tuples(st.sampled_from(["a", 'a":', "b"]), st.sampled_from([": ", " :"]), st.sampled_from(VALUES))),
    st.sampled_from(["", " ", "{", "}"]),
)
def test_a_flat_object_reads_as_any(fields: list[tuple[str, str, str]], end: str) -> None:
    """A line of plain values is read as by the decoder that looks at each field, or it is left to that decoder."""
    text = "{" + ", ".join(f"{json.dumps(name)}{colon}{value}" for name, colon, value in fields) + "}" + end
    values = lines.parse_flat(text)
    with patch.object(lines, "parse_flat", return_value=None):
        assert values is None or repr(parse_object(text, Path("a"))) == repr(values)


def test_empty_lines_count_and_are_passed_over(tmp_path: Path) -> None:
    """A file from a Windows editor, with a mark at its beginning and empty lines, reads as it looks there."""
    path = tmp_path / "a.jsonl"
    path.write_bytes('\ufeff{"a": 1}\r\n\r\n  \r\n{"a": 2}'.encode())
    assert list(read_json_lines(path)) == [(1, {"a": 1}), (4, {"a": 2})]


@pytest.mark.parametrize("inside", ["\u2028", "\u0085", "\f", "\v"])
def test_a_comment_may_hold_other_line_ends(tmp_path: Path, inside: str) -> None:
    """Characters that Python alone takes for line ends cut no line."""
    path = tmp_path / "a.txt"
    path.write_bytes(f"one{inside}two\n".encode())
    assert list(read_lines(path)) == [(1, f"one{inside}two\n")]


@pytest.mark.parametrize(("encoding", "name"), [("utf-8-sig", "UTF-8"), ("gb18030", "gb18030")])
def test_an_undecodable_byte_is_named_with_its_line(tmp_path: Path, encoding: str, name: str) -> None:
    """The line is that of the byte, not of the block that was decoded with it."""
    path = tmp_path / "a.txt"
    path.write_bytes("好\n".encode(encoding) * 5_000 + b"\xff\xff\n" + "好\n".encode(encoding))
    with pytest.raises(
        BadInput, match=re.escape(f"{path}, line 5001: byte 0xff is not {name}; save the file as UTF-8")
    ):
        list(read_lines(path, encoding))


def test_what_cannot_be_opened_is_named(tmp_path: Path) -> None:
    """No file, a folder, and an encoding that nobody knows are each said."""
    (tmp_path / "a.txt").write_text("one", encoding="utf-8")
    for path, encoding, told in (
        (tmp_path / "none.txt", "utf-8", "there is no such file"),
        (tmp_path, "utf-8", "there is no such file"),
        (tmp_path / "a.txt", "utf-9", "there is no encoding 'utf-9'; name one such as utf-8, utf-16 or gb18030"),
    ):
        with pytest.raises(BadInput, match=re.escape(f"{path}: {told}")):
            list(read_lines(path, encoding))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": }', "line 7: broken JSON at character 7: Expecting value"),
        ('{"a": 1,\n"b"}', "line 8: broken JSON at character 4"),
        ("[1]", "line 7: expected a JSON object, found [1]"),
        ("[" * 100_000, "line 7: JSON nested too deeply"),
    ],
)
def test_broken_json_is_named_with_line_and_character(text: str, told: str, tmp_path: Path) -> None:
    """What is no JSON object is BadInput with the place of the fault, in several lines or before a long rest too."""
    with pytest.raises(BadInput, match=re.escape(f"a.jsonl, {told}")):
        parse_object(text, Path("a.jsonl"), 7)
    (tmp_path / "a.json").write_text('[{"a": }, ' + "1" * 2_000)
    with pytest.raises(BadInput, match="line 1: broken JSON at character 8: Expecting value"):
        list(read_json_items(tmp_path / "a.json", limits=Limits()._replace(line=1_000)))


def test_half_an_emoji_becomes_a_replacement_character() -> None:
    """Where a crawler cut a text inside an emoji, the rest of it is kept; whole emoji stay."""
    assert parse_object(r'{"a": "ok \ud83d", "\ude00": ["\ud83d\ude00"]}', Path("a")) == {
        "a": "ok \ufffd",
        "\ufffd": ["😀"],
    }
