"""ImpScore as tasks: completions, pairs, the model in force."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import sample, settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.tasks import impscore

Enlist = Callable[[str, int], str]

DAY = sample.DAY


def cassette(path: Path, answers: list[tuple[str, str]], source: str = "own") -> str:
    """The path of a cassette with these (sentence, answer)."""
    lines = [
        json.dumps({"source": source, "model": "someone", "prompt": "explicit_en", "input": said, "response": answer})
        for said, answer in answers
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def table(name: str) -> pl.DataFrame:
    """A table in a fixed order."""
    rows = warehouse.scan(name).collect()
    return rows.sort([c for c in rows.columns if rows[c].dtype != pl.List(pl.String)])


def test_sample_is_played_and_paired_twice_alike(tables: object) -> None:
    """The sample gives two sources; played and paired a second time, the tables are the same."""
    seen = []
    for _ in range(2):
        assert impscore.play(DAY) == ["sample_en", "sample_zh"]
        counts = [impscore.build_pairs(source, DAY) for source in ("sample_en", "sample_zh")]
        seen.append([table(name) for name in ("completions", "pairs", "dropped", "runs")])
    assert sum(counts) == seen[0][1].height
    for one, other in zip(*seen, strict=True):
        assert_frame_equal(one, other)


def test_pairs_add_up_with_the_dropped(tables: object, tmp_path: Path) -> None:
    """Every completion is a pair or a dropped row with its reason, and the run's counts say so."""
    answers = [
        ("Nice hat.", "I dislike the hat."), ("Cold in here.", "Please close the window."),
        ("Is it five already?", "Explicit: I want to go home."), ("Nice weather.", "I cannot comply."),
        ("Bless him.", "Bless him."), ("Well done.", ""), ("Nice hat.", 'Explicit: "I dislike the hat."'),
    ]  # fmt: skip
    path = tmp_path / "answers.jsonl"
    lines = cassette(path, answers)
    text = path.read_text(encoding="utf-8").splitlines()
    text[-1] = text[-1].replace('"someone"', '"another"')  # the same pair by another model: another call
    path.write_text("\n".join(text), encoding="utf-8")
    assert impscore.play(DAY, lines) == ["own"]
    assert impscore.build_pairs("own", DAY, run_id="r1") == 3
    reasons = warehouse.scan("dropped").select("step", "reason").collect().sort("reason").rows()
    assert reasons == [("pairs", "echo"), ("pairs", "empty"), ("pairs", "refusal"), ("pairs", "same_pair")]
    run = warehouse.scan("runs").collect().row(0, named=True)
    assert (run["step"], run["read_count"], run["kept_count"], run["dropped_count"]) == ("pairs", 7, 3, 4)


def test_source_with_one_text_has_no_pairs(tables: object, tmp_path: Path) -> None:
    """A source that always says the same is dropped whole as `no_negative` (IMP-19)."""
    path = cassette(tmp_path / "answers.jsonl", [("Nice hat.", "I am cold."), ("Nice coat.", "I am cold.")])
    impscore.play(DAY, path)
    assert impscore.build_pairs("own", DAY) == 0
    assert warehouse.scan("dropped").collect()["reason"].to_list() == ["no_negative"] * 2


def test_another_cassette_replaces_the_source(tables: object, tmp_path: Path) -> None:
    """A cassette is all of what its sources answered; other sources are left alone."""
    impscore.play(DAY)
    for answer in ("I am cold.", "I am freezing."):
        impscore.play(DAY, cassette(tmp_path / "answers.jsonl", [("Brr.", answer)]))
    rows = table("completions")
    assert rows.filter(pl.col("source") == "own")["response"].to_list() == ["I am freezing."]
    assert rows["source"].unique().sort().to_list() == ["own", "sample_en", "sample_zh"]


def test_broken_cassette_changes_nothing(tables: object, tmp_path: Path) -> None:
    """A cassette with one broken line is refused before any source is written."""
    path = tmp_path / "answers.jsonl"
    cassette(path, [("Brr.", "I am cold.")])
    path.write_text(path.read_text(encoding="utf-8") + "{\n", encoding="utf-8")
    with pytest.raises(BadInput, match="line 2: broken JSON"):
        impscore.play(DAY, str(path))
    assert warehouse.snapshot("completions") is None


