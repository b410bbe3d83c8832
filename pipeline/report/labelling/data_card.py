"""The data card of a released data set, in Markdown.

A card says what is in a data set, how it was made, and what it must not be taken for; its text is in data_card.md.
Names are hostile data: all of them are escaped.
"""

import datetime
import re
from importlib.resources import files
from typing import NamedTuple

import polars as pl
from markdown_it import MarkdownIt

from pipeline.errors import BadInput
from pipeline.label import schema, simulated
from pipeline.report.sections import format_value, render_template
from pipeline.tables import TABLES


class Facts(NamedTuple):
    """What a card shows. Frames may have more columns than named; all but those of `classes` are shown."""

    release: str
    created: datetime.date
    rows: pl.DataFrame  # source, lang, row_count
    funnel: pl.DataFrame  # step, read_count, kept_count, dropped_count, in the order of the steps
    classes: pl.DataFrame  # field, value, count, as metrics.labelling.label_analysis.class_ratios gives them
    agreement: pl.DataFrame  # field, then one number a column
    deletions: pl.DataFrame  # reason, row_count
    tools: pl.DataFrame  # tool, row_count: labels that came through it
    rater_count: int
    licence: str  # of the annotations
    data_hash: str  # SHA-256 of data.jsonl


def render(facts: Facts) -> str:
    """Render the card. Shares are within a field, among the rows that have a value there."""
    total = sum_counts(facts.rows)
    frames = {"rows": facts.rows, "funnel": facts.funnel, "agreement": facts.agreement, "tools": facts.tools}
    columns = TABLES["annotated_comments"].schema.columns()
    meanings = {"column": [*columns], "what_it_is": [column.description for column in columns.values()]}
    classes = _count_classes(facts.classes, total)
    frames |= {"deletions": facts.deletions, "columns": pl.DataFrame(meanings), "classes": classes}
    card = render_template(
        "labelling/data_card.md",
        release=_escape(facts.release),
        licence=_escape(facts.licence),
        created=facts.created.isoformat(),
        schema=schema.hash_schema(),
        data_hash=facts.data_hash,
        total=f"{total:,}",
        rater_count=f"{facts.rater_count:,}",
        simulated_count=f"{count_simulated(facts.tools):,}",
        label_count=f"{sum_counts(facts.tools):,}",
        **{name: _format_table(frame) for name, frame in frames.items()},
    )
    return card + "\n"


def update(card: str, rows: pl.DataFrame, classes: pl.DataFrame, data_hash: str) -> str:
    """Update count, classes and checksum of a card after a removal; one of this checksum, or another's, stays."""
    parts = card.split("\n\n")
    if f"`{data_hash}`" in card or not {"## Contents", "## Classes"} <= set(parts):
        return card
    total = sum_counts(rows)
    parts[1] = re.sub(r"^[\d,]+", f"{total:,}", parts[1])
    contents, shares = parts.index("## Contents"), parts.index("## Classes")
    parts[shares + 2] = _format_table(_count_classes(classes, total))
    parts[contents + 1 : contents + 3] = [
        _format_table(rows),
        f"SHA-256 of `data.jsonl` after comments were removed: `{data_hash}`. Count, sources and classes are those "
        "that remain; the tables of steps, agreement and tools are those of the release.",
    ]
    return "\n\n".join(parts)


def sum_counts(frame: pl.DataFrame, column: str = "row_count") -> int:
    """Sum a column of counts; 0 for a frame without rows."""
    return int(frame[column].sum())


def count_simulated(tools: pl.DataFrame) -> int:
    return sum_counts(tools.filter(pl.col("tool") == simulated.TOOL))


def _count_classes(classes: pl.DataFrame, total: int) -> pl.DataFrame:
    """Count every class of the schema, those without labels too; the rows without a value close each field."""
    rows: list[tuple[object, ...]] = []
    for name, field in schema.FIELDS.items():
        counts = dict(classes.filter(field=name).select("value", "count").iter_rows())
        labelled_count = sum(counts.values())
        for value in field.values:
            count = counts.get(value, 0)
            share = count / labelled_count if labelled_count else None
            rows.append((name, value, schema.get_value_name(name, value, "en"), count, share))
        rows.append((name, None, "no value", total - labelled_count, None))
    columns = dict.fromkeys(("field", "value", "meaning"), pl.String) | {"row_count": pl.Int64, "share": pl.Float64}
    return pl.DataFrame(rows, columns, orient="row")


def _format_table(frame: pl.DataFrame) -> str:
    """Format a frame as a Markdown table, numbers to the right; counts lose the `_count` of their names."""
    if not frame.height:
        return "None."
    names = ["rows" if name == "row_count" else name.removesuffix("_count").replace("_", " ") for name in frame.columns]
    lines = [[_escape(name) for name in names], ["--:" if dtype.is_numeric() else "---" for dtype in frame.dtypes]]
    lines += [[_escape(format_value(value)) for value in row] for row in frame.iter_rows()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escape(value: object) -> str:
    """Escape a value to one line without markup: no HTML, no Markdown, no links made of bare addresses."""
    line = " ".join(str(value).split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = re.sub(r"[\\`*_{}\[\]|~#!]|:(?=//)|(?<=www)\.", r"\\\g<0>", line)
    return re.sub(r"^(\d*)([-+.)])(?=[\s-]|$)", r"\1\\\2", line)  # what would begin a list or a rule


GUIDELINE_LANGS = {"zh": "zh-Hans", "en": "en"}
"""Languages there are guidelines in, with the tag that makes a browser choose fitting glyphs."""


def render_guidelines(lang: str) -> str:
    """Render the guidelines in a language, with the version of the label schema at the foot; BadInput without any."""
    if lang not in GUIDELINE_LANGS:
        raise BadInput(f"lang should be one of {', '.join(GUIDELINE_LANGS)}, found {lang!r}")
    text = files("pipeline.label").joinpath("guidelines", f"{lang}.md").read_text(encoding="utf-8")
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    body = body.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")
    title = text.partition("\n")[0].removeprefix("# ")
    values = {"lang": GUIDELINE_LANGS[lang], "title": title, "body": body, "version": schema.hash_schema()}
    return render_template("labelling/guidelines.html", **values)
