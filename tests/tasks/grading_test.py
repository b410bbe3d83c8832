"""Grades of comments as tasks: comments to people, their grades to a table."""

from pathlib import Path

import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.label import exchange, quality
from pipeline.tasks import commenters, grading

DAY = sample.DAY
RATERS = ("anna", "ben", "chen", "dora", "eve")


@pytest.fixture
def given(corpus: Path) -> Path:
    """The references given to people."""
    assert grading.give("references", DAY, "files") == 6 * 27
    return grading.folder_of("references")


def filled_in(folder: Path, rater: str, grade: int) -> Path:
    """What a rater sends back: the same grade for each of their tasks."""
    rows = pl.read_excel(folder / f"{rater}.xlsx", sheet_id=1)
    path = folder / f"{rater}.csv"
    rows.select("task_id", rater_id=pl.lit(rater), quality=pl.lit(grade)).write_csv(path)
    return path


def test_each_comment_goes_to_two_of_five(given: Path) -> None:
    """Sheets together hold every task twice, never twice for one rater, and about as many each (AAC-08)."""
    grading.export("references", given, RATERS)
    sheets = {rater: pl.read_excel(given / f"{rater}.xlsx", sheet_id=1)["task_id"] for rater in RATERS}
    assert {len(sheet) for sheet in sheets.values()} == {64, 65}
    every = pl.concat(sheets.values())
    assert set(every.value_counts()["count"]) == {2}
    assert all(sheet.n_unique() == len(sheet) for sheet in sheets.values())
    grading.export("references", given, RATERS)
    assert {rater: set(pl.read_excel(given / f"{rater}.xlsx", sheet_id=1)["task_id"]) for rater in RATERS} == {
        rater: set(sheet) for rater, sheet in sheets.items()
    }


def test_grades_become_a_table_once_there_are_two(given: Path) -> None:
    """A comment with one grade waits; with two its mean is in the table, and the kappa beside (AAC-09, AAC-10)."""
    grading.export("references", given, RATERS[:2])
    one, other = (filled_in(given, rater, grade) for rater, grade in (("anna", 4), ("ben", 5)))
    assert grading.collect("references", [one]) == {"tasks": 162, "graded": 0, "waiting": 162}
    assert grading.collect("references", [other]) == {"tasks": 162, "graded": 162, "waiting": 0}
    rows = warehouse.scan("comment_grades").collect()
    assert set(rows["grade"]) == {4.5}
    assert rows["raters"].to_list() == [["anna", "ben"]] * 162
    assert grading.summary("references").five_share == 1
    assert grading.agreement("references")["weights"].to_list() == ["linear", "quadratic"]
    before = rows.sort("comment_id")
    grading.collect("references", [one, other])
    assert warehouse.scan("comment_grades").collect().sort("comment_id").equals(before)


def test_files_are_looked_for_in_the_folder(given: Path) -> None:
    """What lies in `labels` is taken without naming it."""
    grading.export("references", given, RATERS[:2])
    for rater in RATERS[:2]:
        filled_in(given, rater, 3).rename(given / "labels" / f"{rater}.csv")
    assert grading.look("references", "files")["waiting"] == 0


def test_made_up_raters_are_two_a_comment(given: Path) -> None:
    """Simulated raters grade what is dealt to them, and the table says that they are simulated."""
    assert grading.look("references", "simulated")["waiting"] == 0
    rows = warehouse.scan("comment_grades").collect()
    assert set(rows["tool"]) == {"simulated"}
    assert rows["raters"].list.explode().n_unique() == 5
    assert warehouse.scan("dropped", pl.col("step") == grading.STEP).collect().height == 0


def test_nobody_is_asked_through_none(corpus: Path) -> None:
    """Without a tool nothing is given out and nothing waits."""
    assert grading.give("candidates", DAY, "none") == 0
    assert grading.look("candidates", "none") == {"waiting": 0}
    assert warehouse.snapshot("label_tasks") is None


def test_what_commenters_made_is_graded(corpus: Path) -> None:
    """Generated comments are tasks with their articles; raters are not told who made them (AAC-26)."""
    with pytest.raises(Missing, match="undertone commenting generate"):
        grading.give("candidates", DAY, "files")
    commenters.generate(DAY, commenters.HUMAN)
    assert grading.give("candidates", DAY, "files") == 6
    told = next(exchange.tasks_rows(grading.tasks_of("candidates"), form=quality.FORM))
    assert set(told) == {"task_id", "text", "context", "lang", "round", "schema_version", "fields"}
    grading.look("candidates", "simulated")
    made = set(warehouse.scan("generated_comments").collect()["generated_id"])
    assert set(warehouse.scan("comment_grades").collect()["comment_id"]) == made


def test_published_grades_are_taken_over(corpus: Path, tmp_path: Path) -> None:
    """Grades of others come in by the ids of their comments, several raters a comment; again they are the same."""
    path = tmp_path / "grades.csv"
    path.write_text(
        "thread_id,comment_id,rater_id,grade\na01,a01-01,x,4\na01,a01-01,y,5\na02,a02-03,x,2.5\n", encoding="utf-8"
    )
    for _ in range(2):
        assert grading.bring(path, "imported") == 2
    rows = warehouse.scan("comment_grades").sort("comment_id").collect()
    assert rows["grade"].to_list() == [4.5, 2.5]
    assert rows["grades"].to_list() == [[4.0, 5.0], [2.5]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a01,a01-01,6", "row 2, field 'grade': expected a number from 1 to 5, found '6'"),
        ("a01,a01-01,good", "row 2, field 'grade': expected a number from 1 to 5, found 'good'"),
        ("a01,,3", "row 2, field 'comment_id': expected a value, found none"),
        ("a01,gone,3", "1 grades are of comments that are not there; the first is of a01/gone"),
    ],
)
def test_bad_grades_are_refused(corpus: Path, tmp_path: Path, line: str, message: str) -> None:
    """A wrong row is named by file, row and field, and nothing is written."""
    path = tmp_path / "grades.csv"
    path.write_text(f"thread_id,comment_id,grade\n{line}\n", encoding="utf-8")
    with pytest.raises(BadInput, match=message):
        grading.bring(path, "imported")
    assert warehouse.snapshot("comment_grades") is None
