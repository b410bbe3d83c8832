"""The commands about abstractness, run as scripts run them."""

import json
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from pipeline.tasks.recam import abstractness, targets
from pipeline.tasks.record import model_registry
from tests.commands.conftest import Run

WORDS = [f"w{i}" for i in range(60)]
NUMBERS = ("epochs=40", "learning_rate=0.01", "hidden=[16,8]", "members=1", "batch=8")
SMALL = [word for number in NUMBERS for word in ("--set", number)]


def write_vectors(path: Path, words: list[str], rows: np.ndarray) -> None:
    """Write vectors in GloVe's format."""
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, rows, strict=True)))


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    """Vectors whose first number is how concrete a word is."""
    rows = np.random.default_rng(1).normal(size=(60, 4)).astype(np.float32)
    rows[:, 0] = np.linspace(-2, 2, 60)
    path = tmp_path / "vectors.txt"
    write_vectors(path, WORDS, rows)
    return path


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    """MRC's layout, on its own scale."""
    path = tmp_path / "drawn.csv"
    lines = [f"{word},{158 + 8 * i}" for i, word in enumerate([*WORDS, "strange"])]
    path.write_text("\n".join(["WORD,CONC", *lines]) + "\n", encoding="utf-8")
    return path


def test_train_and_score(run: Run, vectors: Path, ratings: Path, tmp_path: Path) -> None:
    """A scorer is measured on splits, written, and tells concrete words from abstract ones, signed by its ratings."""
    out = tmp_path / "m"
    command = ("train", "abstractness", "--ratings", ratings, "--vectors", vectors, "-o", out)
    facts = run(*command, "--splits", 3, *SMALL, "--json").check().json
    assert facts["word_count"] == 61
    assert [split["train_count"] + split["test_count"] for split in facts["splits"]] == [60] * 3
    assert json.loads((out / "config.json").read_text(encoding="utf-8"))["no_vector"] == 1
    result = run("score", "abstractness", "w1", "W58", "strange", "-m", out, "--vectors", vectors, "--json")
    low, high, unknown = (json.loads(line) for line in result.out.splitlines())
    assert low["concreteness"] < 0.35 < high["concreteness"]
    assert (low["is_imperceptible"], high["is_imperceptible"]) == (True, False)
    assert unknown["concreteness"] is unknown["is_imperceptible"] is None
    assert (low["reason"], unknown["reason"]) == (None, "no_vector")
    assert "drawn.csv@" in low["signature"]
    rules = targets.RULES._replace(scorer=str(out), vectors=str(vectors))
    assert targets._score_concreteness(["w1", "strange"], rules) == {"w1": pytest.approx(low["concreteness"], abs=1e-6)}


def test_the_default_scorer_is_a_file_of_the_home(
    run: Run, vectors: Path, ratings: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can be trained again, as after an erasure, so it is in a scratch folder and not among the resources."""
    words = abstractness.read_ratings(ratings)
    monkeypatch.setattr(abstractness, "read_ratings", lambda: words)
    monkeypatch.setattr(abstractness, "train_file", partial(abstractness.train_file, changes={"epochs": 1}))
    for _ in range(2):
        assert run("score", "abstractness", "w1", "--vectors", vectors).code == 0
        (folder,) = (home / "scratch" / "abstractness").iterdir()
        for path in folder.iterdir():
            path.unlink()
    assert not (home / "resources").exists()


def test_a_scorer_of_the_tables_is_compared(run: Run, tables: Path, tmp_path: Path) -> None:
    """It learns from nine words in ten, and the rest compare it with guesses and with the scorer in force."""
    words, numbers = [f"{'a' * (n % 7)}{n}" for n in range(300)], np.linspace(-2, 2, 300)
    rows = np.random.default_rng(1).normal(size=(300, 4)).astype(np.float32)
    rows[:, 0] = numbers
    vectors, ratings = tmp_path / "v.txt", tmp_path / "r.csv"
    write_vectors(vectors, words, rows)
    lines = [f"{word},{400 + 100 * number:.2f}" for word, number in zip(words, numbers, strict=True)]
    ratings.write_text("\n".join(["WORD,CONC", *lines]), encoding="utf-8")
    command = ("train", "abstractness", "--ratings", ratings, "--vectors", vectors, "--day", "2026-11-19")
    assert run(*command, "--promote").code == 0
    first = model_registry.list_models()["model_id"].item()
    assert run("models", "show", first, "--json").json["promotion"]["is_forced"]
    rows[:, 0] = 0  # of no use
    write_vectors(vectors, words, rows)
    run(*command).check(1, "is not promoted: worse than")
    second = next(row for row in model_registry.list_models()["model_id"] if row != first)
    promotion = model_registry.read_model(second)["promotion"]
    assert {(row["metric"], row["rival"]) for row in promotion["comparisons"]} == {
        *product(("pearson", "negative_squared_error"), ("mean", "length"))
    }
    assert "trained on word vectors; give the same" in promotion["reason"]  # the one in force, on others


def test_unknown_words_are_marked(run: Run, ratings: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    """Words that the scorer does not know have a reason; the reader keeps, empties or drops them (audit C13)."""
    out = tmp_path / "m"
    assert run("train", "abstractness", "--ratings", ratings, "-o", out, *SMALL).code == 0
    for choice, count in (("keep", 2), ("empty", 2), ("drop", 1)):
        result = run("score", "abstractness", "door", "zzzqq", "-m", out, "--unknown", choice, "--json")
        rows = [row for row in map(json.loads, result.out.splitlines()) if "word" in row]
        assert [row["reason"] for row in rows] == [None, "unknown_word"][:count]
        assert [row["concreteness"] is None for row in rows] == [False, choice == "empty"][:count]
        assert ("left out 1 as unknown_word" in result.err) == (choice == "drop")
    assert [*targets._score_concreteness(["door", "zzzqq"], targets.RULES._replace(scorer=str(out)))] == ["door"]
    rows = run("score", "abstractness", "W59", "zzzqq", "--scorer", ratings, "--json").rows
    assert [(row["concreteness"], row["reason"]) for row in rows] == [
        (pytest.approx(59 / 60), None),
        (None, "not_rated"),
    ]
    run("score", "abstractness", "door", "-m", out, "--unknown", "some").check(2, "there are keep, empty, drop")
