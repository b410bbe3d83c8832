"""What several commands take and do alike: the day, the encoding."""

import datetime as dt
import os
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.errors import BadInput

if TYPE_CHECKING:
    import polars as pl

Day = Annotated[str, typer.Option("--day", help="UTC day, YYYY-MM-DD.", show_default="today")]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of a table: one object a line.")]
Model = Annotated[
    str | None, typer.Option("--model", "-m", help="Folder of a model, or its id; the shipped one by default.")
]
SkipBadRows = Annotated[
    bool, typer.Option("--skip-bad-rows", help="Drop rows that cannot be read, with a reason, instead of stopping.")
]
Encoding = Annotated[str, typer.Option(help="Encoding of text files, such as gb18030.")]


def today() -> str:
    """Today in UTC."""
    return dt.datetime.now(dt.UTC).date().isoformat()


def check_source(file: object, day: str) -> None:
    """Refuse a file together with a day: a command scores one or the other."""
    if file and day:
        raise BadInput("give a file or --day, not both")


def named(value: str) -> str:
    """A name that is not blank."""
    if not value.strip():
        raise BadInput("the model to ask should have a name")
    return value


def this_run() -> str:
    """A name for this call of a command: what a limit on cost holds for, and what rows say they come from."""
    return f"cli-{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%S}-{os.getpid()}"


def show(frame: "pl.DataFrame", as_json: bool) -> None:
    """A frame as a table for people, or as JSON Lines."""
    from pipeline.commands.terminal import console, files

    files.to_stdout(frame, ".jsonl") if as_json else console.table(frame)


def tell(frame: "pl.DataFrame", first: dict[str, object], as_json: bool) -> None:
    """A table for people, or one JSON object: the numbers that were asked for, and the table's rows beside them."""
    import json

    from pipeline.commands.terminal import console

    if as_json:
        facts = console.take_left_out()
        typer.echo(json.dumps({**first, "rows": frame.to_dicts(), **facts}, ensure_ascii=False, default=str))
    else:
        console.table(frame)
