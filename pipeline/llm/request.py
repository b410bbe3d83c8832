"""One question to a language model, neutral of who answers it, and its identity."""

import hashlib
import json
from typing import Any, NamedTuple, Self

MODERATION = "moderation"  # the prompt of a request that goes to the moderation endpoint: there is no prompt


class Request(NamedTuple):
    """A question: what is asked, of which model, how, and the how-manieth time."""

    model: str
    messages: list[dict[str, str]]
    prompt: str
    prompt_version: str
    params: dict[str, Any]
    attempt: int = 0
    revision: str | None = None

    @property
    def key(self) -> str:
        """The `completion_id` of its answer."""
        return completion_id(
            self.model, self.revision, as_json(self.messages), as_json(self.params), self.prompt,
            self.prompt_version, self.attempt,
        )  # fmt: skip

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The request that `as_json(request._asdict())` wrote."""
        return cls(**json.loads(text))


def as_json(value: object) -> str:
    """JSON as it stands in `completions`: readable, and the same for equal values."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def completion_id(
    model: str, revision: str | None, messages: str, params: str, prompt: str, prompt_version: str, attempt: int
) -> str:
    """SHA-256 of everything the answer depends on: change any of it and it is another call."""
    key = json.dumps([model, revision, messages, params, prompt, prompt_version, attempt], ensure_ascii=False)
    return hashlib.sha256(key.encode()).hexdigest()
