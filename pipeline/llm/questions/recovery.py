"""Recover subtext in the two steps of CSD, section 1: plain words, then the meaning in the context (CSD-03)."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from pipeline.errors import BadInput
from pipeline.llm.questions import answer, explicit
from pipeline.reasons import find_fault

LETTERS = "ABCDEFGH"  # names of the options of a choice, in order; I would be a word
_UNFIT = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")  # control characters, half an emoji
_OPEN, _CLOSED = r"[\s\"'“”‘’「」『』*_`(（\[【<]*+", r"[\"'”’」』*_`)）\]】>]*"
_LABEL = r"(?:(?:the )?(?:(?:best|right|correct) )?(?:answer|option)(?: is)?|(?:正确)?(?:答案|选项)[是为]?|选择?)"
_FOLLOWED = r"\s*(?:$|[.。:：,，、;；)）\n—–-]|[\u4e00-\u9fff])"  # else A is an article
_SECOND = rf"\s*(?:[/、,，&+和与或]|and\b|or\b){_OPEN}[a-h](?![a-z])"  # "A and C" is no choice
_CHOICE = re.compile(
    rf"^{_OPEN}(?:{_LABEL}{_CLOSED}+\s*+[:：]?{_OPEN})?(?P<letter>[b-h]|a(?={_CLOSED}{_FOLLOWED}))"
    rf"(?!['’]?[a-z0-9])(?!{_CLOSED}{_SECOND})",
    re.IGNORECASE,
)


class Parsed(NamedTuple):
    """The comment in plain words and what it means, or the reason there is none."""

    plain: str | None
    meaning: str | None
    reason: str | None


def parse(response: str, text: str, lang: str | None = None) -> Parsed:
    """Return plain words and meaning in an answer: a JSON object; reasoning, words or a code fence are passed over.

    The language of the prompt, en or zh, is by default that of the comment `text`; such as "666" have none. Returns
    both steps; or a reason: malformed, empty, refusal, echo (the meaning is the comment), other_language, too_long
    (either is, by the limit of `explicit.parse`).
    """
    reply = answer.strip_thinking(response)
    entry = next((entry for entry in answer.list_objects(reply) if "meaning" in entry), None)
    if entry is None:
        reason = explicit.parse(reply, text, "").reason
        return Parsed(None, None, reason if reason in {"empty", "refusal"} else "malformed")
    plain, meaning = entry.get("plain"), entry["meaning"]
    if not isinstance(plain, str) or not isinstance(meaning, str) or _UNFIT.search(plain + meaning):
        return Parsed(None, None, "malformed")
    plain, meaning = " ".join(plain.split()), " ".join(meaning.split())
    reason = find_fault(
        empty=not plain or not meaning,
        refusal=any(explicit.parse(step, text, "").reason == "refusal" for step in (plain, meaning)),
        echo=meaning.casefold() == " ".join(text.split()).casefold(),
        other_language=answer.has_han(meaning) != (lang == "zh" if lang else answer.has_han(text)),
        too_long=max(len(plain), len(meaning)) > max(4 * len(text), explicit.TOO_LONG),
    )
    return Parsed(None, None, reason) if reason else Parsed(plain, meaning, None)


def format_choice(text: str, context: str | None, options: Sequence[str], question: str | None = None) -> str:
    """Format the user's message that asks which option says what the comment means, as JSON."""
    if not 2 <= len(options) <= len(LETTERS):
        raise BadInput(f"expected 2 to {len(LETTERS)} options, found {len(options)}")
    fields: dict[str, Any] = {"context": context, "text": text}
    fields |= {"question": question} if question else {}
    return answer.format_question({**fields, "options": dict(zip(LETTERS, options, strict=False))})


def parse_choice(response: str, count: int) -> int | None:
    """Return the place of the chosen option among `count`, from 0; None if the answer names none, or more than one."""
    match = _CHOICE.match(answer.strip_thinking(response))
    place = LETTERS.index(match["letter"].upper()) if match else count
    return place if place < count else None
