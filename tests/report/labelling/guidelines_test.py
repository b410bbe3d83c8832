"""The raters' guidelines: they ask for what the schema holds, the same in both languages, on a page of its own."""

from collections import Counter
from html.parser import HTMLParser
from typing import NamedTuple

import pytest

from pipeline.errors import BadInput
from pipeline.label import schema
from pipeline.report.labelling.guidelines import LANGS, render
from tests.support.pages import check_offline

VOID = {"meta", "br", "hr"}
BLOCKS = {"h1", "h2", "h3", "p", "ul", "ol", "li", "table", "tr", "th", "td", "blockquote"}


class Cell(NamedTuple):
    """A table's cell: its text, and what of it is code."""

    text: str
    codes: list[str]


class Guidelines(HTMLParser):
    """Tables of a page as rows of cells, under the codes of the heading before them; faults of nesting."""

    def __init__(self, lang: str) -> None:
        super().__init__()
        self.html = render(lang)
        self.open: list[str] = []
        self.faults: list[str] = []
        self.blocks: list[str] = []
        self.codes: list[str] = []
        self.quote = ""
        self.tables: list[tuple[str, list[list[Cell]]]] = []
        self.heading = ""
        self.feed(self.html)
        self.close()
        self.faults += self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "html":
            self.lang = dict(attrs)["lang"]
        if tag not in VOID:
            self.open.append(tag)
        if tag in BLOCKS:
            self.blocks.append(tag)
        if tag in {"h2", "h3"}:
            self.heading = ""
        if tag == "table":
            self.tables.append((self.heading, []))
        if tag == "tr":
            self.tables[-1][1].append([])
        if tag in {"td", "th"}:
            self.tables[-1][1][-1].append(Cell("", []))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        is_code = "code" in self.open
        if is_code:
            self.codes.append(data)
            if {"h2", "h3"} & {*self.open}:
                self.heading = data
        if "blockquote" in self.open:
            self.quote += data.strip()
        if {"td", "th"} & {*self.open}:
            row = self.tables[-1][1][-1]
            row[-1] = Cell(row[-1].text + data, [*row[-1].codes, *[data] * is_code])

    def get_row(self, code: str, width: int, heading: str = "") -> list[Cell]:
        """Return the one row that begins with `code`, of the tables `width` columns wide under the heading."""
        tables = [table for title, table in self.tables if title == heading]
        (row,) = [row for table in tables for row in table if len(row) == width and row[0].codes == [code]]
        return row

    def list_examples(self) -> list[tuple[str, list[Cell]]]:
        """List rows of context, comment, label and reason, each with the field it is about."""
        tables = [t for _, t in self.tables if len(t[0]) == 4 and t[0][2].codes]
        return [(t[0][2].codes[0], row) for t in tables for row in t[1:]]


@pytest.fixture(scope="module", params=LANGS)
def lang(request: pytest.FixtureRequest) -> str:
    """Each language."""
    return str(request.param)


@pytest.fixture(scope="module")
def page(lang: str) -> Guidelines:
    """The page of the language, read."""
    return Guidelines(lang)


def test_page_is_sound(lang: str, page: Guidelines) -> None:
    """It needs no network, elements are closed in order, it names its language and schema; paper stays white."""
    check_offline(page.html)
    assert "://" not in page.html
    assert page.faults == []
    assert [t for _, t in page.tables if len({len(row) for row in t}) != 1] == []
    assert page.lang == LANGS[lang]
    assert "@media screen and (prefers-color-scheme: dark)" in page.html
    assert "@media print" in page.html
    assert page.codes[-1] == schema.hash_schema()


def test_every_field_is_asked_for(lang: str, page: Guidelines) -> None:
    """Each field of the schema stands once in the overview, with its question and exactly its values."""
    for name, field in schema.FIELDS.items():
        _, question, values = page.get_row(name, 3)
        assert question.text == schema.CSD.get_question(name, lang)
        assert sorted(values.codes) == sorted(field.values)


def test_every_value_has_a_name(lang: str, page: Guidelines) -> None:
    """Tags are named as in the schema, for sentiment and for the others, and every emotion has a definition."""
    for tag in schema.TAGS:
        _, sentiment, others = page.get_row(tag, 3)
        assert sentiment.text == schema.get_value_name("sentiment", tag, lang)
        assert others.text.startswith(schema.get_value_name("subtext", tag, lang))
    for emotion in schema.EMOTIONS:
        _, name, definition = page.get_row(emotion, 3, "emotion")
        assert name.text == schema.get_value_name("emotion", emotion, lang)
        assert len(definition.text) > 5


def test_every_field_has_examples(page: Guidelines) -> None:
    """Each field has a section of its own with two or three examples, labelled with different values of the field.

    One sentence stands there in two contexts with two labels of subtext (CSD-01).
    """
    assert {field for field, _ in page.tables if field} == {*schema.FIELDS}
    labels: dict[str, list[str]] = {field: [] for field in schema.FIELDS}
    for heading, table in page.tables:
        if heading and len(table[0]) == 4:
            assert table[0][2].codes == [heading]
            labels[heading] += [schema.normalise_value(heading, row[2].text) for row in table[1:]]
    assert {field: values for field, values in labels.items() if not 2 <= len(values) <= 3} == {}
    assert [field for field, values in labels.items() if len(set(values)) < 2] == []
    subtexts = [(row[1].text, row[2].text) for field, row in page.list_examples() if field == "subtext"]
    assert any({(comment, "1"), (comment, "-1")} <= {*subtexts} for comment, _ in subtexts)


def test_every_note_and_verdict_is_explained(lang: str, page: Guidelines) -> None:
    """Each optional note stands there with its question, and the span of the example is one that the schema takes.

    Both answers of an adjudicator that are no value stand there as they are to be given (CSD-15).
    """
    for note in schema.NOTES:
        assert page.get_row(note, 4)[1].text == schema.CSD.get_question(note, lang)
    span = page.get_row("span", 4)[3]
    start, end = schema.parse_span(span.codes[0], page.quote)
    assert span.text.endswith(page.quote[start:end])
    assert {*schema.VERDICTS} <= {*page.codes}


def test_languages_say_the_same() -> None:
    """Both pages have the same headings, lists and tables in the same order, and the same codes and labels."""
    zh, en = (Guidelines(lang) for lang in ("zh", "en"))
    assert zh.blocks == en.blocks
    spans = {page.get_row("span", 4)[3].codes[0] for page in (zh, en)}
    zh_codes, en_codes = (Counter(code for code in page.codes if code not in spans) for page in (zh, en))
    assert zh_codes == en_codes
    zh_labels, en_labels = ([(field, row[2].text) for field, row in page.list_examples()] for page in (zh, en))
    assert zh_labels == en_labels


def test_no_other_language() -> None:
    """A language without guidelines is refused, with those there are."""
    with pytest.raises(BadInput, match=r"one of zh, en, found '\.\./en'"):
        render("../en")
