"""Running a command in this process as a script would run it, and small files to run it on."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self

import polars as pl
import pytest

from pipeline import cli, sample
from pipeline.commands.terminal import console
from tests.support.commands import import_here


class Result(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The object that it printed."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The objects that it printed, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    def check(self, code: int = 0, *messages: str) -> Self:
        """Check the exit code, and that standard error has these words, wherever its lines end."""
        assert self.code == code, self.err
        assert [message for message in messages if message not in " ".join(self.err.split())] == [], self.err
        return self


Run = Callable[..., Result]


def write_file(path: Path, text: str) -> Path:
    """Write a file; return its path."""
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("groups", "rank", "--json")`: exit code, standard output and standard error, no path in it cut in two."""
    monkeypatch.setattr(console.err, "width", 1000)
    import_here(monkeypatch)

    def once(*words: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["undertone", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        code = ended.value.code
        return Result(int(code) if isinstance(code, int) else 0, *capsys.readouterr())

    return once


def answers() -> pl.DataFrame:
    """Forty English (implicit, explicit) of the sample."""
    lines = [json.loads(line) for line in sample.COMPLETIONS.read_text(encoding="utf-8").splitlines()]
    english = [line for line in lines if line["source"] == "sample_en"][:40]
    return pl.DataFrame(
        {"implicit": [line["input"] for line in english], "explicit": [line["response"] for line in english]}
    )


@pytest.fixture(scope="session")
def pairs_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty pairs as csv."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.csv"
    answers().write_csv(path)
    return path


@pytest.fixture
def model_dir(trained_dir: Path, tiny_encoder: Path) -> Path:
    """A model on the tiny encoder, which the setting names."""
    return trained_dir


@pytest.fixture(scope="session")
def trained_dir(pairs_file: Path, tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model trained on them with the paper's profile for two epochs, on the tiny encoder."""
    from pipeline.examples.impscore import pairs
    from pipeline.tasks.impscore import train

    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERTONE_HOME", str(folder / "home"))
        patch.setenv("UNDERTONE_ENCODER", str(tiny_folder))
        train.train_file(pairs.read(pairs_file), folder / "model", profile="paper", changes={"epochs": 2})
    return folder / "model"
