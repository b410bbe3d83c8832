"""What all pages are made of: parts with a sentence, a figure and a table, numbers as text, and the page around them.

Names are hostile data: whatever is not markup of our own is escaped, and its unseen characters are shown.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pipeline.errors import BadInput
from pipeline.io.visible import escape_invisible

BEST = "★ "  # stands before the best of a row or column
LONG = 16  # rows of a table that is open from the start


class Section(NamedTuple):
    """A part of the page. The first `texts` columns are words, the others numbers."""

    title: str
    sentence: str
    figure: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1


class Part(NamedTuple):
    """What rows make: sections, or a line that says they are missing.

    Columns are names with blanks between them; those that may be null end with a question mark. There is one row for
    each value of the keys, if there are keys.
    """

    about: str  # what is missing without it
    build: Callable[[Any], Section | Sequence[Section]]
    keys: str = ""
    others: str = ""


def templates() -> Environment:
    """The templates of this folder."""
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        # markup is a subclass of str, and our own
        finalize=lambda value: escape_invisible(value) if type(value) is str else value,
    )  # fmt: skip


_TEMPLATES = templates()


def render_template(name: str, **values: Any) -> str:
    """A page of a template that extends base.html, with what it shows."""
    return _TEMPLATES.get_template(name).render(**values)


def render(
    title: str, heading: str, lead: str, sections: Sequence[Section], *, counts: Mapping[str, int | None] | None = None,
    warning: str = "", missing: Sequence[str] = (), note: str = "", signatures: Sequence[str] = (),
    template: str = "sections.html", longest: float = LONG, **more: Any,
) -> str:  # fmt: skip
    """A page of sections as text.

    Args:
        title: of the window.
        heading: of the page.
        lead: the line below it.
        sections: in order.
        counts: numbers on top, by name; None is left out.
        warning: what must be read first.
        missing: what parts without rows would show.
        note: a line at the foot.
        signatures: of the models and settings that all this comes from.
        template: one that extends sections.html.
        longest: rows of a table that is open from the start.
        more: what that template shows.
    """
    shown = [(name, count(value)) for name, value in (counts or {}).items() if value is not None]
    return render_template(
        template, title=title, heading=heading, lead=lead, sections=sections, counts=shown, warning=warning,
        missing=missing, note=note, signatures=signatures, longest=longest, **more,
    )  # fmt: skip


def fill(parts: Mapping[str, Part], rows: Mapping[str, Any]) -> dict[str, Any]:
    """The rows of the parts that have some, checked, in the order of the parts; NaN becomes null.

    Raises:
        BadInput: a frame lacks a column or a value, or holds a row twice.
    """
    filled = {name: rows[name] for name in parts if rows.get(name) is not None and len(rows[name])}
    for name, frame in filled.items():
        if isinstance(frame, pl.DataFrame):
            filled[name] = frame.with_columns(cs.float().fill_nan(None))
            _check(name, filled[name], parts[name])
    return filled


def build(parts: Mapping[str, Part], rows: Mapping[str, Any]) -> dict[str, Any]:
    """`sections` of the parts that have rows, and what is `missing` without the others: arguments of `render`."""
    made = [parts[name].build(part_rows) for name, part_rows in rows.items()]
    return {
        "sections": [section for some in made for section in ([some] if isinstance(some, Section) else some)],
        "missing": [part.about for name, part in parts.items() if name not in rows],
    }


def require_columns(name: str, frame: pl.DataFrame, columns: Sequence[str]) -> None:
    """Raise BadInput if a frame lacks a column."""
    if lacking := [column for column in columns if column not in frame.columns]:
        raise BadInput(f"{name}: expected a column {lacking[0]}, found {', '.join(frame.columns)}")


def _check(name: str, frame: pl.DataFrame, part: Part) -> None:
    columns = f"{part.keys} {part.others}".split()
    keys = [key.removesuffix("?") for key in part.keys.split()]
    require_columns(name, frame, [column.removesuffix("?") for column in columns])
    for column in columns:
        if not column.endswith("?") and (nulls := frame[column].null_count()):
            raise BadInput(f"{name}: expected a value of {column} in each row, found {nulls} null")
    if keys and (twice := frame.filter(frame.select(keys).is_duplicated())).height:
        row = ", ".join(str(value)[:40] for value in twice.select(keys).row(0))
        raise BadInput(f"{name}: expected a row for each {', '.join(keys)}, found several of {row}")


def number(value: Any, digits: int = 3) -> str:
    """A number as the page shows it, a dash where there is none."""
    return "–" if value is None or not np.isfinite(value) else f"{value:.{digits}f}"


def minus(value: Any, digits: int = 3) -> str:
    """A number with a real minus sign, which zero has not."""
    text = number(value, digits)
    return text.removeprefix("-") if not text.strip("-0.") else text.replace("-", "−")


def signed(value: float | None, digits: int = 3) -> str:
    """A number with its sign, also where it is above 0."""
    return "–" if value is None else f"{value:+.{digits}f}".replace("-", "−")


def count(value: float | None) -> str:
    """A count with commas."""
    return "–" if value is None else f"{value:,.0f}"


def counts_between(counts: pl.Series | Sequence[int]) -> str:
    """The least and the largest of some counts, or the one that they all are."""
    low, high = min(counts), max(counts)
    return count(low) if low == high else f"{count(low)} to {count(high)}"


def interval(row: Mapping[str, Any], value: str = "value", *, scale: float = 1, digits: int = 3) -> str:
    """A number, and below it its interval from `low` to `high`, where there is one."""
    numbers = [None if row.get(name) is None else scale * row[name] for name in (value, "low", "high")]
    text, low, high = (minus(number, digits) for number in numbers)
    return text if None in numbers[1:] else f"{text}\n{low} to {high}"


def p_value(value: float | None) -> str:
    """A p with four digits."""
    return "< 0.0001" if value is not None and value < 0.0001 else number(value, 4)


def shorten(text: str, longest: int) -> str:
    """A text cut to so many characters and an ellipsis."""
    return text if len(text) <= longest else text[:longest].rstrip() + "…"


def rows_by(frame: pl.DataFrame, *keys: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Rows as mappings, by the values of some columns."""
    return {tuple(row[key] for key in keys): row for row in frame.iter_rows(named=True)}


def in_order(names: Any, order: Any) -> list[str]:
    """The different names: those of `order` as they stand there, others after them by the alphabet."""
    places = {name: place for place, name in enumerate(dict.fromkeys(order))}
    return sorted(set(names), key=lambda name: (places.get(name, len(places)), name))
