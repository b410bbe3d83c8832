"""Old names of commands and options work for one release, with a line on standard error."""

import pytest

from pipeline import cli
from pipeline.commands.terminal import lazy
from pipeline.commands.terminal.lazy import Family
from tests.commands.conftest import Run

ENTRIES = {name: entry for panel in cli.COMMANDS.values() for name, entry in panel.items()}
FAMILIES = {name: entry.places for name, entry in ENTRIES.items() if isinstance(entry, Family)}
PLACES = {name: entry.place for name, entry in ENTRIES.items() if not isinstance(entry, Family)}
PLACES |= {f"{name} {leaf}": place for name, places in FAMILIES.items() for leaf, place in places.items()}


def list_options(command: str) -> set[str]:
    """The options of a command."""
    params = lazy.load(command.rsplit(maxsplit=1)[-1], PLACES[command]).params
    return {option for param in params for option in (*param.opts, *param.secondary_opts)}


def test_each_new_name_exists_and_each_old_one_is_gone() -> None:
    """The tables of old names agree with the commands and options that there are."""
    for old, new in lazy.RENAMED_COMMANDS.items():
        words = " ".join(word for word in new.split() if not word.startswith("--"))
        assert words in {*PLACES, *FAMILIES}, new
        assert old not in PLACES
    for command, options in lazy.RENAMED_OPTIONS.items():
        names = list_options(command)
        assert {new.split()[0] for new in options.values()} <= names, command
        assert not set(options) & names, command


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rank --json", "groups rank --json"), ("score day 2026-11-19", "score implicitness --day 2026-11-19"),
        ("ndd one other -m count", "ndd distance one other -m count"),
        ("ndd-study test --limit 4", "ndd test --limit 4"),
        ("ndd-study compress --format=google", "ndd measure --data-format=google"),
        ("ndd-study rate --systems gold --sheet anna", "ndd rate --system gold --rater anna"),
        ("metric overlap --metric bleu_1", "commenting overlap --metric bleu_1"),
        ("query select --csv", "query select --format csv"), ("recover --ask m -- --ask", "recover --llm m -- --ask"),
        ("cloze rate imperceptibility --label-studio", "cloze rate imperceptibility --tool label_studio"),
    ],
)  # fmt: skip
def test_old_names_become_new_ones_with_a_line(old: str, new: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The words of an old command line become those of the new one; one line names what changed."""
    assert lazy.rename(old.split(), FAMILIES) == new.split()
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert lazy.rename(new.split(), FAMILIES) == new.split()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("words", ["ndd", "ndd --help", "ndd compress text --ratio 0.5", "train --help"])
def test_a_family_with_an_old_name_keeps_its_commands(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`ndd` was a command and is a family now: it stays a family where one of its commands or nothing follows."""
    assert lazy.rename(words.split(), FAMILIES) == words.split()
    assert capsys.readouterr().err == ""


def test_an_old_command_runs(run: Run) -> None:
    """An old command with old options does its work; standard output is that of the new one."""
    old = run("ndd", "The soup is hot.", "The soup is cold.", "--json")
    new = run("ndd", "distance", "The soup is hot.", "The soup is cold.", "--json")
    assert old.code == new.code == 0
    assert old.out == new.out
    assert "`ndd` is now `ndd distance`" in old.err
    assert "is now" not in new.err
    assert "`--csv` is now `--format csv`" in run("query", "select 1 as n", "--csv").err
    assert not {"ndd-study", "metric", "rank"} & set(run("--help").out.split())
