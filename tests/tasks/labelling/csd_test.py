"""Labelling as tasks: from comments to a published data set, by files, by Label Studio and by simulated raters."""

import json
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from pipeline import sample, settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.tasks.labelling import csd, projects, release
from pipeline.tasks.labelling.csd import STEPS, Rules
from tests.support.labelled import answers, said, table
from tests.support.studio import TOKEN
from tests.support.studio import Studio as Server
from tests.tasks.conftest import TEXTS

DAY = sample.DAY


def test_selecting_again_keeps_the_random_ids(project: str) -> None:
    """A day selected again gives the same tasks; other rules add to them; the funnel adds up and names reasons."""
    before = table("label_tasks")
    assert before.height == before["row_id"].n_unique() == 3
    csd.select(project, DAY, Rules())
    assert_frame_equal(table("label_tasks"), before)
    csd.select(project, DAY, Rules(most_chars=8))
    assert_frame_equal(table("label_tasks"), before)
    run = table("runs").filter(step="select").row(0, named=True)
    assert (run["read_count"], run["kept_count"], run["dropped_count"]) == (3, 2, 1)
    assert table("dropped").filter(step="select")["reason"].to_list() == ["too_long"]


def test_no_tasks(tables: Path) -> None:
    """A project without tasks is Missing and says how to select some."""
    with pytest.raises(Missing, match="project 'csd' has no tasks"):
        csd.list_step_tasks("csd", STEPS[0])


def test_two_stages_and_two_rounds_by_hand(project: str) -> None:
    """Labels that differ wait for the adjudicator, `again` sends them to three raters once more, and they settle."""
    for rater, subtext in (("a", "1"), ("b", "1"), ("c", "-1")):
        csd.add_labels(project, said(project, rater, {"subtext": subtext}))
    assert csd.write_annotations(project) == {(1, 1): 0, (1, 2): 3, (2, 1): 0, (2, 2): 0}
    tasks, seen = csd.list_step_tasks(project, (1, 2))
    assert tasks["fields"].to_list() == [["subtext"]] * 3
    assert seen is not None
    assert seen.filter(field="subtext")["value"].sort().to_list() == ["-1"] * 3 + ["1"] * 6

    csd.add_labels(project, answers(project, 1, "again"))
    assert csd.write_annotations(project) == {(1, 1): 0, (1, 2): 0, (2, 1): 3, (2, 2): 0}
    assert csd.list_step_tasks(project, (2, 1))[0]["round"].unique().to_list() == [2]
    for rater, subtext in (("d", "1"), ("e", "0"), ("f", "-1")):
        csd.add_labels(project, said(project, rater, {"subtext": subtext}, round=2).filter(field="subtext"))
    assert csd.write_annotations(project)[2, 2] == 3
    csd.add_labels(project, answers(project, 2, "1"))
    assert set(csd.write_annotations(project).values()) == {0}
    assert csd.find_waiting_step(project) is None
    stands = table("annotations").filter(field="subtext")
    assert stands.select("state", "value", "round", "pattern").unique().rows() == [("adjudicated", "1", 2, "different")]
    run = table("runs").filter(step="labels").row(0, named=True)
    assert (run["kept_count"], run["dropped_count"]) == (3 * 3 * 8 + 3 + 3 * 3 + 3, 0)


def test_specious_twice_is_deleted_and_not_published(project: str) -> None:
    """What is `again` in the second round is deleted with its reason, and with a required field the comment is too."""
    for rater, subtext in (("a", "1"), ("b", "0"), ("c", "-1")):
        csd.add_labels(project, said(project, rater, {"subtext": subtext}))
    csd.add_labels(project, answers(project, 1, "again"))
    for rater, subtext in (("a", "1"), ("b", "0"), ("c", "-1")):
        csd.add_labels(project, said(project, rater, {"subtext": subtext}, round=2).filter(field="subtext"))
    csd.add_labels(project, answers(project, 2, "again"))
    csd.write_annotations(project)
    assert table("annotations").filter(field="subtext")["reason"].unique().to_list() == ["specious_twice"]
    release.release(project)
    assert table("annotated_comments").height == 0
    release.release(project, "loose", required=("sarcasm",))
    loose = table("annotated_comments")
    assert loose["subtext"].null_count() == loose["is_subtext"].null_count() == loose.height == 3


def test_what_the_adjudicator_saw_stands(project: str) -> None:
    """After an adjudicator's answer nobody changes that round's labels: no new rater, nor one who thinks again."""
    for rater, subtext in (("a", "1"), ("b", "1"), ("c", "-1")):
        csd.add_labels(project, said(project, rater, {"subtext": subtext}))
    csd.add_labels(project, answers(project, 1, "1"))
    before = table("labels")
    csd.add_labels(project, said(project, "c", {"subtext": "1"}))
    csd.add_labels(project, said(project, "0", {"subtext": "0"}))
    assert_frame_equal(table("labels"), before)


