"""The tables as plain Parquet files, for readers that know no Iceberg, with a card that describes them."""

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from pipeline import __version__, warehouse
from pipeline.errors import BadInput
from pipeline.io.atomic import check_empty, create_folder, write_text
from pipeline.progress import OnProgress
from pipeline.tables import TABLES, empty, list_personal

CARD = "README.md"


def write_snapshot(
    out: Path, names: Sequence[str], *, with_personal: bool, force: bool, on_progress: OnProgress
) -> pl.DataFrame:
    """Write a file for each table and the card, all or nothing; return table, rows and Iceberg snapshot of each.

    Columns that stand for a person are left out by the contracts, unless `with_personal`. A folder that holds something
    is refused; with `force` a snapshot of ours is replaced.
    """
    from pipeline.report.sections import render_template

    if not force:
        check_empty(out)
    elif out.exists() and (not out.is_dir() or not all(map(_is_ours, out.iterdir()))):
        raise BadInput(f"{out}: --force replaces a snapshot and nothing else; choose another folder")
    rows: list[tuple[str, int, str | None]] = []
    sources: set[str] = set()
    with create_folder(out.absolute()) as draft:
        for name in dict.fromkeys(names):
            snapshot_id = warehouse.get_snapshot_id(name)
            frame = warehouse.scan(name, snapshot_id=snapshot_id) if snapshot_id else empty(name).lazy()
            path = draft / f"{name}.parquet"
            frame.drop([] if with_personal else list_personal(name), strict=False).sink_parquet(path)
            written = pl.scan_parquet(path, glob=False)
            rows.append((name, written.select(pl.len()).collect().item(), snapshot_id and str(snapshot_id)))
            if "source" in TABLES[name].schema.column_names():
                sources |= set(written.select(pl.col("source").unique()).collect()["source"])
            on_progress(1)
        values = {"tables": rows, "sources": sorted(sources), "with_personal": with_personal, "version": __version__}
        values["personal"] = [f"{name}.{column}" for name, *_ in rows for column in list_personal(name)]
        values["written_at"] = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
        write_text(draft / CARD, render_template("snapshot.md", contracts=TABLES, **values) + "\n")
        former = draft.with_name(f"{draft.name}-former")
        if force and out.exists():  # until here it is as it was
            out.rename(former)
    shutil.rmtree(former, ignore_errors=True)
    return pl.DataFrame(rows, {"table": pl.String, "rows": pl.Int64, "snapshot": pl.String}, orient="row")


def _is_ours(path: Path) -> bool:
    return path.is_file() and (path.name == CARD or (path.suffix == ".parquet" and path.stem in TABLES))
