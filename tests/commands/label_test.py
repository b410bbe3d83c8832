"""Commands about labels: out to raters, in, adjudicated, measured, published."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.label import schema
from tests.commands.conftest import Run
from tests.support.rows.filled import filled

DAY = sample.DAY


@pytest.fixture
def comments(tables: Path) -> None:
    """Two comments of a day."""
    rows = filled(
        "comments", *({"text": text, "context": "标题", "lang": "zh"} for text in ("这也太快了吧", "风挺大的"))
    )
    warehouse.overwrite("comments", warehouse.make_slice(day=DAY), rows)


def run_json(run: Run, *words: object) -> list[dict[str, Any]]:
    """Run a command, which succeeds, and read its JSON, one object a line."""
    result = run("label", *words, "--json").check()
    return result.rows


def read_sheet(path: Path) -> pl.DataFrame:
    return pl.read_excel(path, sheet_id=1, infer_schema_length=0)


def fill_in(sheet: Path, subtext: str) -> Path:
    """Fill in a sheet as a rater sends it back."""
    values = dict.fromkeys(schema.FIELDS, "-1") | {"emotion": "None", "subtext": subtext}
    path = sheet.with_suffix(".csv")
    read_sheet(sheet).with_columns(**{name: pl.lit(value) for name, value in values.items()}).write_csv(path)
    return path


def test_why_comments_are_not_selected(run: Run, tables: Path) -> None:
    """Of equal texts the most liked is selected, and no option is named that the command does not have."""
    text = {"context": "标题", "lang": "zh", "text": "这也太快了吧"}
    rows = filled(
        "comments", {**text, "source": "a"}, {**text, "source": "b", "like_count": 9}, text | {"text": "风挺大的"}
    )
    warehouse.overwrite("comments", warehouse.make_slice(day=DAY), rows)
    reason = "select: left out 1 as near_duplicate: of nearly equal texts with the same context the most liked is"
    result = run("label", "export", "--day", DAY).check(0, reason)
    assert "--keep-duplicates" not in result.err
    assert warehouse.scan("label_tasks").filter(text=text["text"]).collect()["source"].to_list() == ["b"]


def test_from_export_to_release(run: Run, comments: None, tmp_path: Path) -> None:
    """Sheets go out, come back, an adjudicator decides, agreement is measured, and the data set is published."""
    out, subtexts = tmp_path / "out", {"anna": "1", "ben": "1", "chen": "-1"}
    raters = [word for rater in subtexts for word in ("--rater", rater)]
    rows = run_json(run, "export", "--day", DAY, "-o", out, *raters)
    assert rows == [{"project": "csd", "tasks": 2, "folder": str(out)}]
    sheets = [fill_in(out / f"{name}.xlsx", subtext) for name, subtext in subtexts.items()]
    states = run_json(run, "import", *sheets)
    assert {(row["state"], row["fields"]) for row in states} == {("adopted", 14), ("open", 2)}

    (step,) = run_json(run, "adjudicate", "-o", tmp_path / "more", "--adjudicator", "dora")
    assert (step["round"], step["stage"], step["tasks"], step["fields"]) == (1, 2, 2, 2)
    sheet = read_sheet(Path(step["folder"]) / "dora.xlsx").with_columns(subtext=pl.lit("1"))
    assert [name for name in sheet.columns if name in schema.FIELDS] == ["subtext"]
    path = tmp_path / "dora.csv"
    sheet.with_columns(rater_id=pl.lit("anna")).write_csv(path)
    for _ in range(2):  # also when nothing is new, so that nobody waits for what does not count
        result = run("label", "import", path)
        assert "labels: left out 2 as adjudicator_was_rater: the adjudicator labelled these tasks" in result.err
    assert run_json(run, "import", path)[-1]["dropped"][0]["row_count"] == 2
    sheet.write_csv(path)
    assert run("label", "import", path).code == 0

    agreement = {row["field"]: row for row in run_json(run, "agreement")}
    assert agreement["subtext"]["tae"] == pytest.approx(0.3461, abs=1e-4)  # CSD-20: (1, 1, -1 | 1)
    assert agreement["sarcasm"]["tae_low"] == 1.0
    (release,) = run_json(run, "release", "--licence", "CC-BY-4.0")
    assert release["row_count"] == 2
    data = Path(release["folder"]) / "data.parquet"
    assert pl.read_parquet(data)["subtext"].to_list() == ["1", "1"]
    assert run_json(run, "adjudicate") == []
    row_id = pl.read_parquet(data)["row_id"][0]
    assert run_json(run, "withdraw", row_id) == [{"project": "csd", "row_count": 1, "releases": "csd"}]
    assert pl.read_parquet(data).height == 1
    assert run("label", "withdraw", row_id).code == 4


def test_comments_by_their_ids(run: Run, comments: None, tmp_path: Path) -> None:
    """Exactly the comments of a file of ids become tasks, by no rule; its other rows are counted by reason."""
    key = "source", "day", "thread_id", "comment_id"
    rows = warehouse.scan("comments").select(pl.col(key).cast(pl.String)).collect()
    path = tmp_path / "ids.csv"
    of_workbook = rows[:1].with_columns(day=pl.col("day") + " 00:00:00")
    pl.concat([rows[:1], of_workbook, rows.with_columns(day=pl.lit("soon"))]).write_csv(path)
    words = ("--project", "hard", "-o", tmp_path / "o")
    row, dropped = run_json(run, "export", "--ids", path, *words)
    counts = {item["reason"]: item["row_count"] for item in dropped["dropped"]}
    assert (row["tasks"], counts) == (1, {"unknown_comment": 2, "same_comment": 1})
    assert warehouse.scan("label_tasks").collect()["comment_id"].to_list() == rows["comment_id"].to_list()[:1]
    (step,) = warehouse.scan("runs", pl.col("step") == "select").collect().to_dicts()
    assert (step["kept_count"], step["dropped_count"], step["config"]) == (1, 0, '{"ids": 4}')
    run("label", "export", "--ids", path, "--day", DAY).check(2, "leave out --day and the rules")
    rows.select("comment_id").write_csv(path)
    run("label", "export", "--ids", path).check(2, "expected rows with source, day, thread_id, comment_id")
    rows.with_columns(source=pl.lit("x")).write_parquet(path.with_suffix(".parquet"))
    run("label", "export", "--ids", path.with_suffix(".parquet")).check(4, "the ids of any of its 2 rows")


def test_simulated_raters(run: Run, comments: None) -> None:
    """`label collect` does one step after the other, and nothing when all is settled."""
    run("label", "export", "--day", DAY)
    for _ in range(5):
        rows = run_json(run, "collect", "--tool", "simulated")
    assert {row["state"] for row in rows} <= {"adopted", "adjudicated", "deleted"}
    assert run_json(run, "status") == rows


@pytest.mark.parametrize(
    ("labels", "answer", "tae"),  # CSD-19 and CSD-20 of spec: records (1, 1, 1 | -1), (1, 0, -1 | 1) and (1, 1, -1 | 1)
    [("1 1 1", "-1", 0.1015), ("1 0 -1", "1", 0.1483), ("1 1 -1", "1", 0.3461), ("1 1 1", "again", 1.0)],
)
def test_the_answer_in_a_file_is_the_final_label(
    run: Run, tmp_path: Path, labels: str, answer: str, tae: float
) -> None:
    """Of a file with one field, an adjudicator's value is the final label whatever the three said; `again` is none."""
    cells = [(f"r{n}", value, 1) for n, value in enumerate(labels.split())] + [("dora", answer, 2)]
    path = tmp_path / "labels.csv"
    lines = [f"t{task},{rater},subtext,{value},{stage}" for task in range(2) for rater, value, stage in cells]
    path.write_text("\n".join(["task_id,rater_id,field,value,stage", *lines]), encoding="utf-8")
    row = run_json(run, "agreement", path)[0]
    assert (row["field"], row["n_four"], row["tae"]) == ("subtext", 2, pytest.approx(tae, abs=5e-5))


