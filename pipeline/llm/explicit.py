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
_LABEL = re.compile(
    r"^(?:explicit(?: version| sentence| response)?|rewritten(?: sentence)?|answer|[AB]"
    r"|改写(?:后|后的句子|结果)?|直白(?:版|版本|的说法)?)\s*[:：]\s*",
    re.IGNORECASE,
)
# "I can't help you move" is what somebody means, so a refusal must also name the request or the sentence
_REFUSAL = re.compile(
    r"^(?:as an ai(?:,| language model| assistant)"
    r"|(?:(?:i'm |i am )?sorry,? (?:but )?)?i(?: can(?:no|')t| can not| won't| am unable to|'m unable to) "
    r"(?:comply\W*$|(?:assist|help|comply|fulfil+|rewrite|process|provide|generate)(?: you)?(?: with)? "
    r"(?:(?:that|this)(?:[.,;:!]|$)"
    r"|(?:that|this|your|the|such) (?:(?:kind|type) of )?(?:request|sentence|prompt|content|statement)\b))"
    r"|(?:(?:(?:很|非常)?抱歉|对不起)[，,]?)?我(?:不能|无法)(?:改写|协助|提供|回答|处理)"
    r"(?:(?:这|该|此|您的|你的|相关)(?:个|句|条|类)?)?(?:句子|话|请求|要求|内容)"
    r"|作为(?:一个|一名)?(?:AI|人工智能)(?:，|,|语言模型|助手))",
    re.IGNORECASE,
)
_HAN = re.compile(r"[\u4e00-\u9fff]")
_QUOTED = re.compile(r"""^(?:"[^"]*"|'[^']*(?:\w'\w[^']*)*'|“[^“”]*”|‘[^‘]*’|「[^「」]*」)$""", re.DOTALL)


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
    """Messages that ask for the explicit form of a sentence, which is a message of its own, never spliced in."""
    return [{"role": "system", "content": prompt(name)[0]}, {"role": "user", "content": implicit}]


def implicit_of(messages_json: str) -> str:
    """The sentence that stored messages ask about."""
    return str(json.loads(messages_json)[-1]["content"])


def parse(response: str, implicit: str) -> Parsed:
    """The explicit sentence in an answer, or why there is none: empty, refusal, echo, other_language."""
    text = _unquoted(_LABEL.sub("", _unquoted(response)))
    if not text:
        return Parsed(None, "empty")
    if _REFUSAL.match(text.replace("’", "'")):
        return Parsed(None, "refusal")
    if text.casefold() == implicit.strip().casefold():
        return Parsed(None, "echo")
    if bool(_HAN.search(text)) != bool(_HAN.search(implicit)):
        return Parsed(None, "other_language")
    return Parsed(text, None)


def _unquoted(text: str) -> str:
    """The text without a pair of quotation marks around all of it; those of a quotation inside stay."""
    text = text.strip()
    return text[1:-1].strip() if _QUOTED.match(text) else text
