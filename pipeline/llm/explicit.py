"""Saying outright what a sentence means: the prompt that turns an implicit sentence into an explicit one (IMP-15).

Our own words, not the papers' (IMP-16); the Chinese prompt is an extension, since ImpScore is English only (X-07).
"""

import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import BadInput

_FOLDER = Path(__file__).parent / "prompts"
_LABEL = re.compile(r"^(?:explicit(?: version| sentence| response)?|rewritten(?: sentence)?|answer|[AB]|改写|直白)\s*[:：]\s*", re.I)
_REFUSAL = re.compile(
    r"^(?:i'?m sorry,? but i (?:can(?:no|')t|am unable)|i can(?:no|')t (?:assist|help with|comply|rewrite|fulfil)|as an ai\b"
    r"|(?:很?抱歉|对不起)，?我(?:不能|无法)(?:改写|协助|提供|回答)|作为(?:一个)?(?:AI|人工智能))",
    re.IGNORECASE,
)
_HAN = re.compile(r"[\u4e00-\u9fff]")
_QUOTES = "\"'“”‘’「」"


class Parsed(NamedTuple):
    """The explicit sentence, or the reason there is none."""

    explicit: str | None
    reason: str | None


@cache
def prompt(name: str) -> tuple[str, str]:
    """A prompt file's text and its version, the first 12 digits of its SHA-256."""
    path = _FOLDER / f"{name}.md"
    if not path.is_file():
        raise BadInput(f"no prompt {name!r}; there are {', '.join(sorted(p.stem for p in _FOLDER.glob('*.md')))}")
    text = path.read_text(encoding="utf-8").strip()
    return text, hashlib.sha256(text.encode()).hexdigest()[:12]


def messages(implicit: str, name: str) -> list[dict[str, str]]:
    """Messages that ask for the explicit form of one sentence; the sentence is a message of its own, never spliced in."""
    return [{"role": "system", "content": prompt(name)[0]}, {"role": "user", "content": implicit}]


def implicit_of(messages_json: str) -> str:
    """The sentence that stored messages ask about."""
    return str(json.loads(messages_json)[-1]["content"])


def parse(response: str, implicit: str) -> Parsed:
    """The explicit sentence in an answer, or why there is none: empty, refusal, echo, other_language."""
    text = _LABEL.sub("", response.strip()).strip().strip(_QUOTES).strip()
    if not text:
        return Parsed(None, "empty")
    if _REFUSAL.match(text):
        return Parsed(None, "refusal")
    if text.casefold() == implicit.strip().casefold():
        return Parsed(None, "echo")
    if bool(_HAN.search(text)) != bool(_HAN.search(implicit)):
        return Parsed(None, "other_language")
    return Parsed(text, None)
