"""Forgetting: of every table and store what is one person's goes, and what is others' stays as it was."""

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import settings, warehouse
from pipeline.tables import TABLES
from pipeline.tasks.erasure import files, rules, run
from pipeline.tasks.erasure.request import Request
from pipeline.tasks.erasure.run import Outcome
from tests.support.rows.filled import DAY
from tests.support.rows.held import held
from tests.tasks.conftest import put_back
from tests.tasks.erasure import forgotten
from tests.tasks.erasure.forgotten import FREE, KEY, MODEL, OTHER, PERSON, RAW, SHARED, USER, WORDS, WORLD, expect_rows

CHECKS = Path(__file__).parents[3] / "sql" / "checks"


@pytest.fixture(scope="module")
def filled_home(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A home with every table and store filled, and a copy of it to begin from again: addresses in it are absolute."""
    home = tmp_path_factory.mktemp("forget") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERTONE_HOME", str(home))
        warehouse.create()
        forgotten.fill()
        warehouse.close()
    return home, shutil.copytree(home, home.with_name("copy"))


@pytest.fixture
def world(filled_home: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Every table and store, filled."""
    yield from put_back(*filled_home, monkeypatch)


@pytest.fixture(scope="module")
def forgotten_home(filled_home: tuple[Path, Path]) -> tuple[Path, Path, Outcome]:
    """The same after the person is forgotten, and what that came to."""
    home, copy = filled_home
    tables = {"comments", "tokens", "label_tasks", "completions", "raw_pages"}
    folders = {"inbox", "ledger", "spool", "reports", "releases", "labelling", "models", "scratch", "home"}
    with pytest.MonkeyPatch.context() as patch:
        for _ in put_back(home, copy, patch):
            assert {place.store for place in warehouse.search(WORDS)} >= tables | folders
            assert violations() == {}
            outcome = run.forget(Request(user_ids=[RAW], source="weibo"), key=KEY, run_id="test")
    return home, shutil.copytree(home, home.with_name("after")), outcome


@pytest.fixture
def outcome(forgotten_home: tuple[Path, Path, Outcome], monkeypatch: pytest.MonkeyPatch) -> Iterator[Outcome]:
    """What forgetting the person came to; the home is as it was left."""
    for _ in put_back(*forgotten_home[:2], monkeypatch):
        yield forgotten_home[2]


def violations() -> dict[str, Any]:
    """Checks that do not hold."""
    con = warehouse.connect()
    violated = {path.stem: con.execute(path.read_text(encoding="utf-8")).fetchall() for path in CHECKS.glob("*.sql")}
    return {name: rows for name, rows in violated.items() if rows}


def test_every_table_has_a_rule_and_a_row_here() -> None:
    """A new table needs a rule of how its rows are found, and rows in this test."""
    assert set(rules.RULES) == set(TABLES) == set(WORLD)
    assert [*rules.RULES][-1] == "comments"


def test_what_is_theirs_goes_and_what_is_others_stays(outcome: Outcome) -> None:
    """No store holds it, other rows are as they were, checks hold; receipts count and tell nothing of whom."""
    assert warehouse.search(WORDS) == []
    for name in WORLD:
        if not name.endswith("erasures"):
            assert_frame_equal(held(name), expect_rows(name))
    assert violations() == {}
    assert set(warehouse.load_table("comments").refs()) == {"main"}
    assert not (settings.models() / MODEL).exists()
    assert (settings.models() / OTHER / "model.safetensors").is_file()
    assert (settings.reports() / "2026-11-18.html").is_file()
    index = (settings.reports() / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"href=\"([^\"]*)", index) == ["index-2026-11-18.html", "2026-11-18.html"]
    assert outcome.report_days == ["2026-11-19"]
    receipts = {row["store"]: row["row_count"] for row in outcome.receipts.to_dicts()}
    assert (receipts["tokens"], receipts["pairs"], receipts["comments"]) == (2, 3, 5)  # comments: three go, two mended
    assert outcome.receipts.select("kind", "request_count").unique().rows() == [("user_id", 1)]
    assert_frame_equal(outcome.receipts, held("erasures").sort("store"))
    assert not [word for word in (*WORDS, "9001") if word in outcome.receipts.write_json()]


def test_files_lose_records_and_keep_the_others(outcome: Outcome) -> None:
    """Sheets, tasks, imported files, pages, logs and releases keep what others said."""
    folder = settings.labelling() / "csd" / "round1_stage1"
    assert [json.loads(line)["task_id"] for line in (folder / "tasks.jsonl").read_text().splitlines()] == [FREE]
    assert (folder / "labels" / "r1.csv").read_text() == f"task_id,subtext,meaning\n{FREE},1,\n"
    assert json.loads((folder / "labels" / "r1.json").read_text()) == [{"data": {"task_id": FREE}}]
    assert pl.read_excel(folder / "r1.xlsx").rows() == [(FREE, SHARED)]
    inbox = settings.inbox() / "weibo" / DAY.isoformat()
    assert (inbox / "a.csv").read_text() == f"user,text\n1,{SHARED}\n"
    assert (inbox / "old.csv").read_text(encoding="gb18030") == "text\n大家都这么说\n"
    (page,) = (inbox / "pages.jsonl").read_text().splitlines()
    assert [item["id"] for item in json.loads(page)["body"]["data"]["data"]] == ["9002"]
    assert (settings.home() / "airflow" / "logs" / "task.log").read_text() == "began\nended\n"
    published = pl.read_ndjson(settings.releases() / "csd" / "data.jsonl")
    assert published["text"].sort().to_list() == ["a reply that stays", SHARED]
    assert str(settings.models() / MODEL) in outcome.removed_paths


def test_models_are_flagged_with_their_share(outcome: Outcome) -> None:
    """A model's share is of as many rows as at first, also after later erasures; none that was removed is flagged."""
    assert warehouse.query("select * from models_flagged").is_empty()
    (model,) = outcome.models.to_dicts()
    assert (model["erased_count"], model["training_count"], model["erased_ratio"]) == (2, 4, 0.5)
    run.forget(Request(comment_ids=["9004"]), verify=False)  # by now nobody else says so
    assert held("model_erasures").sort("training_count")["training_count"].to_list() == [1, 4, 4]
    # the other model, of whose texts none is left, was removed too
    assert warehouse.query("select * from models_flagged").is_empty()


def test_a_second_time_finds_nothing(outcome: Outcome) -> None:
    """What is erased is erased: again, nothing is counted, and no table changes."""
    before = {name: warehouse.get_snapshot_id(name) for name in TABLES}
    assert run.forget(PERSON).receipts.height == 0
    assert {name: warehouse.get_snapshot_id(name) for name in TABLES} == before
    assert run.preview(PERSON).height == 0


def test_counting_first_changes_nothing(world: Path, forgotten_home: tuple[Path, Path, Outcome]) -> None:
    """A preview counts the rows of each table and of the inbox as the erasure then does, and leaves all as it is."""
    before = {name: warehouse.get_snapshot_id(name) for name in TABLES}
    counts = {row["store"]: row for row in run.preview(PERSON).to_dicts()}
    assert {name: warehouse.get_snapshot_id(name) for name in TABLES} == before
    assert (counts["comments"]["row_count"], counts["labels"]["row_count"]) == (5, 3)
    assert (counts["reports"]["file_count"], counts["models"]["file_count"]) == (1, 1)
    receipt_counts = dict(forgotten_home[2].receipts.select("store", "row_count").iter_rows())
    stores = {*TABLES, "inbox"} & {*receipt_counts} - {"models"}
    row_counts = {name: row["row_count"] for name, row in counts.items() if row["row_count"]}
    assert row_counts == {name: receipt_counts[name] for name in stores}


@pytest.mark.nightly
def test_killed_again_and_again(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it dies, each time some steps further, the end is the same."""
    remaining = [0]

    def count_down(work: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **options: Any) -> Any:
            if not remaining[0]:
                raise KeyboardInterrupt
            remaining[0] -= 1
            return work(*args, **options)

        return step

    erasing = sys.modules["pipeline.warehouse.erase"]  # the package has a function of this name
    owners = {"replace": erasing, "expire": erasing, "_vacuum": files, "remove_folder": files, "unlink": Path}
    with monkeypatch.context() as patch:
        for name, owner in owners.items():
            patch.setattr(owner, name, count_down(getattr(owner, name)))
        for steps in (5, 17):
            remaining[0] = steps
            with pytest.raises(KeyboardInterrupt):
                run.forget(Request(user_ids=[USER], comment_ids=["9001"]), key=KEY)
    assert held("comments").height > expect_rows("comments").height
    run.forget(PERSON, key=KEY)
    assert warehouse.search(WORDS[:-1]) == []
    for name in ("comments", "tokens", "pairs", "labels", "raw_pages", "dropped", "runs", "training_texts", "models"):
        assert_frame_equal(held(name), expect_rows(name))


def test_by_origin(outcome: Outcome) -> None:
    """An origin goes with all that it brought; a namesake of the file in the inbox stays."""
    file = settings.inbox() / "weibo" / DAY.isoformat() / "test"
    file.write_text("it")
    run.forget(Request(origin="test"), verify=False)
    assert file.read_text() == "it"
    of_origin = ("comments", "tokens", "scores", "raw_pages", "articles", "threads", "cloze_items", "label_tasks")
    for name in (*of_origin, "generated_comments", "reference_comments"):
        assert held(name).height == 0, name
    assert held("runs").filter(origin="test").height == 0
    assert violations() == {}