def test_a_correction_replaces_what_was_said(project: str) -> None:
    """Labels without times that come again with another value replace the first, which is told as superseded."""
    for rater in ("a", "b", "c"):
        csd.add_labels(project, said(project, rater))
    csd.add_labels(project, said(project, "a", {"subtext": "1"}))
    mine = table("labels").filter(rater_id="a", field="subtext")
    assert mine["value"].to_list() == ["1"] * 3
    assert table("dropped").filter(step="labels_in")["reason"].to_list() == ["superseded"] * 3
    before = warehouse.snapshot("labels")
    csd.add_labels(project, said(project, "a", {"subtext": "1"}))
    assert warehouse.snapshot("labels") == before  # nothing new, nothing written


def test_round_two_is_given_once_the_adjudicator_is_through(project: str) -> None:
    """A task with a field sent back and another still to be decided waits, so that three people answer both."""
    for rater, value in (("a", "1"), ("b", "1"), ("c", "-1")):
        csd.add_labels(project, said(project, rater, {"subtext": value, "sarcasm": value}))
    both = answers(project, 1, "again")
    csd.add_labels(project, both.filter(field="subtext"))
    assert csd.list_step_tasks(project, (2, 1))[0].height == 0
    csd.add_labels(project, both.filter(field="sarcasm"))
    assert csd.list_step_tasks(project, (2, 1))[0]["fields"].to_list() == [["subtext", "sarcasm"]] * 3


def test_a_tool_that_is_away_has_nothing_new(project: str) -> None:
    """A Label Studio that cannot be reached just now is no fault of the run: it waits on."""
    at = projects.Studio("http://127.0.0.1:9", TOKEN)
    assert csd.collect(project, STEPS[0], "label_studio", at)["waiting"] == 24


def test_a_field_that_is_none_is_told_before_anybody_labels() -> None:
    """What a release will require is checked at the beginning."""
    assert csd.check_fields(["subtext", "emotion"]) == ("subtext", "emotion")
    with pytest.raises(BadInput, match="no field 'subtxt'"):
        csd.check_fields(["subtxt"])


def test_labels_from_files(project: str, tmp_path: Path) -> None:
    """Three sheets settle what they agree on; a bad one changes nothing and is named by row and field."""
    paths = []
    for rater in ("anna", "ben", "chen"):
        rows = said(project, rater).select("task_id", "rater_id", "field", "value")
        paths.append(tmp_path / f"{rater}.csv")
        rows.write_csv(paths[-1])
    bad = tmp_path / "bad.csv"
    bad.write_text(paths[2].read_text(encoding="utf-8").replace(",-1\n", ",7\n", 1), encoding="utf-8")
    with pytest.raises(BadInput, match=r"bad\.csv, row 2: subtext should be one of 1, 0, -1, found '7'"):
        csd.import_labels(project, [*paths[:2], bad])
    assert table("labels").height == 0
    assert csd.import_labels(project, paths) == {"tasks": 3, "labels": 72, "waiting": 0}
    assert csd.import_labels(project, paths)["labels"] == 72
    assert table("annotations")["state"].unique().to_list() == ["adopted"]


