"""The command, as a user or a script meets it."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path

import polars as pl
import pytest

from pipeline import cli, left_out, sample
from pipeline.commands.operate import doctor
from pipeline.commands.terminal import lazy
from pipeline.commands.terminal.lazy import Command
from pipeline.io import rows
from tests.commands.conftest import Run, write_file

DAY = sample.DAY


def _leaves() -> Iterator[tuple[tuple[str, ...], str, str | None]]:
    """Words, place and summary of each command of the table."""
    for entries in cli.COMMANDS.values():
        for name, entry in entries.items():
            if isinstance(entry, Command):
                yield (name,), entry.place, entry.summary
            else:
                yield from (((name, leaf), place, None) for leaf, place in entry.places.items())


def test_every_command_has_help_with_an_example(run: Run) -> None:
    """`--help` of every command shows an example, and its line in the list is how its own help begins."""
    listed = run("--help").check().out
    for words, place, summary in _leaves():
        command = lazy.load(words[-1], place)
        assert "Example" in command.help, words
        assert " ".join(command.help.split()).startswith((summary or "").rstrip(".")), words
        assert words[0] in listed
    assert "Example" in run("pairs", "build", "--help").check().out
    assert "recovery" in run("train", "--help").check().out


IMPORTED = """
import sys
from pipeline.cli import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
print(*sys.modules)
"""


NO_FRAMES = {"torch", "polars", "numpy", "pyarrow", "pyiceberg", "sqlalchemy", "duckdb", "airflow"}
NO_ENGINE = {"torch", "duckdb", "sqlglot", "airflow", "transformers", "matplotlib"}
NO_TABLES = {"transformers", "sentence_transformers", "pyiceberg", "sqlalchemy", "duckdb"}


@pytest.mark.parametrize(
    ("words", "absent"),
    [
        (["--help"], NO_FRAMES), (["--version"], NO_FRAMES), (["tables"], NO_ENGINE),
        (["score", "implicitness", "lines.txt"], NO_TABLES),
    ],
)  # fmt: skip
def test_a_command_imports_what_it_needs(
    request: pytest.FixtureRequest, tmp_path: Path, words: list[str], absent: set[str]
) -> None:
    """Help comes without frames, tables without DuckDB, scores of the shipped model without transformers."""
    if words == ["tables"]:
        request.getfixturevalue("tables")
    write_file(tmp_path / "lines.txt", "How kind of you to come.\n他说得真好，就是没人信。\n")
    run = [sys.executable, "-c", IMPORTED, *words]
    printed = subprocess.run(run, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    *lines, modules = printed.splitlines()
    assert lines
    assert not {*modules.split()} & absent


@pytest.mark.nightly
def test_sample_to_report_without_airflow(run: Run, home: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    """Collect, tokenize, train, score, check, report and query work one after another with no Airflow running."""
    run("collect", "--path", "sample", "--day", DAY).check()
    run("tokenize", "--day", DAY).check()
    run("train", "impscore", "--sample", "--day", DAY, "--epochs", "2", "--profile", "paper", "--promote").check()
    run("score", "implicitness", "--day", DAY).check()
    run("project", "--day", DAY).check(0, "placed 301 texts")
    assert "FAILED" not in run("check").check().out
    page = Path(run("report", "--day", DAY).check().out.strip())
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    rows = run("query", "select * from most_implicit limit 3", "--json").rows
    assert [row["rank"] for row in rows] == [1, 2, 3]
    counts = {row["table"]: row["rows"] for row in run("tables", "--json").rows}
    assert counts["comments"] == counts["scores"] == 301
    run("heal", "--dry-run").check(0, "none")

    lines = write_file(tmp_path / "lines.txt", "Close the door, please.\n=1+1 looks like a formula\n")
    printed = run("score", "implicitness", lines).check().out.splitlines()
    assert printed[0] == "text,implicitness,percentile,band,signature"
    assert printed[2].startswith("'=1+1")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("tables",), 4, "undertone init"), (("import", "sample"), 2, "sample: there is no"),
        (("import", __file__), 2, ".py"), (("query", "select nonsense"), 4, "undertone init"),
        (("report", "--day", "yesterday"), 2, "YYYY-MM-DD"), (("train", "impscore"), 4, "undertone pairs build"),
        (("collect", "--source", "bilibili", "--live", "--thread-id", "1"), 2, "files only"),
        (("nonsense",), 2, "nonsense"), (("tokenize", "--chinese", "nltk"), 2, "rjieba"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)  # fmt: skip
def test_failures_are_one_line_and_an_exit_code(run: Run, words: tuple[str, ...], code: int, said: str) -> None:
    """What goes wrong is told in words, not as a traceback, with the documented exit code."""
    assert "Traceback" not in run(*words).check(code, said).err


def test_text_columns_and_blanks(run: Run, tables: Path, tmp_path: Path) -> None:
    """A file without the column is named with the columns it has; a row without text is kept, unscored and counted."""
    file = write_file(tmp_path / "reviews.csv", "id,body\n1,hello there\n2,\n3,goodbye\n")
    run("score", "implicitness", file).check(2, "reviews.csv: no column `text`; there are id, body")
    lines = run("score", "implicitness", file, "-c", "body").check().out.splitlines()
    assert [line.split(",")[2] != "" for line in lines[1:]] == [True, False, True]
    assert [(row.reason, row.row_count) for row in left_out.list_rows()] == [("no_text", 1)]


def test_doctor_names_what_is_missing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a catalog the doctor exits with 1 and says which command makes one; Airflow is optional."""
    monkeypatch.setattr(doctor, "version", lambda name: version(f"no-{name}" if name == "apache-airflow" else name))
    output = run("doctor").check(1).out
    assert re.search("ok       ImpScore model: [0-9a-f]{12}, shipped", output)
    assert "undertone init" in output
    assert "ok       torch" in output
    assert "absent   apache-airflow: not installed\n           -> optional, for the DAGs: pip install" in output


