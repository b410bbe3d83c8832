"""A view of a corpus: which comments, in which order. It stands as JSON in the address of the page."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from pipeline.errors import BadInput

NUMBER, DATE, CHOICE = "number", "date", "choice"
_KINDS = {NUMBER: "double", DATE: "date", CHOICE: "varchar"}


class Column(NamedTuple):
    """A column that a page filters and sorts by."""

    name: str
    label: str
    kind: str  # number, date or choice
    is_score: bool = False
    low: Any = None  # of the bins, as `scale` counts
    step: float = 1.0
    bins: int = 0
    is_log: bool = False  # bins double in width, from 0
    values: tuple[str, ...] = ()  # of a choice

    @property
    def scale(self) -> str:
        """The SQL that makes a number of a value, by which it has its bin."""
        if self.kind == DATE:
            return f"({self.name} - date '1970-01-01')"
        return f"log2({self.name} + 1)" if self.is_log else self.name


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


def parse_view(text: str, columns: Mapping[str, Column]) -> View:
    """Parse a view from JSON, as it is or as the part of an address after `#`; other fields are the page's own.

    Raises:
        BadInput: it is no JSON object of these fields, or names a column that there is not.
    """
    text = unquote(text.rpartition("#")[2]) if text.startswith(("http", "#", "%")) else text
    try:
        fields = json.loads(text or "{}")
        view = View(
            str(fields.get("search") or ""),
            {name: [str(value) for value in values] for name, values in fields.get("among", {}).items()},
            {name: (low, high) for name, (low, high) in fields.get("between", {}).items()},
            str(fields.get("sort") or "n"),
            bool(fields.get("descending")),
        )
    except (ValueError, TypeError, AttributeError) as error:
        expected = '{"search": "words", "among": {"lang": ["zh"]}, "between": {"likes": [10, null]}}'
        raise BadInput(f"this is no view: {text[:80]!r}; expected JSON such as {expected}") from error
    for names, kinds in ((view.among, (CHOICE,)), (view.between, (NUMBER, DATE)), ({view.sort}, (*_KINDS,))):
        for name in names:
            if not (name == "n" and names == {"n"}) and (name not in columns or columns[name].kind not in kinds):
                fitting = [column.name for column in columns.values() if column.kind in kinds]
                raise BadInput(f"no column {str(name)[:80]!r} for this; expected one of {', '.join(fitting)}")
    return view


def build_condition(view: View, columns: Mapping[str, Column], without: str = "") -> tuple[str, list[Any]]:
    """Build the condition of a view as SQL with its values; `without` is a column whose filter is left out."""
    terms = ["true"]
    values: list[Any] = []
    for word in view.search.split():
        terms.append("contains(folded, lower(?))")
        values.append(word)
    for name, choices in view.among.items():
        if name != without:
            terms.append(f"list_contains(?::varchar[], {name})")
            values.append(choices)
    for name, bounds in view.between.items():
        for sign, bound in zip((">=", "<="), bounds, strict=True):
            if name != without and bound is not None:
                terms.append(f"{name} {sign} ?::{_KINDS[columns[name].kind]}")
                values.append(bound)
    return " and ".join(terms), values
