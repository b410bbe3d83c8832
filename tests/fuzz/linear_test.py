"""What reads texts of strangers takes time that grows with their length: tried with 3, 30 and 300 kB."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from pipeline.collect.clean import normalise
from pipeline.collect.privacy.particulars import scrub
from pipeline.collect.sites.markup import extract_exported, extract_text
from pipeline.errors import BadInput
from pipeline.examples.sources import published
from pipeline.io.lines import parse_json
from pipeline.io.visible import escape_invisible, unescape_invisible
from pipeline.label import schema
from pipeline.llm.questions import answer, explicit, graded, judging, problematic, recovery
from pipeline.text import segment, sentences, trees
from pipeline.text.language import detect_language
from tests.fuzz.run import within
from tests.support.growth import HANG, SIZES, check_growth, repeated


def _quote(text: str) -> None:
    with pytest.raises(BadInput):
        schema.parse_span(text[: len(text) // 2] + " q", text, may_quote=True)


AMPERSANDS = [repeated("amp;", "&"), repeated("#38;", "&"), lambda n: "&#" * (n // 4) + "53;" + "3;" * (n // 4)]
TAGS = [
    repeated(part) for part in ("<a ", "<a b='", "<a b=\"'", "<!--", "<![CDATA[", "<?", "</a ", "<p>", "<img alt=x ")
]
MARKS = [
    repeated(part, before)
    for part in ('"', "“", "`", "*", "_", " ", "(", '{"', '{"a":[', "\n", "答案", "Answer: ")
    for before in ("", "- a")
]

READERS: dict[str, tuple[Callable[[str], object], list[Callable[[int], str]]]] = {
    "clean": (lambda text: normalise(pl.Series("text", [text])), AMPERSANDS),
    "markup": (extract_text, [*TAGS, *AMPERSANDS]),
    "exported": (extract_exported, TAGS),
    "private particulars": (scrub, [repeated(part) for part in ("qq1", "@a", "138 ", "a@a.", "http://", "回复@a:", "a.", "1")]),
    "language": (lambda text: pl.DataFrame({"text": [text]}).select(detect_language()), [repeated("["), repeated("http://")]),
    "visible": (escape_invisible, [repeated("\u202e"), repeated("⟨U+")]),
    "hidden": (unescape_invisible, [repeated("⟨U+202E⟩"), repeated("⟨U+")]),
    "sentences": (sentences._SENTENCE.findall, [repeated("。"), repeated("a"), repeated('."')]),
    "units": (segment.UNIT.findall, [repeated("a'"), repeated("'")]),
    "codes": (segment.CODE.split, [repeated("[a"), repeated("[")]),
    "JSON": (parse_json, [lambda n: "[" + "1," * (n // 2) + "1]", lambda n: '{"a": "' + "\\ud83d" * (n // 6) + '"}']),
    "explicit": (lambda text: explicit.parse(text, "Nice hat.", "explicit_en"), [*MARKS, repeated("\n*"), repeated("Sure, ")]),
    "dialogue": (lambda text: explicit.parse("Nice hat.", text, "dialogue_en"), [repeated(" ", "-", "b"), repeated(" ", "- a", "b"), repeated("? "), repeated("- ")]),
    "recovery": (lambda text: recovery.parse(text, "你可真准时"), MARKS),
    "choice": (lambda text: recovery.parse_choice(text, 4), [*MARKS, repeated(" ", "A,", "x")]),
    "labels": (lambda text: judging.parse_labels(text, judging.PAIR), MARKS),
    "graded": (lambda text: graded.parse(text, "en"), MARKS),
    "problematic": (problematic.parse, [*MARKS, repeated("* ", "answer")]),
    "reasoning": (answer.strip_thinking, [repeated("<think>"), repeated("</think>")]),
    "quotation": (_quote, [repeated("a "), repeated("a")]),
    "snarks": (published._OPTIONS.match, [repeated("(a)"), repeated("(a)(b")]),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_time_grows_with_the_length(name: str) -> None:
    """Ten times the text takes about ten times as long, whatever the text."""
    read, texts = READERS[name]
    for text in texts:
        check_growth(read, text)


def test_a_chain_of_words_takes_no_square() -> None:
    """A tree in which each word hangs on the one before it is measured in linear time."""
    for size in SIZES:
        with within(HANG):
            trees.measure_depths([*range(-1, size // 10)])


def test_nested_entities_are_decoded_or_made_plain() -> None:
    """Entities that were escaped a few times are decoded; after more rounds than that no entity is left in a text."""
    texts = ["&amp;amp;lt;b&amp;#103;", "&" + "amp;" * 100 + "lt;", "&#" + "9" * 5_000 + ";", None]
    nested = normalise(pl.Series(texts))
    assert "&" not in nested[1]
    assert [nested[0], *nested[2:]] == ["<bg", "\ufffd", None]
    assert normalise(nested).equals(nested)


@pytest.mark.parametrize("size", [5, 5_000])
def test_numbers_of_entities_have_any_length(size: int, tmp_path: Path) -> None:
    """An entity of thousands of digits is no character, and one with leading zeros is its character."""
    assert extract_text("<b>&#" + "9" * size + ";</b>") == ("\ufffd" if size > 5 else "\U0001869f")
    assert extract_text("<b>&#" + "0" * size + "65;</b>") == "A"
