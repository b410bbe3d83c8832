"""The label schema: closed sets, what spreadsheets make of tags, spans, and the paper's sample rows."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import tables
from pipeline.errors import BadInput
from pipeline.label import label_files, schema
from pipeline.label.schema import EMOTIONS, FIELDS, NOTES, TAGS, get_value_name, normalise_value, parse_span

# the values of CSD, table 1, by row, in the order of the paper's columns
TABLE_1 = ("1 -1 1 -1 -1 anticipation 0 -1", "1 0 1 -1 -1 sad -1 -1", "1 1 -1 -1 -1 None 0 -1")
COLUMNS = "subtext sarcasm metaphor exaggeration homophonic emotion sentiment other"


def test_there_are_eight_closed_fields() -> None:
    """Eight kinds of information in the paper's order, all published; three tags, nine emotions (CSD-09 to CSD-11)."""
    assert " ".join(FIELDS) == "subtext sarcasm metaphor exaggeration homophonic sentiment emotion other"
    assert TAGS == ("1", "0", "-1")
    assert len(EMOTIONS) == len(set(EMOTIONS)) == 9
    assert all(field.values == (EMOTIONS if name == "emotion" else TAGS) for name, field in FIELDS.items())
    assert not set(FIELDS) & set(NOTES)
    columns = tables.AnnotatedComments.columns()
    assert set(FIELDS) <= set(columns)
    for name in set(FIELDS) - {"emotion"}:
        assert all(re.fullmatch(str(getattr(columns[name], "regex", "")), value) for value in FIELDS[name].values)


@pytest.mark.parametrize("cells", TABLE_1)
def test_rows_of_table_1_are_read(cells: str, tmp_path: Path) -> None:
    """Each printed sample is stored as it stands, from a sheet with a sentence of our own (CSD-32)."""
    path, columns = tmp_path / "table_1.csv", COLUMNS.split()
    lines = (["task_id", "rater_id", "text", *columns], ["0" * 32, "anna", "今天的风真大", *cells.split()])
    path.write_text("\n".join(map(",".join, lines)), encoding="utf-8")
    values = dict(label_files.read(path, None).select("field", "value").iter_rows())
    assert values == dict(zip(columns, cells.split(), strict=True))
    assert set(values) == set(FIELDS)


@pytest.mark.parametrize(
    ("field", "value", "stored"),
    [
        *(("sarcasm", value, "1") for value in (1, 1.0, "1.0", "+1", " 1 ")),
        *(("sarcasm", value, "0") for value in (0, 0.0, -0.0, "-0")),
        *(("sarcasm", value, "-1") for value in (-1, -1.0, "-1.00")),
        *(("emotion", value, "None") for value in ("None", "NONE", None)),
        ("emotion", " Joy ", "joy"),
    ],
)
def test_values_are_read_as_spreadsheets_write_them(field: str, value: object, stored: str) -> None:
    """Numbers, signs, case and spaces make no difference; the ninth emotion is that there is none."""
    assert normalise_value(field, value) == stored


@given(st.sampled_from(sorted(FIELDS)), st.text(max_size=6))
def test_what_is_stored_is_of_the_set(field: str, value: str) -> None:
    """Whatever is given, what comes out is one of the field's values, and reading it again changes nothing (CSD-14)."""
    try:
        stored = normalise_value(field, value)
    except BadInput:
        return
    assert stored in FIELDS[field].values
    assert normalise_value(field, stored) == stored


@given(st.text(min_size=1, max_size=20), st.data())
def test_spans_within_the_text_are_read(text: str, data: st.DataObject) -> None:
    """Any start-end within the text is read, the end not included (CSD-04)."""
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    assert parse_span(f" {start}-{end} ", text) == parse_span(f"{start} - {end}", text) == (start, end)


def test_the_version_is_stable() -> None:
    """The version is of fields and values: a field less, or a value more, is another; other words are the same."""
    assert schema.hash_schema() == "c25ca55507b4"
    other = FIELDS["other"]
    for fields, is_same in (
        ({name: field for name, field in FIELDS.items() if name != "other"}, False),
        (FIELDS | {"other": other._replace(values=(*TAGS, "2"))}, False),
        (FIELDS | {"other": other._replace(en="Any other figure?")}, True),
    ):
        assert (schema.hash_schema(schema.CSD._replace(fields=fields)) == "c25ca55507b4") == is_same


def test_values_have_names_in_both_languages() -> None:
    """Raters read distinct names for a field's values; 0 is unsure, of sentiment neutral (CSD-10)."""
    for name, field in FIELDS.items():
        for lang in ("zh", "en"):
            assert len({get_value_name(name, value, lang) for value in field.values}) == len(field.values)
    assert get_value_name("sarcasm", "0", "en") == "unsure"
    assert get_value_name("sentiment", "0", "en") == "neutral"
    assert get_value_name("sentiment", "-1", "zh") == "贬"
