"""What models put before an answer of any kind, and the JSON objects in one."""

import json
import re
from collections.abc import Iterator
from typing import Any

TRIES = 50  # at reading an object; an answer of braces without end would take as many as it has braces

_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)

_BRACE = re.compile(r"\{(?=\s*\")")  # not every brace of a long row of them


def without_thinking(text: str) -> str:
    """The answer without its reasoning: `<think>...</think>`, to the end where that is cut off.

    Some servers give the opening tag to the model, so that the answer holds the closing one alone.
    """
    return _THOUGHT.sub("", text).rpartition("</think>")[2]


def objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, one after the other; a model may repeat the question's before its own."""
    end = tries = 0
    for brace in _BRACE.finditer(text):
        if brace.start() < end:  # inside the last one
            continue
        if tries == TRIES:
            return
        try:
            value, end = json.JSONDecoder().raw_decode(text, brace.start())
        except (ValueError, RecursionError):  # broken, a number of too many digits, too deep
            tries += 1
        else:
            yield value
