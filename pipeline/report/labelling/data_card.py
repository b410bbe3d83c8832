"""The data card of a released data set, in Markdown: what is in it, how it was made, and what it must not be taken for.

Names are hostile data: all of them are escaped.
"""

import datetime
import re
from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from pipeline.label import schema, simulated
from pipeline.report.sections import format_number
from pipeline.tables import TABLES

ANONYMISATION = (
    "The ids of comments, of what they answer and of their threads were taken out, and so were user ids and names of "
    "accounts, likes, days and times (CSD, section 3.2).",
    "Row ids were drawn at random for this project and say nothing about the comment or its platform.",
    "Names of well-known people that stand in a comment were left there, as in CSD.",
)
INTENDED_USE = (
    "Research on what comments mean and do not say: recognising and recovering subtext, figures of speech, sentiment "
    "and emotion in context.",
    "Not for judging, finding or profiling single persons, and not for moderating comments without people.",
)
LIMITS = (
    "Comments are those that the sources showed to the collector; they stand for no population.",
    "Labels are readings of a few people, and rare classes are rare: read every score together with the class shares.",
    "The adjudicator saw the three first labels, so agreement over all four is not agreement of independent raters "
    "(CSD-16).",
)
HAZARDS = (
    "Comments come from the open web: some are offensive, hateful, false or upsetting.",
    "Comments are quoted word for word, so a search for a quotation may find the comment and its writer.",
)


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


_CSD = """\
The process follows *CSD: A Chinese Dataset for Subtext Problem* (anonymous ACL submission), section 3.2: eight kinds of
information, three raters who label alone, and a fourth who decides. This is another data set, in which the authors of
that paper had no part."""
_TRACED = """\
Row ids are random. Platform ids, user ids and times are absent: no column leads back to a comment, a thread or a
person. What remains is the text itself, which may be found by searching for it as long as it is public. Which comment a
row was made from is known to the project alone, in a table that is never published; it serves to take out a comment on
request, for which the row id is enough."""


def render(facts: Facts) -> str:
    """Render the card. Shares are within a field, among the rows that have a value there."""
    total = sum_counts(facts.rows)
    parts = [
        f"# {_escape(facts.release)}",
        f"{total:,} comments with labels of what they mean and do not say. Released {facts.created.isoformat()}; label "
        f"schema {schema.hash_schema()}.",
        *_format_warning(facts.tools),
        "## What is in it",
        _format_table(facts.rows),
        f"SHA-256 of `data.jsonl` as released: `{facts.data_hash}`. It is another once a comment has been taken out.",
        _format_table(_list_columns()),
        "## From what was read to what was kept",
        _format_table(facts.funnel),
        "## Classes",
        "Every field and value of the schema; the share is of the rows that have a value there.",
        _format_table(_count_classes(facts.classes, total)),
        "## How far raters agree",
        f"Labels were given by {facts.rater_count:,} raters, whose ids are not published.",
        _format_table(facts.agreement),
        "Labels by what they came through:",
        _format_table(facts.tools),
        "## What was deleted, and why",
        _format_table(facts.deletions),
        "## Anonymisation",
        _format_list(ANONYMISATION),
        "## How the text may be traced",
        _TRACED,
        "## Known hazards",
        _format_list(HAZARDS),
        "## Intended use",
        _format_list(INTENDED_USE),
        "## Limits",
        _format_list(LIMITS),
        "## Licence",
        f"Annotations: {_escape(facts.licence)}. The comments are their writers'; the licence does not cover them.",
        "## Where the process comes from",
        _CSD,
    ]
    return "\n\n".join(parts) + "\n"


def sum_counts(frame: pl.DataFrame, column: str = "row_count") -> int:
    """Sum a column of counts; 0 for a frame without rows."""
    return int(frame[column].sum())


def count_simulated(tools: pl.DataFrame) -> int:
    """Count the labels of simulated raters."""
    return sum_counts(tools.filter(pl.col("tool") == simulated.TOOL))


def _format_warning(tools: pl.DataFrame) -> list[str]:
    if not (simulated_count := count_simulated(tools)):
        return []
    return [
        f"> **Warning: {simulated_count:,} of {sum_counts(tools):,} labels come from simulated raters.** They were "
        "made by a program, to try the pipeline out, and no person read the comments for them: no number on this "
        "card that rests on them says anything about people or language."
    ]


def _list_columns() -> pl.DataFrame:
    columns = TABLES["annotated_comments"].schema.columns()
    return pl.DataFrame({"column": [*columns], "what_it_is": [column.description for column in columns.values()]})


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
    lines += [[_format_cell(value) for value in row] for row in frame.iter_rows()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _format_cell(value: object) -> str:
    if isinstance(value, float):
        return format_number(value)
    if isinstance(value, int):
        return f"{value:,}"
    return "–" if value is None else _escape(value)


def _format_list(points: Iterable[str]) -> str:
    return "\n".join(f"- {_escape(point)}" for point in points)


def _escape(value: object) -> str:
    """Escape a value to one line without markup: no HTML, no Markdown, no links made of bare addresses."""
    line = " ".join(str(value).split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = re.sub(r"[\\`*_{}\[\]|~#!]|:(?=//)|(?<=www)\.", r"\\\g<0>", line)
    return re.sub(r"^(\d*)([-+.)])(?=[\s-]|$)", r"\1\\\2", line)  # what would begin a list or a rule
