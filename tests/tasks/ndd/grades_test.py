"""Compressions graded by people: tasks for raters who do not see the systems, and the means of their grades."""

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import polars as pl
import pytest

from pipeline import warehouse
from pipeline.errors import BadInput, Missing
from pipeline.label.compression import FORM
from pipeline.metrics.ndd.compression import AGREEMENT
from pipeline.papers.ndd import TABLE_13
from pipeline.slices import parse_day
from pipeline.tasks.labelling import projects, release
from pipeline.tasks.ndd import grades
from pipeline.tasks.studies import rows as studies
from tests.support.rows.filled import filled

DAY, LATER = "2026-11-19", "2026-11-20"
COUNT = 6
MASKS = {"gold": "100111", "ndd": "101111", "ppl_deleter": "011001", "tail": "111000"}
SYSTEMS = ("gold", "ndd", "ppl_deleter")


def write_compressions(systems: Sequence[str] = tuple(MASKS), day: str = DAY, **changed: str) -> None:
    """Write compressions of six sentences; of the first, ndd keeps what people keep and tail keeps nothing."""
    rows = []
    for number, system in product(range(COUNT), systems):
        mask = (MASKS | changed)[system]
        if number == 0:
            mask = {"ndd": MASKS["gold"], "tail": "000000"}.get(system, mask)
        rows.append({
            "source": "trams", "day": parse_day(day), "item_id": f"t{number}", "system": system, "lang": "en",
            "words": ["The", "old", f"no. {number}", "tram", "stopped", "."], "rounds": [1 - int(x) for x in mask],
            "ratio": round(mask.count("1") / 6, 6), "signature": f"{system}|test",
        })  # fmt: skip
    warehouse.overwrite("compressions", warehouse.make_slice(source="trams", day=day), filled("compressions", *rows))


@pytest.fixture
def ready(tables: Path) -> None:
    """A home with the compressions."""
    write_compressions()


@pytest.fixture
def folder(ready: None) -> Path:
    """All sentences by three systems given to people, of which two share one compression."""
    assert grades.select_tasks("trams", DAY, SYSTEMS) == 3 * COUNT - 1
    return grades.get_project("trams").folder


def test_a_dag_asks_people(ready: None) -> None:
    """Rows that were given wait until two people answered; what there is can be collected at any time.

    Without people's compressions simulated raters still grade all tasks.
    """
    write_compressions(("ndd", "tail"))
    assert grades.assign_tasks("trams", DAY, "files")["waiting"] == grades.load_tasks("trams", DAY).tasks.height
    assert grades.collect_answers("trams", DAY, "files", None, "cli")["graded"] == 0
    assert grades.collect_answers("trams", DAY, "simulated", None, "cli")["waiting"] == 0
    assert grades.assign_tasks("trams", DAY, "simulated")["waiting"] == 0


def fill_sheet(folder: Path, rater: str, syntax: int | pl.Expr, semantics: int) -> Path:
    """Fill the sheet of a rater with numbers, or with expressions over the sheet."""
    rows, path = read_sheet(folder, rater), folder / f"{rater}.csv"
    columns = [pl.lit(value) if isinstance(value, int) else value for value in (syntax, semantics)]
    rows.select("task_id", rater_id=pl.lit(rater), syntax=columns[0], semantics=columns[1]).write_csv(path)
    return path


def load_means(raters: str = "human") -> dict[tuple[str, str], tuple[float, int]]:
    """Load means and sentence counts by system and field."""
    rows = grades.load_means("trams", DAY).filter(by=raters)
    return {(row["system"], row["metric"]): (row["mean"], row["n"]) for row in rows.iter_rows(named=True)}


def read_sheet(folder: Path, rater: str) -> pl.DataFrame:
    """Read the sheet that a rater gets."""
    return pl.read_excel(folder / f"{rater}.xlsx", sheet_id=1)


def list_snapshots(*names: str) -> dict[str, int | None]:
    return {name: warehouse.get_snapshot_id(name) for name in names}


def test_systems_and_days_are_checked(ready: None) -> None:
    """An unknown system, day or source is refused with those that exist; so is a day without tasks for raters."""
    with pytest.raises(BadInput, match="by 'bert' on 2026-11-19; there are by gold, ndd, ppl_deleter, tail"):
        grades.select_tasks("trams", DAY, ["ndd", "bert"])
    with pytest.raises(Missing, match="no compressions of 'trams' on 2026-11-20; there are of 2026-11-19"):
        grades.select_tasks("trams", LATER)
    with pytest.raises(Missing, match="there are none of any day"):
        grades.select_tasks("buses", DAY)
    for source in ("No Name", "x" * 31):
        with pytest.raises(BadInput, match="source: expected up to 30"):
            grades.select_tasks(source, DAY)
    with pytest.raises(Missing, match="undertone ndd rate --source trams"):
        grades.collect("trams", DAY)
    assert grades.publish("trams", DAY) == 0
    assert warehouse.get_snapshot_id("label_tasks") is None