def test_the_tool_files(project: str) -> None:
    """A step's folder has tasks, guidelines and a place for labels, which are fetched from there until none waits."""
    assert csd.push(project, STEPS[0], "files") == 3
    folder = csd.get_step_folder(project, STEPS[0])
    assert folder == settings.labelling() / "csd" / "round1_stage1"
    assert sorted(p.name for p in folder.iterdir()) == [
        "guidelines_en.html", "guidelines_zh.html", "labels", "tasks.jsonl",
    ]  # fmt: skip
    tasks = [json.loads(line) for line in (folder / "tasks.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {task["text"] for task in tasks} == set(TEXTS)
    assert not {"thread_id", "comment_id", "user_id", "row_id"} & {key for task in tasks for key in task}
    assert csd.collect(project, STEPS[0], "files")["waiting"] == 24
    for rater in ("a", "b", "c"):
        said(project, rater).select("task_id", "rater_id", "field", "value").write_csv(
            folder / "labels" / f"{rater}.csv"
        )
    assert csd.collect(project, STEPS[0], "files") == {"tasks": 3, "labels": 72, "waiting": 0}
    assert csd.push(project, STEPS[1], "files") == 0
    assert not csd.get_step_folder(project, STEPS[1]).exists()


def test_label_studio_from_end_to_end(project: str) -> None:
    """Tasks pushed twice are there once; three raters and an adjudicator answer there; what comes back settles all."""
    with Server() as server:
        at = projects.Studio(server.url, TOKEN)
        for _ in range(2):
            csd.push(project, (1, 1), "label_studio", at)
        assert csd.collect(project, (1, 1), "label_studio", at)["waiting"] == 24
        for rater, subtext in ((11, "1"), (12, "1"), (13, "-1")):
            for (task,), rows in said(project, "x", {"subtext": subtext}).partition_by("task_id", as_dict=True).items():
                server.annotate(str(task), rater, dict(rows.select("field", "value").iter_rows()))
        assert csd.collect(project, (1, 1), "label_studio", at) == {"tasks": 3, "labels": 72, "waiting": 0}
        csd.push(project, (1, 2), "label_studio", at)
        for task in csd.read_tasks(project)["task_id"]:
            server.annotate(task, 14, {"subtext": "1"})
        assert csd.collect(project, (1, 2), "label_studio", at)["waiting"] == 0
    assert csd.find_waiting_step(project) is None
    assert table("annotations").filter(field="subtext")["value"].to_list() == ["1"] * 3
    assert TOKEN not in repr(at)


def test_a_task_that_waits_for_nobody_is_named(project: str, caplog: pytest.LogCaptureFixture) -> None:
    """Label Studio gives a task to nobody after three answers, though one lacks a field: the log names that task."""
    task, *others = csd.read_tasks(project)["task_id"]
    with Server() as server:
        at = projects.Studio(server.url, TOKEN)
        csd.push(project, STEPS[0], "label_studio", at)
        whole = dict(said(project, "x").filter(task_id=task).select("field", "value").iter_rows())
        for rater in (11, 12, 13):
            for name in (task, others[0]):
                lacks = {"subtext"} if (name, rater) == (task, 13) else set()
                server.annotate(name, rater, {field: value for field, value in whole.items() if field not in lacks})
        told = csd.collect(project, STEPS[0], "label_studio", at)
    assert told["waiting"] == 8 + 8  # an answer that lacks a field does not count, and nobody has seen the third task
    (line,) = [record.getMessage() for record in caplog.records if "gives them to nobody" in record.getMessage()]
    assert "1 tasks wait" in line
    assert task in line
    assert others[0] not in line
    gone = table("dropped").filter(step="labels_in")
    assert gone.filter(reason="unanswered")["row_key"].str.ends_with("/subtext").to_list() == [True]


def test_nobody_to_push_to(project: str) -> None:
    """Without a Label Studio its tool is Missing and names the settings."""
    assert projects.find_studio() is None
    with pytest.raises(Missing, match="UNDERTONE_STUDIO_URL"):
        csd.push(project, STEPS[0], "label_studio", projects.find_studio())


def test_simulated_raters_settle_everything(simulated: str) -> None:
    """After four steps nothing waits; done again, not a row changes."""
    assert csd.find_waiting_step(simulated) is None
    before = {name: table(name) for name in ("label_tasks", "labels", "annotations")}
    for step in STEPS:
        csd.collect(simulated, step, "simulated")
    for name, rows in before.items():
        assert_frame_equal(table(name), rows)
    assert set(before["annotations"]["state"]) == {"adopted", "adjudicated", "deleted"}


def test_agreement_counts_what_stands_as_the_fourth(project: str) -> None:
    """Where raters agree the fourth label is theirs, so unanimous fields have TAE 1; a disputed one has less."""
    for rater, subtext in (("a", "1"), ("b", "1"), ("c", "-1")):
        csd.add_labels(project, said(project, rater, {"subtext": subtext}))
    csd.add_labels(project, answers(project, 1, "1"))
    found = {row["field"]: row for row in csd.measure_agreement(csd.decide(project)).to_dicts()}
    assert found["sarcasm"]["tae"] == 1.0
    assert found["subtext"]["tae"] == pytest.approx(0.3461, abs=1e-4)  # CSD-20: (1, 1, -1 | 1)
    assert (found["subtext"]["n"], found["subtext"]["n_four"]) == (3, 3)


def test_agreement_of_a_file(project: str, tmp_path: Path) -> None:
    """A file of labels alone has the same numbers as the project they came from."""
    path = tmp_path / "labels.csv"
    for rater, subtext in (("a", "1"), ("b", "1"), ("c", "-1")):
        csd.add_labels(project, said(project, rater, {"subtext": subtext}))
    warehouse.scan("labels").collect().select("task_id", "rater_id", "field", "value").write_csv(path)
    assert_frame_equal(csd.measure_file_agreement(path), csd.measure_agreement(csd.decide(project)))


@pytest.mark.parametrize("given", [[1], [3, 1], [1, 3], []])
def test_a_step_that_is_none(given: list[int]) -> None:
    """Only the four steps are steps."""
    with pytest.raises(BadInput, match="a step is one of"):
        csd.check_step(given)
