"""Saying outright what a sentence means: asking for it, and reading the answer (IMP-15 to IMP-17)."""

import json
import re
from pathlib import Path
from typing import NamedTuple

from pipeline.llm import prompt

TOO_LONG = 400  # characters; a longer answer of more than four times the sentence's length is chatter
_WORDS = (
    r"(?:(?:an? |the )?(?:more )?explicit(?: version| sentence| response| answer)?|rewritten(?: sentence)?|answer|[AB]"
    r"|改写(?:后|后的句子|结果)?|直白(?:版|版本|的说法)?|回答)"
)
_LABEL = re.compile(rf"^{_WORDS}\s*[:：]\s*", re.IGNORECASE)
_IS_LABEL = re.compile(rf"^{_WORDS}\s*[:：]?$", re.IGNORECASE)
_ANGLES = re.compile(r"^<<<(?P<inside>[^<>]*)>>>\s*[:：]?\s*(?P<after>.*)$", re.DOTALL)
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
# "- question - answer": cut at the first dash after the end of a sentence, else at the first dash
_DIALOGUE = re.compile(
    r"""^-\s*(?:(?P<asked>.*?[?!.？！。…]["'”’)）]?)|(?P<said>.+?))\s+-\s+(?P<answer>.*)$""", re.DOTALL
)
_DASH = re.compile(r"^-(?:\s+|$)")


class Parsed(NamedTuple):
    """The explicit sentence, or the reason there is none."""

    explicit: str | None
    reason: str | None


def messages(text: str, name: str, folder: Path | None = None) -> list[dict[str, str]]:
    """Messages that ask for the explicit form of a sentence, or of the answer in `- question - answer`."""
    return prompt.messages(text, name, folder)


def implicit_of(messages_json: str) -> str:
    """The sentence that stored messages ask about."""
    return str(json.loads(messages_json)[-1]["content"])


def parse(response: str, implicit: str, prompt_name: str) -> Parsed:
    """The explicit sentence in an answer, or why there is none.

    Labels and quotation marks around the sentence go. For dialogue prompts the sentence is joined with the question
    of `implicit` again (IMP-17).

    Returns:
        A sentence; or a reason: empty, refusal, echo, other_language, too_long (more than four times the length of
        `implicit` and 400 characters).
    """
    question, unsaid = _dialogue(implicit) if prompt_name.startswith("dialogue") else ("", implicit.strip())
    text = _bare(response)
    if question:
        text = _bare(_without_question(text, question))
    if not text:
        return Parsed(None, "empty")
    if _REFUSAL.match(text.replace("’", "'")):
        return Parsed(None, "refusal")
    if text.casefold() == unsaid.casefold():
        return Parsed(None, "echo")
    if bool(_HAN.search(text)) != bool(_HAN.search(implicit)):
        return Parsed(None, "other_language")
    if len(text) > max(4 * len(implicit), TOO_LONG):
        return Parsed(None, "too_long")
    return Parsed(f"- {question} - {text}" if question else text, None)


def _dialogue(text: str) -> tuple[str, str]:
    """Question and answer of `- question - answer`; no question where the text is none."""
    if not (found := _DIALOGUE.match(text.strip())):
        return "", text.strip()
    return (found["asked"] or found["said"]).strip(), found["answer"].strip()


def _without_question(text: str, question: str) -> str:
    """The answer alone where the model gives the question again, or begins with the dash of an answer."""
    text = _DASH.sub("", text)
    if text.casefold().startswith(question.casefold()):
        text = _DASH.sub("", text[len(question) :].lstrip())
    return text


def _bare(text: str) -> str:
    """The text without labels before it, nor a pair of quotation marks or <<< >>> around all of it."""
    before, text = None, text.strip()
    while text != before:
        before, text = text, _LABEL.sub("", _unquoted(_unmarked(text)))
    return text


def _unmarked(text: str) -> str:
    """What follows `<<<...>>>`, else what is inside unless that is a label itself."""
    if not (found := _ANGLES.match(text)):
        return text
    inside = found["inside"].strip()
    return found["after"] or ("" if _IS_LABEL.match(inside) else inside)


def _unquoted(text: str) -> str:
    """The text without a pair of quotation marks around all of it; those of a quotation inside stay."""
    return text[1:-1].strip() if _QUOTED.match(text) else text
