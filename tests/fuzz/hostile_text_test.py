"""Hostile text end to end: instructions stay data, names stay names, SQL takes values by parameters alone."""

import ast
import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.commands.terminal import console, files
from pipeline.errors import BadInput, Missing, UndertoneError
from pipeline.io.spreadsheets import escape_formula, unescape_formula
from pipeline.llm import client, prompt
from pipeline.llm.ledger import answers
from pipeline.llm.ledger.cost import Budget
from pipeline.llm.questions import explicit, graded, judging, problematic, recovery
from pipeline.llm.questions.answer import format_question
from pipeline.llm.request import Request
from pipeline.llm.service import connection
from pipeline.report.sections import create_environment
from pipeline.sample import DAY
from pipeline.tasks.daily import collect
from pipeline.tasks.impscore import scoring
from pipeline.tasks.labelling import csd, release
from tests.fuzz.hostile import INJECTION
from tests.support.servers.llm_server import Server

PIPELINE = Path(__file__).resolve().parents[2] / "pipeline"


def asked(texts: list[str], tmp_path: Path) -> tuple[list[dict[str, Any]], dict[str, str | None]]:
    """What a server is sent for comments, in order of the text, and what it answered to each."""
    version = prompt.load("recover_en").version
    questions = [
        prompt.build_messages(format_question({"context": None, "text": text}), "recover_en") for text in texts
    ]
    wanted = [Request("m", messages, "recover_en", version, {}) for messages in questions]
    with Server() as server:
        engine = answers.open_ledger(f"sqlite:///{tmp_path}/{len(texts)}.db")
        done = client.ask(wanted, engine, connection.Endpoint(server.url, "key"), Budget("r"), concurrency=1)
        answers.close()
    sent = sorted(server.requests, key=lambda body: str(body["messages"]))
    return sent, {text: done.answers[r.key].response for text, r in zip(texts, wanted, strict=True)}


def test_an_injection_is_one_row_of_data(tmp_path: Path) -> None:
    """A comment that gives instructions is quoted inside one field of its own request; no other request changes."""
    fine = ["Nice hat.", "You are so early."]
    before, said = asked(fine, tmp_path)
    after, said_too = asked([*fine, INJECTION], tmp_path)
    (mine,) = [body for body in after if body not in before]
    assert [body for body in after if body in before] == before
    assert {text: said_too[text] for text in fine} == said
    system, user = mine["messages"]
    assert system == {"role": "system", "content": prompt.load("recover_en").text}
    assert json.loads(user["content"]) == {"context": None, "text": INJECTION}


def test_an_answer_that_obeys_is_checked_by_its_schema() -> None:
    """What an injected instruction could have a model say passes no parser as another kind of answer."""
    obeyed = '{"meaning": "pwned"}'
    assert recovery.parse(obeyed, "Nice hat.").reason == "malformed"  # no plain words
    assert graded.parse(obeyed, "en").reason == "malformed"
    assert judging.parse_labels(obeyed, judging.PAIR)[1] == "malformed"
    assert problematic.parse(obeyed) == "other"
    assert recovery.parse_choice(obeyed, 4) is None
    assert explicit.parse("你被攻击了", "Nice hat.", "explicit_en").reason == "other_language"


def test_pages_show_what_is_unseen() -> None:
    """The one environment of all pages escapes markup and shows what is unseen; our own markup stays."""
    shown = create_environment().from_string('<b title="{{ a }}">{{ a }}</b>{{ b | safe }}')
    html = shown.render(a='\u202e<script>"onmouseover=x\u200b\x1b', b="<svg>\u2060</svg>")
    told = "⟨U+202E⟩&lt;script&gt;&#34;onmouseover=x⟨U+200B⟩⟨U+001B⟩"
    assert html == f'<b title="{told}">{told}</b><svg>\u2060</svg>'
    makers = [path for path in PIPELINE.glob("report/**/*.py") if "Environment(" in path.read_text(encoding="utf-8")]
    assert makers == [PIPELINE / "report/sections.py"]


