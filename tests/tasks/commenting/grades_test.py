"""Grades of comments as tasks: comments to people, their grades to a table."""

import json
from pathlib import Path

import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.label import quality, task_files
from pipeline.tasks.commenting import generated, grades
from pipeline.tasks.daily import collect

DAY = sample.DAY
LATER = "2026-11-20"
RATERS = ("anna", "ben", "chen", "dora", "eve")


@pytest.fixture
def folder(sample_corpus: Path) -> Path:
    """Give the references to people; the folder of their answers."""
    assert grades.assign_tasks("references", DAY, "files")["tasks"] == 6 * 27
    return grades.get_project("references").folder


def fill_in(folder: Path, rater: str, grade: int) -> Path:
    """Fill in the sheet of a rater: the same grade for each task."""
    rows = pl.read_excel(folder / f"{rater}.xlsx", sheet_id=1)
    path = folder / f"{rater}.csv"
    rows.select("task_id", rater_id=pl.lit(rater), quality=pl.lit(grade)).write_csv(path)
    return path


def test_each_comment_goes_to_two_of_five(folder: Path, tmp_path: Path) -> None:
    """Sheets together hold every task twice, never twice for one rater, and about as many each (AAC-08)."""
    grades.export("references", folder, RATERS)
    sheets = {rater: pl.read_excel(folder / f"{rater}.xlsx", sheet_id=1)["task_id"] for rater in RATERS}
    assert {len(sheet) for sheet in sheets.values()} == {64, 65}
    assert set(pl.concat(sheets.values()).value_counts()["count"]) == {2}
    assert all(sheet.n_unique() == len(sheet) for sheet in sheets.values())
    with pytest.raises(BadInput, match=r"anna.xlsx: is there and may hold grades"):
        grades.export("references", folder, RATERS)
    grades.export("references", tmp_path, RATERS)
    for rater, sheet in sheets.items():
        assert set(pl.read_excel(tmp_path / f"{rater}.xlsx", sheet_id=1)["task_id"]) == set(sheet)


def test_grades_become_a_table_once_there_are_two(folder: Path) -> None:
    """A comment with one grade waits; with two its mean is in the table, and the kappa beside (AAC-09, AAC-10).

    Once people grade a set its simulated grades do not count.
    """
    grades.collect("references", tool="simulated")
    grades.export("references", folder, RATERS[:2])
    first, second = (fill_in(folder, rater, grade) for rater, grade in (("anna", 4), ("ben", 5)))
    assert grades.collect("references", [first]) == {"tasks": 162, "graded": 0, "waiting": 162}
    assert grades.collect("references", [second]) == {"tasks": 162, "graded": 162, "waiting": 0}
    rows = warehouse.scan("comment_grades").collect()
    assert (set(rows["tool"]), set(rows["grade"])) == ({"file"}, {4.5})
    assert rows["raters"].to_list() == [["anna", "ben"]] * 162
    assert warehouse.scan("dropped", pl.col("reason") == "simulated").collect().height == 324
    with pytest.raises(BadInput, match="people have graded these references"):
        grades.collect("references", tool="simulated")
    assert grades.summarize("references").five_share == 1
    assert grades.measure_agreement("references")["weights"].to_list() == ["linear", "quadratic"]
    before = rows.sort("comment_id")
    grades.collect("references", [first, second])
    assert warehouse.scan("comment_grades").collect().sort("comment_id").equals(before)


def test_what_commenters_made_is_graded(sample_corpus: Path) -> None:
    """Generated comments are tasks with their articles, without the name of the commenter (AAC-26)."""
    with pytest.raises(Missing, match="undertone commenting generate"):
        grades.assign_tasks("candidates", DAY, "files")
    generated.generate(DAY, generated.HUMAN)
    assert grades.assign_tasks("candidates", DAY, "files")["tasks"] == 6
    row = next(task_files.build_rows(grades.read_tasks("candidates"), form=quality.FORM))
    assert set(row) == {"task_id", "text", "context", "lang", "round", "schema_version", "fields"}
    grades.collect("candidates", tool="simulated")
    generated_ids = set(warehouse.scan("generated_comments").collect()["generated_id"])
    assert set(warehouse.scan("comment_grades").collect()["comment_id"]) == generated_ids


