"""The raters' guidelines: they ask for what the schema holds, the same in both languages, on a page of its own."""

import re
from collections import Counter
from importlib.resources import files
from typing import NamedTuple

import pytest

from pipeline.errors import BadInput
from pipeline.label import schema
from pipeline.report.labelling.data_card import GUIDELINE_LANGS, render_guidelines
from tests.support.pages import check_offline


class Cell(NamedTuple):
    """A table's cell: its text, and what of it is code."""

    text: str
    codes: list[str]


class Guidelines:
    """The guidelines of a language as text: the kinds of their lines, their codes, and tables by the heading's code."""

    def __init__(self, lang: str) -> None:
        path = files("pipeline.label").joinpath("guidelines", f"{lang}.md")
        lines = path.read_text(encoding="utf-8").splitlines()
        self.kinds = [match[0] for line in lines if (match := re.match(r"#+ |- |\d\. |> |\|", line))]
        self.codes = re.findall("`([^`]+)`", "\n".join(lines))
        self.quote = "".join(line.removeprefix("> ").strip() for line in lines if line.startswith("> "))
        self.tables: list[tuple[str, list[list[Cell]]]] = []
        heading = ""
        for line, before in zip(lines, ["", *lines], strict=False):
            if line.startswith("##"):
                heading = "".join(re.findall("`([^`]+)`", line))
            if line.startswith("|"):
                if not before.startswith("|"):
                    self.tables.append((heading, []))
                cells = [cell.strip() for cell in line.strip("|").split("|")]
                row = [Cell(re.sub("[`*]", "", cell), re.findall("`([^`]+)`", cell)) for cell in cells]
                if not line.startswith("|--"):
                    self.tables[-1][1].append(row)

    def get_row(self, code: str, width: int, heading: str = "") -> list[Cell]:
        """Return the one row that begins with `code`, of the tables `width` columns wide under the heading."""
        tables = [table for title, table in self.tables if title == heading]
        (row,) = [row for table in tables for row in table if len(row) == width and row[0].codes == [code]]
        return row

    def list_examples(self) -> list[tuple[str, list[Cell]]]:
        """List rows of context, comment, label and reason, each with the field it is about."""
        tables = [t for _, t in self.tables if len(t[0]) == 4 and t[0][2].codes]
        return [(t[0][2].codes[0], row) for t in tables for row in t[1:]]


@pytest.fixture(scope="module", params=GUIDELINE_LANGS)
def lang(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def page(lang: str) -> Guidelines:
    return Guidelines(lang)


def test_page_is_sound(lang: str, page: Guidelines) -> None:
    """It needs no network, has all tables and codes, names its language and schema; paper stays white."""
    html = render_guidelines(lang)
    check_offline(html)
    assert "://" not in html
    assert [t for _, t in page.tables if len({len(row) for row in t}) != 1] == []
    assert html.count("<tr>") == sum(len(rows) for _, rows in page.tables)
    assert f'<html lang="{GUIDELINE_LANGS[lang]}"' in html
    assert "@media screen and (prefers-color-scheme: dark)" in html
    assert "@media print" in html
    codes = re.findall("<code>(.*?)</code>", html)
    assert (codes[:-1], codes[-1]) == (page.codes, schema.hash_schema())


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
    assert zh.kinds == en.kinds
    spans = {page.get_row("span", 4)[3].codes[0] for page in (zh, en)}
    zh_codes, en_codes = (Counter(code for code in page.codes if code not in spans) for page in (zh, en))
    assert zh_codes == en_codes
    zh_labels, en_labels = ([(field, row[2].text) for field, row in page.list_examples()] for page in (zh, en))
    assert zh_labels == en_labels


def test_no_other_language() -> None:
    """A language without guidelines is refused, with those there are."""
    with pytest.raises(BadInput, match=r"one of zh, en, found '\.\./en'"):
        render_guidelines("../en")