def test_the_terminal_obeys_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Escape sequences, overrides and markup of the terminal's library in comments and messages are shown as text."""
    text = "\x1b]0;pwned\x07\x1b[2J\u202eabc[bold]x[/bold]\r\u200b"
    console.table(pl.DataFrame({"text": [text], "\x1bname": [1]}))
    console.report(text)
    said = "".join(capsys.readouterr())
    assert not set(said) & set("\x1b\x07\u202e\u200b\r")
    assert said.count("⟨U+001B⟩]0;pwned⟨U+0007⟩") == 2
    assert said.count("[bold]x[/bold]") == 2


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠", "'=", "''+"])
def test_no_csv_runs_a_formula(sign: str) -> None:
    """Cells and names of columns in csv do not begin as formulas do, in any locale, and can be undone."""
    text = f"{sign}cmd|' /C calc'!A0"
    told = files.as_text(pl.DataFrame({text: [text]}), ".csv", header=True)
    for (line,) in csv.reader(io.StringIO(told, newline="")):
        assert line[0] == "'"
        assert unescape_formula(line) == text
    assert unescape_formula(escape_formula(text)) == text


_SPLICED = {  # where SQL is put together, and of what: never of values that somebody gives
    ("io/formats/databases.py", "escape_name(table)"), ("io/formats/databases.py", "columns"),  # its own names, quoted
    *(("tasks/erasure/files.py", name) for name in ("escape_name(table)", "escape_name(name)", "names", "condition")),
    ("tasks/daily/report.py", "query"), ("tasks/daily/report.py", "int(count)"),  # ours, with marks for values; a number
    ("warehouse/query.py", "address"),  # the path of our own draft, quoted: ATTACH takes no parameter
    ("llm/ledger/tables.py", "table"), ("llm/ledger/tables.py", "name"), ("tasks/calibration/calibrate.py", "sql"),  # ours
}  # fmt: skip


_STATEMENTS = {"execute", "executemany", "executescript", "sql", "query", "exec_driver_sql", "text"}


def spliced() -> set[tuple[str, str]]:
    """What is put into texts that are handed over as SQL."""
    found = set()
    for path in sorted(PIPELINE.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call) or not call.args or not isinstance(call.func, ast.Attribute):
                continue
            if call.func.attr not in _STATEMENTS:
                continue
            if call.func.attr == "text" and ast.unparse(call.func.value) != "sa":
                continue
            name = str(path.relative_to(PIPELINE))
            for part in ast.walk(call.args[0]):
                if isinstance(part, ast.FormattedValue):
                    found.add((name, ast.unparse(part.value)))
                elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "format":
                    found.add((name, ast.unparse(part)))
    return found


def test_values_reach_sql_as_parameters() -> None:
    """No statement is put together from values; the few that hold a name or a number of ours are listed."""
    assert spliced() == _SPLICED


NAMES = ("../x", "/etc", "a/b", "a\\b", "", ".", "..", "a\n", "a\x00", "A", "名", "x" * 41)


def test_names_become_no_paths(tmp_path: Path, tables: Path) -> None:
    """A source, project, release, prompt or model that is named like a path is refused, and no file is made outside."""
    own = tmp_path / "a.txt"
    own.write_text("nice hat\n", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    acts: list[Callable[[str], object]] = [
        lambda name: collect.import_files([own], name, DAY), lambda name: csd.get_step_project(name, (1, 1)).folder,
        release.get_page_path, lambda name: release.release(name or "../x"), prompt.load,
        lambda name: scoring.load_model(name or "../x"),
    ]  # fmt: skip
    for act in acts:
        for name in NAMES:
            with pytest.raises(UndertoneError) as caught:
                act(name)
            assert isinstance(caught.value, BadInput | Missing), name
    assert sorted(tmp_path.rglob("*")) == before


def test_thread_ids_like_paths_stay_in_the_warehouse(tables: Path, tmp_path: Path) -> None:
    """Ids and names of files that are paths become values in tables; no file lies outside the warehouse for them."""
    (tmp_path / "in").mkdir()
    own = tmp_path / "in" / "..%2f..%2fx.csv"
    own.write_text('text,thread_id,comment_id\nnice hat,../../../x,"../c"\n', encoding="utf-8")
    (done,) = collect.import_files([own], "mine", DAY)
    assert done["kept"] == 1
    from pipeline import warehouse

    row = warehouse.scan("comments").collect().row(0, named=True)
    assert (row["thread_id"], row["comment_id"], row["origin"]) == ("../../../x", "../c", own.name)
    outside = [path for path in tmp_path.rglob("*") if path.is_file() and tables not in path.parents and path != own]
    assert outside == []
