"""Read the explicit form of a sentence from a model's answer (IMP-15 to IMP-17)."""

import json
import re
from typing import NamedTuple

from pipeline.llm.questions import answer
from pipeline.reasons import find_fault

ROUNDS = 20  # of frames around an answer; models put two or three
TOO_LONG = 400  # characters; a longer answer of more than four times the sentence's length is chatter
_WORDS = (
    r"(?:(?:an? |the )?(?:more )?explicit(?: version| sentence| response| answer)?|rewritten(?: sentence)?|answer|[AB]"
    r"|改写(?:后|后的句子|结果)?|直白(?:版|版本|的说法)?|回答)"
)
_LABEL = re.compile(
    rf"^(?P<mark>[*_]{{0,3}}){_WORDS}(?:(?P=mark)\s*[:：]|\s*[:：](?P=mark))\s*",  # **Answer:** and **Answer**: too
    re.IGNORECASE,
)
_IS_LABEL = re.compile(rf"^{_WORDS}\s*[:：]?$", re.IGNORECASE)
_ANGLES = re.compile(r"^<<<(?P<inside>[^<>]*)>>>\s*[:：]?\s*(?P<after>.*)$", re.DOTALL)
_FENCE = re.compile(r"^(?P<fence>`{3,9}+)(?:\w*+[^\S\n]*+\n)?(?P<inside>.*)(?P=fence)$", re.DOTALL)
_EMPHASIS = re.compile(r"^(?P<mark>([*_])\2{0,2})(?![\s*_])(?P<inside>(?:(?!(?P=mark)).)+)(?<!\s)(?P=mark)$", re.DOTALL)
_NOTE = re.compile(
    r"\n[^\S\n]*[*_]*(?:[(（【\[][*_]*(?:note|explanation|备?注|说明|解释)(?![a-z])"
    r"|(?:notes?|explanation|备?注|说明|解释)[*_]*[^\S\n]*[:：]|note that\b).*$",
    re.DOTALL | re.IGNORECASE,
)

_BEFORE_COLON = re.compile(
    r"^(?P<mark>[*_]{0,3})(?P<words>[^:：]{1,120}?)(?:(?P=mark)\s*[:：]|[:：](?P=mark))(?P<line>[^\S\n]*\n)?\s*"
)
_SURE = re.compile(
    r"^(?:(?:sure(?: thing)?|certainly|of course|absolutely|okay|ok|all ?right|got it|no problem|yes)\s*[!.,;—–-]+\s*"
    r"|(?:好的?|当然(?:可以)?|没问题|可以)[，,。！!\s]+)",
    re.IGNORECASE,
)
_HERE = r"(?:here(?:['’]s| is)|(?:this|below|the following) is) (?:(?:an?|one|the|my|your) )?"
_ALIKE = r"(?:direct|literal|plain|plainer|clear|clearer|straightforward|blunt)"
_EXPLICIT = rf"(?:(?:more|most|fully) )?explicit(?:,? and (?:more )?{_ALIKE})?"
_PLAIN = rf"(?:{_EXPLICIT}|(?:(?:more|most) )?{_ALIKE}(?:,? and (?:more )?(?:{_ALIKE}|explicit))?)"
_REWRITTEN = r"(?:rewritten|reworded|rephrased|paraphrased)"
_VERSION = r"(?:version|sentence|statement|wording|form|phrasing|answer|response|reply)"
_REWRITING = (
    rf"(?:(?:{_EXPLICIT}|{_REWRITTEN}) {_VERSION}|(?:{_PLAIN} )?(?:rewrite|rewording|paraphrase)"
    rf"|{_PLAIN} way (?:to (?:say|put|express|state)|of (?:saying|putting|expressing|stating)) (?:it|this|that))"
)
_OF = r"(?: of (?:the|this|that|your) (?:original )?(?:sentence|statement|hint|text|answer))?"
# "Here is the sentence he got: ten years" is what somebody means, so a lead-in must also speak of rewriting
_LEAD = (
    rf"(?:{_HERE}|(?:an?|one|the|my|your) )?{_REWRITING}{_OF}(?: (?:is|reads|would be|could be))?"
    rf"|(?:it|(?:this|that|the|your) (?:sentence|statement)) (?:can|could|may|might|would) be {_REWRITTEN} (?:as|to)"
    r"|(?:(?:以下|下面|这)(?:就)?是|(?:这|该|原)?句(?:话|子)(?:可以)?)?[您你我]?[要的]{0,2}"
    r"(?:更?(?:直白|直接|明确|平实)的(?:说法|版本|表达|表述|句子)|[改重]写(?:后的?)?(?:句子|版本|结果|内容|说法|话)?)"
    r"(?:如下|就?是|[为成])?"
)
_LEAD_ANYWHERE = re.compile(_LEAD, re.IGNORECASE)
_LEAD_ON_ITS_LINE = re.compile(
    rf"{_LEAD}|{_HERE}(?:{_REWRITING}\b.*|(?:{_PLAIN} )?{_VERSION}{_OF}(?:,? {_REWRITTEN}\b.*)?)", re.IGNORECASE
)

