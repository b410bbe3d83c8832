"""Cassettes: kept answers as rows of `completions`."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from pipeline import sample
from pipeline.errors import BadInput
from pipeline.llm import prompt, request
from pipeline.llm.request import Request, dump_json
from pipeline.tables import TABLES

REQUEST = Request("ab", [], "explicit_en", "1", {})
ENTRY = {"source": "own", "model": "m", "prompt": "explicit_en", "input": "Nice hat.", "response": "I dislike the hat."}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The cassette of a test."""
    return tmp_path / "answers.jsonl"


def write(path: Path, *entries: object) -> Path:
    """Write one line an entry; return the path."""
    path.write_text("".join(json.dumps(e, ensure_ascii=False) + "\n" for e in entries), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "change",
    [
        {"model": "n"}, {"revision": "r"}, {"messages": [{}]}, {"params": {"t": 1}}, {"prompt": "p"},
        {"prompt_version": "2"}, {"attempt": 1}, {"model": "a", "revision": "b"},
    ],
)  # fmt: skip
def test_id_changes_with_each_part(change: dict[str, Any]) -> None:
    """Another model, revision, message, parameter, prompt, version of it or attempt is another call, of its own id."""
    assert re.fullmatch("[0-9a-f]{64}", REQUEST.key)
    assert REQUEST._replace(**change).key != REQUEST.key == REQUEST._replace().key


def test_row_holds_the_whole_call(path: Path) -> None:
    """An entry becomes a row with its messages, prompt version and id; an answer not from the sample is an import."""
    row = request.read_cassette(write(path, ENTRY)).row(0, named=True)
    version = prompt.load("explicit_en").version
    messages = prompt.build_messages("Nice hat.", "explicit_en")
    key = ["m", None, dump_json(messages), "{}", "explicit_en", version, 0]  # the parts of the hash, in their order
    completion_id = hashlib.sha256(json.dumps(key, ensure_ascii=False).encode()).hexdigest()
    assert row == {
        "completion_id": completion_id, "source": "own", "model": "m", "prompt": "explicit_en",
        "prompt_version": version, "messages": dump_json(messages), "params": "{}", "attempt": 0,
        "response": "I dislike the hat.", "mode": "import", "revision": None, "input_tokens": None,
        "output_tokens": None, "finish_reason": None,
    }  # fmt: skip


def test_sample_keeps_the_contract_and_says_what_it_is() -> None:
    """The shipped cassette fulfils the contract of `completions`, and every row is marked as the sample."""
    rows = request.read_cassette(sample.COMPLETIONS)
    assert TABLES["completions"].schema.is_valid(rows.select(TABLES["completions"].schema.column_names()))
    assert rows["model"].unique().to_list() == [sample.MODEL]
    assert rows["mode"].unique().to_list() == ["sample"]
    assert rows.height == len(sample.COMPLETIONS.read_text(encoding="utf-8").splitlines())


def test_first_of_two_answers_counts(path: Path) -> None:
    """Two answers to the same call are one row, that of the first line."""
    rows = request.read_cassette(write(path, ENTRY, {**ENTRY, "response": "The hat is ugly."}))
    assert rows["response"].to_list() == ["I dislike the hat."]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("{", "broken JSON"),
        ("[]", "expected a JSON object, found []"),
        ("null", "expected a JSON object, found null"),
        (json.dumps({**ENTRY, "response": None}), "field 'response' should be text"),
        (json.dumps({k: v for k, v in ENTRY.items() if k != "model"}), "field 'model' should be text"),
        (json.dumps({**ENTRY, "input": 7}), "field 'input' should be text"),
        (json.dumps({**ENTRY, "input": "  "}), "field 'input' is empty"),
        (json.dumps({**ENTRY, "prompt": "explicit_fr"}), "no prompt 'explicit_fr'"),
    ],
)
def test_faults_name_file_and_line(path: Path, second: str, message: str) -> None:
    """A line that is no entry is BadInput, and the message names the file, the line and what was expected."""
    path.write_text(f"{json.dumps(ENTRY)}\n{second}\n", encoding="utf-8")
    with pytest.raises(BadInput, match=re.escape(f"{path}, line 2: {message}")):
        request.read_cassette(path)
