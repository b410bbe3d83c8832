"""A view of a corpus: which comments, in which order. It stands as JSON in the address of the page."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from pipeline.errors import BadInput, check_name

NUMBER, DATE, CHOICE = "number", "date", "choice"
_KINDS = {NUMBER: "double", DATE: "date", CHOICE: "varchar"}


class Column(NamedTuple):
    """A column that a page filters and sorts by."""

    name: str
    label: str
    kind: str  # number, date or choice
    scale: str  # the SQL that makes a number of a value, by which it has its bin
    is_score: bool = False
    low: Any = None  # of the bins
    step: float = 1.0
    bins: int = 0
    is_log: bool = False  # bins double in width, from 0
    values: tuple[str, ...] = ()  # of a choice


class View(NamedTuple):
    """The filters of a view and its order."""

    search: str = ""  # words that are all in the text, in any case
    among: Mapping[str, list[str]] = {}  # values of choices
    between: Mapping[str, tuple[Any, Any]] = {}  # lowest and highest number or date, None without a bound
    sort: str = "n"
    descending: bool = False

    @property
    def order(self) -> str:
        """The SQL of the order."""
        return f"{self.sort}{' desc' * self.descending}, n"


def decode_view(text: str) -> str:
    """Return the JSON of a view that may be the address of a page, or the part of it after `#`."""
    return unquote(text.rpartition("#")[2]) if text.startswith(("http", "#", "%")) else text


def parse_view(text: str, columns: Mapping[str, Column]) -> View:
    """Parse a view from JSON, as it is or as the part of an address after `#`; other fields are the page's own.

    BadInput if it is no JSON object of these fields, or names a column that there is not.
    """
    text = decode_view(text)
    try:
        fields = json.loads(text or "{}")
        among = {name: [*map(str, values)] for name, values in fields.get("among", {}).items()}
        between = {name: (low, high) for name, (low, high) in fields.get("between", {}).items()}
        search, sort = (str(fields.get(name) or "") for name in ("search", "sort"))
        view = View(search, among, between, sort or "n", bool(fields.get("descending")))
    except (ValueError, TypeError, AttributeError) as error:
        expected = '{"search": "words", "among": {"lang": ["zh"]}, "between": {"likes": [10, null]}}'
        raise BadInput(f"this is no view: {text[:80]!r}; expected JSON such as {expected}") from error
    names = {kind: [name for name, column in columns.items() if column.kind == kind] for kind in _KINDS}
    for name in [*among, *between, view.sort]:
        fitting = (
            names[CHOICE] if name in among else names[NUMBER] + names[DATE] if name in between else ["n", *columns]
        )
        check_name("column of this kind", name, fitting)
    return view


def build_condition(view: View, columns: Mapping[str, Column], without: str = "") -> tuple[str, list[Any]]:
    """Build the condition of a view as SQL with its values; `without` is a column whose filter is left out."""
    terms: list[tuple[str, Any]] = [("contains(folded, lower(?))", word) for word in view.search.split()]
    terms += [(f"list_contains(?::varchar[], {name})", view.among[name]) for name in view.among if name != without]
    for name, bounds in view.between.items():
        for sign, bound in zip((">=", "<="), bounds, strict=True):
            if name != without and bound is not None:
                terms.append((f"{name} {sign} ?::{_KINDS[columns[name].kind]}", bound))
    return " and ".join(["true", *(term for term, _ in terms)]), [value for _, value in terms]
