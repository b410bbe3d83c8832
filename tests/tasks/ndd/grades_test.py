"""Compressions graded by people as tasks: out to raters, back into a study, whose they are kept from them."""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
import pytest

from pipeline import warehouse
from pipeline.errors import BadInput, Missing
from pipeline.label.compression import FORM
from pipeline.metrics.ndd.integrity import AGREEMENT
from pipeline.papers.ndd import TABLE_13
from pipeline.slices import parse_day
from pipeline.tables import TABLES
from pipeline.tasks.labelling import projects, release
from pipeline.tasks.ndd import grades
from pipeline.tasks.studies import rows as studies

DAY, LATER = "2026-11-19", "2026-11-20"
COUNT = 6
KEPT = {
    "gold": (1, 0, 0, 1, 1, 1), "ndd": (1, 0, 1, 1, 1, 1), "ppl_deleter": (0, 1, 1, 0, 0, 1),
    "tail": (1, 1, 1, 0, 0, 0),
}  # fmt: skip
SYSTEMS = ("gold", "ndd", "ppl_deleter")


def made(systems: Sequence[str] = tuple(KEPT), day: str = DAY, **changed: tuple[int, ...]) -> None:
    """Compressions of six sentences; of the first one ndd leaves what people leave, and nothing is left by tail."""
    rows = []
    for number in range(COUNT):
        for system in systems:
            kept = changed.get(system, KEPT[system])
            if number == 0 and system in ("ndd", "tail"):
                kept = KEPT["gold"] if system == "ndd" else (0,) * 6
            words = ["The", "old", f"no. {number}", "tram", "stopped", "."]
            rows.append({
                "source": "trams", "day": parse_day(day), "item_id": f"t{number}", "system": system, "lang": "en",
                "words": words, "rounds": [1 - stays for stays in kept], "ratio": round(sum(kept) / 6, 6),
                "signature": f"{system}|test",
            })  # fmt: skip
    found = pl.DataFrame(rows, schema=TABLES["compressions"].schema.create_empty().schema)
    warehouse.overwrite("compressions", warehouse.slice_of(source="trams", day=day), found)


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A home with the compressions, and a copy of it."""
    place = tmp_path_factory.mktemp("integrity") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERTONE_HOME", str(place))
        warehouse.create()
        made()
        warehouse.close()
    return place, shutil.copytree(place, place.with_name("copy"))


@pytest.fixture
def ready(stock: tuple[Path, Path], home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The home as it was; Iceberg's paths are absolute, so it goes back to its place."""
    place, copy = stock
    shutil.rmtree(place)
    shutil.copytree(copy, place)
    monkeypatch.setenv("UNDERTONE_HOME", str(place))
    yield place
    warehouse.close()


@pytest.fixture
def given(ready: Path) -> Path:
    """All sentences by three systems given to people, of which two share one compression."""
    assert grades.select("trams", DAY, SYSTEMS) == 3 * COUNT - 1
    return grades.project("trams").folder


def filled_in(folder: Path, rater: str, syntax: object, semantics: object) -> Path:
    """What a rater sends back: numbers, or expressions of what the sheet shows."""
    rows = pl.read_excel(folder / f"{rater}.xlsx", sheet_id=1)
    path = folder / f"{rater}.csv"
    told = {name: value if isinstance(value, pl.Expr) else pl.lit(value)
            for name, value in (("syntax", syntax), ("semantics", semantics))}  # fmt: skip
    rows.select("task_id", **told).with_columns(rater_id=pl.lit(rater)).write_csv(path)
    return path


def numbers(by: str = "human") -> dict[tuple[str, str], tuple[float, int]]:
    """Means and sentences by system and field."""
    rows = grades.results("trams", DAY).filter(by=by)
    return {(each["system"], each["metric"]): (each["mean"], each["n"]) for each in rows.iter_rows(named=True)}


