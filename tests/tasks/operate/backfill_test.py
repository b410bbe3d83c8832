"""Backfill: days in any order, again and again, several at once, give the tables of one pass in order; and heal."""

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import Mock

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import sample, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.slices import parse_day
from pipeline.tables import empty
from pipeline.tasks.daily import collect, score, tokenize
from pipeline.tasks.impscore import scoring
from pipeline.tasks.operate import backfill
from tests.support.commands import import_here
from tests.support.rows.contents import check_equal, read_tables
from tests.support.rows.filled import filled
from tests.tasks.conftest import Bring, Enlist, put_back

FIRST, LAST = DAYS = ("2026-11-17", "2026-11-19")
STEPS = ("collect", "tokenize", "score")
INBOX = {  # day and source -> texts by comment id; "1" and "2" come up on both days, "你可真准时" in two sources
    (FIRST, "notes"): {"1": "what a lovely queue", "2": "你可真准时", "3": "fine"},
    (FIRST, "forum"): {"1": "你可真准时", "9": "what a lovely queue"},
    (LAST, "notes"): {"1": "what a lovely queue again", "2": "你可真准时", "5": "fine"},
}
Tables = dict[str, pl.DataFrame]


def write_comments(home: Path, day: str, source: str, texts: dict[str, str]) -> None:
    """The inbox of a day and source holds these comments."""
    folder = home / "inbox" / source / day
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"t{key},{key},{text}" for key, text in texts.items()]
    (folder / "export.csv").write_text("\n".join(["thread_id,comment_id,text", *lines]), encoding="utf-8")


def one_pass(days: Sequence[str] = DAYS) -> None:
    """The days one after another."""
    for day in days:
        for source in ("notes", "forum"):
            backfill.run(day, ["collect"], source)
        backfill.run(day, STEPS[1:])


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Tables]:
    """A home with a full inbox and empty tables, a copy of it, and the tables after one pass in order."""
    place = tmp_path_factory.mktemp("backfill") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERTONE_HOME", str(place))
        import_here(patch)
        for (day, source), texts in INBOX.items():
            write_comments(place, day, source, texts)
        warehouse.create()
        warehouse.close()
        shutil.copytree(place, place.parent / "copy")
        one_pass()
        expected = read_tables()
        warehouse.close()
    assert {name for name, frame in expected.items() if frame.height} == {"comments", "tokens", "scores", "runs"}
    assert (expected["comments"].height, expected["scores"].height) == (8, 8)
    return place, place.parent / "copy", expected


@pytest.fixture
def expected(stock: tuple[Path, Path, Tables], home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tables]:
    """What one pass made of the inbox; the inbox and empty tables are put back."""
    import_here(monkeypatch)
    for _ in put_back(*stock[:2], monkeypatch):
        yield stock[2]


def test_any_order_of_days_and_steps(expected: Tables) -> None:
    """Whatever steps of whatever days ran before, how often and in what order: a pass backwards gives the same."""
    for step, day in [("score", LAST), ("collect", LAST), ("score", LAST), ("collect", FIRST), ("tokenize", LAST)]:
        backfill.run(day, [step], "notes")
    one_pass(DAYS[::-1])
    check_equal(read_tables(), expected)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:Delete operation did not match")  # filters are not safe in threads
def test_runs_at_once(expected: Tables) -> None:
    """Both days at once, one of them twice: a lost race is tried again, and nothing differs."""
    with ThreadPoolExecutor(3) as pool:
        for future in [pool.submit(one_pass, [day]) for day in (FIRST, LAST, FIRST)]:
            future.result()
    check_equal(read_tables(), expected)


def test_a_day_that_fails_does_not_stop_the_others(expected: Tables, stock: tuple[Path, Path, Tables]) -> None:
    """A day without comments has no report and is no failure; one whose inbox is broken is named, the rest is done."""
    wrong, empty_day = "2026-11-16", "2026-11-18"
    write_comments(stock[0], wrong, "notes", {})
    (stock[0] / "inbox" / "notes" / wrong / "export.csv").write_text("nothing,of,this\n1,2,3\n", encoding="utf-8")
    failed = backfill.run_all([wrong, *DAYS, empty_day])
    assert set(failed) == {wrong}
    assert isinstance(failed[wrong], BadInput)
    check_equal(read_tables(), expected)
    reports = stock[0] / "reports"
    assert {path.name for path in reports.glob("2026-*.html")} == {f"{day}.html" for day in DAYS}


