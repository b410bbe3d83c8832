"""Options that several commands have."""

import datetime as dt
import os
from pathlib import Path
from typing import Annotated

from typer import Option

from pipeline.errors import BadInput
from pipeline.slices import parse_day


def check_day(day: str) -> str:
    """Check a day, which may be empty."""
    return day and parse_day(day).isoformat()


MaybeDay = Annotated[str, Option("--day", help="UTC day, YYYY-MM-DD.", show_default="today", callback=check_day)]
Day = Annotated[  # `MaybeDay` is empty where no day is named, `Day` is today's then
    str,
    Option("--day", help="UTC day, YYYY-MM-DD.", show_default="today", callback=lambda day: check_day(day) or today()),
]
Json = Annotated[bool, Option("--json", help="JSON instead of a table: one object a line.")]
TextColumn = Annotated[str | None, Option("--text-column", "-c", help="Column with texts; text or comment by default.")]
Changes = Annotated[list[str] | None, Option("--set", help="NAME=VALUE of the recipe; repeat it.")]
Model = Annotated[str | None, Option("--model", "-m", help="Folder or id of a model; by default the one in force.")]
ModelFolder = Annotated[Path | None, Option("--out", "-o", help="Folder for the model, instead of the registry.")]
TableFile = Annotated[Path | None, Option("--out", "-o", help="Write csv, tsv, jsonl or parquet.")]
Texts = Annotated[str | None, Option("--text-column", "-c", help="Column with the texts.")]
Promote = Annotated[bool, Option("--promote", help="Promote it even if it is worse than its rivals.")]
Force = Annotated[bool, Option("--force", help="Replace a model that is in the folder of --out.")]
SkipBadRows = Annotated[bool, Option("--skip-bad-rows", help="Drop rows that cannot be read, with a reason.")]
KeepDuplicates = Annotated[bool, Option("--keep-duplicates", help="Keep equal and nearly equal texts of a thread.")]
FirstDay = Annotated[str | None, Option("--from", help="Keep comments of this UTC day or later; if unknown, of --day.")]
LastDay = Annotated[str | None, Option("--to", help="Keep comments written on this UTC day or earlier.")]
Encoding = Annotated[str, Option(help="Encoding of text files, such as gb18030 or utf-16.")]


def today() -> str:
    return dt.datetime.now(dt.UTC).date().isoformat()


def check_source(file: object, day: str) -> None:
    """Refuse a file together with a day: a command scores one or the other."""
    if file and day:
        raise BadInput("give a file or --day, not both")


def check_promote(folder: object, promote: bool) -> None:
    """Refuse --promote of a model in a folder: only models of the registry are promoted."""
    if folder and promote:
        raise BadInput("--promote is about the tables; with --out nothing is written there")


def check_name(value: str) -> str:
    """Refuse a blank name of a model."""
    if not value.strip():
        raise BadInput("the model to ask should have a name")
    return value


def this_run() -> str:
    """Name this call of a command, for the limit on cost and for the rows that it writes."""
    return f"cli-{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