_SORRY = r"(?:(?:(?:i'm |i am )?(?:(?:really|very|so|truly) )?sorry|i apologi[sz]e|unfortunately)[,.!]? (?:but )?)?"
_CANNOT = r"i(?: can(?:no|')t| can not| won't|(?: am|'m) (?:unable|not able) to)"
_HARM = (
    r"(?:hate|hateful|hatred|harmful|offensive|abusive|racist|sexist|discriminatory|derogatory|demean(?:s|ing)|insulting"
    r"|violent|violence|discrimination|explicit|sexual|inappropriate)"
)
_SORRY_ZH = r"(?:(?:很|非常|十分|真的)?抱歉|对不起)[，,]?"
# "I can't help you move" is what somebody means, so a refusal must also name the request, the sentence or the harm
_REFUSALS = (
    r"as an ai(?:,| language model| assistant)",
    rf"{_SORRY}{_CANNOT} comply\W*$",
    rf"{_SORRY}i can(?:no|')t do (?:that|this)\W*$",
    rf"{_SORRY}{_CANNOT} (?:assist|help|comply|fulfil+|rewrite|process|provide|generate)(?: you)?(?: with)? "
    r"(?:(?:that|this)(?:[.,;:!]|$)"
    r"|(?:that|this|your|the|such) (?:(?:kind|type) of )?(?:request|sentence|prompt|content|statement)\b)",
    rf"{_SORRY}{_CANNOT} (?:(?:assist|help) (?:you )?(?:with|in) )?"
    r"(?:creat|writ|rewrit|generat|produc|provid)(?:e|ing) (?:an? |any )?(?:"
    rf"{_HARM}(?:(?:,|,? or|,? and) {_HARM})* (?:content|material|language|speech|statement|sentence|text)"
    rf"|(?:this|that|such) (?:(?:kind|type) of )?content\b|content (?:that|which) (?:[\w'-]+ ){{1,5}}?{_HARM}\b)",
    rf"(?:{_SORRY_ZH})?我(?:不能|无法)(?:改写|协助|提供|回答|处理)"
    r"(?:(?:这|该|此|您的|你的|相关)(?:个|句|条|类)?)?(?:句子|话|请求|要求|内容)",
    rf"{_SORRY_ZH}我?(?:不能|无法)(?:完成|满足|执行|协助)(?:(?:这|该|此|您的|你的)(?:个|项)?(?:请求|要求|任务))?\W*$",
    rf"(?:{_SORRY_ZH})?我(?:不能|无法)(?:改写|生成|创作|编写|提供)[^，。！？]{{0,8}}(?:仇恨|歧视|侮辱|冒犯|有害|攻击|暴力)"
    r"[^，。！？]{0,6}(?:内容|言论|句子)",
    r"作为(?:一个|一名)?(?:AI|人工智能)(?:，|,|语言模型|助手)",
)
_REFUSAL = re.compile("|".join(_REFUSALS), re.IGNORECASE)
_QUOTED = re.compile(r"""^(?:"[^"]*"|'[^']*(?:\w'\w[^']*)*'|“[^“”]*”|‘[^‘]*’|「[^「」]*」)$""", re.DOTALL)
# "- question - answer": cut at the first dash after the end of a sentence, else at the first dash
_DIALOGUE = re.compile(
    r"""^-\s*+(?:(?P<question>.*?[?!.？！。…]["'”’)）]?)|(?P<words>.+?)(?<!\s))\s++-\s++(?P<answer>.*)$""", re.DOTALL
)
_DASH = re.compile(r"^-(?:\s+|$)")


