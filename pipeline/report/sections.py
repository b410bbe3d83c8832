"""Sections of pages (a sentence, a figure and a table), numbers as text, and the page around them.

A page leaves parts without rows out, and says which. Names, texts and comments are hostile data: all text but our own
markup is escaped, and its invisible characters are shown. The paper's numbers stand beside ours; they are of its data.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pipeline.io.visible import escape_invisible

BEST = "★ "  # stands before the best of a row or column
LONG = 16  # rows of a table that is open from the start
Column = str | Callable[[dict[str, Any]], Any]  # of a table: the column of a frame, or what formats a row of it
Columns = dict[str, Column]  # by heading


class Section(NamedTuple):
    """A part of the page. The first `text_count` columns are words, the others numbers."""

    sentence: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    figure: str = ""
    text_count: int = 1
    title: str = ""  # where it is not that of the part


class Part(NamedTuple):
    """A title, and what builds a section of rows, or several with titles of their own."""

    title: str
    build: Callable[[Any], Any]


@cache
def create_environment() -> Environment:
    """Create the environment with the templates of this folder, and our formats as filters."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        # markup is a subclass of str, and our own
        finalize=lambda value: escape_invisible(value) if type(value) is str else value,
    )
    environment.filters |= {"number": format_number, "percentile": format_count, "signed": format_signed}
    return environment


def render_template(name: str, **values: Any) -> str:
    """Render a template that extends base.html."""
    return create_environment().get_template(name).render(**values)


def render(
    title: str,
    heading: str,
    lead: str,
    sections: Sequence[Section],
    *,
    counts: Mapping[str, int | None] | None = None,
    template: str = "sections.html",
    **extra: Any,
) -> str:
    """Render a page of sections, with the title of its window and a line below its heading.

    `counts` are numbers on top, by name; None is left out. The template extends sections.html, and `extra` is what it
    shows; of any page `warning` (shown above all else), `missing` (parts without rows), `note` (a line at the foot),
    `signatures` (of models and settings) and `longest` (rows of a table that is open from the start).
    """
    facts = [(name, format_count(value)) for name, value in (counts or {}).items() if value is not None]
    values = {"warning": "", "missing": (), "note": "", "signatures": (), "longest": LONG, **extra}
    return render_template(template, title=title, heading=heading, lead=lead, sections=sections, counts=facts, **values)


def select_filled(parts: Mapping[str, Part], rows: Mapping[str, Any]) -> dict[str, Any]:
    """Return the non-empty rows of each part, in the order of the parts; NaN becomes null."""
    filled = {name: rows[name] for name in parts if rows.get(name) is not None and len(rows[name])}
    frames = {name: frame for name, frame in filled.items() if isinstance(frame, pl.DataFrame)}
    return filled | {name: frame.with_columns(cs.float().fill_nan(None)) for name, frame in frames.items()}


def build_sections(parts: Mapping[str, Part], rows: Mapping[str, Any]) -> dict[str, Any]:
    """Build the arguments of `render`: `sections` of the parts with rows, and `missing` for the others."""
    sections: list[Section] = []
    for name, part_rows in rows.items():
        built = parts[name].build(part_rows)
        built = [built] if isinstance(built, Section) else built
        sections += [section._replace(title=section.title or parts[name].title) for section in built]
    missing = [part.title for name, part in parts.items() if name not in rows]
    return {"sections": sections, "missing": [title[0].lower() + title[1:] for title in missing]}


def format_number(value: Any, digits: int = 3, style: str = "") -> str:
    """Format a number of a page: a dash for a missing one, a minus sign (−) for a negative one, never −0.

    None, NaN and infinite are missing. `style` is `,` for commas between thousands, `+` for a sign on positive numbers
    too.
    """
    if value is None or not np.isfinite(value):
        return "–"
    text = f"{value:{style}.{digits}f}"
    return text.removeprefix("-") if not text.strip("-0.") else text.replace("-", "−")


def format_reading(value: Any, percentile: Any) -> str:
    """Format an implicitness with its percentile, such as `0.869 (P 34)`; `P –` without a reference."""
    return f"{format_number(value)} (P {format_number(percentile, 0)})"


def format_signed(value: float | None, digits: int = 3) -> str:
    """Format a number with its sign, also if it is positive."""
    return format_number(value, digits, "+")


def format_count(value: Any) -> str:
    return format_number(value, 0, ",")


def format_range(counts: pl.Series | Sequence[int]) -> str:
    """Format the range of some counts, or their single value if all are equal."""
    low, high = min(counts), max(counts)
    return format_count(low) if low == high else f"{format_count(low)} to {format_count(high)}"


def format_interval(row: Mapping[str, Any], value: str = "value", *, scale: float = 1, digits: int = 3) -> str:
    """Format a number and, below it, its interval from `low` to `high`, if there is one."""
    numbers = [None if row.get(name) is None else scale * row[name] for name in (value, "low", "high")]
    text, low, high = (format_number(bound, digits) for bound in numbers)
    return text if None in numbers[1:] else f"{text}\n{low} to {high}"


def tabulate(frame: pl.DataFrame, columns: Mapping[str, Column]) -> tuple[tuple[str, ...], list[list[str]]]:
    """Build the headings and the rows of a table of a frame; a null is a dash."""
    rows = frame.iter_rows(named=True)
    return tuple(columns), [
        [format_value(row[column]) if isinstance(column, str) else column(row) for column in columns.values()]
        for row in rows
    ]


def format_value(value: Any) -> str:
    """Format a count with commas, another number with three digits; a text stays."""
    if isinstance(value, str):
        return value
    return format_count(value) if isinstance(value, int) else format_number(value)


def format_p(value: float | None) -> str:
    return "< 0.0001" if value is not None and value < 0.0001 else format_number(value, 4)


def shorten(text: str, longest: int) -> str:
    """Truncate a text to so many characters and an ellipsis."""
    return text if len(text) <= longest else text[:longest].rstrip() + "…"


def index_rows(frame: pl.DataFrame, *keys: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row[key] for key in keys): row for row in frame.iter_rows(named=True)}


def order_names(names: Any, expected_names: Any) -> list[str]:
    """Order the different names: those of `expected_names` as they stand there, others after them by the alphabet."""
    places = {name: place for place, name in enumerate(dict.fromkeys(expected_names))}
    return sorted(set(names), key=lambda name: (places.get(name, len(places)), name))
