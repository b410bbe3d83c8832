"""Commands about the recogniser and about recovering meanings: train, evaluate, score, recover."""

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
    output = run("train", "subtext", "--data", labelled_file, "-o", model, *small, "--json").check().json
    assert {row["split"] for row in output["rows"]} == {"train", "validation", "test"}
    assert {"macro_f1", "svm_baseline", "macro_f1_without_context"} <= set(output["rows"][-1])
    assert (
        run("evaluate", "subtext", "--data", labelled_file, "--model", model, "--json").json["rows"] == output["rows"]
    )
    out, comments = tmp_path / "s.parquet", pl.read_csv(labelled_file)
    pl.concat([comments, comments.clear(1)]).write_csv(labelled_file)
    run("score", "subtext", labelled_file, "--model", model, "-o", out).check(0, "score: left out 1 as no_text")
    scored = pl.read_parquet(out).head(20)
    assert scored["subtext"].is_between(0, 1).all()
    assert scored.columns == [*comments.columns, "subtext", "signature"]


@pytest.mark.parametrize(
    ("words", "code", "output"),
    [
        (("train", "subtext", "--data", "FILE"), 2, "--data needs --out"),
        (("train", "subtext"), 4, "undertone label release"),
        (("train", "subtext", "--data", "FILE", "-o", "OUT", "--profile", "p"), 2, "no profile 'p'"),
        (
            ("train", "subtext", "--data", "ALL_TRAIN", "-o", "OUT"),
            2,
            "all 20 rows are of the split 'train' (20 copies of earlier rows were left out), so",
        ),
        (("score", "subtext"), 4, "no recogniser is in force"),
        (("score", "subtext", "FILE", "--model", "nowhere"), 4, "nowhere"),
    ],
)
def test_what_is_refused(
    run: Run, tables: Path, labelled_file: Path, tmp_path: Path, words: tuple[str, ...], code: int, output: str
) -> None:
    """What cannot be done exits with its code and says why."""
    all_train = tmp_path / "train.csv"
    rows = [pl.read_csv(labelled_file).with_columns(split=pl.lit(split)) for split in ("train", "test")]
    pl.concat(rows).write_csv(all_train)
    run(
        *({"FILE": labelled_file, "ALL_TRAIN": all_train, "OUT": tmp_path / "o"}.get(word, word) for word in words)
    ).check(code, output)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Comments with their meanings."""
    path = tmp_path / "notes.csv"
    rows = [(f"真准时{n}", "他迟到了", f"他来晚了{n}") for n in range(10)]
    pl.DataFrame(rows, schema=["text", "context", "meaning"], orient="row").write_csv(path)
    return path


def test_a_fitted_model_recovers(run: Run, notes: Path, tmp_path: Path) -> None:
    """`train recovery` fits a model, `recover` writes meanings by it, `evaluate recovery` measures them."""
    model = tmp_path / "model"
    result = run("train", "recovery", notes, "-o", model, "--epochs", "1", "--json").check()
    assert result.json["epoch"] == 1
    out, comments = tmp_path / "told.csv", tmp_path / "comments.csv"
    pl.read_csv(notes).rename({"meaning": "note", "text": "comment"}).write_csv(comments)
    assert run("recover", comments, "--model", model, "-o", out).code == 0
    assert pl.read_csv(out).columns == ["comment", "context", "note", "plain", "meaning", "reason"]
    assert pl.read_csv(out)["note"].to_list() == pl.read_csv(notes)["meaning"].to_list()
    run("recover", notes, "--model", model, "-o", out).check(2, "column 'meaning': the scores have a column")
    output = run("evaluate", "recovery", "--references", notes, "--model", model, "--json").json
    assert 0 <= output["rouge_l"] <= 1
    assert [row["by"] for row in output["rows"]] == ["answers", "text", "context", "other_meaning"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("recover", "FILE"), 2, "give either --llm, a language model to ask, or --model"),
        (("recover", "FILE", "--llm", "m", "--model", "x"), 2, "give either --llm"),
        (("recover", "FILE", "--llm", "m"), 4, "UNDERTONE_LLM_URL"),
        (("recover", "nowhere.csv", "--llm", "m"), 2, "nowhere.csv"),
        (("evaluate", "recovery"), 2, "give --references or --choices"),
        (("evaluate", "recovery", "--choices", "FILE", "--model", "x"), 2, "chooses none"),
    ],
)
def test_recovery_that_is_refused(
    run: Run, home: Path, notes: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    """What cannot be done exits with its code and says why in one line."""
    run(*(notes if word == "FILE" else word for word in words)).check(code, message)
