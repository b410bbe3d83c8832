"""The command `forget`: counts first, asks, erases, and reports the result."""

from pathlib import Path

import pytest
import typer

from pipeline import settings, warehouse
from tests.commands.conftest import Run
from tests.support.rows.filled import DAY, filled

USER, SAID = "a" * 32, "zqxmark: said by one person alone"


@pytest.fixture
def comments(tables: Path) -> None:
    """A comment of a person, and one of another."""
    rows = filled("comments", {"text": SAID, "user_id": USER}, {"text": "others"})
    warehouse.overwrite("comments", {"day": DAY}, rows)


def test_counting_then_erasing(run: Run, comments: None) -> None:
    """--dry-run counts and changes nothing; --yes erases, --json is one object, and then nothing is left to find."""
    preview = run("forget", "--comment-id", "c1", "--dry-run", "--json").json
    assert preview == {"is_dry_run": True, "stores": [{"store": "comments", "row_count": 1, "file_count": 1}]}
    assert warehouse.scan("comments").collect().height == 2
    result = run("forget", "--comment-id", "c1", "--yes", "--json", "--grace-hours", "0").check()
    summary = result.json
    assert summary["stores"][0].items() >= {"store": "comments", "row_count": 1}.items()
    assert summary["is_verified"] is True
    assert len(summary["erasure_id"]) == 32
    assert not [word for word in (SAID, USER) if word in result.out + result.err]
    assert (
        "nothing of it was here; a user id is only found with the UNDERTONE_USER_KEY"
        in run("forget", "--user-id", USER, "--yes").err
    )
    assert warehouse.search([SAID, USER]) == []


def test_a_user_id_under_another_key(run: Run, tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named as the likely reason, with exit 1, where a file has the id itself and no comment its pseudonym."""
    inbox = settings.inbox() / "solo" / f"{DAY}"
    inbox.mkdir(parents=True)
    content = f"text,comment_id,thread_id,user\n{SAID},a1,t1,ann\n{SAID},a2,t2,victim-77\nlol,a3,t3,victim-77\n"
    for key, code, ending in (("another", 1, "no comment has such a user id; a user"), ("key", 0, "nothing is left")):
        (inbox / "c.csv").write_text(content)
        monkeypatch.setenv("UNDERTONE_USER_KEY", "key")
        run("collect", "--day", f"{DAY}", "--source", "solo").check()
        monkeypatch.setenv("UNDERTONE_USER_KEY", key)
        words = ("forget", "--user-id", "victim-77", "--source", "solo")
        stores = run(*words, "--dry-run", "--json").json["stores"]
        assert {"store": "inbox", "row_count": 2, "file_count": 1} in stores
        assert ending in run(*words, "--yes").check(code).err
        assert (inbox / "c.csv").read_text() == "".join(content.splitlines(keepends=True)[:2])


def test_it_asks_before_it_erases(run: Run, comments: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody can be asked --yes is needed; on a terminal no is no."""

    def abort(*_: object, **__: object) -> bool:
        raise typer.Abort

    run("forget", "--user-id", USER).check(2, "give --yes")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", abort)
    assert run("forget", "--user-id", USER).code == 1
    assert warehouse.scan("comments").collect().height == 2


def test_what_names_nobody_is_refused(run: Run, home: Path) -> None:
    """A wrong request exits with 2 before anything is opened."""
    run("forget", "--yes").check(2, "name what to erase")
    run("forget", "--file", "nowhere.csv", "--yes").check(2, "there is no such file")
    assert not home.exists()


def test_models_that_held_the_words_go_and_come_back_without(run: Run, comments: None) -> None:
    """A count model goes, its replacement and the command that trains it are printed, and that command works; with
    --retrain it is trained at once.
    """
    comment = {"text": "somebody else said that it rained", "comment_id": "c3", "lang": "en"}
    erased = {"text": SAID, "user_id": USER, "comment_id": "c1", "lang": "en"}
    warehouse.overwrite("comments", {"day": DAY}, filled("comments", comment, erased))
    command = f"undertone train count-lm --lang en --promote --day {DAY}"
    words = [*command.split()[1:], "--json"]
    model_id = run(*words).json["model_id"]
    folder = settings.models() / model_id
    assert all(word in (folder / "config.json").read_text() for word in SAID.split()[1:])
    settings.scratch("tokens").mkdir(parents=True)
    (settings.scratch("tokens") / "part.parquet").touch()
    result = run("forget", "--user-id", USER, "--yes").check()
    messages = (
        "scratch: files that steps leave",
        f"removed masked_lm_en {model_id[:20]}",
        "in force now: counts of the shipped sample",
        command,
    )
    assert all(message in " ".join(result.err.split()) for message in messages)
    assert not folder.exists()
    model_id = run(*words).json["model_id"]
    assert "rained" in (settings.models() / model_id / "config.json").read_text()
    run("forget", "--comment-id", "c3", "--yes", "--retrain").check(1, "no text is left in this language")
