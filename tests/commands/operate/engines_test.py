"""`undertone connect` and `snapshot`: other programs read the rows that we read."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import sqlglot
from polars.testing import assert_frame_equal
from sqlglot import exp

from pipeline import warehouse
from pipeline.tables import TABLES, empty
from pipeline.warehouse import catalog
from tests.commands.conftest import Run
from tests.support.rows.filled import digest, filled


@pytest.fixture
def rows(tables: Path) -> dict[str, pl.DataFrame]:
    """One row in each table but `pairs`, which was never written, and two comments."""
    frames = {name: filled(name, {}) for name in TABLES}
    frames["comments"] = filled("comments", {"user_id": digest("u", 32)}, {"comment_id": "c2", "text": "雨天"})
    frames["pairs"] = empty("pairs")
    for name, frame in frames.items():
        if frame.height:
            warehouse.overwrite(name, {c: frame[c][0] for c in TABLES[name].partitions}, frame)
    return frames


@pytest.mark.parametrize("engine", ["duckdb", "polars", "pandas", "pyarrow"])
def test_an_engine_reads_what_we_read(rows: dict[str, pl.DataFrame], run: Run, engine: str) -> None:
    """The printed code gives every table with our rows, and those of comments value by value."""
    snippets = {name: run("connect", engine, "--table", name).check().out for name in rows}
    for name, frame in rows.items():
        values: dict[str, Any] = {}
        exec(snippets[name], values)  # noqa: S102 - people run it
        read = pl.DataFrame(values["rows"].pl() if engine == "duckdb" else values["rows"])
        assert (read.height, read.columns) == (frame.height, frame.columns)
        if name == "comments":
            assert_frame_equal(read.cast(frame.schema), frame, check_row_order=False)  # type: ignore[arg-type]


@pytest.mark.parametrize("is_server", [False, True])
def test_settings_for_java_engines_hold_no_password(
    tables: Path, run: Run, monkeypatch: pytest.MonkeyPatch, is_server: bool
) -> None:
    """Spark and Trino get address, user, store and the state of the table; sqlglot reads their SQL."""
    place = "s3://b/w'h/undertone/scores/metadata/00003-a.metadata.json"
    if is_server:
        uri = "postgresql+psycopg2://analyst:s3cret@db:5433/catalog?password=s3cret"
        monkeypatch.setenv("UNDERTONE_CATALOG", uri)
        monkeypatch.setenv("UNDERTONE_WAREHOUSE", "s3://b/w'h")
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://store:9000")
        monkeypatch.setattr(catalog, "load_table", lambda _: SimpleNamespace(metadata_location=place))
    snippets = {e: run("connect", e, "--table", "scores").check().out for e in ("spark", "trino", "polars", "duckdb")}
    assert "s3cret" not in str(snippets).replace("***", "s3cret")
    for engine in ("spark", "trino"):
        settings, _, sql = snippets[engine].partition("-- SQL\n")
        for word in ("analyst", "http://store:9000", "jdbc:postgresql://db:5433/catalog"):
            assert (word in settings) == is_server
        *others, statement = sqlglot.parse(sql, read=engine)
        assert isinstance(statement, exp.Select)
        assert [table.sql() for table in statement.find_all(exp.Table)] == ["undertone.undertone.scores"]
        assert [other.key for other in others if other] == ["create", "command"] * (engine == "trino" and not is_server)
    assert ("PGPASSWORD" in snippets["polars"]) == is_server
    compile(snippets["polars"], "polars", "exec")
    assert (place.replace("'", "''") in snippets["duckdb"]) == is_server


def test_a_snapshot_has_the_rows_and_a_card(rows: dict[str, pl.DataFrame], run: Run, tmp_path: Path) -> None:
    """Each file has our rows without the columns of people; the card names tables, snapshots, columns and sources."""
    out = tmp_path / "share"
    lines = {line["table"]: line for line in run("snapshot", "--out", out, "--json").check().rows}
    assert sorted(path.name for path in out.iterdir()) == sorted(["README.md", *(f"{name}.parquet" for name in TABLES)])
    card = (out / "README.md").read_text("utf-8")
    for name, frame in rows.items():
        left_out = {"comments": ["user_id"], "labels": ["rater_id"], "comment_grades": ["raters"]}.get(name, [])
        expected = frame.drop(left_out)
        assert_frame_equal(pl.read_parquet(out / f"{name}.parquet"), expected, check_row_order=False)
        snapshot_id = warehouse.get_snapshot_id(name)
        assert lines[name] == {"table": name, "rows": frame.height, "snapshot": snapshot_id and str(snapshot_id)}
        assert f"| [{name}](#{name}) | {frame.height} | {snapshot_id or 'none'} |" in card
        assert [c for c, kind in expected.schema.items() if f"| {c} | {kind} | " not in card] == []
    assert "left out: comments.user_id, labels.rater_id, comment_grades.raters." in card
    assert "Sources: weibo. The tables record no licence" in card
    assert "| SHA-256 of address and body |" in card
    assert "| user_id |" not in card


def test_a_snapshot_replaces_a_snapshot_alone(
    rows: dict[str, pl.DataFrame], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder with files is refused; --force replaces a snapshot, whole or not at all, and no other folder."""
    out = tmp_path / "share"
    run("snapshot", "--out", out, "--table", "comments").check()
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    run("snapshot", "--out", out).check(2, "holds a snapshot; --force replaces it, or choose another folder")
    with monkeypatch.context() as patch:
        patch.setattr(pl.LazyFrame, "sink_parquet", lambda *_: 1 / 0)
        run("snapshot", "--out", out, "--force").check(70)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    run("snapshot", "--out", out, "--table", "scores", "--table", "comments", "--with-personal", "--force").check()
    assert {path.name for path in out.iterdir()} == {"README.md", "comments.parquet", "scores.parquet"}
    assert pl.read_parquet(out / "comments.parquet").columns == rows["comments"].columns
    (out / "mine.txt").touch()
    run("snapshot", "--out", out, "--force").check(2, "mine.txt is of no snapshot")
    assert [*tmp_path.glob(".draft*")] == []


def test_check_compares_metadata_with_contracts(tables: Path, run: Run) -> None:
    """What another engine changed is a violation that names column and difference; `init` aligns it."""
    assert "holds   contracts" in run("check").check().out
    with warehouse.load_table("pairs").update_schema() as change:
        change.make_column_optional("lang").update_column("split", doc="A part")
    out = run("check").check(1).out
    assert "FAILED  contracts" in out
    assert "String required: A part" in " ".join(out.split())
    run("init").check(0, "required columns, key and order are as in the contracts: pairs")
    run("check").check()
