"""`undertone maintain` and `undertone backfill`: the tables in order, days again in any order."""

import shutil
from pathlib import Path

import polars as pl
import pytest

from pipeline import warehouse
from tests.commands.conftest import Run
from tests.support.rows.filled import DAY, filled
from tests.support.rows.held import data_files, write


def test_maintain_gives_a_row_a_table(run: Run, tables: Path) -> None:
    """Each table that was written and scratch have a row; too short and too long limits are refused, but by --force."""
    write("one")
    rows = run("maintain", "--json", "--table", "comments").rows
    assert [row["table"] for row in rows] == ["comments", "(scratch)"]
    assert rows[0]["rows"] == rows[0]["files"] == 1
    for words in (("--grace-hours", "1"), ("--keep-days", "1e6"), ("--gigabytes", "inf")):
        run("maintain", *words).check(2)
    run("maintain", "--grace-hours", "1", "--force").check()


def test_maintain_names_what_is_damaged_after_the_others_are_done(run: Run, tables: Path) -> None:
    """One damaged table does not keep the others from their upkeep, and the command fails."""
    write("one")
    warehouse.overwrite("tokens", {"day": DAY}, filled("tokens", {}))
    (path,) = data_files("comments")
    path.unlink()
    result = run("maintain", "--json").check(2, path.name)
    assert [row["table"] for row in result.rows] == ["tokens", "(scratch)"]


def test_backfill_takes_a_range_of_days(run: Run, tables: Path) -> None:
    """All days of the range and no other go through the steps that are named."""
    for day in ("2026-11-17", "2026-11-18", "2026-11-19"):
        folder = tables / "inbox" / "notes" / day
        folder.mkdir(parents=True)
        (folder / "a.csv").write_text(f"thread_id,comment_id,text\nt,one,one\nt,{day},{day}\n", "utf-8")
    days = ("--from", "2026-11-17", "--to", "2026-11-18", "--backwards")
    run("backfill", *days, "--step", "collect", "--step", "tokenize", "--source", "notes").check()
    for name in ("comments", "tokens"):
        column = warehouse.scan(name).select(pl.col("day").cast(pl.String).unique().sort()).collect()["day"]
        assert column.to_list() == ["2026-11-17", "2026-11-18"]


@pytest.mark.parametrize(
    "words",
    [
        ("--from", "2026-11-18", "--to", "2026-11-17"),
        ("--from", "1", "--to", "2"),
        ("--from", "2026-11-17", "--to", "2026-11-17", "--step", "cut"),
        ("--from", "2026-11-17", "--to", "2026-11-17", "--source", "note"),  # a misspelt source is no empty day
    ],
)
def test_backfill_refuses_what_is_no_range(run: Run, tables: Path, words: tuple[str, ...]) -> None:
    """A last day before the first, a day in another form, an unknown step and an unknown source are bad input."""
    run("backfill", *words).check(2)


def test_recover_catalog_shows_and_takes_a_state(run: Run, tables: Path) -> None:
    """A state that the catalog does not know is shown with table, file, time, snapshot and rows; `--take` takes it."""
    shutil.copy(tables / "catalog.db", tables / "old.db")
    write("one", "two")
    (tables / "old.db").replace(tables / "catalog.db")
    for _ in range(2):
        write("one")
    (other,) = [other for row in warehouse.recover(dry_run=True) for other in row.others]
    output = run("recover-catalog", "--dry-run").out
    assert "comments has another state, published: 2 rows" in output
    written_at = f"{other.written_at:%Y-%m-%d %H:%M:%S} UTC"
    assert f"snapshot {other.snapshot}, of {written_at}. To take it: --take {other.state}" in output
    rows = run("recover-catalog", "--take", other.state, "--json").rows
    row = next(row for row in rows if row["table"] == "comments")
    assert (row["action"], row["rows"], [other["rows"] for other in row["others"]]) == ("replaced", 2, [1])
    assert warehouse.scan("comments").collect().height == 2
