"""Labelling as tasks: from comments to a published data set, by files, by Label Studio and by simulated raters."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import left_out, sample, settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.label import label_files, schema
from pipeline.tasks.labelling import csd, projects, release
from pipeline.tasks.labelling.csd import STEPS, Rules
from tests.support.rows.labelled import answer_all, label_all, read_table
from tests.support.servers.studio import TOKEN
from tests.support.servers.studio import Studio as Server
from tests.tasks.conftest import TEXTS

DAY = sample.DAY
PARTLY = (("a", "1"), ("b", "1"), ("c", "-1"))
"""Raters who differ on a field, with their values."""


def add_labels(project: str, values: Sequence[tuple[str, str]] = PARTLY, in_round: int = 1) -> None:
    """Add labels of raters that are alike but for subtext; in round 2 of subtext alone."""
    for rater, value in values:
        labels = label_all(project, rater, {"subtext": value}, round=in_round)
        csd.add_labels(project, labels.filter(field="subtext") if in_round == 2 else labels)


def write_labels(project: str, folder: Path) -> list[Path]:
    """Write the labels of three raters who agree to a file each."""
    paths = [folder / f"{rater}.csv" for rater in ("anna", "ben", "chen")]
    for path in paths:
        label_all(project, path.stem).select("task_id", "rater_id", "field", "value").write_csv(path)
    return paths


def test_selecting_again_keeps_the_random_ids(project: str) -> None:
    """A day selected again gives the same tasks; other rules add to them; the funnel has all tasks, and names reasons.

    Rules that no comment fits are refused in a new project.
    """
    before = read_table("label_tasks")
    assert before.height == before["row_id"].n_unique() == 3
    for name, kept_count in ((project, 3), ("new", 2)):
        csd.select(name, DAY, Rules(most_chars=8))
        assert_frame_equal(read_table("label_tasks").filter(project=project), before)
        run = read_table("runs").filter(step="select", origin=f"label:{name}").row(0, named=True)
        assert (run["read_count"], run["kept_count"], run["dropped_count"]) == (3, kept_count, 3 - kept_count)
    assert read_table("dropped").filter(step="select")["reason"].to_list() == ["too_long"]
    with pytest.raises(Missing, match="fits the rules, which dropped: too_short 3"):
        csd.select("another", DAY, Rules(least_chars=150))


def test_two_stages_and_two_rounds_by_hand(project: str) -> None:
    """Labels that differ wait for the adjudicator, `again` sends them to three raters once more, and they settle."""
    add_labels(project)
    assert csd.write_annotations(project) == {(1, 1): 0, (1, 2): 3, (2, 1): 0, (2, 2): 0}
    tasks, labels = csd.list_step_tasks(project, (1, 2))
    assert tasks["fields"].to_list() == [["subtext"]] * 3
    assert labels is not None
    assert labels.filter(field="subtext")["value"].sort().to_list() == ["-1"] * 3 + ["1"] * 6

    csd.add_labels(project, answer_all(project, 1, "again"))
    assert csd.write_annotations(project) == {(1, 1): 0, (1, 2): 0, (2, 1): 3, (2, 2): 0}
    assert csd.list_step_tasks(project, (2, 1))[0]["round"].unique().to_list() == [2]
    add_labels(project, (("d", "1"), ("e", "0"), ("f", "1")), in_round=2)
    assert csd.write_annotations(project)[2, 2] == 3
    csd.add_labels(project, answer_all(project, 2, "1"))
    assert set(csd.write_annotations(project).values()) == {0}
    assert csd.find_waiting_step(project) is None
    settled = read_table("annotations").filter(field="subtext").select("state", "value", "round", "pattern")
    assert settled.unique().rows() == [("adjudicated", "1", 2, "partly")]
    run = read_table("runs").filter(step="labels").row(0, named=True)
    assert (run["kept_count"], run["dropped_count"]) == (3 * 3 * 8 + 3 + 3 * 3 + 3, 0)


def test_specious_twice_is_deleted_and_not_published(project: str) -> None:
    """What is `again` in the second round is deleted with its reason, and with a required field the comment is too."""
    for in_round in (1, 2):
        add_labels(project, (("a", "1"), ("b", "0"), ("c", "-1")), in_round)
        csd.add_labels(project, answer_all(project, in_round, "again"))
    csd.write_annotations(project)
    reasons = read_table("annotations").filter(field="subtext")["reason"]
    assert reasons.unique().to_list() == ["specious_twice"]
    release.release(project)
    assert read_table("annotated_comments").height == 0
    release.release(project, "loose", required=("sarcasm",))
    loose = read_table("annotated_comments")
    assert loose["subtext"].null_count() == loose["is_subtext"].null_count() == loose.height == 3


def test_a_correction_replaces_what_was_said(project: str) -> None:
    """Labels without times that come again with another value replace the first, which is dropped as superseded.

    After an adjudicator's answer that round's labels are final: for a new rater, and for one who thinks again.
    """
    add_labels(project, (("a", "-1"), ("b", "-1"), ("c", "-1"), ("a", "1")))
    assert read_table("labels").filter(rater_id="a", field="subtext")["value"].to_list() == ["1"] * 3
    assert read_table("dropped").filter(step="labels_in")["reason"].to_list() == ["superseded"] * 3
    snapshot = warehouse.get_snapshot_id("labels")
    add_labels(project, (("a", "1"),))
    assert warehouse.get_snapshot_id("labels") == snapshot  # nothing new, nothing written
    csd.add_labels(project, answer_all(project, 1, "1"))
    before = read_table("labels")
    add_labels(project, (("c", "1"), ("0", "0")))
    assert_frame_equal(read_table("labels"), before)
    assert {*read_table("dropped").filter(step="labels_in")["reason"]} == {"superseded", "after_adjudication"}


def test_who_comes_later_without_a_time_is_late(project: str) -> None:
    """A fourth rater or a second adjudicator takes no place, whatever the names are; with times, the times decide."""
    add_labels(project)
    counted = read_table("labels")
    for _ in range(2):
        add_labels(project, (("0", "0"),))
        assert_frame_equal(read_table("labels"), counted)
    csd.add_labels(project, label_all(project, "00", {"subtext": "0"}, labelled_at=datetime(2026, 1, 1, tzinfo=UTC)))
    assert_frame_equal(read_table("labels"), counted)
    answers = answer_all(project, 1, "1")
    for rater, value in ((answers["rater_id"][0], "1"), ("0", "-1")):
        csd.add_labels(project, answers.with_columns(rater_id=pl.lit(rater), value=pl.lit(value)))
    csd.write_annotations(project)
    assert read_table("annotations").filter(field="subtext")["value"].to_list() == ["1"] * 3
    assert read_table("dropped").filter(step="labels_in").group_by("reason").len().rows() == [("late", 2 * 3 * 8 + 3)]


def test_of_labels_with_times_the_later_counts(project: str) -> None:
    """Whenever it comes."""
    for day, value in ((2, "0"), (1, "1")):
        time = datetime(2026, 1, day, tzinfo=UTC)
        csd.add_labels(project, label_all(project, "d", {"subtext": value}, labelled_at=time))
    assert read_table("labels").filter(rater_id="d", field="subtext")["value"].to_list() == ["0"] * 3


def test_round_two_is_given_once_the_adjudicator_is_through(project: str) -> None:
    """A task with a field sent back and another still to be decided waits, so that three people answer both."""
    for rater, value in PARTLY:
        csd.add_labels(project, label_all(project, rater, {"subtext": value, "sarcasm": value}))
    answers = answer_all(project, 1, "again")
    csd.add_labels(project, answers.filter(field="subtext"))
    assert csd.list_step_tasks(project, (2, 1))[0].height == 0
    csd.add_labels(project, answers.filter(field="sarcasm"))
    assert csd.list_step_tasks(project, (2, 1))[0]["fields"].to_list() == [["subtext", "sarcasm"]] * 3


def test_labels_from_files(project: str, tmp_path: Path) -> None:
    """Three sheets settle what they agree on; a bad one changes nothing; what waits for a field is counted by it."""
    paths, bad = write_labels(project, tmp_path), tmp_path / "bad.csv"
    bad.write_text(paths[2].read_text(encoding="utf-8").replace(",-1\n", ",7\n", 1), encoding="utf-8")
    with pytest.raises(BadInput, match=r"bad\.csv, row 2: subtext should be one of 1, 0, -1, found '7'"):
        csd.import_labels(project, [*paths[:2], bad])
    assert read_table("labels").height == 0
    for path in paths:
        short = [line for line in path.read_text(encoding="utf-8").splitlines() if ",other," not in line]
        (tmp_path / f"short_{path.name}").write_text("\n".join(short), encoding="utf-8")
    left_out.clear()
    csd.import_labels(project, [tmp_path / f"short_{path.name}" for path in paths])
    assert left_out.list_lines()[-1] == "labels: 63 rows are kept, not counted until these fields are labelled: other"
    for _ in range(2):
        csd.import_labels(project, paths)
        assert read_table("labels").height == 72
    assert read_table("annotations")["state"].unique().to_list() == ["adopted"]


def test_what_a_file_cannot_settle_is_named(project: str, tmp_path: Path) -> None:
    """A value where three raters gave three is refused with its row; so are blank sheets, one of several is noted."""
    add_labels(project, (("a", "1"), ("b", "0"), ("c", "-1")))
    path, blank = tmp_path / "dora.csv", tmp_path / "blank.csv"
    columns = ["task_id", "rater_id", "field", "value", "stage"]
    answer_all(project, 1, "0").select(columns).write_csv(path)
    expected = r"dora\.csv, row 2: subtext: found '0', expected again or delete, as the raters gave -1, 0, 1"
    with pytest.raises(BadInput, match=expected) as error:
        csd.import_labels(project, [path])
    assert str(error.value).count("expected again or delete") == 3
    tasks, _ = csd.list_step_tasks(project, STEPS[0])
    sheet = tasks.select("task_id", rater_id=pl.lit("dora"), **dict.fromkeys(schema.FIELDS, pl.lit("")))
    sheet.write_csv(blank)
    with pytest.raises(BadInput, match=r"blank\.csv: 0 labels: every row is blank"):
        csd.import_labels(project, [blank])
    answer_all(project, 1, "again").select(columns).write_csv(path)
    csd.import_labels(project, [path, blank])
    assert f"{blank}: {label_files.BLANK}" in left_out.list_lines()
    assert csd.find_waiting_step(project) == (2, 1)


def test_the_tool_files(project: str) -> None:
    """A step's folder has tasks, guidelines and a place for labels, which are fetched from there until none waits."""
    assert csd.push(project, STEPS[0], "files") == 3
    folder = csd.get_step_project(project, STEPS[0]).folder
    assert folder == settings.labelling() / "csd" / "round1_stage1"
    names = ["guidelines_en.html", "guidelines_zh.html", "labels", "tasks.jsonl"]
    assert sorted(path.name for path in folder.iterdir()) == names
    tasks = [json.loads(line) for line in (folder / "tasks.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {task["text"] for task in tasks} == set(TEXTS)
    assert not {"thread_id", "comment_id", "user_id", "row_id"} & {key for task in tasks for key in task}
    assert csd.collect(project, STEPS[0], "files")["waiting"] == 24
    write_labels(project, folder / "labels")
    assert csd.collect(project, STEPS[0], "files") == {"tasks": 3, "labels": 72, "waiting": 0}
    assert csd.push(project, STEPS[1], "files") == 0
    assert not csd.get_step_project(project, STEPS[1]).folder.exists()


def test_label_studio_from_end_to_end(project: str) -> None:
    """Tasks pushed twice are there once; three raters and an adjudicator answer there; what comes back settles all."""
    with Server() as server:
        studio = projects.Studio(server.url, TOKEN)
        for _ in range(2):
            csd.push(project, (1, 1), "label_studio", studio)
        assert csd.collect(project, (1, 1), "label_studio", studio)["waiting"] == 24
        for rater, value in ((11, "1"), (12, "1"), (13, "-1")):
            labels = label_all(project, "x", {"subtext": value})
            for (task,), rows in labels.partition_by("task_id", as_dict=True).items():
                server.annotate(str(task), rater, dict(rows.select("field", "value").iter_rows()))
        assert csd.collect(project, (1, 1), "label_studio", studio) == {"tasks": 3, "labels": 72, "waiting": 0}
        csd.push(project, (1, 2), "label_studio", studio)
        for task in csd.read_tasks(project)["task_id"]:
            server.annotate(task, 14, {"subtext": "1"})
        assert csd.collect(project, (1, 2), "label_studio", studio)["waiting"] == 0
    assert csd.find_waiting_step(project) is None
    assert read_table("annotations").filter(field="subtext")["value"].to_list() == ["1"] * 3
    assert TOKEN not in repr(studio)


def test_a_task_that_waits_for_no_rater_is_named(project: str, caplog: pytest.LogCaptureFixture) -> None:
    """Label Studio gives a task to no rater after three answers, though one lacks a field: the log names that task."""
    lacking, complete, _ = csd.read_tasks(project)["task_id"]
    with Server() as server:
        studio = projects.Studio(server.url, TOKEN)
        csd.push(project, STEPS[0], "label_studio", studio)
        values = dict(label_all(project, "x").filter(task_id=lacking).select("field", "value").iter_rows())
        for rater in (11, 12, 13):
            server.annotate(complete, rater, values)
            server.annotate(lacking, rater, {f: v for f, v in values.items() if (rater, f) != (13, "subtext")})
        counts = csd.collect(project, STEPS[0], "label_studio", studio)
    assert counts["waiting"] == 8 + 8  # an answer that lacks a field does not count; the third task has no answers
    (line,) = [record.getMessage() for record in caplog.records if "gives them to no rater" in record.getMessage()]
    assert "1 tasks wait" in line
    assert lacking in line
    assert complete not in line
    dropped = read_table("dropped").filter(step="labels_in", reason="unanswered")
    assert dropped["row_key"].str.ends_with("/subtext").to_list() == [True]


def test_agreement_is_over_all_tasks_labelled(project: str, tmp_path: Path) -> None:
    """TAE waits for the deciding rater, and the first round's kappa keeps labels that were given again.

    Of (1, 1, -1) three times, kappa is (1/3 - 5/9) / (4/9); three alike in the second round have none.
    """
    add_labels(project)
    for answer, waiting_count in (("again", 3), (None, 3)):
        row = csd.measure_agreement(csd.decide(project)).row(0, named=True)
        assert (row["n"], row["n_waiting"], row["tae"], row["fleiss_four"]) == (3, waiting_count, None, None)
        assert row["fleiss"] == pytest.approx(-0.5)
        if answer:
            csd.add_labels(project, answer_all(project, 1, answer))
    add_labels(project, (("d", "1"), ("e", "1"), ("f", "1")), in_round=2)
    row = csd.measure_agreement(csd.decide(project)).row(0, named=True)
    assert (row["fleiss"], row["fleiss_last"], row["tae"], row["n_waiting"]) == (-0.5, None, 1, 0)
    path = tmp_path / "late.csv"
    late = label_all(project, "g").select("task_id", "rater_id", "field", "value", round=2)
    late.write_csv(path)
    assert csd.import_labels(project, [path]) == {"not_asked": 21, "late": 3}
