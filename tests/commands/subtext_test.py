"""Commands about the recogniser: train, evaluate, score."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.commands.conftest import Run


@pytest.fixture
def labelled_file(tmp_path: Path) -> Path:
    """Labelled comments."""
    path = tmp_path / "own.csv"
    rows = [(f"{'真准时啊' if n % 2 else '三点开会'}{n}", f"话题{n}", str(n % 2)) for n in range(20)]
    pl.DataFrame(rows, schema=["text", "context", "label"], orient="row").write_csv(path)
    return path


def test_train_evaluate_score(run: Run, labelled_file: Path, tmp_path: Path) -> None:
    """A model of a file has its numbers by JSON, is measured on a file, and scores one."""
    model, small = tmp_path / "m", ("--set", "epochs=1", "--set", "members=1", "--set", "hidden=8", "--set", "ngrams=1")
    result = run("train", "subtext", "--data", labelled_file, "-o", model, *small, "--json")
    assert result.code == 0, result.err
    output = json.loads(result.out)
    assert {row["split"] for row in output["rows"]} == {"train", "validation", "test"}
    assert {"macro_f1", "svm_baseline", "macro_f1_without_context"} <= set(output["rows"][-1])
    assert (
        json.loads(run("evaluate", "subtext", "--data", labelled_file, "--model", model, "--json").out)["rows"]
        == output["rows"]
    )
    out = tmp_path / "s.parquet"
    assert run("score", "subtext", labelled_file, "--model", model, "-o", out).code == 0
    assert pl.read_parquet(out)["subtext"].is_between(0, 1).all()


@pytest.mark.parametrize(
    ("words", "code", "output"),
    [
        (("train", "subtext", "--data", "FILE"), 2, "--data needs --out"),
        (("train", "subtext"), 4, "undertone label release"),
        (("train", "subtext", "--data", "FILE", "-o", "OUT", "--profile", "p"), 2, "no profile 'p'"),
        (("train", "subtext", "--data", "ALL_TRAIN", "-o", "OUT"), 2, "of the split 'train'"),
        (("score", "subtext"), 4, "no recogniser is in force"),
        (("score", "subtext", "FILE", "--model", "nowhere"), 4, "nowhere"),
    ],
)
def test_what_is_refused(
    run: Run, tables: Path, labelled_file: Path, tmp_path: Path, words: tuple[str, ...], code: int, output: str
) -> None:
    """What cannot be done exits with its code and says why."""
    all_train = tmp_path / "train.csv"
    pl.read_csv(labelled_file).with_columns(split=pl.lit("train")).write_csv(all_train)
    result = run(
        *({"FILE": labelled_file, "ALL_TRAIN": all_train, "OUT": tmp_path / "o"}.get(word, word) for word in words)
    )
    assert (result.code, output in result.err) == (code, True), result.err