def states(*names: str) -> dict[str, int | None]:
    return {name: warehouse.snapshot(name) for name in names}


def test_tasks_are_given_once(given: Path) -> None:
    """Again the same tasks, with the same random ids, and nothing is written; what others get meanwhile is added."""
    before = warehouse.scan("label_tasks").sort("task_id").collect()
    assert before["row_id"].n_unique() == before.height == 3 * COUNT - 1
    assert set(before["thread_id"]) == set(before["comment_id"]) == {f"t{number}" for number in range(COUNT)}
    was = states("label_tasks", "runs", "dropped")
    assert grades.select("trams", DAY, SYSTEMS) == before.height
    assert states(*was) == was
    assert grades.select("trams", DAY, ["tail"], count=2) == before.height + 2
    after = warehouse.scan("label_tasks").sort("task_id").collect()
    assert after.join(before, on=["task_id", "row_id"], how="semi").height == before.height
    assert warehouse.run_check("labels_have_tasks") == []


def test_systems_and_days_are_checked(ready: Path) -> None:
    """A system, a day and a source that are not there are named with those that are; so is what was given to nobody."""
    with pytest.raises(BadInput, match="by 'bert' on 2026-11-19; there are by gold, ndd, ppl_deleter, tail"):
        grades.select("trams", DAY, ["ndd", "bert"])
    with pytest.raises(Missing, match="no compressions of 'trams' on 2026-11-20; there are of 2026-11-19"):
        grades.select("trams", LATER)
    with pytest.raises(Missing, match="there are none of any day"):
        grades.select("buses", DAY)
    for source in ("No Name", "x" * 31):
        with pytest.raises(BadInput, match="source: expected up to 30"):
            grades.select(source, DAY)
    with pytest.raises(Missing, match="undertone ndd rate --source trams"):
        grades.collect("trams", DAY)
    assert grades.publish("trams", DAY) == 0
    assert warehouse.snapshot("label_tasks") is None


