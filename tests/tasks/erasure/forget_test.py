"""Forgetting: of every table and store what is one person's goes, and what is others' stays as it was."""

import json
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import settings, warehouse
from pipeline.collect.privacy import anonymise
from pipeline.errors import BadInput, Retry
from pipeline.llm.ledger import answers
from pipeline.tables import TABLES
from pipeline.tasks.erasure import files, rules, run
from pipeline.tasks.erasure.request import Request
from pipeline.tasks.erasure.run import Outcome
from pipeline.tasks.record import model_registry
from tests.support.filled import DAY, NEXT, filled
from tests.support.held import write
from tests.tasks.erasure import forgotten
from tests.tasks.erasure.forgotten import (
    FREE,
    KEY,
    MARK,
    MODEL,
    OTHER,
    RAW,
    SAID,
    SHARED,
    TASK,
    USER,
    WORLD,
    expected,
    scan_all,
)

erasing = sys.modules["pipeline.warehouse.erase"]  # the package has a function of this name
CHECKS = Path(__file__).parents[3] / "sql" / "checks"
WORDS = [MARK, USER, TASK, forgotten.hash_of(SAID), RAW]


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


def _restored(home: Path, copy: Path, patch: pytest.MonkeyPatch) -> None:
    answers.close()  # it holds the file that goes
    shutil.rmtree(home)
    shutil.copytree(copy, home)
    patch.setenv("UNDERTONE_HOME", str(home))