def test_raters_see_no_system(folder: Path) -> None:
    """Files for raters hold sentence and compression, no system, no id of a sentence, and no random id."""
    assert grades.export("trams", DAY, folder, ("anna", "ben"), "en") == 17
    sheets = [read_sheet(folder, rater) for rater in ("anna", "ben")]
    tasks = [json.loads(line) for line in (folder / "tasks.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {*tasks[0]} == {"task_id", "text", "context", "lang", "round", "schema_version", "fields"}
    texts = [*(sheet.write_csv() for sheet in sheets), json.dumps(tasks)]
    texts.append((folder / "assigned.csv").read_text())
    hidden = [*SYSTEMS, "tail", *(f"t{n}," for n in range(COUNT)), *warehouse.scan("label_tasks").collect()["row_id"]]
    assert not [name for name in hidden for text in texts if name in text]
    assert [path.name for path in sorted(folder.iterdir())] == [
        "anna.xlsx", "assigned.csv", "ben.xlsx", "guidelines.md", "labels", "tasks.jsonl",
    ]  # fmt: skip
    assert not sheets[0]["task_id"].equals(sheets[1]["task_id"])
    assert sheets[0]["task_id"].sort().equals(sheets[1]["task_id"].sort())


def test_grades_become_means_once_there_are_two(folder: Path) -> None:
    """One sheet waits; with two each system has its means, by hand, and a shared compression counts for both."""
    grades.export("trams", DAY, folder, ("anna", "ben"))
    is_shared = pl.col("text") == "The tram stopped ."
    starts_alike = pl.col("text").str.starts_with("The ")
    first_sheet = fill_sheet(folder, "anna", pl.when(starts_alike).then(5).otherwise(1), 2)
    second_sheet = fill_sheet(folder, "ben", pl.when(is_shared).then(4).otherwise(0), 2)
    assert grades.collect("trams", DAY, [first_sheet]) == {"tasks": 17, "graded": 0, "waiting": 17}
    assert load_means() == {}
    assert grades.collect("trams", DAY, [second_sheet]) == {"tasks": 17, "graded": 17, "waiting": 0}
    # people and, of one sentence, ndd leave "The tram stopped .": (5 + 4) / 2; else (5 + 0) / 2, and (1 + 0) / 2
    assert load_means() == {
        ("gold", "syntax"): (4.5, 6), ("gold", "semantics"): (2, 6),
        ("ndd", "syntax"): (pytest.approx((4.5 + 5 * 2.5) / 6, abs=1e-6), 6), ("ndd", "semantics"): (2, 6),
        ("ppl_deleter", "syntax"): (0.5, 6), ("ppl_deleter", "semantics"): (2, 6),
    }  # fmt: skip
    agreement = grades.load_agreement("trams", DAY)
    expected = [(name, metric) for name in ("syntax", "semantics") for metric in AGREEMENT]
    assert agreement.select("field", "metric").rows() == expected
    assert set(agreement["n"]) == {17}
    assert agreement.filter(field="syntax")["value"].null_count() == 0
    rows = warehouse.scan("studies").collect()
    assert set(rows["subset"]) == {"trams:human"}
    assert set(rows["study"]) == {"compression"}
    assert (rows["low"] <= rows["value"]).all()
    assert rows.height == 3 * 2 + 2 * 3


def test_what_was_not_dealt_is_refused(folder: Path) -> None:
    """A grade by who did not get the task, of another round, of no task or off the scale is named and not kept."""
    grades.export("trams", DAY, folder, ("anna", "ben"))
    path = fill_sheet(folder, "anna", 3, 3)
    good = pl.read_csv(path)
    wrong = {
        r"anna.csv: task \w{32} was not given to rater 'zoe', nor 16 others": {"rater_id": pl.lit("zoe")},
        r"task \w{32}, rater 'anna': expected round 1 and stage 1, found 2 and 1": {"round": pl.lit(2)},
        "task_id: found 'f+', expected one of the 17 tasks given out": {"task_id": pl.lit("f" * 32)},
        "row 2: syntax should be one of 0, 1, 2, 3, 4, 5, found '6'": {"syntax": pl.lit(6)},
        "grades of a file are people's, not simulated": {"tool": pl.lit("simulated")},
    }
    for message, change in wrong.items():
        good.with_columns(**change).write_csv(path)
        with pytest.raises(BadInput, match=message):
            grades.collect("trams", DAY, [path])
    assert warehouse.get_snapshot_id("labels") is None
    (folder / "assigned.csv").write_text("task,who\n1,anna\n", encoding="utf-8")
    good.write_csv(path)
    with pytest.raises(BadInput, match=r"assigned.csv: expected columns task_id, rater_id, found task, who"):
        grades.collect("trams", DAY, [path])
    with pytest.raises(BadInput, match="2 people grade each sentence; name as many, found 1"):
        grades.export("trams", DAY, folder / "elsewhere", ("anna",))
    with pytest.raises(BadInput, match="a rater's name should be letters"):
        grades.export("trams", DAY, folder, ("../anna", "ben"))


def test_simulated_raters_prefer_what_people_left(folder: Path) -> None:
    """Simulated raters grade all tasks in pairs, are marked as simulated, and prefer what is most like people's.

    Collecting the same again leaves no snapshots; rows of other studies stay.
    """
    other_row = studies.build_row("compression", DAY, "f1_macro", "trams:en", 0.5, 6, setting={"system": "ndd"})
    studies.replace_study("compression", studies.build_frame([other_row]), DAY)
    assert grades.collect("trams", DAY, tool="simulated") == {"tasks": 17, "graded": 17, "waiting": 0}
    labels = projects.read_labels("integrity_trams")
    assert set(labels["tool"]) == {"simulated"}
    assert labels.height == 17 * 2 * 2
    assert load_means() == {}
    means = {key: mean for key, (mean, _) in load_means("simulated").items()}
    for field in FORM.fields:
        assert means["gold", field] > means["ppl_deleter", field] + 1
    snapshots = list_snapshots("labels", "studies", "runs", "dropped")
    grades.collect("trams", DAY, tool="simulated")
    assert list_snapshots(*snapshots) == snapshots
    assert warehouse.scan("studies", pl.col("subset") == "trams:en").collect().height == 1


def test_a_system_counts_where_it_was_given(ready: None) -> None:
    """What one system shares with another that was graded is no sample of it: without being given it has no mean."""
    grades.select_tasks("trams", DAY, ["gold", "ppl_deleter"])
    grades.collect("trams", DAY, tool="simulated")
    assert {system for system, _ in load_means("simulated")} == {"gold", "ppl_deleter"}
    grades.select_tasks("trams", DAY, ["ndd"], count=2)
    grades.collect("trams", DAY, tool="simulated")
    counts = {system: n for (system, field), (_, n) in load_means("simulated").items() if field == "syntax"}
    assert counts == {"gold": COUNT, "ppl_deleter": COUNT, "ndd": 2}


def test_grades_of_what_has_changed_do_not_count(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Grades of a changed compression are dropped as unknown; the others stay, and new ones can be added."""
    grades.collect("trams", DAY, tool="simulated")
    before = load_means("simulated")
    write_compressions(ppl_deleter="000110")
    assert grades.publish("trams", DAY) == 11
    after = load_means("simulated")
    assert after == {key: number for key, number in before.items() if key[0] != "ppl_deleter"}
    assert "6 compressions of 2026-11-19 have changed since" in caplog.text
    reasons = warehouse.scan("dropped", pl.col("step") == grades.STEP).collect()["reason"].to_list()
    assert reasons == ["unknown_task"] * 6 * 4
    grades.select_tasks("trams", DAY, SYSTEMS)
    assert grades.collect("trams", DAY, tool="simulated") == {"tasks": 17, "graded": 17, "waiting": 0}


def test_what_was_withdrawn_does_not_come_back(folder: Path) -> None:
    """A task taken out on request is not given again, and its grades go with the next look."""
    grades.collect("trams", DAY, tool="simulated")
    task = warehouse.scan("label_tasks").sort("task_id").collect().row(0, named=True)
    release.withdraw([task["row_id"]])
    assert grades.select_tasks("trams", DAY, SYSTEMS) == 16
    assert grades.collect("trams", DAY, tool="simulated") == {"tasks": 16, "graded": 16, "waiting": 0}
    assert sum(n for _, n in load_means("simulated").values()) in (2 * 17, 2 * 16)  # the shared one counts for two
    assert warehouse.run_check("labels_have_tasks") == []


def test_the_papers_numbers_stand_beside(folder: Path) -> None:
    """A row a system with both means and intervals; those that the paper graded have its means, gold has none."""
    assert grades.summarize_grades("trams", DAY).is_empty()
    grades.export("trams", DAY, folder, ("anna", "ben"))
    grades.collect("trams", DAY, [fill_sheet(folder, rater, 4, 3) for rater in ("anna", "ben")])
    summary = grades.summarize_grades("trams", DAY)
    assert summary["system"].to_list() == ["gold", "ndd", "ppl_deleter"]
    assert summary.row(1) == ("ndd", "human", 6, "4.00 (4.00–4.00)", TABLE_13["ndd"][0], "3.00 (3.00–3.00)", 3.46)
    assert summary.select("syntax_paper", "semantics_paper").row(2) == TABLE_13["ppl_deleter"]
    assert summary.select("syntax_paper", "semantics_paper").row(0) == (None, None)
