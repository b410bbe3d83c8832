"""The raters' guidelines: they ask for what the schema holds, the same in both languages, on a page of its own."""

from collections import Counter
from html.parser import HTMLParser
from typing import NamedTuple

import pytest

from pipeline.errors import BadInput
from pipeline.label import schema, stages
from pipeline.report.labelling.guidelines import LANGS, render
from tests.support.pages import Page, loads

VOID = {"meta", "br", "hr"}
BLOCKS = {"h1", "h2", "h3", "p", "ul", "ol", "li", "table", "tr", "th", "td", "blockquote"}


class Cell(NamedTuple):
    """A table's cell: what it says, and what of it is code."""

    text: str
    codes: list[str]


class Tables(HTMLParser):
    """Tables of a page as rows of cells, under the codes of the heading before them; faults of nesting."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.faults: list[str] = []
        self.blocks: list[str] = []
        self.codes: list[str] = []
        self.quote = ""
        self.tables: list[tuple[str, list[list[Cell]]]] = []
        self.heading = ""
        self.feed(html)
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
        if "code" in self.open:
            self.codes.append(data)
            if {"h2", "h3"} & {*self.open}:
                self.heading = data
        if "blockquote" in self.open:
            self.quote += data.strip()
        if {"td", "th"} & {*self.open}:
            cell = self.tables[-1][1][-1].pop()
            codes = [*cell.codes, data] if "code" in self.open else cell.codes
            self.tables[-1][1][-1].append(Cell(cell.text + data, codes))

    def row(self, code: str, width: int, heading: str = "") -> list[Cell]:
        """The one row that begins with `code`, of the tables `width` columns wide under the heading."""
        rows = [r for at, t in self.tables if at == heading for r in t if len(r) == width and r[0].codes == [code]]
        assert len(rows) == 1
        return rows[0]

    def examples(self) -> list[tuple[str, list[Cell]]]:
        """Rows of context, comment, label and reason, each with the field it is about."""
        tables = [t for _, t in self.tables if len(t[0]) == 4 and t[0][2].codes]
        return [(t[0][2].codes[0], row) for t in tables for row in t[1:]]


@pytest.fixture(scope="module", params=LANGS)
def lang(request: pytest.FixtureRequest) -> str:
    """Each language."""
    return str(request.param)


@pytest.fixture(scope="module")
def tables(lang: str) -> Tables:
    """The page of the language, read."""
    return Tables(render(lang))


def test_page_needs_no_network(lang: str) -> None:
    """Nothing on the page is loaded from anywhere, there is no script, and a policy forbids both."""
    found = Page(render(lang))
    assert loads(render(lang)) == []
    assert "://" not in render(lang)
    assert found.tags.isdisjoint({"script", "link", "iframe", "object", "embed", "img", "image", "form", "base"})
    policy = [attrs["content"] for _, attrs in found.elements if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]


def test_page_is_well_formed(lang: str, tables: Tables) -> None:
    """Elements are closed in order, the rows of a table are alike in width, and the page names its language."""
    assert tables.faults == []
    assert [t for _, t in tables.tables if len({len(row) for row in t}) != 1] == []
    assert tables.lang == LANGS[lang]


def test_page_for_light_dark_and_paper(lang: str) -> None:
    """The dark colours are for dark screens only: paper stays white."""
    assert "@media screen and (prefers-color-scheme: dark)" in render(lang)
    assert "@media print" in render(lang)


def test_every_field_is_asked_for(lang: str, tables: Tables) -> None:
    """Each field of the schema stands once in the overview, with its question and exactly its values."""
    for field in schema.FIELDS.values():
        _, question, values = tables.row(field.name, 3)
        assert question.text == getattr(field, lang)
        assert sorted(values.codes) == sorted(field.values)


def test_every_value_has_a_name(lang: str, tables: Tables) -> None:
    """Tags are told as the schema names them, for sentiment and for the others, and every emotion has a definition."""
    for tag in schema.TAGS:
        _, sentiment, others = tables.row(tag, 3)
        assert sentiment.text == schema.get_value_name("sentiment", tag, lang)
        assert others.text.startswith(schema.get_value_name("subtext", tag, lang))
    for emotion in schema.EMOTIONS:
        _, name, definition = tables.row(emotion, 3, "emotion")
        assert name.text == schema.get_value_name("emotion", emotion, lang)
        assert len(definition.text) > 5


def test_every_field_has_examples(tables: Tables) -> None:
    """Each field has a section of its own with two or three examples, labelled with different values of the field."""
    sections = [field for field, _ in tables.tables if field]
    assert sorted(set(sections)) == sorted(schema.FIELDS)
    given: dict[str, list[str]] = {field: [] for field in schema.FIELDS}
    for at, table in tables.tables:
        if at and len(table[0]) == 4:
            assert table[0][2].codes == [at]
            given[at] += [schema.normalise_value(at, row[2].text) for row in table[1:]]
    assert {field: len(labels) for field, labels in given.items() if not 2 <= len(labels) <= 3} == {}
    assert [field for field, labels in given.items() if len(set(labels)) < 2] == []


def test_context_decides(tables: Tables) -> None:
    """One sentence stands there in two contexts with two labels of subtext (CSD-01)."""
    labels: dict[str, set[str]] = {}
    for field, (_, comment, label, _) in tables.examples():
        if field == "subtext":
            labels.setdefault(comment.text, set()).add(label.text)
    assert {"1", "-1"} in labels.values()


def test_every_note_is_explained(lang: str, tables: Tables) -> None:
    """Each optional note stands there with its question, and the span of the example is one that the schema takes."""
    for note, questions in schema.NOTES.items():
        assert tables.row(note, 4)[1].text == questions[lang == "en"]
    span = tables.row("span", 4)[3]
    start, end = schema.parse_span(span.codes[0], tables.quote)
    assert span.text.endswith(tables.quote[start:end])


def test_the_adjudicator_is_told_what_to_answer(tables: Tables) -> None:
    """Both answers that are no value stand there as they are to be given (CSD-15)."""
    assert {stages.AGAIN, stages.DELETE} <= {*tables.codes}


def test_languages_say_the_same() -> None:
    """Both pages have the same headings, lists and tables in the same order, and the same codes and labels."""
    zh, en = (Tables(render(lang)) for lang in ("zh", "en"))
    assert zh.blocks == en.blocks
    spans = {zh.row("span", 4)[3].codes[0], en.row("span", 4)[3].codes[0]}
    assert Counter(c for c in zh.codes if c not in spans) == Counter(c for c in en.codes if c not in spans)
    assert [(f, row[2].text) for f, row in zh.examples()] == [(f, row[2].text) for f, row in en.examples()]


def test_the_schema_is_named(tables: Tables) -> None:
    """The foot of the page tells which schema the guidelines belong to."""
    assert tables.codes[-1] == schema.hash_schema()


def test_no_other_language() -> None:
    """A language without guidelines is refused, with those there are."""
    with pytest.raises(BadInput, match=r"one of zh, en, found '\.\./en'"):
        render("../en")
