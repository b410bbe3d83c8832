"""The page about NDD: it shows what the tables have, and foreign text stays text."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline import warehouse
from pipeline.metrics.ndd.similarity import CASES
from pipeline.tasks.ndd import compressions
from pipeline.tasks.ndd import page as ndd_page
from tests.support.rows.filled import DAY as DATE
from tests.support.rows.filled import filled

DAY = DATE.isoformat()
HOSTILE = "<script>alert(1)</script>"
WORDS = [HOSTILE, "{{ 7 * 7 }}", "\u202ecold", "soup", "."]


@pytest.fixture
def compressed(tables: Path) -> None:
    """Two sentences of hostile words with a compression by people, three by systems, and their numbers."""
    rows = [
        {"source": "notes", "item_id": f"i{number}", "lang": "en", "system": system, "words": WORDS, "rounds": rounds,
         "ratio": rounds.count(0) / 5, "signature": signature}
        for number in range(2)
        for system, rounds, signature in (
            ("gold", [0, 0, 1, 0, 1], "gold"), ("head", [1, 1, 0, 0, 0], "head"),
            ("fast_ndd", [1, 0, 2, 0, 1], f"compression:fast_ndd|{HOSTILE}"),
            ("ndd", [1, 1, 2, 0, 0], "compression:ndd|count:1"),
        )
    ]  # fmt: skip
    warehouse.overwrite("compressions", warehouse.make_slice(source="notes", day=DAY), filled("compressions", *rows))
    compressions.publish_measures("notes", DAY)


def write_study(study: str, *rows: dict[str, Any]) -> None:
    """Write rows of a study, with settings given as dictionaries."""
    filled_rows = ({**row, "setting": json.dumps(row.get("setting", {})), "study": study, "day": DATE} for row in rows)
    compressions.replace_study(study, filled("studies", *filled_rows), DAY)


def load_page(day: str = DAY) -> str:
    """Load the page's text."""
    return Path(ndd_page.write(day)).read_text(encoding="utf-8")


@pytest.mark.usefixtures("compressed")
def test_inputs_are_the_tables() -> None:
    """Inputs are the numbers, significance, positions and sentences of the tables; absent parts are None."""
    inputs = ndd_page.load_inputs(DAY)
    ratio = inputs["compressions"].filter(by="head", metric="ratio")
    assert ratio.select("source", "lang", "value", "n").rows() == [("notes", "en", 0.6, 2)]
    significance = inputs["significance"]
    assert set(significance.select("one", "other").iter_rows()) == {("fast_ndd", "head"), ("ndd", "head")}
    assert significance["p"].is_between(0, 1).all()
    assert set(inputs["positions"]["system"]) == {"gold", "fast_ndd", "ndd"}
    assert [(row["system"], row["words"], row["gold"]) for row in inputs["examples"]] == [
        ("ndd", WORDS, [True, True, False, True, False])
    ] * 2
    assert sorted(inputs["signatures"]) == [f"compression:fast_ndd|{HOSTILE}", "compression:ndd|count:1"]
    assert len(inputs["explained"]) == sum(len(case.edits) for case in CASES)
    for explained_case in inputs["explained"]:
        shares = sum(row["divergence"] * row["weight"] for row in explained_case["rows"])
        assert explained_case["value"] == pytest.approx(shares)
    for name in ("ratios", "tests", "overlap", "distributions", "pruning", "predicates", "shift", "human"):
        assert inputs[name] is None, name


@pytest.mark.usefixtures("tables")
def test_every_study_has_its_part() -> None:
    """Of each the rows that its table shows; the rest of a page's parts is named as missing."""
    numbers = {"value": 0.5, "low": 0.25, "high": 0.75, "row_count": 8}
    setting = {"measure": "ndd", "model": "count:1"}
    write_study(
        "similarity", {**numbers, "subset": "lemma", "metric": "pearson", "setting": {**setting, "test": "lemma"}},
        {**numbers, "subset": "overlap>0.8", "metric": "pearson", "setting": {**setting, "test": "supervised"}},
        {**numbers, "subset": "overlap=1", "metric": "pearson", "setting": {**setting, "test": "supervised"}},
        {**numbers, "subset": "overlap=0", "metric": "pearson", "setting": {**setting, "test": "supervised"}},
        *({**numbers, "subset": f"lemma:{label}", "metric": f"q{share:03d}", "setting": {**setting, "test": "lemma"}}
          for label in ("positive", "negative") for share in range(0, 101, 5)),
    )  # fmt: skip
    write_study("pruning", *(
        {**numbers, "subset": reading, "metric": "depth_1", "setting": {"system": "ndd", "threshold": 1.0}}
        for reading in ("one", "several")
    ))  # fmt: skip
    write_study("predicates", {**numbers, "subset": "verbs", "metric": "map", "setting": {**setting, "edit": "delete"}})
    write_study(
        "context_shift", {**numbers, "subset": "all", "metric": "spearman", "setting": {"other": "subtext"}},
        *({**numbers, "subset": "all", "metric": f"q{share:03d}"} for share in range(0, 101, 5)),
    )  # fmt: skip
    write_study(
        "compression",
        {**numbers, "subset": "notes:human", "metric": "syntax", "setting": {"system": "ndd"}},
        {**numbers, "subset": "notes:en:thresholds", "metric": "f1_macro",
         "setting": {"system": "fast_ndd", "threshold": 1.0, "longest": 5}},
    )  # fmt: skip
    inputs = ndd_page.load_inputs(DAY)
    assert {name: part.height for name, part in inputs.items() if isinstance(part, pl.DataFrame)} == {
        "tests": 1, "overlap": 3, "distributions": 42, "pruning": 1, "predicates": 1, "shift": 1, "shift_values": 21,
        "human": 1, "ratios": 1,
    }  # fmt: skip
    assert sorted(inputs["overlap"]["threshold"]) == [-1.0, 0.8, 1.0]
    assert set(inputs["distributions"]["label"]) == {"positive", "negative"}
    assert inputs["human"].select("system", "metric", "low", "high", "n", "mean").row(0) == (
        "ndd", "syntax", 0.25, 0.75, 8, 0.5,
    )  # fmt: skip
    assert inputs["examples"] is None
    assert inputs["signatures"] == ["count:1"]
    assert "Not measured" in load_page()