def test_bad_grades_are_refused(sample_corpus: Path, tmp_path: Path) -> None:
    """A wrong row is named by file, row and field, and nothing is written; nor over raters' own grades."""
    path = tmp_path / "grades.csv"
    for name, lines, message in (
        ("imported", "a01,a01-01,6", "row 2, field 'grade': expected a number from 1 to 5, found '6'"),
        ("imported", "a01,a01-01,good", "row 2, field 'grade': expected a number from 1 to 5, found 'good'"),
        ("imported", "a01,,3", "row 2, field 'comment_id': expected a value, found none"),
        ("imported", "a01,gone,3", "1 grades are of comments that are not there; the first is of a01/gone"),
        ("imported", "a01,a01-01,4\na01,a01-01,5", "rater 'unnamed' graded a01/a01-01 twice"),
        ("quality_references", "a01,a01-01,4", "choose another name"),
    ):
        path.write_text(f"thread_id,comment_id,grade\n{lines}\n", encoding="utf-8")
        with pytest.raises(BadInput, match=message):
            grades.import_grades(path, name)
    path = path.with_suffix(".jsonl")
    row = {"thread_id": "a01", "comment_id": "a01-01", "grade": True}
    path.write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(BadInput, match="expected a number from 1 to 5, found True"):
        grades.import_grades(path, "imported")
    assert warehouse.get_snapshot_id("comment_grades") is None
    rows = ({**row, "grade": 4, "rater_id": rater} for rater in (0, None))
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    grades.import_grades(path, "imported")
    assert warehouse.scan("comment_grades").collect()["raters"].to_list() == [["0", "unnamed"]]


def edit_article(sample_corpus: Path) -> str:
    """Collect an article of the references again on a later day, with another body; return its id."""
    thread_id = str(warehouse.scan("reference_comments").collect()["thread_id"][0])
    articles = [json.loads(line) for line in sample.THREADS.read_text(encoding="utf-8").splitlines()]
    (article,) = (article for article in articles if article["article_id"] == thread_id)
    article["content"] += "后来又改了一句。"
    path = sample_corpus.parent / "edited.jsonl"
    path.write_text(json.dumps(article, ensure_ascii=False) + "\n", encoding="utf-8")
    collect.import_files([path], "sample_news", LATER, mapping=sample.THREAD_COLUMNS)
    return thread_id


def test_an_edited_article_is_graded_again(folder: Path) -> None:
    """Answers of the earlier text stop nothing: they are recorded and do not count, and its comments wait for others.

    The other comments keep their grades.
    """
    grades.export("references", folder, RATERS[:2])
    sheets = [fill_in(folder, rater, 3) for rater in RATERS[:2]]
    thread_id = edit_article(folder.parents[1])
    assert grades.collect("references", sheets) == {"tasks": 135, "graded": 135, "waiting": 0}
    assert warehouse.scan("dropped", pl.col("reason") == "unknown_task").collect().height == 54
    assert grades.assign_tasks("references", LATER, "files")["tasks"] == 162
    assert grades.collect("references") == {"tasks": 162, "graded": 135, "waiting": 27}
    assert thread_id not in set(warehouse.scan("comment_grades").collect()["thread_id"])


def test_grades_of_removed_comments_are_removed(sample_corpus: Path) -> None:
    """Tasks of removed comments do not wait, and the next measuring removes their grades."""
    generated.generate(DAY, generated.HUMAN)
    grades.assign_tasks("candidates", DAY, "simulated")
    grades.collect("candidates", tool="simulated")
    partition = warehouse.make_slice(source="sample_news", system=generated.HUMAN)
    warehouse.overwrite("generated_comments", partition, warehouse.scan("generated_comments").head(4).collect())
    assert warehouse.run_check("grades_have_comments")
    grades.prune()
    assert not warehouse.run_check("grades_have_comments")
    assert grades.collect("candidates") == {"tasks": 4, "graded": 4, "waiting": 0}
