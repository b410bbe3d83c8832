"""One request to a language model, independent of the service that answers it, and its identity."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipeline import sample
from pipeline.errors import BadInput
from pipeline.io.lines import read_json_lines
from pipeline.llm import prompt
from pipeline.tables import SOURCE, empty

MODERATION = "moderation"  # the prompt of a request to the moderation endpoint, which takes no prompt
_IDENTITY = ("model", "revision", "messages", "params", "prompt", "prompt_version", "attempt")  # in the order hashed


class Request(NamedTuple):
    """The messages to a model, with their prompt and parameters; `attempt` counts repetitions from 0."""

    model: str
    messages: list[dict[str, str]]
    prompt: str
    prompt_version: str
    params: dict[str, Any]
    attempt: int = 0
    revision: str | None = None

    @property
    def key(self) -> str:
        """The `completion_id` of its answer: SHA-256 of everything that the answer depends on."""
        row = self.as_row()
        return hashlib.sha256(json.dumps([row[name] for name in _IDENTITY], ensure_ascii=False).encode()).hexdigest()

    def as_row(self) -> dict[str, Any]:
        """Return the fields as columns of a table, messages and parameters as JSON."""
        return self._asdict() | {"messages": dump_json(self.messages), "params": dump_json(self.params)}


def dump_json(value: object) -> str:
    """Write JSON as it stands in `completions`: readable, and the same for equal values."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


_FIELDS = ("source", "model", "prompt", "input", "response")


def read_cassette(path: Path) -> pl.DataFrame:
    """Read a cassette as rows of `completions`; of two answers to one request the first counts."""
    rows = [_build_completion(entry, f"{path}, line {number}") for number, entry in read_json_lines(path)]
    if not rows:
        raise BadInput(f"{path}: the cassette has no line")
    completions = pl.DataFrame(rows, schema=empty("completions").schema)
    return completions.unique("completion_id", keep="first", maintain_order=True)


def _build_completion(entry: dict[str, Any], location: str) -> dict[str, Any]:
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
