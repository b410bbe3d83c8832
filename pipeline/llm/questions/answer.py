"""What questions and answers of any kind have in common: JSON in them, reasoning before answers, Chinese characters."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

TRIES = 50  # at reading an object; an answer of braces without end would take as many as it has braces
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_HAN = re.compile(r"[\u4e00-\u9fff]")
_BRACE = re.compile(r"\{(?=\s*\")")  # not every brace of a long row of them


def format_question(fields: Mapping[str, Any]) -> str:
    """Format the user's message, quoted as JSON, so that no text can end its field."""
    return json.dumps(fields, ensure_ascii=False)


def has_han(text: str) -> bool:
    return bool(_HAN.search(text))


def strip_thinking(text: str) -> str:
    """Return the answer without its reasoning, `<think>...</think>`; some servers leave its opening tag out."""
    return _THOUGHT.sub("", text).rpartition("</think>")[2]


def list_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text; a model may repeat the question's before its own."""
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
