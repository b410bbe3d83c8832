"""Queries over tables and views."""

import re
from pathlib import Path

import polars as pl
import pytest

from filled import DAY, filled
from pipeline import warehouse
from pipeline.errors import BadInput
from pipeline.tables import TABLES

NAMES = warehouse.checks()
VIEWS = {
    path.stem.partition("_")[2]: path for path in sorted((Path(__file__).parents[2] / "sql" / "views").glob("*.sql"))
}
INJECTION = "x' or 1=1; drop view funnel; --"


@pytest.fixture
def two(tables: Path) -> None:
    """Two comments, one scored."""
    where = {"day": DAY}
    warehouse.overwrite("comments", where, filled("comments", {"text": "cold here"}, {"text": "hot here"}))
    warehouse.overwrite("scores", where, filled("scores", {"value": 0.5}))


@pytest.mark.parametrize("view", ["articles_distinct", "comments_scored", "funnel", "holes",
                                  "implicitness_by_source_day", "most_implicit"])  # fmt: skip
def test_every_view_opens_on_empty_tables(tables: Path, view: str) -> None:
    """A fresh installation has all views, without rows."""
    assert warehouse.query(f"select * from {view}").height == 0


def test_a_query_sees_tables_and_views(two: None) -> None:
    """The rows come back as a frame with the tables' types."""
    found = warehouse.query("select day, text, implicitness from comments_scored")
    assert found.rows() == [(DAY, "cold here", 0.5)]
    assert found.schema == {"day": pl.Date, "text": pl.String, "implicitness": pl.Float64}
    assert warehouse.query("select text from comments order by text").to_series().to_list() == ["cold here", "hot here"]


def test_a_query_spills_below_the_home(two: None, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit into memory goes where `maintain` sweeps, never into the folder that the process stands in."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    con = warehouse.connect()
    con.execute("set memory_limit = '24MB'; set threads = 1")
    many = "select count(*) from (select r, text || r as t from comments, range(400000) as n (r) order by t, r)"
    spilt: list[Path] = []
    con.execute("create table kept as select r, text || r as t from comments, range(400000) as n (r) order by t")
    spilt += (home / "scratch" / "duckdb").glob("*/*")
    assert con.execute(many).fetchall() == [(800_000,)]
    con.close()
    assert spilt
    assert not list(here.iterdir())
    assert not list((home / "scratch" / "duckdb").glob("*/*"))


def loaded(sql: str) -> set[str]:
    """Tables and views that a connection for a query has."""
    return {name for (name,) in warehouse.connect(sql).execute("show tables").fetchall()}


@pytest.mark.parametrize("sql", ["select text from Comments", 'select * from "most_implicit"'])
def test_a_query_loads_what_it_names(two: None, sql: str) -> None:
    """Tables that a query names neither itself nor in its views cost nothing."""
    assert "comments" in loaded(sql)
    assert not loaded(sql) & {"tokens", "pairs", "label_progress"}


@pytest.mark.parametrize(
    "sql",
    ["", "show tables", "select 1 as tokens_", "select name from (show tables) where name like 'comments'",
     "select * from information_schema.columns where column_name = 'tokens'", "from duckdb_views() -- of comments"],
)  # fmt: skip
def test_a_query_that_asks_what_there_is_finds_all(tables: Path, sql: str) -> None:
    """Somebody who looks around, or names no table, sees every table and every view."""
    assert loaded(sql) == {*TABLES, *VIEWS}


def test_views_are_named_as_their_files_are() -> None:
    """What is loaded for a query is found by name, and a view comes after those that it reads."""
    for number, (name, path) in enumerate(VIEWS.items()):
        made = path.read_text(encoding="utf-8").lower()
        assert f"create or replace view {name} as" in made
        assert not [later for later in [*VIEWS][number + 1 :] if re.search(rf"(from|join) {later}\b", made)]


def test_a_query_sees_later_commits(two: None) -> None:
    """Each query sees the tables as of now."""
    warehouse.overwrite("comments", {"day": DAY}, filled("comments", {}))
    assert warehouse.query("select count(*) as n from comments")["n"].to_list() == [1]


def test_parameters_are_bound_not_spliced(two: None) -> None:
    """A value that looks like SQL is compared as text."""
    sql = "select text from comments where text = ?"
    assert warehouse.query(sql, [INJECTION]).height == 0
    warehouse.overwrite("comments", {"day": DAY}, filled("comments", {"text": INJECTION}, {"text": "other"}))
    assert warehouse.query(sql, [INJECTION]).rows() == [(INJECTION,)]
    assert warehouse.query("select ? as a, ? as b", [1, "x"]).rows() == [(1, "x")]


@pytest.mark.parametrize(
    "sql",
    ["selec 1", "select nothing from comments", "select * from nowhere", "select ?", "",
     "select error('no')", "select cast(text as int) from comments"],
)  # fmt: skip
def test_bad_sql_is_bad_input(two: None, sql: str) -> None:
    """What DuckDB cannot parse, bind or run, or what gives no rows, is BadInput."""
    with pytest.raises(BadInput, match="the query"):
        warehouse.query(sql)


def test_there_is_a_name_for_each_check() -> None:
    """Checks are named as their files are."""
    folder = Path(__file__).parents[2] / "sql" / "checks"
    assert warehouse.checks() == sorted(p.stem for p in folder.glob("*.sql"))
    assert "scores_have_comments" in warehouse.checks()


def test_checks_hold_on_empty_tables(tables: Path) -> None:
    """A fresh installation violates nothing."""
    assert {name: warehouse.run_check(name) for name in NAMES} == {name: [] for name in NAMES}


def test_a_check_gives_at_most_so_many_rows(two: None) -> None:
    """Violating rows come as dictionaries, no more than asked for."""
    scores = filled("scores", *({"comment_id": f"x{i}"} for i in range(9)))
    warehouse.overwrite("scores", {"day": DAY}, scores)
    assert len(warehouse.run_check("scores_have_comments")) == 5
    (row,) = warehouse.run_check("scores_have_comments", limit=1)
    assert set(row) == {"source", "day", "comment_id", "metric"}


def test_an_unknown_check_is_named(tables: Path) -> None:
    """The message lists the checks there are; a path is no name."""
    with pytest.raises(BadInput, match=r"no check '\.\./views/30_holes'; there are cloze_items_have_targets, comments"):
        warehouse.run_check("../views/30_holes")
