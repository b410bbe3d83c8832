"""`undertone maintain` and `undertone backfill`: the tables in order, days again in any order."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from pipeline import warehouse
from pipeline.cli import app
from pipeline.errors import BadInput
from tests.support.filled import DAY, filled


def said(*words: str) -> str:
    """What a command answers on standard output; it should succeed."""
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_maintain_tells_a_row_a_table(tables: Path) -> None:
    """Counts as JSON, a row for each table that was ever written and one for scratch."""
    warehouse.overwrite("comments", {"day": DAY}, filled("comments", {}))
    rows = [json.loads(line) for line in said("maintain", "--json", "--table", "comments").splitlines()]
    assert [row["table"] for row in rows] == ["comments", "(scratch)"]
    assert rows[0]["rows"] == rows[0]["files"] == 1


def test_maintain_names_what_is_damaged_after_the_others_are_done(tables: Path) -> None:
    """One damaged table does not keep the others from their upkeep, and the command fails."""
    for name in ("comments", "tokens"):
        warehouse.overwrite(name, {"day": DAY}, filled(name, {}))
    (path,) = (tables / "warehouse" / "undertone" / "comments" / "data").rglob("*.parquet")
    path.unlink()
    result = CliRunner().invoke(app, ["maintain", "--json"])
    assert isinstance(result.exception, BadInput)
    assert path.name in str(result.exception)
    assert [json.loads(line)["table"] for line in result.stdout.splitlines()] == ["tokens", "(scratch)"]


def test_maintain_refuses_hasty_limits(tables: Path) -> None:
    """An hour of grace is refused, and taken with --force."""
    assert isinstance(CliRunner().invoke(app, ["maintain", "--grace-hours", "1"]).exception, BadInput)
    said("maintain", "--grace-hours", "1", "--force")


def inbox(home: Path, day: str, *texts: str) -> None:
    """Comments of a day, in the inbox."""
    folder = home / "inbox" / "notes" / day
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a.csv").write_text("thread_id,comment_id,text\n" + "".join(f"t,{t},{t}\n" for t in texts), "utf-8")


def test_backfill_takes_a_range_of_days(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All days of the range and no other go through the steps that are named."""
    for day in ("2026-11-17", "2026-11-18", "2026-11-19"):
        inbox(tables, day, "one", day)
    said("backfill", "--from", "2026-11-17", "--to", "2026-11-18", "--step", "collect", "--step", "tokenize",
         "--source", "notes", "--backwards")  # fmt: skip
    for name in ("comments", "tokens"):
        days = warehouse.scan(name).select(pl.col("day").cast(pl.String).unique().sort()).collect()["day"].to_list()
        assert days == ["2026-11-17", "2026-11-18"]


@pytest.mark.parametrize("words", [("--from", "2026-11-18", "--to", "2026-11-17"), ("--from", "1", "--to", "2"),
                                   ("--from", "2026-11-17", "--to", "2026-11-17", "--step", "cut")])  # fmt: skip
def test_backfill_refuses_what_is_no_range(tables: Path, words: tuple[str, ...]) -> None:
    """A last day before the first, a day in another form and an unknown step are bad input."""
    assert isinstance(CliRunner().invoke(app, ["backfill", *words]).exception, BadInput)


def test_recover_catalog_shows_and_takes_a_state(tables: Path) -> None:
    """A state that the catalog does not know is shown with table, file, time, snapshot and rows; `--take` takes it."""
    rows = filled("comments", {"text": "one"}, {"text": "two"})
    shutil.copy(tables / "catalog.db", tables / "old.db")
    warehouse.overwrite("comments", {"day": DAY, "source": "weibo"}, rows)
    (tables / "old.db").replace(tables / "catalog.db")
    warehouse.overwrite("comments", {"day": DAY, "source": "weibo"}, rows[:1])
    warehouse.overwrite("comments", {"day": DAY, "source": "weibo"}, rows[:1])
    (other,) = [other for row in warehouse.recover(dry_run=True) for other in row.others]
    done = CliRunner().invoke(app, ["recover-catalog", "--dry-run"])
    assert "comments has another state, published: 2 rows" in done.stdout
    written = f"{other.written_at:%Y-%m-%d %H:%M:%S} UTC"
    assert f"snapshot {other.snapshot}, of {written}. To take it: --take {other.state}" in done.stdout
    done = CliRunner().invoke(app, ["recover-catalog", "--take", other.state, "--json"])
    row = next(row for row in map(json.loads, done.stdout.splitlines()) if row["table"] == "comments")
    assert (row["action"], row["rows"], [other["rows"] for other in row["others"]]) == ("replaced", 2, [1])
    assert warehouse.scan("comments").collect().height == 2