@pytest.fixture
def world(filled_home: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Every table and store, filled."""
    _restored(*filled_home, monkeypatch)
    yield filled_home[0]
    warehouse.close()


@pytest.fixture(scope="module")
def forgotten_home(filled_home: tuple[Path, Path]) -> tuple[Path, Path, Outcome]:
    """The same after the person is forgotten, and what that came to."""
    home, copy = filled_home
    with pytest.MonkeyPatch.context() as patch:
        _restored(home, copy, patch)
        assert {"comments", "tokens", "label_tasks", "completions", "raw_pages", "inbox", "ledger", "spool", "reports",
                "releases", "labelling", "models", "scratch", "home"} <= stores()  # fmt: skip
        assert violations() == {}
        outcome = run.forget(Request(user_ids=[RAW], source="weibo"), key=KEY, run_id="test")
        warehouse.close()
    return home, shutil.copytree(home, home.with_name("after")), outcome


@pytest.fixture
def outcome(forgotten_home: tuple[Path, Path, Outcome], monkeypatch: pytest.MonkeyPatch) -> Iterator[Outcome]:
    """What forgetting the person came to; the home is as it was left."""
    _restored(*forgotten_home[:2], monkeypatch)
    yield forgotten_home[2]
    warehouse.close()


def put_rows(*names: str) -> None:
    """Fill these tables alone."""
    for name in names:
        forgotten.put_rows(name, [*WORLD[name].erased, *WORLD[name].remaining])


def stores() -> set[str]:
    """Where something of theirs is."""
    return {place.store for place in warehouse.search(WORDS)}


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
    """No file of the lake, catalog, caches and folders holds it, every other row is as it was, and all checks hold."""
    assert warehouse.search(WORDS) == []
    for name in WORLD:
        if not name.endswith("erasures"):
            assert_frame_equal(scan_all(name), expected(name))
    assert violations() == {}
    assert set(warehouse.table("comments").refs()) == {"main"}
    assert not (settings.models() / MODEL).exists()
    assert (settings.models() / OTHER / "model.safetensors").is_file()
    assert (settings.reports() / "2026-11-18.html").is_file()
    assert outcome.report_days == ["2026-11-19"]


def test_receipts_count_and_tell_nothing(outcome: Outcome) -> None:
    """A row a store with what went; of whom and what it was is nothing in them, not even a hash."""
    receipts = {row["store"]: row["row_count"] for row in outcome.receipts.to_dicts()}
    assert (receipts["tokens"], receipts["pairs"], receipts["comments"]) == (2, 3, 5)  # comments: three go, two mended
    assert (outcome.receipts["kind"].unique().to_list(), outcome.receipts["request_count"].unique().to_list()) == (
        ["user_id"],
        [1],
    )
    assert_frame_equal(outcome.receipts, scan_all("erasures").sort("store"))
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
    assert model_registry.list_flagged().height == 0
    (model,) = outcome.models.to_dicts()
    assert (model["erased_count"], model["training_count"], model["erased_ratio"]) == (2, 4, 0.5)
    run.forget(Request(comment_ids=["9004"]), verify=False)  # by now nobody else says so
    assert scan_all("model_erasures").sort("training_count")["training_count"].to_list() == [1, 4, 4]
    assert model_registry.list_flagged().height == 0  # the other model, of whose texts none is left, was removed too


def test_rows_of_another_table_in_the_folder_stop_an_erasure(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an earlier version made a new catalog over the tables, their rows are not reached: nothing is erased."""
    for text in (SHARED, SAID):
        write(text)
    newest = Path(warehouse.table("comments").metadata_location).name
    warehouse.close()
    (tables / "catalog.db").unlink()
    monkeypatch.setattr("pipeline.warehouse.catalog._holds_rows", lambda _: False)
    warehouse.create()
    message = f"comments: rows of another table lie in the same folder.*the newest is .*{newest}"
    with pytest.raises(BadInput, match=message):
        run.forget(Request(comment_ids=["c1"]))


def test_a_second_time_finds_nothing(outcome: Outcome) -> None:
    """What is erased is erased: again, nothing is counted, and no table changes."""
    before = {name: warehouse.snapshot(name) for name in TABLES}
    assert run.forget(Request(user_ids=[USER])).receipts.height == 0
    assert {name: warehouse.snapshot(name) for name in TABLES} == before
    assert run.preview(Request(user_ids=[USER])).height == 0


def test_counting_first_changes_nothing(world: Path, forgotten_home: tuple[Path, Path, Outcome]) -> None:
    """A preview tells each table's rows as the erasure then does, and leaves all as it is."""
    before = {name: warehouse.snapshot(name) for name in TABLES}
    counts = {row["store"]: row for row in run.preview(Request(user_ids=[USER])).to_dicts()}
    assert {name: warehouse.snapshot(name) for name in TABLES} == before
    assert (counts["comments"]["row_count"], counts["labels"]["row_count"]) == (5, 3)
    assert (counts["reports"]["file_count"], counts["models"]["file_count"]) == (1, 1)
    receipt_counts = {row["store"]: row["row_count"] for row in forgotten_home[2].receipts.to_dicts()}
    assert {name: row["row_count"] for name, row in counts.items() if row["row_count"]} == {
        name: receipt_counts[name] for name in TABLES if name in receipt_counts and name != "models"
    }


def test_killed_again_and_again(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it dies, each time some steps further, the end is the same."""
    remaining = [0]

    def mortal(work: Callable[..., Any]) -> Callable[..., Any]:
        def once(*args: Any, **named: Any) -> Any:
            if not remaining[0]:
                raise KeyboardInterrupt
            remaining[0] -= 1
            return work(*args, **named)

        return once

    with monkeypatch.context() as patch:
        for module, name in ((erasing, "replace"), (erasing, "expire"), (files, "_vacuum"), (Path, "unlink"),
                             (files, "remove_folder")):  # fmt: skip
            patch.setattr(module, name, mortal(getattr(module, name)))
        for steps in (0, 5, 17):
            remaining[0] = steps
            with pytest.raises(KeyboardInterrupt):
                run.forget(Request(user_ids=[USER], comment_ids=["9001"]), key=KEY)
    assert scan_all("comments").height > expected("comments").height
    run.forget(Request(user_ids=[USER]), key=KEY)
    assert warehouse.search(WORDS[:-1]) == []
    for name in ("comments", "tokens", "pairs", "labels", "raw_pages", "dropped", "runs", "training_texts", "models"):
        assert_frame_equal(scan_all(name), expected(name))


def test_killed_while_the_comments_go(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dead between the last commit and the removal of its old files: the next run finds their bytes by themselves."""
    put_rows("comments", "runs")
    purge = warehouse.purge

    def mortal(name: str, *rest: Any) -> int:
        if name == "comments":
            raise KeyboardInterrupt
        return purge(name, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(warehouse, "purge", mortal)
        with pytest.raises(KeyboardInterrupt):
            run.forget(Request(user_ids=[USER]), verify=False)
    assert_frame_equal(scan_all("comments"), expected("comments"))
    assert stores() == {"comments"}
    run.forget(Request(user_ids=[USER]))
    assert warehouse.search(WORDS[:-1]) == []
    assert_frame_equal(scan_all("runs"), expected("runs"))


@pytest.mark.parametrize("dies", ["scores", "comments"])
def test_one_that_is_killed_leaves_its_receipts(tables: Path, monkeypatch: pytest.MonkeyPatch, dies: str) -> None:
    """Dead by a signal before the old states go, it has told what is erased; run again, it goes on with the same
    receipts, and they add up. Once it is done, the same request is another erasure.
    """
    put_rows("comments", "tokens", "scores")
    purge = warehouse.purge

    def mortal(name: str, *rest: Any) -> int:
        if name == dies:
            monkeypatch.setattr(run, "_write_receipts", lambda _: None)  # a signal leaves no time for it
            raise KeyboardInterrupt
        return purge(name, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(warehouse, "purge", mortal)
        write_receipts = run._write_receipts
        with pytest.raises(KeyboardInterrupt):
            run.forget(Request(user_ids=[USER]), verify=False)
        monkeypatch.setattr(run, "_write_receipts", write_receipts)
    before = scan_all("erasures")
    assert {dies, "tokens"} <= {*before["store"]}
    outcome = run.forget(Request(user_ids=[USER]))
    counts = dict(outcome.receipts.select("store", "row_count").iter_rows())
    assert {name: counts[name] for name in ("tokens", "scores", "comments")} == {
        "tokens": 2, "scores": 3, "comments": 5
    }  # fmt: skip
    assert scan_all("erasures")["erasure_id"].unique().to_list() == [before["erasure_id"][0]]
    assert [path.name for path in tables.glob("forget*")] == ["forget.lock"]
    assert run.forget(Request(user_ids=[USER])).receipts.height == 0


def test_a_kill_takes_the_count_of_one_store_at_most(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dead by a signal, it has told of the files that it had cut before."""
    put_rows("comments")
    inbox = settings.inbox() / "weibo" / DAY.isoformat()
    inbox.mkdir(parents=True)
    inbox.joinpath("a.jsonl").write_text(json.dumps({"text": SAID}) + "\n", encoding="utf-8")

    def dies(*_: Any) -> None:
        monkeypatch.setattr(run, "_write_receipts", lambda _: None)  # a signal leaves no time for it
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "_erase_files", dies)
    with pytest.raises(KeyboardInterrupt):
        run.forget(Request(user_ids=[USER]), verify=False)
    assert scan_all("erasures").select("store", "row_count", "file_count").rows() == [("inbox", 1, 1)]


def test_a_writer_that_is_faster_is_waited_for(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that loses its race is tried again; what a writer in flight brings back goes in the next pass; and all
    of it is counted.
    """
    put_rows("comments", "scores", "runs")
    replace, purge, lost, back = erasing.replace, warehouse.purge, [], []

    def raced(name: str, *rest: Any) -> int:
        if name == "scores" and not lost:
            lost.append(name)
            raise Retry("another writer")
        if name == "articles" or (name == "runs" and not back):
            back.append(name)
            late = {"comment_id": "9001", "text_hash": forgotten.hash_of(SAID), "source": "weibo", "day": NEXT}
            warehouse.overwrite("scores", warehouse.slice_of(source="weibo", day=NEXT), filled("scores", late))
        return replace(name, *rest)

    def beaten(name: str, *rest: Any) -> int:
        if name == "scores" and lost == ["scores"]:
            lost.append("old scores")
            raise Retry("another writer")
        return purge(name, *rest)

    monkeypatch.setattr(erasing, "replace", raced)
    monkeypatch.setattr(warehouse, "purge", beaten)
    row_counts = run.forget(Request(user_ids=[USER])).receipts.filter(store="scores")["row_count"].to_list()
    assert (lost, back, row_counts) == (["scores", "old scores"], ["runs"], [4])  # three, and one that came back
    assert warehouse.search(WORDS[:-1]) == []
    assert_frame_equal(scan_all("scores"), expected("scores"))


def test_of_two_at_once_one_waits(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two people who wrote the same go at once: no words stay because the other, who goes too, wrote them as well."""
    forgotten.put_rows("comments", [{"comment_id": user, "text": SAID, "user_id": user} for user in (USER, "b" * 32)])
    forgotten.put_rows("tokens", WORLD["tokens"].erased[:1])
    resolve, barrier = run.resolve, threading.Barrier(2)

    def together(request: Any) -> Any:
        targets = resolve(request)
        with suppress(threading.BrokenBarrierError):
            barrier.wait(1)
        return targets

    monkeypatch.setattr(run, "resolve", together)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda user: run.forget(Request(user_ids=[user])), (USER, "b" * 32)))
    assert (scan_all("comments").height, scan_all("tokens").height) == (0, 0)
    assert warehouse.search(WORDS[:-1]) == []


def test_what_is_left_is_told_and_leads_back(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place that cannot be cut fails the erasure loudly; the comments stay, so that it can be run again."""
    monkeypatch.setattr(run, "PASSES", 1)
    forgotten.put_rows("comments", [{"text": SAID, "user_id": USER}])
    (tables / "strange.db").write_text(SAID)
    with pytest.raises(Retry, match=r"home \(.*strange\.db\)"):
        run.forget(Request(user_ids=[USER]))
    assert scan_all("comments").height == 1
    (tables / "strange.db").unlink()
    run.forget(Request(user_ids=[USER]))
    assert warehouse.search(WORDS[:-1]) == []


def test_a_file_of_no_state_is_waited_for(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A young file that no state has may be a run's in flight: it fails the erasure, unless nothing else runs."""
    monkeypatch.setattr(run, "PASSES", 2)
    put_rows("comments", "tokens")
    folders = [Path(warehouse.table(name).location().removeprefix("file://")) for name in ("comments", "tokens")]
    for folder in folders:
        pl.DataFrame({"text": [SAID]}).write_parquet(folder / "data" / "lost.parquet")
    with pytest.raises(Retry, match=r"tokens \(.*lost\.parquet\).*--grace-hours"):
        run.forget(Request(user_ids=[USER]))
    assert scan_all("comments").height == 6
    run.forget(Request(user_ids=[USER]), grace=timedelta(0))
    assert warehouse.search(WORDS[:-1]) == []
    assert_frame_equal(scan_all("comments"), expected("comments"))


def test_a_line_ends_where_the_importer_ends_it(tables: Path) -> None:
    """A record that has U+2028 or another of Unicode's line ends in it goes whole, and what others said so stays."""
    ends = "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e"
    comment = f"{SAID}{ends}the other half of it, known to nobody else"
    forgotten.put_rows("comments", [{"text": comment, "user_id": USER}])
    inbox = settings.inbox() / "weibo" / DAY.isoformat()
    inbox.mkdir(parents=True)
    rows = [json.dumps({"text": text}, ensure_ascii=False) for text in (comment, f"others{ends}say so", "fine")]
    (inbox / "a.jsonl").write_text("\r\n".join(rows), encoding="utf-8", newline="")
    for name in ("a.txt", "a.log"):
        (inbox / name).write_text(f"{comment}\rothers{ends}say so\n", encoding="utf-8", newline="")
    run.forget(Request(user_ids=[USER]))
    with (inbox / "a.jsonl").open(encoding="utf-8", newline="") as file:
        assert file.read() == "\r\n".join(rows[1:])
    for name in ("a.txt", "a.log"):
        assert (inbox / name).read_bytes().decode() == f"others{ends}say so\n"


def test_half_a_text_is_found(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of a long text may be its end; one that somebody else's text has too is no trace."""
    monkeypatch.setattr(run, "PASSES", 1)
    same = "and so ends what both of them had to say"
    texts = [(SAID, USER), (f"one of them begins so, {same}", USER), (f"the other one, {same}", "b" * 32)]
    forgotten.put_rows("comments", [{"comment_id": text, "text": text, "user_id": user} for text, user in texts])
    (tables / "both.db").write_text(same)
    (tables / "half.db").write_text(SAID[-40:])
    with pytest.raises(Retry, match=r"home \(.*half\.db\)$"):
        run.forget(Request(user_ids=[USER]))


def test_text_beside_the_records_of_a_file(tables: Path) -> None:
    """Records are found by lists and fields in them too; a file that has it where no record is goes, and is told."""
    import xlsxwriter

    forgotten.put_rows("comments", [{"text": SAID, "user_id": USER}])
    inbox = settings.inbox() / "weibo" / DAY.isoformat()
    inbox.mkdir(parents=True)
    threads = [{"thread": name, "comments": [{"text": "fine"}, {"text": text}]} for name, text in
               (("1", SAID), ("2", "others"))]  # fmt: skip
    pl.DataFrame(threads).write_parquet(inbox / "a.parquet")
    with xlsxwriter.Workbook(str(inbox / "a.xlsx")) as book:
        book.add_worksheet("said").write_row(0, 0, ["text"])
        book.set_properties({"comments": SAID})
    outcome = run.forget(Request(user_ids=[USER]))
    assert pl.read_parquet(inbox / "a.parquet").to_dicts() == threads[1:]
    assert outcome.removed_paths == [str(inbox / "a.xlsx")]
    assert outcome.receipts.filter(store="inbox").select("row_count", "file_count").rows() == [(2, 2)]
    assert warehouse.search(WORDS[:-1]) == []


def test_what_nobody_can_open_is_told_and_stays(tables: Path) -> None:
    """A damaged or encrypted archive in the home neither stops an erasure nor goes with it: a person must look."""
    put_rows("comments")
    strange = tables / "backup.zip"
    strange.write_bytes(b"PK\x03\x04 and nothing that can be read")
    assert run.forget(Request(user_ids=[USER])).unreadable_paths == [str(strange)]
    assert strange.exists()
    assert_frame_equal(scan_all("comments"), expected("comments"))


def test_an_id_that_looks_like_a_pseudonym(tables: Path) -> None:
    """Members of Zhihu have ids of 32 hexadecimal digits: with source and key at hand, these are hashed as well."""
    surrogate = "0" * 16 + "a" * 16
    users = [anonymise.surrogate("zhihu", surrogate, KEY), surrogate, "b" * 32]
    forgotten.put_rows("comments", [
        {"source": "zhihu", "comment_id": str(n), "text": f"{n}", "user_id": user} for n, user in enumerate(users)
    ])  # fmt: skip
    assert run.preview(Request(user_ids=[surrogate], source="zhihu"))["row_count"].to_list() == [1]
    outcome = run.forget(Request(user_ids=[surrogate], source="zhihu"), key=KEY)
    assert scan_all("comments")["user_id"].to_list() == ["b" * 32]
    assert outcome.receipts["request_count"].unique().to_list() == [1]


def test_a_short_text_is_no_label_and_no_number(tables: Path) -> None:
    """Whose whole comments are `1`, `user` and `text` takes nothing with them that others said, answered or counted."""
    short_texts = ("1", "user", "text")
    forgotten.put_rows("comments", [{"comment_id": text, "text": text, "user_id": USER} for text in short_texts])
    remaining = {
        "labels": [{"value": "1"}], "annotations": [{"state": "adopted", "value": "1"}],
        "runs": [{"step": "ask", "config": '{"kind": "text"}'}],
        "pairs": [{"implicit": "a remark", "explicit": "text", "negative": "user"}],
        "completions": [forgotten.build_request("what others say", "1")], "sentences": [{"text": "1"}],
    }  # fmt: skip
    for name, rows in remaining.items():
        forgotten.put_rows(name, rows)
    before = {name: scan_all(name) for name in remaining}
    of_theirs = [forgotten.build_request(text, "what it means") for text in ("user", json.dumps({"text": "1"}))]
    forgotten.put_rows("completions", [*remaining["completions"], *of_theirs])
    inbox = settings.inbox() / "weibo" / DAY.isoformat()
    inbox.mkdir(parents=True)
    (inbox / "a.csv").write_text("text,likes,comment_id\n1,7,8\nfine,1,9\n")
    (inbox / "a.json").write_text('[{"text": "fine", "user": 1, "kind": "user"}, {"text": "user"}]')
    run.forget(Request(user_ids=[USER]))
    for name, rows in before.items():
        assert_frame_equal(scan_all(name), rows)
    assert (inbox / "a.csv").read_text() == "text,likes,comment_id\nfine,1,9\n"
    assert json.loads((inbox / "a.json").read_text()) == [{"text": "fine", "user": 1, "kind": "user"}]


def test_by_comment(tables: Path) -> None:
    """A comment goes by its id, with what was made of it; others of the same person stay."""
    put_rows("comments", "label_tasks", "labels")
    run.forget(Request(comment_ids=["9001"], source="weibo"))
    assert scan_all("comments").filter(user_id=USER)["comment_id"].sort().to_list() == ["9005", "9006"]
    assert warehouse.search([forgotten.hash_of(SAID), TASK]) == []


def test_by_origin(outcome: Outcome) -> None:
    """An origin goes with all that it brought, rows of the funnel included; a namesake of the file in the inbox, whose
    rows are filed under `inbox`, stays.
    """
    file = settings.inbox() / "weibo" / DAY.isoformat() / "test"
    file.write_text("it")
    run.forget(Request(origin="test"), verify=False)
    assert file.read_text() == "it"
    for name in ("comments", "tokens", "scores", "raw_pages", "articles", "threads", "cloze_items", "label_tasks",
                 "generated_comments", "reference_comments"):  # fmt: skip
        assert scan_all(name).height == 0, name
    assert scan_all("runs").filter(origin="test").height == 0
    assert violations() == {}


def test_a_file_of_ids(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids of a file are taken together; the DAG's way gives counts alone and removes the file at the end, not before.

    It may lie in the home, where pseudonyms are looked for.
    """
    put_rows("comments")
    report = settings.reports() / "2026-11-19.html"
    report.parent.mkdir(parents=True)
    report.write_text(SAID)
    monkeypatch.setattr(run, "PASSES", 1)
    strange = tables / "strange.db"
    strange.write_text(USER)
    path = tables / "ids.csv"
    content = f"source,user_id,comment_id\nweibo,{RAW},\n,{USER},9006\n"
    path.write_text(content)
    params = {"path": str(path), "origin": None, "source": None, "dry_run": False, "retrain": False}
    assert run.forget_file({**params, "dry_run": True}, KEY.decode(), "r")["stores"]
    with pytest.raises(Retry, match="strange"):
        run.forget_file(params, KEY.decode(), "r")
    assert path.read_text() == content
    strange.unlink()
    report.write_text(SAID)
    summary = run.forget_file(params, KEY.decode(), "r")
    assert not path.exists()
    assert not [word for word in (*WORDS, "9001") if word in json.dumps(summary)]
    assert summary["days_to_report_again"] == ["2026-11-19"]
    assert scan_all("erasures")["kind"].unique().to_list() == ["user_id+comment_id"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("source,user_id\nweibo,4711\n,4712\n", "ids.csv, row 3, field 'user_id': an id of the site needs"),
        ("user,source\n1,weibo\n", "ids.csv, row 2: unknown field 'user'"),
        ("source,comment_id\nweibo,\n", "ids.csv, row 2: expected an id in user_id, comment_id or thread_id"),
        ("source,comment_id\nWeibo!,1\n", "ids.csv, row 2: field 'source': expected a source name"),
    ],
)  # fmt: skip
def test_wrong_rows_are_named(tmp_path: Path, content: str, message: str) -> None:
    """A wrong row is refused with file, row and field before a table is opened."""
    (tmp_path / "ids.csv").write_text(content)
    with pytest.raises(BadInput) as why:
        run.forget(Request(file=tmp_path / "ids.csv"), key=KEY)
    assert message in str(why.value)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request(), "name what to erase"),
        (Request(user_ids=["4711"]), "needs its source"),
        (Request(user_ids=["4711"], source="weibo"), "UNDERTONE_USER_KEY"),
        (Request(comment_ids=[" "]), "expected an id"),
        (Request(comment_ids=["1"], source="Weibo"), "no source name"),
    ],
)
def test_wrong_requests_are_refused(request_: Request, message: str) -> None:
    """What names nobody, or whom nobody can tell, is refused."""
    with pytest.raises(BadInput, match=message):
        run.forget(request_)


def test_a_post_of_the_user_goes_with_them(tables: Path) -> None:
    """Where the raw page tells that the user wrote the post, the article and what was made of it go; comments stay."""
    body = json.dumps({"ok": 1, "data": {"id": "t1", "text": f"{MARK} wrote this whole post", "user": {"id": USER}}})
    forgotten.put_rows("raw_pages", [{"body": body, "url": "https://m.weibo.cn/statuses/show?id=t1"}])
    forgotten.put_rows("articles", [{"text": f"{MARK} wrote this whole post"}, {"thread_id": "t2", "text": "others"}])
    forgotten.put_rows("comments", [{"text": "nice", "context": f"{MARK} wrote this whole post"}])
    forgotten.put_rows("threads", [{}, {"thread_id": "t2"}])
    run.forget(Request(user_ids=[USER]))
    assert warehouse.search([MARK, USER]) == []
    assert scan_all("articles")["thread_id"].to_list() == scan_all("threads")["thread_id"].to_list() == ["t2"]
    assert scan_all("comments").select("text", "context").rows() == [("nice", None)]
    assert scan_all("raw_pages").height == 0


def test_words_of_others_are_no_trace(tables: Path) -> None:
    """What somebody else says too, whole or in part, is not looked for; a common beginning is told by the whole."""
    same, part = "these are words that we both wrote down", "a long beginning that both of them have, and mine"
    forgotten.put_rows("comments", [
        {"text": same, "user_id": USER}, {"text": same, "user_id": "b" * 32}, {"text": part, "user_id": USER},
        {"text": "a long beginning that both of them have, and yours"},
    ])  # fmt: skip
    sentences = (same, part, "a long beginning that both of them have, somewhere")
    forgotten.put_rows("sentences", [{"item_id": str(n), "text": text} for n, text in enumerate(sentences, 1)])
    run.forget(Request(user_ids=[USER]))
    assert scan_all("sentences")["item_id"].to_list() == ["1", "3"]
    assert scan_all("comments").height == 2
