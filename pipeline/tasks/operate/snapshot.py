"""A snapshot: the tables as plain Parquet files, with a card that describes them."""

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from pipeline import __version__, warehouse
from pipeline.errors import BadInput
from pipeline.io.atomic import create_folder, write_text
from pipeline.progress import iterate
from pipeline.report.sections import render_template
from pipeline.tables import TABLES, empty, list_personal

CARD = "README.md"
FILES = {CARD, *(f"{name}.parquet" for name in TABLES)}


def write(out: Path, names: Sequence[str] = (), *, with_personal: bool = False, force: bool = False) -> pl.DataFrame:
    """Write tables, by default all, into a folder; return table, rows and snapshot.

    The columns that stand for a person are left out by default. What was in the folder, a snapshot alone, is replaced
    by `force`, and stays if the work fails.
    """
    existing = {path.name for path in out.iterdir()} if out.is_dir() else set[str]()
    if foreign := existing - FILES:
        raise BadInput(f"{out}: {min(foreign)} is of no snapshot; choose another folder")
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: is a file; choose another folder")
    if existing and not force:
        raise BadInput(f"{out}: holds a snapshot; --force replaces it, or choose another folder")
    rows: list[tuple[str, int, str | None]] = []
    sources: set[str] = set()
    with create_folder(out.absolute()) as draft:
        for name in iterate(dict.fromkeys(names or TABLES), "tables written"):
            snapshot_id = warehouse.get_snapshot_id(name)
            frame = warehouse.scan(name, snapshot_id=snapshot_id) if snapshot_id else empty(name).lazy()
            path = draft / f"{name}.parquet"
            frame.drop([] if with_personal else list_personal(name), strict=False).sink_parquet(path)
            table = pl.scan_parquet(path, glob=False)
            rows.append((name, table.select(pl.len()).collect().item(), str(snapshot_id) if snapshot_id else None))
            if "source" in TABLES[name].schema.column_names():
                sources |= set(table.select(pl.col("source").unique()).collect()["source"])
        values = {"tables": rows, "sources": sorted(sources), "with_personal": with_personal, "version": __version__}
        personal = [f"{name}.{column}" for name, *_ in rows for column in list_personal(name)]
        values |= {"personal": personal, "written_at": f"{datetime.now(UTC):%Y-%m-%d %H:%M}"}
        write_text(draft / CARD, render_template("snapshot.md", contracts=TABLES, **values) + "\n")
        earlier = draft.with_name(f"{draft.name}-former")
        if out.exists():  # until here it is as it was
            out.rename(earlier)
    shutil.rmtree(earlier, ignore_errors=True)
    return pl.DataFrame(rows, ["table", "rows", "snapshot"], orient="row")
