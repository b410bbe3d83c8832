"""Commands that make and measure models: from a file to a folder, numbers as JSON, what is refused."""

from pathlib import Path

import pytest

from pipeline.tasks.impscore import scoring
from pipeline.training import registry
from tests.commands.conftest import Run

PAPER = ("--profile", "paper", "--epochs", 2)


def test_a_file_becomes_a_model(
    run: Run, home: Path, tiny_encoder: Path, pairs_file: Path, model_dir: Path, tmp_path: Path
) -> None:
    """A model of a file, with any number of its recipe; --force replaces it, and --json prints one short object.

    No table is made for it, and the same pairs give the same model.
    """
    words = ("train", "impscore", "--pairs", pairs_file, "--out", tmp_path / "m", *PAPER)
    numbers = ("features=8", "gamma_implicitness=0.7", "space=third")
    done = run(*words, "--seed", 7, *(word for number in numbers for word in ("--set", number)))
    done.check(0, "updates (optimizer steps): any ")
    assert done.out.splitlines()[-1] == str(tmp_path / "m")
    assert done.out.split()[:5] == ["split", "subset", "n", "implicit", "pragmatic"]
    model = registry.read(tmp_path / "m")
    recipe = model.config["heads"]["any"]["recipe"]
    assert (model.config["profile"], recipe["epochs"], recipe["seed"]) == ("paper", 2, 7)
    assert (recipe["features"], recipe["gamma_implicitness"], recipe["space"]) == (8, 0.7, "third")
    assert model.tensors()["any.transform_semantic"].shape == (8, 8)
    assert not (home / "catalog.db").exists()
    done = run(*words, "--force", "--json")
    facts = done.json
    assert (facts["model"], facts["model_id"]) == (str(tmp_path / "m"), registry.read(model_dir).model_id)
    assert facts["rows"][0]["implicit"] == facts["accuracy"]
    assert facts["rows"][0]["by"] in ("length", "punctuation", "words", "source")
    assert [row["epoch"] for row in facts["epochs"]] == [1, 2]
    assert 0 <= facts["epochs"][0]["implicitness_accuracy, validation"] <= 1
    assert len(done.out) < 3_000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--profile", "papr"), "no profile 'papr'; there are paper, official, undertone"),
        (("--profile", "paper", "--set", "epochs"), "--set epochs: expected name=value"),
        (("--profile", "paper", "--set", "epoch=3"), "a recipe has no field epoch"),
        (("--profile", "paper", "--set", "batch=many"), "batch should be a whole number"),
        (("--profile", "paper", "--tune", "some"), "tune should be one of none, adapter, full"),
        (("--sample",), "--sample, --promote and --day are about the tables"),
        (("--promote",), "--sample, --promote and --day are about the tables"),
        (("--day", "2026-11-19"), "--sample, --promote and --day are about the tables"),
    ],
)
def test_numbers_that_are_refused(
    run: Run, home: Path, tiny_encoder: Path, pairs_file: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    """What a recipe does not know, or is about the tables, exits with 2 and writes no model; a file needs a folder."""
    run("train", "impscore", "--pairs", pairs_file, "--out", tmp_path / "m", *words).check(2, said)
    assert not (tmp_path / "m").exists()
    assert not home.exists()
    run("train", "impscore", "--pairs", pairs_file).check(2, "give the folder of the model: --out DIR")


@pytest.mark.parametrize(
    "kind",
    ["abstractness", "commenter --data f", "count-lm f", "quality --data f", "reader --items f", "subtext --data f"],
)
def test_a_model_of_a_folder_is_not_promoted(run: Run, home: Path, kind: str) -> None:
    """--promote together with --out is refused for every kind before anything is read."""
    run("train", *kind.split(), "--out", "m", "--promote").check(2, "--promote is about the tables")


def test_the_table_becomes_a_model(run: Run, tables: Path, tiny_encoder: Path) -> None:
    """Without --pairs the table is trained on; the sample's pairs alone give a model that days are not scored by."""
    done = run("train", "impscore", "--sample", "--profile", "paper", "--epochs", 1, "--day", "2026-11-19").check(1)
    model_id = done.out.splitlines()[-1]
    assert (tables / "models" / model_id / "model.safetensors").is_file()
    assert scoring.choose_model(None, "2026-11-19").model_id != model_id
    done = run("train", "impscore", "--promote", "--profile", "paper", "--epochs", 1, "--day", "2026-11-19", "--json")
    assert done.json["model_id"] == scoring.choose_model(None, "2026-11-19").model_id == model_id


def test_a_model_is_measured(run: Run, pairs_file: Path, model_dir: Path) -> None:
    """`evaluate impscore` gives both accuracies on top, then by source, the best baseline beside, and all numbers."""
    told = run("evaluate", "impscore", "--pairs", pairs_file, "--model", model_dir, "--json").check().json
    assert told["accuracy"] == told["implicitness_accuracy"]
    assert 0 <= told["pragmatics_accuracy"] <= 1
    assert {row["subset"] for row in told["rows"]} == {"all", "own"}
    assert told["rows"][0]["implicit"] == told["accuracy"]
    assert told["rows"][0]["by"] in ("length", "punctuation", "words", "source")
    assert {"all", "own", "matched:all"} <= {row["subset"] for row in told["numbers"]}
    assert any(row["metric"] == "length_baseline" for row in told["numbers"])
    shown = run("evaluate", "impscore", "--pairs", pairs_file, "--model", model_dir).out
    assert shown.split("\n")[0].split() == ["split", "subset", "n", "implicit", "pragmatic", "baseline", "by"]
    assert run("evaluate", "impscore", "--pairs", pairs_file, "--json").json["accuracy"] > 0.5  # the shipped model


def test_a_bad_model_is_not_promoted(run: Run, tables: Path, tiny_encoder: Path) -> None:
    """Audit C3: worse than words and the shipped model on the same held-out rows, it ends with 1, and says why."""
    numbers = ("--epochs", 1, "--set", "learning_rate=1e6", "--day", "2026-11-19")
    done = run("train", "impscore", "--sample", *PAPER[:2], *numbers)
    assert (done.code, scoring.choose_model().is_shipped) == (1, True)
    assert "is not promoted: worse than " in done.err
    model_id = done.out.splitlines()[-1]
    promotion = run("models", "show", model_id[:12], "--json").json["promotion"]
    assert {row["rival"] for row in promotion["comparisons"] if row["high"] < 0} >= {"words", "model in force"}
    shown = run("models", "show", model_id).out
    assert "implicitness_accuracy, validation" in shown.partition("Epochs of the training")[2]
    assert [model_id[:12], "2026-11-19", "implicitness_accuracy"] == run("models", "list").out.split()[-4:-1]
