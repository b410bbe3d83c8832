"""Commands about the recogniser: train, evaluate, score."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

Run = Callable[..., Any]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Labelled comments."""
    path = tmp_path / "own.csv"
    rows = [(f"{'真准时啊' if n % 2 else '三点开会'}{n}", f"话题{n}", str(n % 2)) for n in range(20)]
    pl.DataFrame(rows, schema=["text", "context", "label"], orient="row").write_csv(path)
    return path


def test_train_evaluate_score(run: Run, own: Path, tmp_path: Path) -> None:
    """A model of a file has its numbers by JSON, is measured on a file, and scores one."""
    model, small = tmp_path / "m", ("--set", "epochs=1", "--set", "members=1", "--set", "hidden=8", "--set", "ngrams=1")
    done = run("train", "subtext", "--data", own, "-o", model, *small, "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert {row["split"] for row in told["rows"]} == {"train", "validation", "test"}
    assert {"macro_f1", "svm_baseline", "macro_f1_without_context"} <= set(told["rows"][-1])
    assert json.loads(run("evaluate", "subtext", "--data", own, "--model", model, "--json").out)["rows"] == told["rows"]
    out = tmp_path / "s.parquet"
    assert run("score", "subtext", own, "--model", model, "-o", out).code == 0
    assert pl.read_parquet(out)["subtext"].is_between(0, 1).all()


@pytest.mark.parametrize(
    ("words", "code", "told"),
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
    run: Run, tables: Path, own: Path, tmp_path: Path, words: tuple[str, ...], code: int, told: str
) -> None:
    """What cannot be done exits with its code and says why."""
    all_train = tmp_path / "train.csv"
    pl.read_csv(own).with_columns(split=pl.lit("train")).write_csv(all_train)
    done = run(*({"FILE": own, "ALL_TRAIN": all_train, "OUT": tmp_path / "o"}.get(word, word) for word in words))
    assert (done.code, told in done.err) == (code, True), done.err
