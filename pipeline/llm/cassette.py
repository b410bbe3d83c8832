"""Cassettes: answers of a language model kept in a file, played back instead of asking.

A line is {"source", "model", "prompt", "input", "response"}. The cassette shipped with the sample was
written for Undertone and not recorded from a service: its model is named `undertone-sample`, and nothing trained on it
may be released as a result.
"""

import re
from pathlib import Path
from typing import Any

import polars as pl

from pipeline import sample
from pipeline.errors import BadInput
from pipeline.io.lines import read_json_lines
from pipeline.llm import prompt
from pipeline.llm.questions import explicit
from pipeline.llm.request import as_json, completion_id
from pipeline.tables import SOURCE, empty

_FIELDS = ("source", "model", "prompt", "input", "response")


def read(path: Path) -> pl.DataFrame:
    """A cassette as rows of `completions`; of two answers to one call the first counts."""
    rows = [_row(_checked(entry, f"{path}, line {number}")) for number, entry in read_json_lines(path)]
    if not rows:
        raise BadInput(f"{path}: the cassette has no line")
    return pl.DataFrame(rows, schema=empty("completions").schema).unique(
        "completion_id", keep="first", maintain_order=True
    )


def _checked(entry: dict[str, Any], where: str) -> dict[str, str]:
    if absent := [name for name in _FIELDS if not isinstance(entry.get(name), str)]:
        raise BadInput(f"{where}: field {absent[0]!r} should be text")
    if blank := [name for name in _FIELDS if name != "response" and not entry[name].strip()]:
        raise BadInput(f"{where}: field {blank[0]!r} is empty")
    if not re.fullmatch(SOURCE, entry["source"]):
        raise BadInput(f"{where}: field 'source' should be small letters, digits and _, found {entry['source']!r:.60}")
    try:
        prompt.load(entry["prompt"])
    except BadInput as why:
        raise BadInput(f"{where}: {why}") from why
    return entry


def _row(entry: dict[str, str]) -> dict[str, Any]:
    version = prompt.load(entry["prompt"]).version
    messages = as_json(explicit.messages(entry["input"], entry["prompt"]))
    return {
        "completion_id": completion_id(entry["model"], None, messages, "{}", entry["prompt"], version, 0),
        "source": entry["source"],
        "model": entry["model"],
        "prompt": entry["prompt"],
        "prompt_version": version,
        "messages": messages,
        "params": "{}",
        "attempt": 0,
        "response": entry["response"],
        "mode": "sample" if entry["model"] == sample.MODEL else "import",
        "revision": None,
        "input_tokens": None,
        "output_tokens": None,
    }
