"""The commands `connect` and `snapshot`: the tables for other programs."""

import json
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option, echo

from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import Json
from pipeline.report.sections import render_template
from pipeline.tasks.operate import snapshot as work
from pipeline.warehouse import catalog


def connect(
    engine: Annotated[Literal["duckdb", "polars", "pandas", "pyarrow", "spark", "trino"], Argument(help="The reader.")],
    table: Annotated[str, Option(help="Table to read.")] = "comments",
) -> None:
    """Print how an engine reads a table of this installation: Python code, or settings and SQL. It holds no password.

    Examples: `undertone connect duckdb`; `undertone connect polars --table scores`; `undertone connect trino`
    """
    address = catalog.locate(table)
    options = {"uri": address["uri"], "warehouse": address["warehouse"], "init_catalog_tables": "false"}
    literal = json.dumps(options | address["store"], indent=4, ensure_ascii=False)
    template = f"engines/{engine if engine in ('spark', 'trino') else 'python'}.txt"
    echo(render_template(template, engine=engine, table=table, options=literal, **address))


def snapshot(
    out: Annotated[Path, Option("--out", "-o", help="Folder to write, absent or empty.")],
    table: Annotated[list[str] | None, Option(help="Only this one; repeat it. All by default.")] = None,
    with_personal: Annotated[
        bool, Option("--with-personal", help="Also the columns that stand for a person: users and raters.")
    ] = False,
    force: Annotated[bool, Option("--force", help="Replace an earlier snapshot in the folder.")] = False,
    as_json: Json = False,
) -> None:
    """Write the tables as plain Parquet files, with a card that describes them (README.md).

    Examples: `undertone snapshot --out share`; `undertone snapshot --out share --table comments --force`
    """
    rows = work.write(out, table or (), with_personal=with_personal, force=force)
    console.show(rows, as_json)
    console.report(f"wrote {out}")
