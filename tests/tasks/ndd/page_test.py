"""The page about NDD: it shows what the tables have."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.tasks.ndd import compressions
from pipeline.tasks.ndd import page as ndd_page
from tests.support.rows.filled import DAY as DATE
from tests.support.rows.filled import filled

DAY = DATE.isoformat()


def write_study(study: str, *rows: dict[str, Any]) -> None:
    """Write rows of a study, with settings given as dictionaries."""
    filled_rows = ({**row, "setting": json.dumps(row.get("setting", {})), "study": study, "day": DATE} for row in rows)
    compressions.replace_study(study, filled("studies", *filled_rows), DAY)


def load_page(day: str = DAY) -> str:
    """Load the page's text."""
    return Path(ndd_page.write(day)).read_text(encoding="utf-8")


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