def test_scores_of_files_whose_rows_differ(
    run: Run, tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers stay numbers, a scored file can be scored again, fields of later rows only are refused but for jsonl."""
    two_at_a_time = partial(rows.read_chunks, size=2)
    monkeypatch.setattr("pipeline.commands.terminal.files.read_chunks", two_at_a_time)
    file, out = tmp_path / "r.csv", tmp_path / "out.csv"
    file.write_text("text,note\nhello,-5\nbye,=1+1\nwell,+3.5\n", encoding="utf-8")
    run("score", "implicitness", str(file), "-o", str(out)).check()
    assert pl.read_csv(out, infer_schema=False)["note"].to_list() == ["-5", "'=1+1", "+3.5"]
    run("score", "implicitness", str(out), "-o", str(tmp_path / "again.txt")).check()
    assert len((tmp_path / "again.txt").read_text().splitlines()) == 3
    sparse = write_file(tmp_path / "s.jsonl", '{"text": "a b"}\n{"text": "c"}\n{"text": "d", "more": 1}\n')
    run("score", "implicitness", sparse, "-o", tmp_path / "s.parquet").check(2, "fields that the first")
    assert not (tmp_path / "s.parquet").exists()
    run("score", "implicitness", str(sparse), "-o", str(tmp_path / "s_out.jsonl")).check()
    run("score", "implicitness", file, "-o", tmp_path / "no" / "o.csv").check(2, "there is no folder")


def test_log_lines_as_json(home: Path, tmp_path: Path) -> None:
    """With `--log-json` each line on standard error that tells of a write or a step is a JSON object with counts."""
    path = write_file(tmp_path / "a.csv", "thread_id,comment_id,text\n1,1,How kind of you to come at all\n")
    words = ["--log-json", "import", str(path), "--source", "forum", "--day", DAY]
    run = [sys.executable, "-c", "from pipeline.cli import main; main()", *words]
    said = subprocess.run(run, capture_output=True, text=True, check=True).stderr
    told = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    [step] = [one for one in told if one["logger"] == "pipeline.tasks.record.runs"]
    assert (step["step"], step["source"], step["day"], step["read_count"]) == ("collect", "forum", DAY, 1)
    tables = {one["table"]: one["rows"] for one in told if "table" in one}
    assert tables == {"comments": 1, "raw_pages": 0, "articles": 0, "dropped": 0, "runs": 1}
    assert "How kind" not in said


def test_health_says_what_is_missing(run: Run, home: Path, tmp_path: Path) -> None:
    """Exit code 1 where comments lack a step; the page is written all the same, and rows come as JSON."""
    path = write_file(tmp_path / "a.csv", "thread_id,comment_id,text\n1,1,How kind of you to come at all\n")
    run("import", str(path), "--source", "forum", "--day", DAY).check()
    rows = run("health", "--day", DAY, "--json").check(1).rows
    assert [row["step"] for row in rows if row["status"] == "missing"] == ["score", "tokenize"]
    page = Path(run("health", "--day", DAY, "--page").check().out.strip())
    assert page.is_file()
