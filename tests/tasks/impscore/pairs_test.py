"""Data sets to sentences, answers to completions, both to pairs: nothing lost, and a second time changes nothing."""

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import sample, warehouse
from pipeline.errors import BadInput
from pipeline.tables import PROVENANCE
from pipeline.tasks.impscore import pairs
from tests.examples.sources.writing import jsonl, text

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


def write_latent_hatred(folder: Path) -> str:
    """Write a folder in the layout of Latent Hatred, with sentences of our own: three pairs, one post unexplained."""
    text(folder / "implicit_hate_v1_stg1_posts.tsv", STAGE_1)
    text(folder / "implicit_hate_v1_stg3_posts.tsv", STAGE_3)
    return str(folder)


def write_cassette(path: Path, answers: list[tuple[str, str]]) -> str:
    """Write a cassette with these (sentence, answer); return its path."""
    fields = {"source": "own", "model": "someone", "prompt": "explicit_en"}
    return str(jsonl(path, *({**fields, "input": sentence, "response": answer} for sentence, answer in answers)))


def load_table(name: str) -> pl.DataFrame:
    """Load a table in a fixed order, without what a step took."""
    rows = warehouse.scan(name).collect()
    rows = rows.drop(PROVENANCE[1:]) if name == "runs" else rows
    return rows.sort([c for c in rows.columns if rows[c].dtype != pl.List(pl.String)])


def load_counts(source: str, step: str) -> tuple[int, int, int]:
    """Load how many rows of a source a step read, kept and dropped."""
    is_step = (pl.col("source") == source) & (pl.col("step") == step)
    return warehouse.scan("runs", is_step).select("read_count", "kept_count", "dropped_count").collect().row(0)


def test_a_data_set_is_imported_twice_alike(tables: object, tmp_path: Path) -> None:
    """Importing and building a data set twice leaves every table as it was."""
    folder = write_latent_hatred(tmp_path / "lh")
    table_lists = []
    for _ in range(2):
        assert pairs.import_sentences("latent_hatred", folder, DAY) == 5
        assert pairs.list_sources() == ["latent_hatred"]
        assert pairs.build("latent_hatred", DAY) == 3
        table_lists.append([load_table(name) for name in ("sentences", "pairs", "dropped", "runs")])
    for rows, rows_again in zip(*table_lists, strict=True):
        assert_frame_equal(rows, rows_again)
    labels = table_lists[0][0].group_by("label").len().sort("label").rows()
    assert labels == [("explicit", 1), ("implicit", 3), ("neither", 1)]
    assert load_table("dropped")["reason"].sort().to_list() == ["explained_in_stage_3", "no_explanation"]
    # read 7 rows: stage 1 repeats a post that stage 3 explains, and one post of stage 3 has no explanation
    assert load_counts("latent_hatred", "sentences") == (7, 5, 2)
    assert load_counts("latent_hatred", "pairs") == (3, 3, 0)


def test_importing_again_replaces_the_source(tables: object, tmp_path: Path) -> None:
    """The user's sentences with an explicit form give pairs; a negative is another pair's explicit sentence.

    Importing again replaces a source; other sources stay, and so do their dropped rows.
    """
    pairs.import_sentences("latent_hatred", write_latent_hatred(tmp_path / "lh"), DAY)
    path = text(tmp_path / "own.csv", "text,explicit\nBrr.,I am cold.\nTick tock.,Hurry up.\nOh well.,\n")
    assert pairs.import_sentences("mine", str(path), DAY, is_own=True) == 3
    assert pairs.build("mine", DAY) == 2
    rows = warehouse.scan("pairs").sort("implicit").select("implicit", "explicit", "negative", "completion_id")
    assert rows.collect().rows() == [
        ("Brr.", "I am cold.", "Hurry up.", None),
        ("Tick tock.", "Hurry up.", "I am cold.", None),
    ]
    assert pairs.import_sentences("mine", str(text(path, "text\nBrr.\n")), DAY, is_own=True) == 1
    counts = warehouse.scan("sentences").collect().group_by("source").len()
    assert sorted(counts.rows()) == [("latent_hatred", 5), ("mine", 1)]
    assert load_table("dropped")["source"].unique().to_list() == ["latent_hatred"]


def test_folders_of_data_sets(tmp_path: Path) -> None:
    """Below a folder each data set lies under its name; other folders are none of them."""
    write_latent_hatred(tmp_path / "sets" / "latent_hatred")
    (tmp_path / "sets" / "notes").mkdir()
    data_sets = pairs.find_data_sets(str(tmp_path / "sets"))
    assert data_sets == {"latent_hatred": str(tmp_path / "sets" / "latent_hatred")}
    with pytest.raises(BadInput, match="there is no such folder"):
        pairs.find_data_sets(str(tmp_path / "none"))


def test_pairs_add_up_with_the_dropped(tables: object, tmp_path: Path) -> None:
    """Every completion is a pair or a dropped row with a reason, as the run's counts show."""
    answers = [
        ("Nice hat.", "I dislike the hat."), ("Cold in here.", "Please close the window."),
        ("Is it five already?", "Explicit: I want to go home."), ("Nice weather.", "I cannot comply."),
        ("Bless him.", "Bless him."), ("Well done.", ""), ("Nice hat.", 'Explicit: "I dislike the hat."'),
    ]  # fmt: skip
    path = tmp_path / "answers.jsonl"
    write_cassette(path, answers)
    *lines, last_line = path.read_text(encoding="utf-8").splitlines()
    jsonl(path, *lines, last_line.replace('"someone"', '"another"'))  # the same pair by another model: another call
    assert pairs.replay_cassette(str(path)) == ["own"]
    assert pairs.build("own", DAY, run_id="r1") == 3
    reasons = warehouse.scan("dropped").select("step", "reason").collect().sort("reason").rows()
    assert reasons == [("pairs", "echo"), ("pairs", "empty"), ("pairs", "refusal"), ("pairs", "same_pair")]
    assert load_counts("own", "pairs") == (7, 3, 4)
    assert load_table("runs")["run_id"].to_list() == ["r1"]


def test_answers_paid_for_are_kept(tables: Path, tmp_path: Path) -> None:
    """A second cassette of a source adds to the first, the same call counts once, and other sources are left alone."""
    pairs.replay_cassette()
    for n in (0, 1, 0):
        pairs.replay_cassette(write_cassette(tmp_path / f"{n}.jsonl", [(f"Is it {n} already?", f"Leave {n}.")]))
    rows = load_table("completions")
    assert rows.filter(pl.col("source") == "own")["response"].to_list() == ["Leave 0.", "Leave 1."]
    assert rows["source"].unique().sort().to_list() == ["own", "sample_en", "sample_zh"]


def test_the_sample_gives_way(tables: Path, tmp_path: Path) -> None:
    """The sample's pairs are left out of training as soon as there are others."""
    pairs.replay_cassette()
    for source in pairs.list_sources():
        pairs.build(source, DAY)
    assert set(pairs.load_all_pairs()["source"]) == {"sample_en", "sample_zh"}
    answers = [("Brr.", "I am cold."), ("Tick tock.", "Hurry up.")]
    pairs.replay_cassette(write_cassette(tmp_path / "a.jsonl", answers))
    pairs.build("own", DAY)
    assert pairs.load_all_pairs()["source"].to_list() == ["own", "own"]
