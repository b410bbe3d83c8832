"""What raters say of a comment: eight kinds of information, each with a closed set of values (CSD, section 3.2).

A label is one value for one field (CSD-14), always text: in most fields a tag, `1` for contains, `-1` for does not, `0`
for unsure (CSD-10); sentiment uses the same three for positive, negative and neutral, as the scheme it cites does;
emotion is one of Plutchik's eight or `None` (CSD-11). Beside them stand optional notes: where the hidden meaning lies
(CSD-04) and what it is (CSD-03).

The paper calls subtext class 0 in one place and 1 in another; here it is `1` throughout (CSD-13, errata E7).
"""

import hashlib
import json
import re
from typing import NamedTuple

from pipeline.errors import BadInput

YES, UNSURE, NO = "1", "0", "-1"
TAGS = (YES, UNSURE, NO)
EMOTIONS = ("anger", "fear", "disgust", "trust", "joy", "surprise", "anticipation", "sad", "None")


class Field(NamedTuple):
    """A kind of information: its values, and what raters are asked, in Chinese and English."""

    name: str
    values: tuple[str, ...]
    zh: str
    en: str


FIELDS = {
    field.name: field
    for field in (
        Field("subtext", TAGS, "有潜台词吗？", "Does it mean more than it says?"),
        Field("sarcasm", TAGS, "有讽刺吗？", "Is it sarcastic?"),
        Field("metaphor", TAGS, "有隐喻吗？", "Does it use a metaphor?"),
        Field("exaggeration", TAGS, "有夸张吗？", "Does it exaggerate?"),
        Field("homophonic", TAGS, "有谐音吗？", "Does it play on sound?"),
        Field("sentiment", TAGS, "态度是褒、中性还是贬？", "Positive, neutral or negative?"),
        Field("emotion", EMOTIONS, "表达了哪种情绪？", "Which emotion does it show?"),
        Field("other", TAGS, "有其他修辞吗？", "Does it use another figure of speech?"),
    )
}
"""The eight kinds of information by name, in the paper's order (CSD-09)."""

NOTES = {
    "span": ("言外之意在哪几个字？（起-止）", "Where does the hidden meaning lie? (from-to)"),
    "plain": ("换成直白的词怎么说？", "How would it read in plain words?"),
    "meaning": ("真正的意思是什么？", "What does it really mean?"),
    "rhetoric": ("其他修辞的名称", "Name of the other figure of speech"),
}
"""Optional notes of a rater, with what is asked; they are no labels and are not adjudicated."""

_SPAN = re.compile(r"(\d+)-(\d+)")
_NAMES = {
    "yes": {YES: "有", UNSURE: "不确定", NO: "没有"},
    "sentiment": {YES: "褒", UNSURE: "中性", NO: "贬"},
}
_EMOTIONS_ZH = dict(
    zip(EMOTIONS, ("愤怒", "恐惧", "厌恶", "信任", "喜悦", "惊讶", "期待", "悲伤", "没有"), strict=True)
)


def checked(field: str, value: object) -> str:
    """The value as it is stored.

    Numbers that spreadsheets make of tags (1, 1.0, "1.0", "+1") are taken for the tags; emotions in any case.

    Raises:
        BadInput: there is no such field, or the value is none of its own.
    """
    if field not in FIELDS:
        raise BadInput(f"no field {field!r}; there are {', '.join([*FIELDS, *NOTES])}")
    said = str(value).strip()
    known = {name.casefold(): name for name in FIELDS[field].values}
    if FIELDS[field].values is TAGS and re.fullmatch(r"[+-]?[01](?:\.0+)?", said):
        said = str(int(float(said)))
    if said.casefold() not in known:
        raise BadInput(f"{field} should be one of {', '.join(FIELDS[field].values)}, found {said[:40]!r}")
    return known[said.casefold()]


def span_of(value: object, text: str) -> tuple[int, int]:
    """Start and end of a span note, as offsets into the text, the end not included.

    Raises:
        BadInput: it is not `start-end` within the text.
    """
    found = _SPAN.fullmatch(str(value).strip())
    start, end = (int(found[1]), int(found[2])) if found else (0, 0)
    if not start < end <= len(text):
        raise BadInput(f"span should be start-end within 0-{len(text)}, found {str(value)[:40]!r}")
    return start, end


def value_name(field: str, value: str, lang: str) -> str:
    """What raters read for a value, in Chinese or English (`lang` zh or en)."""
    if field == "emotion":
        return _EMOTIONS_ZH[value] if lang == "zh" else value.lower()
    if lang == "zh":
        return _NAMES.get(field, _NAMES["yes"])[value]
    english = ("positive", "neutral", "negative") if field == "sentiment" else ("yes", "unsure", "no")
    return dict(zip(TAGS, english, strict=True))[value]


def version() -> str:
    """The first 12 digits of a hash of fields and values: which schema a label was given under."""
    told = json.dumps({name: field.values for name, field in FIELDS.items()})
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def paper_class_index(subtext: str) -> int | None:
    """0 for subtext and 1 for none, as the paper's introduction counts; None where raters were unsure (CSD-13)."""
    return {YES: 0, NO: 1}.get(subtext)
