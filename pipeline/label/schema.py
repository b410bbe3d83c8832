"""What raters say of a comment: eight kinds of information, each with a closed set of values (CSD, section 3.2).

A label is one text for one field (CSD-14); subtext is `1` for contains throughout (CSD-10, 11 and 13, errata E7).
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pipeline.errors import BadInput

YES, UNSURE, NO = "1", "0", "-1"
TAGS = (YES, UNSURE, NO)
VERDICTS = AGAIN, DELETE = ("again", "delete")
"""What an adjudicator may answer instead of a value: label the field again, or delete it (CSD-15)."""
EMOTIONS = ("anger", "fear", "disgust", "trust", "joy", "surprise", "anticipation", "sad", "None")
Bilingual = tuple[str, str]  # words for raters, in Chinese and English
_PRESENCE = (("有", "yes"), ("不确定", "unsure"), ("没有", "no"))
_SENTIMENTS = (("褒", "positive"), ("中性", "neutral"), ("贬", "negative"))
_EMOTIONS_ZH = ("愤怒", "恐惧", "厌恶", "信任", "喜悦", "惊讶", "期待", "悲伤", "没有")
_FEELINGS = tuple((zh, value.lower()) for zh, value in zip(_EMOTIONS_ZH, EMOTIONS, strict=True))


class Field(NamedTuple):
    """A kind of information: its values, what raters are asked, and what they read for each value."""

    name: str
    values: tuple[str, ...]
    zh: str
    en: str
    names: tuple[Bilingual, ...] = _PRESENCE


class Form(NamedTuple):
    """What raters are shown and asked: the same for all tasks of a project, as comments and passages are data."""

    fields: Mapping[str, Field]
    notes: Mapping[str, Bilingual] = {}  # optional, with what is asked; free text, or a span
    spans: Mapping[str, Bilingual] = {}  # those of the notes that are start-end, with the name of the mark
    headers: Mapping[str, Bilingual] = {}  # what `text` and `context` of a task are called
    marked: str = "text"  # what spans are offsets into: text or context
    may_quote: bool = False  # a span may come as the words themselves, as counting to its place is hard
    first: str = ""  # the field that is answered before the context is read; none by default
    notes_of: Mapping[str, str] = {}  # the field that a note explains; it is asked with that field alone

    def get_question(self, name: str, lang: str) -> str:
        """Return what is asked of a field or note, in Chinese or English (`lang` zh or en)."""
        field = self.fields.get(name)
        texts = self.notes[name] if field is None else (field.zh, field.en)
        return texts[lang == "en"]


FIELDS = {
    field.name: field
    for field in (
        Field("subtext", TAGS, "有潜台词吗？", "Does it mean more than it says?"),
        Field("sarcasm", TAGS, "有讽刺吗？", "Is it sarcastic?"),
        Field("metaphor", TAGS, "有隐喻吗？", "Does it use a metaphor?"),
        Field("exaggeration", TAGS, "有夸张吗？", "Does it exaggerate?"),
        Field("homophonic", TAGS, "有谐音吗？", "Does it play on sound?"),
        Field("sentiment", TAGS, "态度是褒、中性还是贬？", "Positive, neutral or negative?", _SENTIMENTS),
        Field("emotion", EMOTIONS, "表达了哪种情绪？", "Which emotion does it show?", _FEELINGS),
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
CSD = Form(
    FIELDS,
    NOTES,
    {"span": ("言外之意", "Span")},
    {"text": ("评论", "Comment"), "context": ("上文", "Context")},
    notes_of=dict.fromkeys(("span", "plain", "meaning"), "subtext") | {"rhetoric": "other"},
)
"""The form for comments and their subtext."""
_SPAN = re.compile(r"(\d+)\s*-\s*(\d+)")


def check_fields(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of fields of CSD; raise BadInput for any other name."""
    names = tuple(names)
    if unknown_fields := [name for name in names if name not in FIELDS]:
        raise BadInput(f"no field {unknown_fields[0]!r}; there are {', '.join(FIELDS)}")
    return names


def list_values(field: str, stage: int, form: Form = CSD) -> tuple[str, ...]:
    """List the valid answers to a field: its values, and in stage 2 also `VERDICTS`."""
    return form.fields[field].values + (VERDICTS if stage == 2 else ())


def normalise_value(field: str, value: object, form: Form = CSD) -> str:
    """Normalise a value to its stored form: any case, numbers as spreadsheets write them (1, 1.0); or BadInput."""
    if field not in form.fields:
        raise BadInput(f"no field {field!r}; there are {', '.join([*form.fields, *form.notes])}")
    text, values = str(value).strip(), form.fields[field].values
    value_by_name = {name.casefold(): name for name in values}
    if re.fullmatch(r"[+-]?[0-9](?:\.0+)?", text):
        text = str(int(float(text)))
    if text.casefold() not in value_by_name:
        raise BadInput(f"{field} should be one of {', '.join(values)}, found {str(value).strip()[:40]!r}")
    return value_by_name[text.casefold()]


def parse_span(value: object, text: str, name: str = "span", *, may_quote: bool = False) -> tuple[int, int]:
    """Parse `start-end`, offsets into a text, the end not included; if it `may_quote`, also words that stand there."""
    text_value = str(value).strip()
    start, end = (int(match[1]), int(match[2])) if (match := _SPAN.fullmatch(text_value)) else (0, 0)
    if start < end <= len(text):
        return start, end
    if may_quote and (offsets := _find_words(text_value, text)):
        return offsets
    or_words = " or words that stand there" if may_quote else ""
    raise BadInput(f"{name} should be start-end within 0-{len(text)}{or_words}, found {str(value)[:40]!r}")


def _find_words(words: str, text: str) -> tuple[int, int] | None:
    """Find where words first stand in a text, whatever the blanks between them; in linear time, unlike a pattern."""
    runs = [(run.start(), run[0]) for run in re.finditer(r"\s+|\S", text)]  # a run of blanks counts as one
    normalised = " ".join(words.split())
    place = "".join(" " if run.isspace() else run for _, run in runs).find(normalised) if normalised else -1
    return None if place < 0 else (runs[place][0], runs[place + len(normalised) - 1][0] + 1)


def get_value_name(field: str, value: str, lang: str, form: Form = CSD) -> str:
    """Return what raters read for a value, in Chinese or English (`lang` zh or en)."""
    schema_field = form.fields[field]
    return schema_field.names[schema_field.values.index(value)][lang == "en"]


def hash_schema(form: Form = CSD) -> str:
    """Return the first 12 digits of a hash of fields and values: which schema a label was given under."""
    content = json.dumps({name: field.values for name, field in form.fields.items()})
    return hashlib.sha256(content.encode()).hexdigest()[:12]
