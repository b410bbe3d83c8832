"""Data sets to sentences, answers to completions, both to pairs: nothing lost, and a second time changes nothing."""

import json
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import sample, warehouse
from pipeline.errors import BadInput
from pipeline.tables import PROVENANCE
from pipeline.tasks.impscore import pairs

DAY = sample.DAY

STAGE_1 = (
    "post\tclass\nThey are at it again.\timplicit_hate\nGo home, all of you!\texplicit_hate\nNice day.\tnot_hate\n"
)
STAGE_3 = (
    "post\ttarget\timplied_statement\n"
    "They are at it again.\tneighbours\tThe neighbours are loud.\n"
    "They are at it again.\tneighbours\tThe neighbours are a nuisance.\n"
    "Guess who is late.\tcolleagues\tThe colleagues are never on time.\n"
    "What a surprise.\tcolleagues\t\n"
)


def latent_hatred(folder: Path) -> str:
    """A folder in the layout of Latent Hatred, with sentences of our own: three pairs, one post unexplained."""
    folder.mkdir(parents=True)
    (folder / "implicit_hate_v1_stg1_posts.tsv").write_text(STAGE_1, encoding="utf-8")
    (folder / "implicit_hate_v1_stg3_posts.tsv").write_text(STAGE_3, encoding="utf-8")
    return str(folder)


