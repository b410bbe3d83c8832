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
    "The data set has no ids of comments, parent comments, threads or users, no account names, no likes, and no days "
    "or times (CSD, section 3.2).",
    "Row ids are random for this project and carry no information about the comment or its platform.",
    "Names of well-known people in a comment remain, as in CSD.",
)
INTENDED_USE = (
    "Research on subtext: recognition and recovery of subtext, figures of speech, sentiment and emotion in context.",
    "Do not use it to judge, find or profile individuals, or to moderate comments without human review.",
)
LIMITS = (
    "The sources chose which comments the collector received; the comments do not represent a population.",
    "Labels are the readings of a few people, and some classes are rare: read every score together with the class "
    "shares.",
    "The adjudicator saw the first three labels, so agreement over all four labels is not agreement of independent "
    "raters (CSD-16).",
)
HAZARDS = (
    "Comments come from the open web: some are offensive, hateful, false or upsetting.",
    "The data set has the exact words of each comment, so a search for them may find the comment and its writer.",
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
information, three raters who label alone, and a fourth rater who decides. This is a different data set; the authors of
that paper were not involved."""
_TRACED = """\
Row ids are random. Platform ids, user ids and times are absent: no column links to a comment, a thread or a person. The
text itself remains; a search may find it as long as it is public. Only the project knows the comment behind a row, in a
table that is never published. The project uses this table to remove a comment on request; the row id is enough for
this."""


def render(facts: Facts) -> str:
    """Render the card. Shares are within a field, among the rows that have a value there."""
    total = sum_counts(facts.rows)
    parts = [
        f"# {_escape(facts.release)}",
        f"{total:,} comments with labels for subtext, figures of speech, sentiment and emotion. Released "
        f"{facts.created.isoformat()}; label schema {schema.hash_schema()}.",
        *_format_warning(facts.tools),
        "## Contents",
        _format_table(facts.rows),
        f"SHA-256 of `data.jsonl` at release: `{facts.data_hash}`. The hash changes when a comment is removed.",
        _format_table(_list_columns()),
        "Where notes of raters differ, the adjudicator's stands, else that of most raters, else the longest: of spans "
        "the one that covers most, of equally long ones the first in order of text. Comments without subtext have no "
        "span.",
        "## Comments kept by each step",
        _format_table(facts.funnel),
        "## Classes",
        "The table has every field and value of the schema. The share is of the rows with a value in the field.",
        _format_table(_count_classes(facts.classes, total)),
        "## Rater agreement",
        f"The labels come from {facts.rater_count:,} raters. Their ids are not published.",
        "fleiss, cohen and krippendorff are over the first round of all n comments labelled; fleiss_last is over the "
        "round that decided; fleiss_four and tae are over that round and the final label, and empty while fields wait.",
        _format_table(facts.agreement),
        "Labels by tool:",
        _format_table(facts.tools),
        "## Reasons for dropped comments and labels",
        _format_table(facts.deletions),
        "## Anonymisation",
        _format_list(ANONYMISATION),
        "## Traceability of the text",
        _TRACED,
        "## Known hazards",
        _format_list(HAZARDS),
        "## Intended use",
        _format_list(INTENDED_USE),
        "## Limits",
        _format_list(LIMITS),
        "## Licence",
        f"Annotations: {_escape(facts.licence)}. The comments belong to their writers; the licence does not cover "
        "them.",
        "## Source of the process",
        _CSD,
    ]
    return "\n\n".join(parts) + "\n"


def update(card: str, rows: pl.DataFrame, classes: pl.DataFrame, data_hash: str) -> str:
    """Update a card after comments were removed: their count, the classes and the checksum; the rest is of the release.

    A card of the same checksum, or one that somebody else wrote, stays as it is.
    """
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
    """Count the labels of simulated raters."""
    return sum_counts(tools.filter(pl.col("tool") == simulated.TOOL))


def _format_warning(tools: pl.DataFrame) -> list[str]:
    if not (simulated_count := count_simulated(tools)):
        return []
    return [
        f"> **Warning: {simulated_count:,} of {sum_counts(tools):,} labels come from simulated raters.** A program "
        "made these labels to test the pipeline; no person read the comments. Numbers from these labels are no "
        "evidence about people or language."
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
