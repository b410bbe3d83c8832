"""The commands `connect` and `snapshot`: the tables for other programs."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import polars as pl
from typer import Argument, Option, echo

from pipeline import __version__, warehouse
from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import Json
from pipeline.errors import BadInput
from pipeline.io.atomic import check_empty, create_folder, write_text
from pipeline.progress import iterate
from pipeline.report.sections import render_template
from pipeline.tables import TABLES, empty, list_personal
from pipeline.warehouse import catalog

CARD = "README.md"
FILES = {CARD, *(f"{name}.parquet" for name in TABLES)}


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
    if not (force and out.is_dir()):
        check_empty(out)
    elif foreign := {path.name for path in out.iterdir()} - FILES:
        raise BadInput(
            f"{out}: --force replaces a snapshot alone, and {min(foreign)} is of none; choose another folder"
        )
    rows: list[tuple[str, int, str | None]] = []
    sources: set[str] = set()
    with create_folder(out.absolute()) as draft:
        for name in iterate(dict.fromkeys(table or TABLES), "tables written"):
            snapshot_id = warehouse.get_snapshot_id(name)
            frame = warehouse.scan(name, snapshot_id=snapshot_id) if snapshot_id else empty(name).lazy()
            path = draft / f"{name}.parquet"
            frame.drop([] if with_personal else list_personal(name), strict=False).sink_parquet(path)
            written = pl.scan_parquet(path, glob=False)
            rows.append((name, written.select(pl.len()).collect().item(), str(snapshot_id) if snapshot_id else None))
            if "source" in TABLES[name].schema.column_names():
                sources |= set(written.select(pl.col("source").unique()).collect()["source"])
        values = {"tables": rows, "sources": sorted(sources), "with_personal": with_personal, "version": __version__}
        personal = [f"{name}.{column}" for name, *_ in rows for column in list_personal(name)]
        values |= {"personal": personal, "written_at": f"{datetime.now(UTC):%Y-%m-%d %H:%M}"}
        write_text(draft / CARD, render_template("snapshot.md", contracts=TABLES, **values) + "\n")
        former = draft.with_name(f"{draft.name}-former")
        if force and out.exists():  # until here it is as it was
            out.rename(former)
    shutil.rmtree(former, ignore_errors=True)
    console.show(pl.DataFrame(rows, ["table", "rows", "snapshot"], orient="row"), as_json)
    console.report(f"wrote {out}")
