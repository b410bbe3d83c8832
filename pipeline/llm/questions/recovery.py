"""Recovering subtext: asking for it in the two steps of CSD, section 1, and reading the answer (CSD-03).

Step one replaces rhetoric by plain words, a metaphor by what it stands for and satire by its negation; step two infers
the deep meaning from the context. Where readings are given, a model may be asked to choose one instead.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.errors import BadInput
from pipeline.llm import prompt
from pipeline.llm.questions import answer, explicit
from pipeline.llm.questions.explicit import TOO_LONG

LETTERS = "ABCDEFGH"
"""Names of the options of a choice, in order; I would be a word."""

_HAN = re.compile(r"[\u4e00-\u9fff]")
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


def messages(text: str, context: str | None, lang: str, folder: Path | None = None) -> list[dict[str, str]]:
    """Messages that ask for both steps, in English or Chinese (`lang` en or zh); text and context go as one object."""
    return prompt.messages(_object(context=context, text=text), f"recover_{lang}", folder)


def parse(response: str, text: str, lang: str | None = None) -> Parsed:
    """Both steps in an answer: a JSON object; reasoning, words or a code fence around it are passed over.

    Args:
        response: what the model said.
        text: the comment it was asked about.
        lang: en or zh, the language that was asked for; by default that of `text`. Comments such as "666" have none.

    Returns:
        Plain words and meaning; or a reason: malformed, empty, refusal, echo (the meaning is the comment),
        other_language, too_long (either is, by the limit of `explicit.parse`).
    """
    said = answer.without_thinking(response)
    entry = next((found for found in answer.objects(said) if "meaning" in found), None)
    if entry is None:
        reason = explicit.parse(said, text, "").reason
        return Parsed(None, None, reason if reason in {"empty", "refusal"} else "malformed")
    plain, meaning = entry.get("plain"), entry["meaning"]
    if not isinstance(plain, str) or not isinstance(meaning, str) or _UNFIT.search(plain + meaning):
        return Parsed(None, None, "malformed")
    plain, meaning = " ".join(plain.split()), " ".join(meaning.split())
    reason = _fault(plain, meaning, text, lang)
    return Parsed(None, None, reason) if reason else Parsed(plain, meaning, None)


def _fault(plain: str, meaning: str, text: str, lang: str | None) -> str | None:
    """Why plain words and meaning cannot stand; None where they can."""
    if not plain or not meaning:
        return "empty"
    if any(explicit.parse(step, text, "").reason == "refusal" for step in (plain, meaning)):
        return "refusal"
    if meaning.casefold() == " ".join(text.split()).casefold():
        return "echo"
    if bool(_HAN.search(meaning)) != (lang == "zh" if lang else bool(_HAN.search(text))):
        return "other_language"
    return "too_long" if max(len(plain), len(meaning)) > max(4 * len(text), TOO_LONG) else None


def choose_messages(
    text: str,
    context: str | None,
    options: Sequence[str],
    lang: str,
    folder: Path | None = None,
    *,
    question: str | None = None,
) -> list[dict[str, str]]:
    """Messages that ask which option says what the comment means, in English or Chinese (`lang` en or zh).

    Raises:
        BadInput: there are fewer than two options, or more than there are letters.
    """
    if not 2 <= len(options) <= len(LETTERS):
        raise BadInput(f"expected 2 to {len(LETTERS)} options, found {len(options)}")
    named = dict(zip(LETTERS, options, strict=False))
    asked = {"question": question} if question else {}
    return prompt.messages(
        _object(context=context, text=text, **asked, options=named), f"choose_meaning_{lang}", folder
    )


def parse_choice(response: str, count: int) -> int | None:
    """Place of the chosen option among `count`, from 0; None where the answer names none, or more than one.

    Reasoning in `<think>`, a label ("Answer:") and marks around the letter are passed over.
    """
    found = _CHOICE.match(answer.without_thinking(response))
    place = LETTERS.index(found["letter"].upper()) if found else count
    return place if place < count else None


def _object(**fields: Any) -> str:
    """The user's message: quoted as JSON, so that no text can end its field."""
    return json.dumps(fields, ensure_ascii=False)
