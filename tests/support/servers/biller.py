"""A service that bills all that a request allows, and keeps its own account."""

import json
import random
from dataclasses import dataclass, field
from typing import Any

from tests.support.rows.llm_requests import PRICE
from tests.support.servers.llm_server import Server, chat

HTML = b"<!doctype html><html><body>Welcome to our portal</body></html>"


@dataclass
class Biller(Server):
    """Keeps to `max_tokens`, bills all it can, and counts, answers and fails by chance."""

    chance: random.Random = field(default_factory=random.Random)
    shares: dict[str, float] = field(default_factory=dict)
    usages: list[Any] = field(default_factory=list)
    billed_usd: float = 0.0

    def completion(self, body: dict[str, Any], text: str | None = None) -> Any:  # noqa: ARG002
        with self._lock:
            kind = self.chance.choices(list(self.shares), list(self.shares.values()))[0]
            if kind == "too_many":
                return 429, {"Retry-After": "0.01"}, b"{}"
            output = self.chance.choice([1, body.get("max_tokens", 1_000)])
            tokens = [len(json.dumps(body["messages"], ensure_ascii=False).encode()) + 200, output]
            self.billed_usd += PRICE.cost(*tokens)
            if kind == "broken":  # a gateway that gave up while the model answered
                return 500, {"Retry-After": "0.01"}, b"{}"
            counted = [self.chance.choice([count, *self.usages]) for count in tokens]
            self.served[body["messages"][-1]["content"]] += 1
        answer = chat("x") | {"usage": {"prompt_tokens": counted[0], "completion_tokens": counted[1]}}
        if kind == "malformed":
            return 200, {}, HTML
        if kind == "cut":
            return 200, {"Content-Length": "100000", "Connection": "close"}, json.dumps(answer).encode()
        return 200, {}, json.dumps(answer).encode()