def test_days_are_checked_first(tables: object) -> None:
    """A day written otherwise is refused by each task, before anything is read or trained."""
    for task in (impscore.play, impscore.train):
        with pytest.raises(BadInput, match="not a day"):
            task("yesterday")


def test_training_without_pairs(tables: object) -> None:
    """Without pairs training is Missing and says how to bring completions in."""
    with pytest.raises(Missing, match=r"the table pairs is empty; .*`undertone train impscore --sample`"):
        impscore.train(DAY)


def test_training_again_gives_the_same_model(imported: object) -> None:
    """The same pairs and numbers give the same id, one row of `models`, the same evaluations (and no second folder)."""
    known = [table(name) for name in ("models", "evaluations")]
    model_id = impscore.train(DAY, epochs=5)
    assert known[0]["model_id"].to_list() == [model_id]
    for name, before in zip(("models", "evaluations"), known, strict=True):
        assert_frame_equal(table(name), before)
    assert [p.name for p in settings.models().iterdir()] == [model_id]


def test_model_row_says_what_it_was_made_of(imported: object) -> None:
    """A model's row names recipe, encoder, data and who answered: here the sample, so the report can warn."""
    row = table("models").row(0, named=True)
    assert row["completion_models"] == ["undertone-sample"]
    assert row["kind"] == "impscore"
    assert json.loads(row["config"])["epochs"] == 5
    assert len(row["data_hash"]) == len(row["encoder_revision"]) == 64
    numbers = table("evaluations")
    assert numbers["model_id"].unique().to_list() == [row["model_id"]]
    assert numbers.filter(pl.col("epoch") > 0).height == 5
    final = numbers.filter((pl.col("metric") == "implicitness_accuracy") & (pl.col("epoch") == 0))
    assert final["baseline"].is_not_null().all()


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        ("2026-11-01", "ten"),  # older than every model: the oldest
        ("2026-11-10", "ten"),
        ("2026-11-14", "ten"),
        ("2026-11-15", "fifteen"),
        ("2026-11-30", "fifteen"),
        (None, "fifteen"),
    ],
)
def test_model_for_a_day(tables: object, enlist: Enlist, day: str | None, expected: str) -> None:
    """A day is scored by the newest model not younger than it, else by the oldest; no day means the newest."""
    known = {"fifteen": enlist("2026-11-15", 1), "ten": enlist("2026-11-10", 2)}
    assert impscore.model_for(day) == known[expected]


def test_no_model_for_a_day(tables: object) -> None:
    """Without any model the answer is Missing and says how to train one."""
    with pytest.raises(Missing, match="there is no trained model"):
        impscore.model_for(DAY)


def test_two_trainings_of_a_day(tables: Path) -> None:
    """Both models keep their rows, the last one trained is promoted, and training the first again promotes it again."""
    for source in impscore.play(DAY):
        impscore.build_pairs(source, DAY)
    first, second = (impscore.train(DAY, epochs=1, seed=seed) for seed in (1, 2))
    assert first != second
    assert warehouse.scan("models").collect().height == 2
    assert impscore.model_for(DAY) == second
    assert impscore.train(DAY, epochs=1, seed=1) == first == impscore.model_for(DAY)


def test_answers_paid_for_are_kept(tables: Path, tmp_path: Path) -> None:
    """A second cassette of a source adds to the first; and the sample's pairs are left out once there are others."""
    for n in range(2):
        line = {
            "source": "mine",
            "model": "m",
            "prompt": "explicit_en",
            "input": f"Is it {n} already?",
            "response": f"Leave {n}.",
        }
        path = tmp_path / f"{n}.jsonl"
        path.write_text(json.dumps(line) + "\n", encoding="utf-8")
        impscore.play(DAY, str(path))
    assert warehouse.scan("completions").collect().height == 2
    impscore.play(DAY)
    for source in impscore.answered():
        impscore.build_pairs(source, DAY)
    impscore.train(DAY, epochs=1)
    assert warehouse.scan("models").collect()["completion_models"].to_list() == [["m"]]
