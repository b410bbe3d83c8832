"""The command `forget`: counts first, asks, erases, and says what it came to."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline import settings, warehouse
from tests.support.filled import DAY, filled

Run = Callable[..., Any]
USER, SAID = "a" * 32, "zqxmark: said by one person alone"


@pytest.fixture
def comments(tables: Path) -> None:
    """A comment of a person, and one of another."""
    rows = filled("comments", {"text": SAID, "user_id": USER}, {"text": "others"})
    warehouse.overwrite("comments", {"day": DAY}, rows)


def test_counting_then_erasing(run: Run, comments: None) -> None:
    """--dry-run counts and changes nothing; --yes erases, --json is one object, and then nothing is left to find."""
    counted = json.loads(run("forget", "--comment-id", "c1", "--dry-run", "--json").out)
    assert counted == {"is_dry_run": True, "stores": [{"store": "comments", "row_count": 1, "file_count": 1}]}
    assert warehouse.scan("comments").collect().height == 2
    done = run("forget", "--comment-id", "c1", "--yes", "--json", "--grace-hours", "0")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert (told["stores"][0]["store"], told["stores"][0]["row_count"], told["is_verified"]) == ("comments", 1, True)
    assert len(told["erasure_id"]) == 32
    assert not [word for word in (SAID, USER) if word in done.out + done.err]
    assert "nothing of it was here" in run("forget", "--user-id", USER, "--yes").err
    assert warehouse.search([SAID, USER]) == []


def test_it_is_not_done_unasked(run: Run, comments: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody can be asked --yes is needed; on a terminal no is no."""
    done = run("forget", "--user-id", USER)
    assert (done.code, "give --yes" in done.err) == (2, True)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", _no)
    assert run("forget", "--user-id", USER).code == 1
    assert warehouse.scan("comments").collect().height == 2


def _no(*_: object, **__: object) -> bool:
    import typer

    raise typer.Abort


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name what to erase"),
        (("--user-id", "4711"), "needs its source"),
        (("--file", "nowhere.csv"), "there is no such file"),
    ],
)
def test_what_names_nobody_is_refused(run: Run, home: Path, words: tuple[str, ...], said: str) -> None:
    """A wrong request exits with 2 before anything is opened."""
    done = run("forget", *words, "--yes")
    assert done.code == 2
    assert said in " ".join(done.err.split())
    assert not home.exists()


def test_models_that_held_the_words_go_and_come_back_without(run: Run, comments: None) -> None:
    """A count model goes, what answers instead and the command that trains it are said, and that command works; with
    --retrain it is done at once.
    """
    words = SAID.split()[1:]
    comment = filled("comments", {"text": "somebody else said that it rained", "comment_id": "c3", "lang": "en"},
                     {"text": SAID, "user_id": USER, "comment_id": "c1", "lang": "en"})  # fmt: skip
    warehouse.overwrite("comments", {"day": DAY}, comment)
    day = DAY.isoformat()
    model_id = json.loads(run("train", "count-lm", "--lang", "en", "--day", day, "--json").out)["model_id"]
    folder = settings.models() / model_id
    assert all(word in (folder / "config.json").read_text() for word in words)
    done = run("forget", "--user-id", USER, "--yes")
    told = " ".join(done.err.split())
    assert done.code == 0, done.err
    assert f"removed masked_lm_en {model_id[:20]}" in told
    assert "in force now: counts of the shipped sample" in told
    command = f"undertone train count-lm --lang en --day {day}"
    assert command in told
    assert not folder.exists()
    again = json.loads(run(*command.split()[1:], "--json").out)["model_id"]
    assert "rained" in (settings.models() / again / "config.json").read_text()
    done = run("forget", "--comment-id", "c3", "--yes", "--retrain")
    assert done.code == 1  # nothing is left to learn from
    assert "no text is left in this language" in " ".join(done.err.split())