def test_raters_see_no_system(given: Path) -> None:
    """Files for raters hold sentence and compression, no system, no id of a sentence, and no random id."""
    assert grades.export("trams", DAY, given, ("anna", "ben"), "en") == 17
    sheets = [pl.read_excel(given / f"{rater}.xlsx", sheet_id=1) for rater in ("anna", "ben")]
    told = [json.loads(line) for line in (given / "tasks.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {*told[0]} == {"task_id", "text", "context", "lang", "round", "schema_version", "fields"}
    written = [sheet.write_csv() for sheet in sheets] + [json.dumps(told), (given / "assigned.csv").read_text()]
    hidden = [*SYSTEMS, "tail", *(f"t{n}," for n in range(COUNT)), *warehouse.scan("label_tasks").collect()["row_id"]]
    assert not [name for name in hidden for text in written if name in text]
    assert [path.name for path in sorted(given.iterdir())] == [
        "anna.xlsx", "assigned.csv", "ben.xlsx", "guidelines.md", "labels", "tasks.jsonl",
    ]  # fmt: skip
    assert not sheets[0]["task_id"].equals(sheets[1]["task_id"])
    assert sheets[0]["task_id"].sort().equals(sheets[1]["task_id"].sort())


def test_a_sentence_goes_to_two_with_all_its_compressions(given: Path, tmp_path: Path) -> None:
    """Of four raters two see a sentence, each all of it; no sheet is written over; elsewhere it is the same again."""
    raters = ("anna", "ben", "chen", "dora")
    grades.export("trams", DAY, given, raters)
    task = warehouse.scan("label_tasks").select("task_id", "thread_id").collect()
    shown = {rater: pl.read_excel(given / f"{rater}.xlsx", sheet_id=1)["task_id"] for rater in raters}
    of_item = {item: set(rows["task_id"]) for (item,), rows in task.group_by("thread_id")}
    for tasks in of_item.values():
        assert sorted(len(tasks & set(seen)) for seen in shown.values()) == [0, 0, len(tasks), len(tasks)]
    with pytest.raises(BadInput, match=r"anna.xlsx: is there and may hold grades"):
        grades.export("trams", DAY, given, raters)
    grades.export("trams", DAY, tmp_path, raters)
    assert shown["dora"].equals(pl.read_excel(tmp_path / "dora.xlsx", sheet_id=1)["task_id"])


def test_new_compressions_go_to_a_sentences_raters(
    given: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever graded a sentence gets what another system leaves of it; if they are not asked, that is told."""
    grades.export("trams", DAY, given, ("anna", "ben"))
    first = pl.read_csv(given / "assigned.csv")
    grades.select("trams", DAY, ["tail"])
    assert grades.export("trams", DAY, tmp_path, ("chen", "dora"), systems=["tail"]) == COUNT
    assert "6 tasks are of sentences that were dealt to anna, ben" in caplog.text
    assert not pl.read_excel(tmp_path / "chen.xlsx", sheet_id=1, raise_if_empty=False).height
    after = pl.read_csv(given / "assigned.csv")
    assert set(after["rater_id"]) == {"anna", "ben"}
    assert first.join(after, on=first.columns, how="semi").height == first.height == after.height - 2 * COUNT


def test_grades_become_means_once_there_are_two(given: Path) -> None:
    """One sheet waits; with two each system has its means, by hand, and a shared compression counts for both."""
    grades.export("trams", DAY, given, ("anna", "ben"))
    is_shared = pl.col("text") == "The tram stopped ."
    one = filled_in(given, "anna", pl.when(pl.col("text").str.starts_with("The ")).then(5).otherwise(1), 2)
    other = filled_in(given, "ben", pl.when(is_shared).then(4).otherwise(0), 2)
    assert grades.collect("trams", DAY, [one]) == {"tasks": 17, "graded": 0, "waiting": 17}
    assert numbers() == {}
    assert grades.collect("trams", DAY, [other]) == {"tasks": 17, "graded": 17, "waiting": 0}
    # people and, of one sentence, ndd leave "The tram stopped .": (5 + 4) / 2; else (5 + 0) / 2, and (1 + 0) / 2
    assert numbers() == {
        ("gold", "syntax"): (4.5, 6), ("gold", "semantics"): (2, 6),
        ("ndd", "syntax"): (pytest.approx((4.5 + 5 * 2.5) / 6, abs=1e-6), 6), ("ndd", "semantics"): (2, 6),
        ("ppl_deleter", "syntax"): (0.5, 6), ("ppl_deleter", "semantics"): (2, 6),
    }  # fmt: skip
    agreed = grades.agreement("trams", DAY)
    assert agreed.select("field", "metric").rows() == [
        (name, metric) for name in ("syntax", "semantics") for metric in AGREEMENT
    ]
    assert set(agreed["n"]) == {17}
    assert agreed.filter(field="syntax")["value"].null_count() == 0
    rows = warehouse.scan("studies").collect()
    assert set(rows["subset"]) == {"trams:human"}
    assert set(rows["study"]) == {"compression"}
    assert (rows["low"] <= rows["value"]).all()
    assert rows.height == 3 * 2 + 2 * 3


def test_a_look_without_news_writes_nothing(given: Path) -> None:
    """Collecting the same again leaves no snapshots, and rows of other studies and systems stay."""
    other = studies.row("compression", DAY, "f1_macro", "trams:en", 0.5, 6, setting={"system": "ndd"})
    studies.put("compression", studies.framed([other]), DAY)
    grades.export("trams", DAY, given, ("anna", "ben"))
    sheets = [filled_in(given, rater, 3, 4) for rater in ("anna", "ben")]
    grades.collect("trams", DAY, sheets)
    was = states("labels", "studies", "runs", "dropped")
    assert grades.collect("trams", DAY, sheets)["graded"] == 17
    assert states(*was) == was
    assert warehouse.scan("studies", pl.col("subset") == "trams:en").collect().height == 1


def test_files_are_looked_for_in_the_folder(given: Path) -> None:
    """What lies in `labels` is read without naming it, an .xlsx as raters fill it; sent again it corrects the first."""
    grades.export("trams", DAY, given, ("anna", "ben"))
    for grade in ("0", "4"):
        for rater in ("anna", "ben"):
            rows = pl.read_excel(given / f"{rater}.xlsx", sheet_id=1)
            filled = rows.with_columns(syntax=pl.lit(grade), semantics=pl.lit(grade))
            filled.write_excel(given / "labels" / f"{rater}.xlsx")
        grades.collect("trams", DAY)
        assert {mean for mean, _ in numbers().values()} == {float(grade)}
    assert projects.read_labels("integrity_trams").height == 17 * 2 * 2


def test_what_was_not_dealt_is_refused(given: Path) -> None:
    """A grade by who did not get the task, of another round, of no task or off the scale is named and not kept."""
    grades.export("trams", DAY, given, ("anna", "ben"))
    path = filled_in(given, "anna", 3, 3)
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
    assert warehouse.snapshot("labels") is None
    (given / "assigned.csv").write_text("task,who\n1,anna\n", encoding="utf-8")
    good.write_csv(path)
    with pytest.raises(BadInput, match=r"assigned.csv: expected columns task_id, rater_id, found task, who"):
        grades.collect("trams", DAY, [path])
    with pytest.raises(BadInput, match="2 people grade each sentence; name as many, found 1"):
        grades.export("trams", DAY, given / "elsewhere", ("anna",))
    with pytest.raises(BadInput, match="a rater's name should be letters"):
        grades.export("trams", DAY, given, ("../anna", "ben"))


def test_made_up_raters_know_what_people_left(given: Path) -> None:
    """Simulated raters grade all by twos, say that they are simulated, and like best what is most like people's."""
    assert grades.collect("trams", DAY, tool="simulated") == {"tasks": 17, "graded": 17, "waiting": 0}
    said = projects.read_labels("integrity_trams")
    assert set(said["tool"]) == {"simulated"}
    assert said.height == 17 * 2 * 2
    assert numbers() == {}
    means = {key: mean for key, (mean, _) in numbers("simulated").items()}
    for field in FORM.fields:
        assert means["gold", field] > means["ppl_deleter", field] + 1
    was = states("labels", "studies")
    grades.collect("trams", DAY, tool="simulated")
    assert states(*was) == was


def test_without_peoples_compressions_grades_are_drawn(ready: Path) -> None:
    """Where nothing tells which compression is good, simulated raters still grade all."""
    made(("ndd", "tail"))
    grades.select("trams", DAY)
    assert grades.collect("trams", DAY, tool="simulated")["waiting"] == 0


def test_people_count_before_simulated_raters(given: Path) -> None:
    """Once people grade, rows of simulated raters go, their grades are told of, and they cannot come back."""
    grades.collect("trams", DAY, tool="simulated")
    grades.export("trams", DAY, given, ("anna", "ben"))
    grades.collect("trams", DAY, [filled_in(given, "anna", 5, 5)])
    assert grades.results("trams", DAY).is_empty()  # a single person's wait, and the others count no more
    grades.collect("trams", DAY, [filled_in(given, "ben", 5, 5)])
    assert {mean for mean, _ in numbers().values()} == {5}
    assert set(warehouse.scan("studies").collect()["subset"]) == {"trams:human"}
    gone = warehouse.scan("dropped", pl.col("step") == grades.STEP).collect()
    assert gone["reason"].to_list() == ["simulated"] * 17 * 4
    with pytest.raises(BadInput, match="people have graded compressions of 'trams'"):
        grades.collect("trams", DAY, tool="simulated")


def test_a_system_counts_where_it_was_given(ready: Path) -> None:
    """What one system shares with another that was graded is no sample of it: without being given it has no mean."""
    grades.select("trams", DAY, ["gold", "ppl_deleter"])
    grades.collect("trams", DAY, tool="simulated")
    assert {system for system, _ in numbers("simulated")} == {"gold", "ppl_deleter"}
    grades.select("trams", DAY, ["ndd"], count=2)
    grades.collect("trams", DAY, tool="simulated")
    counts = {system: n for (system, field), (_, n) in numbers("simulated").items() if field == "syntax"}
    assert counts == {"gold": COUNT, "ppl_deleter": COUNT, "ndd": 2}


def test_grades_of_what_has_changed_do_not_count(given: Path, caplog: pytest.LogCaptureFixture) -> None:
    """When a system leaves other words its grades are told of as unknown; the others' stay, and new ones can come."""
    grades.collect("trams", DAY, tool="simulated")
    before = numbers("simulated")
    made(ppl_deleter=(0, 0, 0, 1, 1, 0))
    assert grades.publish("trams", DAY) == 11
    after = numbers("simulated")
    assert after == {key: number for key, number in before.items() if key[0] != "ppl_deleter"}
    assert "6 compressions of 2026-11-19 have changed since" in caplog.text
    gone = warehouse.scan("dropped", pl.col("step") == grades.STEP).collect()["reason"].to_list()
    assert gone == ["unknown_task"] * 6 * 4
    grades.select("trams", DAY, SYSTEMS)
    assert grades.collect("trams", DAY, tool="simulated") == {"tasks": 17, "graded": 17, "waiting": 0}


def test_days_share_grades_of_what_is_the_same(given: Path) -> None:
    """Compressions that are the same on another day have the grades they got; its other tasks are none of this day."""
    grades.collect("trams", DAY, tool="simulated")
    made(day=LATER, ndd=(1, 1, 1, 1, 1, 0))
    assert grades.select("trams", LATER, ["gold", "ndd"]) == 17 + 5
    assert grades.publish("trams", LATER) == 6
    found = grades.results("trams", LATER).filter(metric="syntax")
    assert found.select("system", "n").rows() == [("gold", 6), ("ndd", 1)]
    assert warehouse.scan("dropped").collect().is_empty()
    assert len(numbers("simulated")) == 6


def test_what_was_withdrawn_does_not_come_back(given: Path) -> None:
    """A task taken out on request is not given again, and its grades go with the next look."""
    grades.collect("trams", DAY, tool="simulated")
    gone = warehouse.scan("label_tasks").sort("task_id").collect().row(0, named=True)
    release.withdraw([gone["row_id"]])
    assert grades.select("trams", DAY, SYSTEMS) == 16
    assert grades.collect("trams", DAY, tool="simulated") == {"tasks": 16, "graded": 16, "waiting": 0}
    assert sum(n for _, n in numbers("simulated").values()) in (2 * 17, 2 * 16)  # the shared one counts for two
    assert warehouse.run_check("labels_have_tasks") == []


def test_the_papers_numbers_stand_beside(given: Path) -> None:
    """A row a system with both means and intervals; those that the paper graded have its means, gold has none."""
    assert grades.shown("trams", DAY).is_empty()
    grades.export("trams", DAY, given, ("anna", "ben"))
    grades.collect("trams", DAY, [filled_in(given, rater, 4, 3) for rater in ("anna", "ben")])
    found = grades.shown("trams", DAY)
    assert found["system"].to_list() == ["gold", "ndd", "ppl_deleter"]
    assert found.row(1) == ("ndd", "human", 6, "4.00 (4.00–4.00)", TABLE_13["NDD"][0], "3.00 (3.00–3.00)", 3.46)
    assert found.select("syntax_paper", "semantics_paper").row(2) == TABLE_13["PPL Deleter"]
    assert found.select("syntax_paper", "semantics_paper").row(0) == (None, None)
