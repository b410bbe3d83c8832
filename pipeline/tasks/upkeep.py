"""Upkeep of the tables, one table at a time, with limits from the parameters of a run; counts of their rows."""

import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from pipeline import __version__, warehouse
from pipeline.errors import BadInput
from pipeline.io.atomic import create_folder, write_text
from pipeline.progress import iterate
from pipeline.tables import TABLES, empty, list_personal
from pipeline.warehouse.upkeep import maintain, sweep
from pipeline.warehouse.upkeep.check import check, describe
from pipeline.warehouse.upkeep.limits import GRACE, KEEP, Limits

Params = Mapping[str, Any]  # the parameters of the DAG `maintain`, but for its tables


def parse_limits(params: Params) -> Limits:
    """Convert parameters to limits; BadInput if they are too short to be safe and `force` is not set."""
    for name, least in (("grace_hours", GRACE // timedelta(hours=1)), ("keep_days", KEEP.days)):
        if params[name] < least and not params["force"]:
            problem = f"expected {least} or more, found {params[name]}; a longer task or run still needs the files"
            raise BadInput(f"{name}: {problem}; force it only while nothing else runs")
    return Limits(
        keep=timedelta(days=params["keep_days"]),
        grace=timedelta(hours=params["grace_hours"]),
        quiet=timedelta(hours=params["quiet_hours"]),
        files=params["small_files"],
        target=params["target_megabytes"] << 20,
        budget=int(params["gigabytes"] * (1 << 30)),
        footers=params["footers"],
        weeks=params["verify_weeks"],
    )


def list_tables(names: Sequence[str], params: Params) -> list[str]:
    """List the tables to maintain, by default all ever written, and copy the catalog unless it is a dry run."""
    parse_limits(params)
    if unknown := sorted(set(names) - set(TABLES)):
        raise BadInput(f"no table {', '.join(unknown)}; there are {', '.join(TABLES)}")
    if not params["dry_run"]:
        warehouse.back_up()
    return [name for name in maintain.list_written() if name in names or not names]


def maintain_table(name: str, params: Params) -> dict[str, int]:
    """Maintain one table; return counts of the work."""
    return warehouse.maintain(name, parse_limits(params), dry_run=params["dry_run"])


def find_damage() -> tuple[list[str], int]:
    """Find damage in the catalog and, by checksums, in all files; count the files without a checksum."""
    if damage := warehouse.find_damage():
        return [damage], 0
    damaged = []
    unrecorded_count = 0
    for name in iterate(maintain.list_written(), "tables checked"):
        checked = check(name, footers=True, weeks=1)
        damaged += [f"{name}: {describe(name, [problem])}" for problem in (*checked.problems, *checked.other_problems)]
        unrecorded_count += len(checked.unrecorded)
    return damaged, unrecorded_count


def maintain_scratch(params: Params) -> dict[str, int]:
    """Maintain scratch files, embeddings and training states; return counts of removed files."""
    return sweep.maintain_scratch(parse_limits(params).grace, dry_run=params["dry_run"])


def count_rows() -> pl.DataFrame:
    """Count the rows, days and sources of each table."""
    schema = {"table": pl.String, "rows": pl.Int64, "days": pl.Int64, "sources": pl.Int64}
    rows = []
    for name in TABLES:
        frame = warehouse.scan(name)
        columns = frame.collect_schema()
        values = [pl.col(column).n_unique().alias(f"{column}s") for column in ("day", "source") if column in columns]
        try:
            totals = frame.select(pl.len().alias("rows"), *values).collect()
        except (OSError, pl.exceptions.ComputeError) as error:
            advice = "`undertone check --deep` names what is missing or damaged, and what to import again"
            raise BadInput(f"{name}: a data file cannot be read; {advice}") from error
        rows.append({"table": name, **totals.row(0, named=True)})
    return pl.DataFrame(rows, schema=schema)


CARD = "README.md"
FILES = {CARD, *(f"{name}.parquet" for name in TABLES)}


def write_snapshot(
    out: Path, names: Sequence[str] = (), *, with_personal: bool = False, force: bool = False
) -> pl.DataFrame:
    """Write tables without personal columns into a folder; `force` replaces a snapshot. Return table, rows, id."""
    from pipeline.report.sections import render_template  # takes a twentieth of the start of `tables`

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
