"""The command `judge`: what it prints and writes, by a service, by people, and in vain."""

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from pipeline import sample, warehouse
from tests.commands.conftest import Run
from tests.faults.asking_test import wait
from tests.support.servers.llm_server import Faults, Server
from tests.tasks.judging.judge_test import TEXTS, answer_a, write


@pytest.fixture
def lines(tmp_path: Path, home: Path) -> Path:
    """A file of texts with a true value each, and a column of the user."""
    path = tmp_path / "lines.csv"
    pl.DataFrame({"id": range(len(TEXTS)), "text": TEXTS, "context": [None] * len(TEXTS)}).write_csv(path)
    return path


def test_a_service_judges_a_file(run: Run, lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values, intervals and counts are written; the checks, what could not be read and the cost are printed."""
    words = ("judge", lines, "--llm", "m", "--mode", "pairwise", "--rounds", "4", "-o", tmp_path / "judged.csv")
    with Server(write=write) as server:
        monkeypatch.setenv("UNDERTONE_LLM_URL", server.url)
        result = run(*words).check()
        for part in ("24 of 24 texts judged by 240 requests", "en, first text chosen: 0.", "malformed: ", "240 calls"):
            assert part in result.err
        judged = pl.read_csv(tmp_path / "judged.csv")
        assert judged.columns == ["id", "text", "context", "implicitness_judged", "low", "high", "answers", "signature"]
        assert judged["id"].to_list() == [*range(24)]
        again = run(*words[:1], tmp_path / "judged.csv", *words[2:-1], tmp_path / "again.csv", "--cache-only").check()
        assert "ignored columns" not in again.err
        assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "judged.csv").read_bytes()
        judged.drop("signature").write_csv(own := tmp_path / "own.csv")
        run(*words[:1], own, *words[2:]).check(2, "column 'implicitness_judged': the scores have a column of this name")
        cached = run(*words[:-2], "--cache-only", "--json")
        assert json.loads(cached.out.splitlines()[0])["text"] == TEXTS[0]
        fields = json.loads(cached.err.splitlines()[-2])["judge"]
        assert (fields["judged"], fields["requests"], len(fields["checks"])) == (24, 240, 3)
        server.write = answer_a
        run(*words[:3], "other", *words[4:]).check(1, "do not trust this judge: en: always chooses the first text")
        table = pl.read_csv(lines).rename({"text": "body"})
        pl.concat([table, table.clear(1)]).write_csv(bodies := tmp_path / "bodies.csv")
        planned = run("judge", bodies, "-c", "body", "--llm", "new", "--dry-run", "--json")
        planned.check(0, "there is no price for the model 'new'", "judge: left out 1 as no_text")
        estimate = planned.rows[0]
        assert (estimate["to_send"], estimate["requests_of_all_rounds"]) == (24, 72)
        assert server.sent.total() == 480


@pytest.mark.slow
@pytest.mark.nightly
def test_a_kill_pays_nothing_twice(lines: Path, tmp_path: Path, home: Path) -> None:
    """Killed amid its rounds, the command goes on where it was: at most what was in flight is sent again."""
    words = ["judge", str(lines), "--llm", "m", "--mode", "pairwise", "--concurrency", "4", "-o"]
    outs = [tmp_path / f"{name}.csv" for name in ("killed", "undisturbed")]
    with Server(Faults(seconds=0.02), write=write) as server:
        for out in outs:
            env = {**os.environ, "UNDERTONE_LLM_URL": server.url, "UNDERTONE_HOME": str(tmp_path / out.stem)}
            command = [sys.executable, "-m", "pipeline.cli", *words, str(out)]
            if out.stem == "killed":
                child = subprocess.Popen(command, env=env)
                wait(110, server)
                child.kill()
                child.wait()
                assert not out.exists()
            subprocess.run(command, env=env, check=True)
            if out.stem == "killed":
                assert len(server.served) == 240
                assert server.paid <= 4
    assert outs[0].read_text(encoding="utf-8") == outs[1].read_text(encoding="utf-8")


def test_people_judge_a_file(run: Run, lines: Path, tmp_path: Path) -> None:
    """`--requests` writes the questions of a round, `--answers` takes them back, until all rounds are answered."""
    questions, answers = tmp_path / "ask.jsonl", tmp_path / "ana.jsonl"
    answers.touch()
    words = ("judge", lines, "--llm", "ana", "--repeats", "2", "--requests", questions, "--answers", answers)
    for number in (1, 2):
        run(*words).check(0, f"round {number} of at most 2: 24 requests written")
        rows = [json.loads(line) for line in questions.read_text(encoding="utf-8").splitlines()]
        assert rows[0]["instructions"].startswith("You rate how implicit a text is")
        filled = [json.dumps(row | {"response": write(row["question"], number + 1)}) + "\n" for row in rows]
        answers.write_text(answers.read_text(encoding="utf-8") + "".join(filled), encoding="utf-8")
    run(*words).check(0, "24 of 24 texts judged by 48 requests")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("FILE", "--llm", "m"), 4, "UNDERTONE_LLM_URL"),
        (("FILE", "--llm", "m", "--day", "2026-11-19"), 2, "give a file or --day"),
        (("FILE", "--llm", "m", "--batch", "--cache-only"), 2, "give only one of"),
        (("FILE", "--llm", "m", "--mode", "guess"), 2, "no mode 'guess'"),
        (("FILE", "--llm", "m", "--params", "[]"), 2, "should be a JSON object"),
        (("--llm", "m", "--day", "2026-01-07"), 4, "no comments from 2026-01-07"),
        (("FILE",), 2, "--llm"),
    ],
)
def test_what_is_refused(run: Run, lines: Path, words: tuple[str, ...], code: int, message: str) -> None:
    """What cannot be done exits with its code and gives the reason in one line."""
    run("judge", *(lines if word == "FILE" else word for word in words)).check(code, message)


def test_the_sample_offline(run: Run, tables: Path) -> None:
    """Judged by the shipped answers, calibrated and distilled: a user sees real figures without a service."""
    for path in sorted((sample.FOLDER / "pages").glob("*.jsonl")):
        assert run("import", path, "--source", path.stem, "--day", sample.DAY).code == 0
    (own := tables / "own.csv").write_text("text,thread_id\nWe came back.,t1\n\u200b\u2060,t1\n", encoding="utf-8")
    run("import", own, "--source", "forum", "--day", sample.DAY).check(0, "left out 1 as empty")
    words = ("--day", sample.DAY, "--llm", "undertone-reader", "--repeats", "1", "--limit", "1000")
    judged = run("judge", *words, "--answers", "sample").check(0, "301 of 301 texts judged by 301 requests")
    assert "judge: left out 1 as not_all_answered: no value of a source is written" in judged.err
    assert run("score", "implicitness", "--day", sample.DAY).code == 0
    assert run("calibrate", "scorer", "judge", "--json").json["rows"][0]["n"] == 301
    models = warehouse.scan("models").collect()
    distilled = run("distil", "--curve", "--json").json
    assert warehouse.scan("models").collect().equals(models)
    assert {"distilled", "length", "words"} <= {row["by"] for row in distilled["rows"] if row["lang"] == "zh"}
