"""Heal: days that lack tokens or scores are found and made good."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipeline import sample, warehouse
from pipeline.errors import Missing
from pipeline.slices import parse_day
from pipeline.tables import empty
from pipeline.tasks.daily import tokenize
from pipeline.tasks.operate import backfill
from tests.support.rows.filled import filled
from tests.tasks.conftest import Bring, Enlist

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
