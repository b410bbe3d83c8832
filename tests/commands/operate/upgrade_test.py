"""A home that version 0.1.0 left, upgraded: tests/support/make_home_0_1_0.py makes it, and knows what is in it."""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from pipeline import settings, warehouse
from pipeline.llm.ledger import answers
from tests.commands.conftest import Run
from tests.support.make_home_0_1_0 import ARCHIVE, DAY, HOME, hash_rows


@pytest.fixture
def old_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The home, with its path in place of the one where it was made, which is as long."""
    home = tmp_path / ("_" * (len(str(HOME)) - len(str(tmp_path)) - 1))
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    (tmp_path / "home").rename(home)
    for path in [home / "catalog.db", *home.glob("warehouse/**/metadata/*")]:
        path.write_bytes(path.read_bytes().replace(str(HOME).encode(), str(home).encode()))
    monkeypatch.setenv("UNDERTONE_HOME", str(home))
    monkeypatch.setenv("UNDERTONE_USER_KEY", "0.1.0")
    yield home
    warehouse.close()
    answers.close()


def test_upgrade_keeps_every_row_and_work_goes_on(old_home: Path, run: Run, tmp_path: Path) -> None:
    """After `upgrade`, asked for twice, tables have the rows that they had, and new tables and columns are there.

    Models, labels, answers and settings of 0.1.0 are in use: the same scores; nothing is asked again.
    """
    expected = json.loads((old_home / "expected.json").read_text(encoding="utf-8"))
    before = (old_home / "catalog.db").read_bytes()
    run("upgrade").check(2, "was written by version 0.1.0", f"back up {old_home}", "give --yes")
    assert (old_home / "catalog.db").read_bytes() == before
    first = run("upgrade", "--yes").check(0, "added the columns training_texts.is_labelled", "created scores_explained")
    assert "FAILED" not in first.out
    second = run("upgrade", "--yes").check(0, "all tables exist", "project csd: 3 fields are open again")
    assert second.out == first.out
    tables = {name: warehouse.scan(name).select(columns).collect() for name, columns in expected["columns"].items()}
    counts = {name: [rows.height, hash_rows(rows.iter_rows(named=True))] for name, rows in tables.items()}
    assert counts == expected["tables"]
    assert sum(rows.height for rows in tables.values()) > 1_500
    scores = warehouse.scan("scores").filter(source="forum").select("comment_id", "value", "model_id").collect()
    (model_id,) = scores["model_id"].unique()
    models = run("models", "list", "--json").check().rows
    assert [(row["model_id"], row["is_in_force"]) for row in models] == [(model_id, True)]
    run("score", "implicitness", old_home / "comments.csv", "-c", "text", "-o", tmp_path / "scores.csv").check()
    both = pl.read_csv(tmp_path / "scores.csv").join(scores, on="comment_id", validate="1:1")
    assert both.height == scores.height == 99
    assert (both["implicitness"] - both["value"]).abs().max() <= 1e-5
    run("score", "implicitness", "--day", DAY).check(0, f"159 scores for {DAY}")
    assert Path(run("report", "--day", DAY).check().out.strip()).is_file()
    assert run("label", "export", "--out", tmp_path / "tasks", "--json").check().rows[0]["tasks"] == 12
    tasks = run("label", "adjudicate", "--adjudicator", "dora", "--out", tmp_path / "decide", "--json").check().rows
    assert [(row["round"], row["fields"]) for row in tasks] == [(1, 3)]
    meanings = run("recover", old_home / "comments.csv", "--llm", "m", "--limit", 3, "--cache-only", "--json").check()
    assert {row["meaning"] for row in meanings.rows} == {"话里有话"}
    source = Path(settings.__file__).read_text(encoding="utf-8")
    assert [name for name in expected["settings"] if f'{name.removeprefix("UNDERTONE_")}"' not in source] == []
    assert {"HOME", "USER_KEY", "UNDERTONE_LLM_URL"} < set(expected["settings"])


def test_upgrade_without_tables_is_refused(run: Run, home: Path) -> None:
    """Where there are no tables nothing is made: the setting may name another home."""
    run("upgrade", "--yes").check(4, "there is no catalog")
    assert not home.exists()