class Parsed(NamedTuple):
    """The explicit sentence, or the reason there is none."""

    explicit: str | None
    reason: str | None


def parse_implicit(messages_json: str) -> str:
    """Return the sentence that stored messages ask about."""
    return str(json.loads(messages_json)[-1]["content"])


def parse(response: str, implicit: str, prompt_name: str) -> Parsed:
    """Return the explicit sentence in an answer, or why there is none.

    Reasoning in `<think>` is removed, and so is what surrounds the sentence: a lead-in ("Here is the new sentence:"),
    labels, quotation marks, a code fence, Markdown's emphasis, and notes in paragraphs after it. For dialogue prompts
    the sentence is joined with the question of `implicit` again (IMP-17). Returns a sentence; or a reason: empty,
    refusal, echo, other_language, too_long (more than four times the length of `implicit` and 400 characters).
    """
    question, hint = _split_dialogue(implicit) if prompt_name.startswith("dialogue") else ("", implicit.strip())
    text = _bare(answer.strip_thinking(response))
    if question:
        text = _DASH.sub("", text)
        if text.casefold().startswith(question.casefold()):
            text = _DASH.sub("", text[len(question) :].lstrip())
        match = _DIALOGUE.match(f"- {text}")
        text = _bare(match["answer"] if match and "?" in (match["question"] or "").replace("？", "?")[-2:] else text)
    reason = find_fault(
        empty=not text,
        refusal=bool(_REFUSAL.match(text.replace("’", "'"))),
        echo=text.casefold() == hint.casefold(),
        other_language=answer.has_han(text) != answer.has_han(implicit),
        too_long=len(text) > max(4 * len(implicit), TOO_LONG),
    )
    explicit = f"- {question} - {text}" if question else text
    return Parsed(None if reason else explicit, reason)


def _split_dialogue(text: str) -> tuple[str, str]:
    if not (match := _DIALOGUE.match(text.strip())):
        return "", text.strip()
    return (match["question"] or match["words"]).strip(), match["answer"].strip()


def _bare(text: str) -> str:
    text = text.strip()
    for _ in range(ROUNDS):
        before, text = text, _unmarked(_without_lead(text))
        text = _LABEL.sub("", text[1:-1].strip() if _QUOTED.match(text) else text)
        text = _inside(_EMPHASIS, _inside(_FENCE, text))
        if text == before:  # a note may stand inside a frame, so frames are opened first
            text = _NOTE.sub("", text).strip()
        if text == before:
            break
    return text


def _without_lead(text: str) -> str:
    if not (match := _BEFORE_COLON.match(text)):
        return text
    lead = _LEAD_ON_ITS_LINE if match["line"] else _LEAD_ANYWHERE
    return text[match.end() :] if lead.fullmatch(_SURE.sub("", match["words"])) else text


def _inside(frame: re.Pattern[str], text: str) -> str:
    return match["inside"].strip() if (match := frame.match(text)) else text


def _unmarked(text: str) -> str:
    if not (match := _ANGLES.match(text)):
        return text
    inside = match["inside"].strip()
    return match["after"] or ("" if _IS_LABEL.match(inside) else inside)
