"""One request to a language model, independent of the service that answers it, and its identity."""

import hashlib
import json
from typing import Any, NamedTuple

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
