"""Forgetting beside everything else: kills, writers in flight, a second erasure, and what stands in its way."""

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import settings, warehouse
from pipeline.errors import BadInput, Retry
from pipeline.tasks.erasure import run
from pipeline.tasks.erasure.request import Request
from tests.support.rows.filled import NEXT, filled
from tests.support.rows.held import held, write
from tests.tasks.erasure.forgotten import ERASED, PERSON, USER, WORDS, WORLD, expect_rows, hash_of, put_rows, put_world

erasing = sys.modules["pipeline.warehouse.erase"]  # the package has a function of this name


def test_rows_of_another_table_in_the_folder_stop_an_erasure(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an earlier version made a new catalog over the tables, their rows are not reached: nothing is erased."""
    for text in ("first", ERASED):
        write(text)
    newest = Path(warehouse.load_table("comments").metadata_location).name
    warehouse.close()
    (tables / "catalog.db").unlink()
    monkeypatch.setattr("pipeline.warehouse.catalog._holds_rows", lambda _: False)
    warehouse.create()
    message = f"comments: rows of another table lie in the same folder.*the newest is .*{newest}"
    with pytest.raises(BadInput, match=message):
        run.forget(Request(comment_ids=["c1"]))


def test_rows_of_comments_that_nothing_has_any_more_go_too(tables: Path) -> None:
    """Tokens and scores of a replaced comment, whose old states another erasure removed, go though none names them."""
    put_world("comments", "tokens", "scores")
    put_rows("comments", WORLD["comments"].remaining)
    warehouse.purge("comments", timedelta(0))
    run.forget(PERSON)
    for name in ("tokens", "scores"):
        assert_frame_equal(held(name), expect_rows(name))


def test_one_that_is_killed_leaves_its_receipts(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before the old states go, it goes on with the same receipts, which add up; then it is another erasure."""
    put_world("comments", "tokens", "scores")
    purge = warehouse.purge
    with monkeypatch.context() as patch:

        def die_at(table: str, *rest: Any) -> int:
            if table == "comments":
                patch.setattr(run, "_write_receipts", lambda _: None)
                raise KeyboardInterrupt
            return purge(table, *rest)

        patch.setattr(warehouse, "purge", die_at)
        with pytest.raises(KeyboardInterrupt):
            run.forget(PERSON, verify=False)
    before = held("erasures")
    assert {place.store for place in warehouse.search(WORDS)} == {"comments"}  # its old files
    assert {"comments", "tokens"} <= {*before["store"]}
    counts = dict(run.forget(PERSON).receipts.select("store", "row_count").iter_rows())
    assert counts.items() >= {"tokens": 2, "scores": 3, "comments": 5}.items()
    assert held("erasures")["erasure_id"].unique().to_list() == [before["erasure_id"][0]]
    assert [path.name for path in tables.glob("forget*")] == ["forget.lock"]
    assert run.forget(PERSON).receipts.height == 0
    assert warehouse.search(WORDS[:-1]) == []


def test_a_kill_takes_the_count_of_one_store_at_most(inbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dead by a signal, it has recorded the files that it had cleaned before."""
    put_world("comments")
    (inbox / "a.jsonl").write_text(json.dumps({"text": ERASED}) + "\n", encoding="utf-8")

    def die_by_signal(*_: Any) -> None:
        monkeypatch.setattr(run, "_write_receipts", lambda _: None)  # a signal leaves no time for it
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "_erase_files", die_by_signal)
    with pytest.raises(KeyboardInterrupt):
        run.forget(PERSON, verify=False)
    assert held("erasures").select("store", "row_count", "file_count").rows() == [("inbox", 1, 1)]


def test_a_writer_that_is_faster_is_waited_for(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost race is tried again, what a writer in flight restores goes in the next pass, and all of it is counted."""
    put_world("comments", "scores", "runs")
    replace, purge, lost, restored = erasing.replace, warehouse.purge, [], []

    def replace_late(name: str, *rest: Any) -> int:
        if name == "scores" and not lost:
            lost.append(name)
            raise Retry("another writer")
        if name == "articles" or (name == "runs" and not restored):
            restored.append(name)
            late = {"comment_id": "9001", "text_hash": hash_of(ERASED), "source": "weibo", "day": NEXT}
            warehouse.overwrite("scores", warehouse.make_slice(source="weibo", day=NEXT), filled("scores", late))
        return replace(name, *rest)

    def purge_late(name: str, *rest: Any) -> int:
        if name == "scores" and lost == ["scores"]:
            lost.append("old scores")
            raise Retry("another writer")
        return purge(name, *rest)

    monkeypatch.setattr(erasing, "replace", replace_late)
    monkeypatch.setattr(warehouse, "purge", purge_late)
    row_counts = run.forget(PERSON).receipts.filter(store="scores")["row_count"].to_list()
    assert (lost, restored, row_counts) == (["scores", "old scores"], ["runs"], [4])  # three, and the restored one
    assert warehouse.search(WORDS[:-1]) == []
    assert_frame_equal(held("scores"), expect_rows("scores"))


def test_of_two_at_once_one_waits(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two people who wrote the same go at once: no words stay because the other, who goes too, wrote them as well."""
    users = (USER, "b" * 32)
    put_rows("comments", [{"comment_id": user, "text": ERASED, "user_id": user} for user in users])
    put_rows("tokens", WORLD["tokens"].erased[:1])
    resolve, barrier = run.resolve, threading.Barrier(2)

    def resolve_together(request: Any) -> Any:
        targets = resolve(request)
        with suppress(threading.BrokenBarrierError):
            barrier.wait(1)
        return targets

    monkeypatch.setattr(run, "resolve", resolve_together)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda user: run.forget(Request(user_ids=[user])), users))
    assert (held("comments").height, held("tokens").height) == (0, 0)
    assert warehouse.search(WORDS[:-1]) == []


def test_what_is_left_is_named_and_leads_back(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place that cannot be cleaned fails the erasure and the comments stay; a damaged archive is named."""
    monkeypatch.setattr(run, "PASSES", 1)
    same = "and so ends what both of them had to say"
    comments = [(ERASED, USER), (f"one of them begins so, {same}", USER), (f"the other one, {same}", "b" * 32)]
    put_rows("comments", [{"comment_id": text, "text": text, "user_id": user} for text, user in comments])
    (tables / "both.db").write_text(same)
    (tables / "backup.zip").write_bytes(b"PK\x03\x04 and nothing that can be read")
    for trace in (ERASED, ERASED[-40:]):
        (tables / "strange.db").write_text(trace)
        with pytest.raises(Retry, match=r"home \(.*strange\.db\)$"):
            run.forget(PERSON)
        assert held("comments").height == 3
    (tables / "strange.db").unlink()
    assert run.forget(PERSON).unreadable_paths == [str(tables / "backup.zip")]
    assert (tables / "backup.zip").exists()
    assert warehouse.search(WORDS[:-1]) == []


def test_a_file_of_no_state_is_waited_for(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A young file that no state has may be a run's in flight: it fails the erasure, unless nothing else runs."""
    monkeypatch.setattr(run, "PASSES", 2)
    put_world("comments", "tokens")
    for name in ("comments", "tokens"):
        folder = Path(settings.warehouse()) / "undertone" / name
        pl.DataFrame({"text": [ERASED]}).write_parquet(folder / "data" / "lost.parquet")
    with pytest.raises(Retry, match=r"tokens \(.*lost\.parquet\).*--grace-hours"):
        run.forget(PERSON)
    assert held("comments").height == 6
    run.forget(PERSON, grace=timedelta(0))
    assert warehouse.search(WORDS[:-1]) == []
    assert_frame_equal(held("comments"), expect_rows("comments"))
