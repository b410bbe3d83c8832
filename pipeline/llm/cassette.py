"""Cassettes: answers of a language model kept in a file, played back instead of asking.

A line is {"source", "model", "prompt", "input", "response"}. The cassette shipped with the sample was written by
people and says so: its model is `undertone-sample`, and nothing trained on it may be released as a result.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.errors import BadInput
from pipeline.llm import explicit

SAMPLE_MODEL = "undertone-sample"
_FIELDS = ("source", "model", "prompt", "input", "response")


def completion_id(model: str, messages: str, params: str, prompt: str, prompt_version: str, attempt: int) -> str:
    """SHA-256 of everything the answer depends on: change any of it and it is another call."""
    key = json.dumps([model, messages, params, prompt, prompt_version, attempt], ensure_ascii=False)
    return hashlib.sha256(key.encode()).hexdigest()


def read(path: Path) -> pl.DataFrame:
    """A cassette as rows of `completions`."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            entry = json.loads(line)
        except json.JSONDecodeError as why:
            raise BadInput(f"{path}, line {number}: broken JSON: {why.msg}") from why
        if absent := [name for name in _FIELDS if not isinstance(entry.get(name), str)]:
            raise BadInput(f"{path}, line {number}: field {absent[0]!r} should be text")
        rows.append(_row(entry))
    return pl.DataFrame(rows).cast({"attempt": pl.Int64}).unique("completion_id", maintain_order=True)


def _row(entry: dict[str, str]) -> dict[str, Any]:
    _, version = explicit.prompt(entry["prompt"])
    messages = json.dumps(explicit.messages(entry["input"], entry["prompt"]), ensure_ascii=False)
    params = "{}"
    return {
        "completion_id": completion_id(entry["model"], messages, params, entry["prompt"], version, 0),
        "source": entry["source"],
        "model": entry["model"],
        "prompt": entry["prompt"],
        "prompt_version": version,
        "messages": messages,
        "params": params,
        "attempt": 0,
        "response": entry["response"],
        "mode": "sample" if entry["model"] == SAMPLE_MODEL else "import",
    }
