"""Cassettes: answers of a language model in a file, replayed instead of sending requests.

The cassette of the sample was written for Undertone and not recorded: nothing trained on it is a result.
"""

import re
from pathlib import Path
from typing import Any

import polars as pl

from pipeline import sample
from pipeline.errors import BadInput
from pipeline.io.lines import read_json_lines
from pipeline.llm import prompt
from pipeline.llm.request import Request
from pipeline.tables import SOURCE, empty

_FIELDS = ("source", "model", "prompt", "input", "response")


def read(path: Path) -> pl.DataFrame:
    """Read a cassette as rows of `completions`; of two answers to one request the first counts."""
    rows = [_build_row(entry, f"{path}, line {number}") for number, entry in read_json_lines(path)]
    if not rows:
        raise BadInput(f"{path}: the cassette has no line")
    completions = pl.DataFrame(rows, schema=empty("completions").schema)
    return completions.unique("completion_id", keep="first", maintain_order=True)


def _build_row(entry: dict[str, Any], location: str) -> dict[str, Any]:
    if absent := [name for name in _FIELDS if not isinstance(entry.get(name), str)]:
        raise BadInput(f"{location}: field {absent[0]!r} should be text")
    if blank := [name for name in _FIELDS if name != "response" and not entry[name].strip()]:
        raise BadInput(f"{location}: field {blank[0]!r} is empty")
    source, model, name, text, response = (entry[field] for field in _FIELDS)
    if not re.fullmatch(SOURCE, source):
        raise BadInput(f"{location}: field 'source' should be small letters, digits and _, found {source!r:.60}")
    try:
        request = Request(model, prompt.build_messages(text, name), name, prompt.load(name).version, {})
    except BadInput as why:
        raise BadInput(f"{location}: {why}") from why
    mode = "sample" if model == sample.MODEL else "import"
    return {"completion_id": request.key, "source": source, "response": response, "mode": mode, **request.as_row()}