def test_agreement_of_any_file(run: Run, home: Path, tmp_path: Path) -> None:
    """One field by three raters, and own columns and values of five, are measured; what waits is no agreement."""
    path = tmp_path / "labels.csv"
    rows = [f"t{t},r{r},subtext,{('1', '-1', '0')[t * r % 3]}" for t in range(30) for r in range(3)]
    path.write_text("\n".join(["task_id,rater_id,field,value", *rows]), encoding="utf-8")
    (row,) = run_json(run, "agreement", path)
    assert (row["n"], row["raters"], row["fleiss"]) == (30, 3, pytest.approx(0.0, abs=0.5))
    path.write_text("item,a,b,c,d,e\n1,low,low,mid,low,low\n2,mid,high,high,high,\n", encoding="utf-8")
    words = ("agreement", path, "--map", "task_id=item", "--level", "ordinal", "--values", "low,mid,high")
    (row,) = run_json(run, *words, "--columns", "a,b,c,d,e")
    assert (row["raters"], row["labels"], row["level"]) == (5, 9, "ordinal")
    columns = "labels.csv: each column is a rater: a, b, c, d, e; name others by --columns"
    run("label", *words).check(0, "label: Fleiss is over the 1 of 2 tasks with 5 labels", columns)
    path.write_text("task_id,a,b\n1,1.5,1.50\n2,9.0,2\n3,2.0,2\n", encoding="utf-8")  # numbers, however written
    row = run_json(run, "agreement", path, "--level", "ordinal", "--values", "1.50,2.0", "--missing", "9.0")[0]
    assert (row["labels"], row["agreement"]) == (5, 1)
    assert "are for a file; name one" in run("label", "agreement", "--level", "nominal").err
    values = dict.fromkeys(schema.FIELDS, ("-1", "-1", "1")) | {"emotion": ("joy",) * 3}
    rows = [f"t{t},r{r},{name},{cells[r]}" for t in range(3) for r in range(3) for name, cells in values.items()]
    path.write_text("\n".join(["task_id,rater_id,field,value", *rows]), encoding="utf-8")
    by_field = {row["field"]: row for row in run_json(run, "agreement", path)}
    assert (by_field["subtext"]["tae"], by_field["subtext"]["n_waiting"], by_field["emotion"]["tae"]) == (None, 3, 1)
    assert "not yet defined where labels wait for the deciding rater: subtext 3" in run("label", "agreement", path).err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--day", "2026-01-01"), 4, f"no comments of 2026-01-01; days with comments, the newest first: {DAY}"),
        (("--day", DAY, "--rater", "../anna"), 2, "letters, digits"),
    ],
)
def test_what_is_not_exported(
    run: Run, comments: None, tmp_path: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    """The message has the days there are, or a name that leads out of a folder."""
    run("label", "export", *words, "-o", tmp_path / "o").check(code, message)
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("status",), 4, "project 'csd' has no tasks"), (("release",), 4, "project 'csd' has no tasks"),
        (("export", "--project", "other"), 4, "project 'other' has no tasks"),
        (("export", "--day", "yesterday"), 2, "yesterday"), (("collect", "--tool", "paper"), 2, "paper"),
    ],
)  # fmt: skip
def test_what_is_refused(run: Run, tables: Path, words: tuple[str, ...], code: int, message: str) -> None:
    """What cannot be done says why, by its exit code too, and writes nothing."""
    run("label", *words).check(code, message)
    assert all(warehouse.get_snapshot_id(name) is None for name in ("label_tasks", "labels", "annotations"))


def test_guidelines(run: Run, tmp_path: Path) -> None:
    """`label guidelines` writes the raters' page in either language."""
    for lang in ("zh", "en"):
        path = tmp_path / f"{lang}.html"
        assert run("label", "guidelines", "--lang", lang, "-o", path).out.strip() == str(path)
        assert f'lang="{lang}' in path.read_text(encoding="utf-8")
    assert run("label", "guidelines", "--lang", "fr", "-o", tmp_path / "fr.html").code == 2
    assert run("label", "guidelines", "-o", tmp_path / "none" / "zh.html").code == 2