def test_scheduled_dags_of_papers_run_too(expected: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each day has its context shift before its report; the corpus is built once, and its error hides no day's."""
    assert backfill.list_steps() == [*STEPS, "report"]
    monkeypatch.setenv("UNDERTONE_SCHEDULES", "ndd=comments; commenting=tokens")
    calls: list[tuple[str, str]] = []
    for name, work in backfill.FAMILIES.items():
        recorded = work._replace(run=lambda day, name=name: calls.append((name, day)))
        monkeypatch.setitem(backfill.FAMILIES, name, recorded)
    assert backfill.run_all(DAYS[::-1]) == {}
    assert calls == [("ndd", LAST), ("ndd", FIRST), ("commenting", LAST)]
    for name, work in backfill.FAMILIES.items():
        monkeypatch.setitem(backfill.FAMILIES, name, work._replace(run=Mock(side_effect=BadInput("no"))))
    assert [*backfill.run_all([LAST], [*backfill.FAMILIES])] == [LAST, "commenting, recam"]


def test_a_mended_day(expected: Tables, stock: tuple[Path, Path, Tables]) -> None:
    """A mended day is as if it had always been so, also after runs begun before; the other day does not move."""
    write_comments(stock[0], FIRST, "notes", {"1": "what a lovely queue", "2": "wrong", "8": "to be taken out"})
    one_pass(DAYS[::-1])
    tokens, scores = tokenize.pin_snapshots(), score.pin(FIRST)
    write_comments(stock[0], FIRST, "notes", INBOX[FIRST, "notes"])
    one_pass([FIRST])
    check_equal(read_tables(), expected)
    tokenize.publish([], FIRST, tokens)
    score.publish([], FIRST, scores)
    check_equal(read_tables(), expected)
    assert backfill.find_holes() == {"tokens": [], "scores": []}


def test_a_model_promoted_in_between(expected: Tables, enlist: Enlist, tiny_encoder: Path) -> None:
    """Days after the model's day are scored by it, whenever they were scored before; earlier rows stay as they were."""
    shipped = scoring.load_model(None).model_id
    for day in DAYS:
        backfill.run(day, ["collect"])
    score.run(LAST)
    model_id = enlist(FIRST, 1)
    for day in DAYS:
        score.run(day)
    mixed = read_tables()["scores"]
    for day in DAYS:
        warehouse.overwrite("scores", warehouse.make_slice(day=day), empty("scores"))
    for day in DAYS[::-1]:
        score.run(day)
    straight = read_tables()["scores"]
    assert_frame_equal(mixed.filter(model_id=model_id), straight)
    last_scores = expected["scores"].filter(pl.col("day").cast(pl.String) == LAST)
    assert_frame_equal(mixed.filter(model_id=shipped), last_scores)
    assert straight["model_id"].unique().to_list() == [model_id]
    assert straight.height == expected["scores"].height


def test_origins_of_one_day_keep_the_first(tables: Path, tmp_path: Path) -> None:
    """Of two origins of a day the first keeps a comment; run again in any order, the tables stay."""
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(f"thread_id,comment_id,text\nt,1,nice\nt,{name},{name}\n", "utf-8")

    def bring(name: str) -> None:
        collect.import_files([tmp_path / f"{name}.csv"], "notes", FIRST)

    bring("b")
    bring("a")
    first = read_tables()
    origins = dict(first["comments"].select("comment_id", "origin").rows())
    assert origins == {"1": "b.csv", "a": "a.csv", "b": "b.csv"}
    for name in "aabba":
        bring(name)
    check_equal(read_tables(), first)


DAY, NEXT, LATEST = sample.DAY, "2026-11-20", "2026-11-21"


def test_holes_are_found_and_healed(imported: object, bring: Bring) -> None:
    """Days without tokens or scores are found in order, healed, and then there are none."""
    warehouse.overwrite("comments", warehouse.make_slice(day=DAY), empty("comments"))
    bring(NEXT, {"1": "Nice hat, sir."})
    bring(DAY, {"1": "今天真冷。", "2": "Nice hat, sir."})
    tokenize.run(NEXT)
    holes = backfill.find_holes()
    assert holes == {"tokens": [DAY], "scores": [DAY, NEXT]}
    assert backfill.heal(holes) == {"tokens": 1, "scores": 2}
    assert backfill.find_holes() == {"tokens": [], "scores": []}
    assert [name for name in warehouse.list_checks() if "have" in name and warehouse.run_check(name)] == []


def test_without_model_tokens_are_healed_all_the_same(tables: Path, bring: Bring, enlist: Enlist) -> None:
    """Where the model in force is gone the tokens are made, and then the error says what the scores lack."""
    bring(DAY, {"1": "Nice hat, sir."})
    model_id = enlist(DAY, 8)
    (tables / "models" / model_id).rename(tables / "gone")
    with pytest.raises(Missing, match=f"model {model_id[:12]} is not in"):
        backfill.heal(backfill.find_holes())
    assert backfill.find_holes() == {"tokens": [], "scores": [DAY]}


@pytest.mark.parametrize(
    ("name", "step", "days"),
    [
        ("ndd", "score_context_shift", [NEXT]), ("ndd", "none", []), ("commenting", "threads", [LATEST]),
        ("recam", "cloze_items", []),
    ],
)  # fmt: skip
def test_scheduled_dags_of_papers_are_healed(
    tables: Path, monkeypatch: pytest.MonkeyPatch, name: str, step: str, days: list[str]
) -> None:
    """Days collected after a scheduled DAG saw them are found; of a corpus the last, if it is due."""
    comments = [{"comment_id": str(n), "day": parse_day(LATEST)} for n in range(101)]
    warehouse.overwrite("comments", warehouse.make_slice(day=LATEST), filled("comments", *comments))
    warehouse.overwrite("articles", warehouse.make_slice(day=LATEST), filled("articles", {"day": parse_day(LATEST)}))
    hours = {DAY: (1, 2), NEXT: (4, 3), LATEST: (1, 2)}  # of the collection, and of the work
    for day, (collected, seen) in hours.items():
        for run, hour in (("collect", collected), (step, seen)):
            started_at = datetime(2026, 11, 23, hour, tzinfo=UTC)
            row = filled("runs", {"day": parse_day(day), "step": run, "started_at": started_at})
            warehouse.overwrite("runs", {**warehouse.make_slice(day=day), "step": run}, row)
    assert name not in backfill.find_holes()
    monkeypatch.setenv("UNDERTONE_SCHEDULES", f"{name}=comments")
    assert backfill.find_holes()[name] == days
    runs: list[str] = []
    monkeypatch.setitem(backfill.RUNS, name, runs.append)
    assert backfill.heal({name: days}) == {name: len(days)}
    assert runs == days
