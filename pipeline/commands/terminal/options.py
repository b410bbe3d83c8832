"""Options that several commands have, and how they print frames."""

import datetime as dt
import json
import os
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.errors import BadInput

if TYPE_CHECKING:
    import polars as pl

Day = Annotated[str, typer.Option("--day", help="UTC day, YYYY-MM-DD.", show_default="today")]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of a table: one object a line.")]
TextColumn = Annotated[
    str | None, typer.Option("--text-column", "-c", help="Column with the texts; text or comment by default.")
]
Model = Annotated[
    str | None,
    typer.Option("--model", "-m", help="Folder of a model, or its id; by default that in force, else the shipped one."),
]
Promote = Annotated[bool, typer.Option("--promote", help="Promote it even if it is worse than its rivals.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a model that is in the folder of --out.")]
SkipBadRows = Annotated[
    bool, typer.Option("--skip-bad-rows", help="Drop rows that cannot be read, with a reason, instead of stopping.")
]
KeepDuplicates = Annotated[
    bool, typer.Option("--keep-duplicates", help="Keep equal and nearly equal texts of a thread, each as a row.")
]
FirstDay = Annotated[
    str | None, typer.Option("--from", help="Keep comments written on this UTC day or later; if unknown, of --day.")
]
LastDay = Annotated[str | None, typer.Option("--to", help="Keep comments written on this UTC day or earlier.")]
Encoding = Annotated[str, typer.Option(help="Encoding of text files, such as gb18030.")]


def today() -> str:
    """Return the current day in UTC."""
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


def show(frame: "pl.DataFrame", as_json: bool) -> None:
    """Print a frame as a table for people, or as JSON Lines."""
    from pipeline.commands.terminal import console, files

    files.to_stdout(frame, ".jsonl") if as_json else console.table(frame)


def print_result(frame: "pl.DataFrame", first: dict[str, object], as_json: bool) -> None:
    """Print a table for people, or one JSON object: the numbers in `first` and the table's rows."""
    from pipeline.commands.terminal import console

    if as_json:
        facts = console.take_left_out()
        typer.echo(json.dumps({**first, "rows": frame.to_dicts(), **facts}, ensure_ascii=False, default=str))
    else:
        console.table(frame)
