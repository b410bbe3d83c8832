"""Fields of objects that people give in files: a value, or BadInput with place, field and what was expected."""

from collections.abc import Mapping
from typing import Any

from pipeline.errors import BadInput
from pipeline.io.visible import is_blank


def check_field(entry: Mapping[str, Any], field: str, location: str, expected: str, is_valid: object) -> Any:
    """Return the value of a field; raise BadInput if it is not valid."""
    if not is_valid:
        raise BadInput(f"{location}: field {field!r} should be {expected}, found {entry.get(field)!r:.60}")
    return entry[field]


def check_text(entry: Mapping[str, Any], field: str, location: str, *, may_be_blank: bool = False) -> str:
    """Return the text of a field without blanks around it."""
    value = entry.get(field)
    expected = "a text" if may_be_blank else "a text that is not blank"
    check_field(entry, field, location, expected, isinstance(value, str) and (may_be_blank or not is_blank(value)))
    return str(value).strip()


def check_choice(entry: Mapping[str, Any], field: str, location: str) -> list[str]:
    """Return the texts of a field that holds at least two, all different, none blank."""
    texts: list[str] = check_field(entry, field, location, "a list of texts", is_text_list(entry.get(field)))
    is_choice = 1 < len(texts) == len(set(texts)) and not any(map(is_blank, texts))
    check_field(entry, field, location, "at least two texts, all different, none blank", is_choice)
    return texts


def is_text_list(value: object, *, may_be_blank: bool = False) -> bool:
    """Return whether a value is a list of texts, by default of none that is blank."""
    return isinstance(value, list) and all(isinstance(text, str) and (may_be_blank or text.strip()) for text in value)


def is_index(value: object, count: int) -> bool:
    """Return whether a value is the index of one of so many things; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < count