def cassette(path: Path, answers: list[tuple[str, str]], source: str = "own") -> str:
    """The path of a cassette with these (sentence, answer)."""
    lines = [
        json.dumps({"source": source, "model": "someone", "prompt": "explicit_en", "input": said, "response": answer})
        for said, answer in answers
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def table(name: str) -> pl.DataFrame:
    """A table in a fixed order, without what a step took."""
    rows = warehouse.scan(name).collect()
    rows = rows.drop(PROVENANCE[1:]) if name == "runs" else rows
    return rows.sort([c for c in rows.columns if rows[c].dtype != pl.List(pl.String)])


def run_of(source: str, step: str) -> tuple[int, int, int]:
    """What a step read, kept and dropped of a source."""
    mine = (pl.col("source") == source) & (pl.col("step") == step)
    return warehouse.scan("runs", mine).select("read_count", "kept_count", "dropped_count").collect().row(0)


def test_a_data_set_is_brought_twice_alike(tables: object, tmp_path: Path) -> None:
    """Brought and built a second time, a data set leaves every table as it was."""
    folder = latent_hatred(tmp_path / "lh")
    seen = []
    for _ in range(2):
        assert pairs.bring("latent_hatred", folder, DAY) == 5
        assert pairs.ready() == ["latent_hatred"]
        assert pairs.build("latent_hatred", DAY) == 3
        seen.append([table(name) for name in ("sentences", "pairs", "dropped", "runs")])
    for one, other in zip(*seen, strict=True):
        assert_frame_equal(one, other)
    labels = seen[0][0].group_by("label").len().sort("label").rows()
    assert labels == [("explicit", 1), ("implicit", 3), ("neither", 1)]
    # read 7 rows: stage 1 repeats a post that stage 3 explains, and one post of stage 3 has no explanation
    assert run_of("latent_hatred", "sentences") == (7, 5, 2)
    assert run_of("latent_hatred", "pairs") == (3, 3, 0)


def test_dropped_and_kept_are_what_was_read(tables: object, tmp_path: Path) -> None:
    """Each row that gives no sentence or no pair is in `dropped` with its reason, and the runs count them."""
    pairs.bring("latent_hatred", latent_hatred(tmp_path / "lh"), DAY)
    pairs.play(DAY, cassette(tmp_path / "a.jsonl", [("Brr.", "I am cold."), ("Hm.", "Hm.")], "latent_hatred"))
    pairs.build("latent_hatred", DAY, run_id="r1")
    reasons = table("dropped").select("step", "reason").sort("step", "reason").rows()
    assert reasons == [("pairs", "echo"), ("sentences", "explained_in_stage_3"), ("sentences", "no_explanation")]
    for step in ("sentences", "pairs"):
        read, kept, dropped = run_of("latent_hatred", step)
        assert read == kept + dropped
        assert dropped == table("dropped").filter(pl.col("step") == step).height
    assert table("runs")["run_id"].to_list() == ["r1", "cli"]


def test_bringing_again_replaces_the_source(tables: object, tmp_path: Path) -> None:
    """A source is what its file says now; other sources stay, and so do their dropped rows."""
    pairs.bring("latent_hatred", latent_hatred(tmp_path / "lh"), DAY)
    own = tmp_path / "own.csv"
    for text, count in (("text,explicit\nBrr.,I am cold.\nTick tock.,Hurry up.\n", 2), ("text\nBrr.\n", 1)):
        own.write_text(text, encoding="utf-8")
        assert pairs.bring("mine", str(own), DAY, own=True) == count
    assert warehouse.scan("sentences").collect().group_by("source").len().sort("source").rows() == [
        ("latent_hatred", 5),
        ("mine", 1),
    ]
    assert table("dropped")["source"].unique().to_list() == ["latent_hatred"]


def test_sentences_become_pairs(tables: object, tmp_path: Path) -> None:
    """Sentences of one's own with their explicit form give pairs; a negative is another pair's explicit sentence."""
    own = tmp_path / "own.csv"
    own.write_text("text,explicit\nBrr.,I am cold.\nTick tock.,Hurry up.\nOh well.,\n", encoding="utf-8")
    pairs.bring("mine", str(own), DAY, own=True)
    assert pairs.build("mine", DAY) == 2
    rows = warehouse.scan("pairs").sort("implicit").select("implicit", "explicit", "negative", "completion_id")
    assert rows.collect().rows() == [
        ("Brr.", "I am cold.", "Hurry up.", None),
        ("Tick tock.", "Hurry up.", "I am cold.", None),
    ]


@pytest.mark.parametrize(("source", "path"), [("latent_hatred", "nowhere"), ("no_such_source", ".")])
def test_what_cannot_be_read_changes_nothing(tables: object, source: str, path: str) -> None:
    """An absent file or an unknown data set is BadInput, and no table is written."""
    with pytest.raises(BadInput):
        pairs.bring(source, path, DAY)
    assert all(warehouse.snapshot(name) is None for name in ("sentences", "dropped", "runs"))


def test_folders_of_data_sets(tmp_path: Path) -> None:
    """Below a folder each data set lies under its name; other folders are none of them."""
    latent_hatred(tmp_path / "sets" / "latent_hatred")
    (tmp_path / "sets" / "notes").mkdir()
    found = pairs.published(str(tmp_path / "sets"))
    assert found == {"latent_hatred": str(tmp_path / "sets" / "latent_hatred")}
    with pytest.raises(BadInput, match="there is no such folder"):
        pairs.published(str(tmp_path / "none"))


def test_sample_is_played_and_paired_twice_alike(tables: object) -> None:
    """The sample gives two sources; played and paired a second time, the tables are the same."""
    seen = []
    for _ in range(2):
        assert pairs.play(DAY) == pairs.ready() == ["sample_en", "sample_zh"]
        counts = [pairs.build(source, DAY) for source in ("sample_en", "sample_zh")]
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
    assert pairs.play(DAY, lines) == ["own"]
    assert pairs.build("own", DAY, run_id="r1") == 3
    reasons = warehouse.scan("dropped").select("step", "reason").collect().sort("reason").rows()
    assert reasons == [("pairs", "echo"), ("pairs", "empty"), ("pairs", "refusal"), ("pairs", "same_pair")]
    assert run_of("own", "pairs") == (7, 3, 4)


def test_source_with_one_text_has_no_pairs(tables: object, tmp_path: Path) -> None:
    """A source that always says the same is dropped whole as `no_negative` (IMP-19)."""
    path = cassette(tmp_path / "answers.jsonl", [("Nice hat.", "I am cold."), ("Nice coat.", "I am cold.")])
    pairs.play(DAY, path)
    assert pairs.build("own", DAY) == 0
    assert warehouse.scan("dropped").collect()["reason"].to_list() == ["no_negative"] * 2


def test_answers_paid_for_are_kept(tables: Path, tmp_path: Path) -> None:
    """A second cassette of a source adds to the first, the same call counts once, and other sources are left alone."""
    pairs.play(DAY)
    for n in (0, 1, 0):
        pairs.play(DAY, cassette(tmp_path / f"{n}.jsonl", [(f"Is it {n} already?", f"Leave {n}.")]))
    rows = table("completions")
    assert rows.filter(pl.col("source") == "own")["response"].to_list() == ["Leave 0.", "Leave 1."]
    assert rows["source"].unique().sort().to_list() == ["own", "sample_en", "sample_zh"]


def test_the_sample_gives_way(tables: Path, tmp_path: Path) -> None:
    """The sample's pairs are left out of training as soon as there are others."""
    pairs.play(DAY)
    for source in pairs.ready():
        pairs.build(source, DAY)
    assert set(pairs.every()["source"]) == {"sample_en", "sample_zh"}
    pairs.play(DAY, cassette(tmp_path / "a.jsonl", [("Brr.", "I am cold."), ("Tick tock.", "Hurry up.")]))
    pairs.build("own", DAY)
    assert pairs.every()["source"].to_list() == ["own", "own"]


@pytest.mark.parametrize("split", ["paper", "official", "grouped"])
def test_splits_of_a_source(tables: Path, split: str) -> None:
    """Pairs are split as asked, a different seed splits otherwise, and the run says how it was done."""
    pairs.play(DAY)
    pairs.build("sample_en", DAY, split)
    one = table("pairs")
    held = {"paper": 0.2, "official": 0.1, "grouped": 0.2}[split] * one.height
    assert one.filter(pl.col("split") != "train").height == pytest.approx(held, abs=3)
    assert json.loads(table("runs")["config"][0]) == {"split": split, "seed": 42}
    pairs.build("sample_en", DAY, split, seed=7)
    assert table("pairs")["pair_id"].to_list() == one["pair_id"].to_list()
    assert table("pairs")["split"].to_list() != one["split"].to_list()


def test_broken_cassette_changes_nothing(tables: object, tmp_path: Path) -> None:
    """A cassette with one broken line is refused before any source is written."""
    path = tmp_path / "answers.jsonl"
    cassette(path, [("Brr.", "I am cold.")])
    path.write_text(path.read_text(encoding="utf-8") + "{\n", encoding="utf-8")
    with pytest.raises(BadInput, match="line 2: broken JSON"):
        pairs.play(DAY, str(path))
    assert warehouse.snapshot("completions") is None


def test_days_are_checked_first(tables: object) -> None:
    """A day written otherwise is refused before anything is read."""
    with pytest.raises(BadInput, match="not a day"):
        pairs.play("yesterday")
