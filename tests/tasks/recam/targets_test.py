"""Cloze items as tasks: the sample's articles to targets, items, readers and a page."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.examples.recam import building
from pipeline.examples.recam import items as items_of
from pipeline.slices import Staged
from pipeline.tasks.daily import collect
from pipeline.tasks.recam import build, options, page, ratings, readers, targets
from pipeline.tasks.recam.options import Choosing
from tests.tasks.conftest import put_back

DAY = sample.DAY
SMALL = {"hidden": 6, "longest": 40, "longest_gloss": 8, "epochs": 1, "vocabulary": 0}
BY = targets.RULES._replace(similar=0.9999)  # the tiny encoder's vectors are random
HOW = Choosing(rule="paper", numbers=SMALL)
ONE = building.SUBTASKS[0]

pytestmark = pytest.mark.usefixtures("wordnet", "tiny_encoder")


def abstract(words: list[str], _: object) -> dict[str, float]:
    """Long words are abstract: no scorer is trained."""
    return {word: 1.4 / len(word) for word in words}


@pytest.fixture(autouse=True)
def scorer(monkeypatch: pytest.MonkeyPatch) -> None:
    """`abstract` is in force."""
    monkeypatch.setattr(targets, "_score_concreteness", abstract)


class Stock(NamedTuple):
    """A home and copies of it."""

    place: Path
    brought: Path  # the sample's first 24 articles with summaries, and one of each that cannot be used
    found: Path  # and their targets
    counts: dict[str, int]  # of the targets
    chosen: Path  # and what readers propose for them
    proposals: dict[str, list[Staged]]  # by subtask


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory, tiny_folder: Path, shared_wordnet: Path) -> Stock:
    """Made once, as twelve readers a subtask are trained for it."""
    folder = tmp_path_factory.mktemp("cloze")
    lines = sample.SUMMARIES.read_text(encoding="utf-8").splitlines()[:24]
    others = [
        {"id": "zh", "document": "今天的风很大，桥上没有人。", "summary": "人们希望风会停下来。"},
        {"id": "empty", "document": "", "summary": "They waited by the bridge in hope."},
        {"id": "none", "document": "They waited by the old bridge.", "summary": ""},
    ]
    path = folder / "summaries.jsonl"
    path.write_text("\n".join([*lines, *map(json.dumps, others)]), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"HOME": folder / "home", "ENCODER": tiny_folder, "RESOURCES": shared_wordnet}.items():
            patch.setenv(f"UNDERTONE_{name}", str(value))
        patch.setattr(targets, "_score_concreteness", abstract)
        place = folder / "home"
        warehouse.create()

        def copy(name: str) -> Path:
            warehouse.close()
            return shutil.copytree(place, folder / name)

        collect.import_files([path], "news", DAY)
        brought = copy("brought")
        counts = targets.publish_targets([targets.stage_targets(part, BY) for part in targets.plan()], DAY, BY)
        found = copy("found")
        jobs = {subtask: options.list_jobs([subtask]) for subtask in building.SUBTASKS}
        proposals = {subtask: [options.stage_proposals(job, HOW) for job in jobs[subtask]] for subtask in jobs}
        return Stock(place, brought, found, counts, copy("chosen"), proposals)


@pytest.fixture
def brought(stock: Stock, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The articles in the tables."""
    yield from put_back(stock.place, stock.brought, monkeypatch)


@pytest.fixture
def found(stock: Stock, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """Their targets in the tables."""
    for _ in put_back(stock.place, stock.found, monkeypatch):
        yield stock.counts


@pytest.fixture
def proposed(stock: Stock, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stock]:
    """What readers propose for the targets."""
    for _ in put_back(stock.place, stock.chosen, monkeypatch):
        yield stock


def test_targets_are_the_same_in_any_number_of_shards(brought: Path) -> None:
    """Cut in one or in many shards the same rows come out; each token of each summary is told of for both subtasks."""
    counts = targets.publish_targets([targets.stage_targets(part, BY) for part in targets.plan()], DAY, BY)
    whole = warehouse.scan("cloze_targets").collect().sort("subtask", "thread_id", "start")
    assert counts == dict(
        whole.filter(pl.col("reason").is_null()).group_by("subtask").len().sort("subtask").iter_rows()
    )
    assert min(counts.values()) > 24
    parts = targets.plan(rows_per_shard=7)
    assert len(parts) == 4
    assert targets.publish_targets([targets.stage_targets(part, BY) for part in parts], DAY, BY) == counts
    again = warehouse.scan("cloze_targets").collect().sort("subtask", "thread_id", "start")
    assert again.equals(whole)
    assert whole.group_by("subtask").len()["len"].n_unique() == 1
    assert whole["thread_id"].n_unique() == 24


def test_articles_that_cannot_be_used_are_told_of(found: dict[str, int]) -> None:
    """Another language and a summary without a text have their reason; the funnel adds up."""
    gone = warehouse.scan("dropped", pl.col("step") == targets.STEP).collect()
    told = dict(gone.filter(pl.col("reason") != "no_target").select("row_key", "reason").iter_rows())
    assert told == {"zh": "not_english", "empty": "no_text"}
    run = warehouse.scan("runs", pl.col("step") == targets.STEP).collect().row(0, named=True)
    assert run["read_count"] == 24 * 2 + 2
    assert run["dropped_count"] == gone.height


def test_items_have_five_options_by_readers_that_did_not_see_them(proposed: Stock) -> None:
    """Items and those left out are the targets; every check on the tables holds; made again they are the same."""
    proposals, found = proposed.proposals[ONE], proposed.counts
    assert len(proposals) == 12
    kept = options.publish_items(ONE, proposals, DAY, HOW, BY)
    items = readers.read_all_items(ONE)
    gone = warehouse.scan("dropped", pl.col("step") == options.STEP).collect()
    assert (kept, kept + gone.height) == (items.height, found[ONE])
    assert set(gone["reason"]) <= {"too_few_choices"}
    assert kept > found[ONE] / 2
    told = warehouse.scan("cloze_targets", pl.col("reason").is_null()).collect()
    right = items.join(told, on=["source", "subtask", "thread_id", "start"], how="left", maintain_order="left")
    assert (
        right["word"]
        .str.to_lowercase()
        .equals(items.select(items_of.right_option().str.to_lowercase())["answer"].alias("word"))
    )
    assert all(not warehouse.run_check(name) for name in ("cloze_items_have_targets", "funnel_adds_up"))
    assert options.publish_items(ONE, proposals, DAY, HOW, BY) == kept
    assert readers.read_all_items(ONE).equals(items)
    numbers = warehouse.scan("evaluations", pl.col("kind") == options.get_kind(ONE)).collect()
    assert set(numbers["subset"]) == set(options.READERS)
    assert numbers.filter(metric="mrr")["value"].is_between(0, 1).all()


def test_no_reader_proposes_for_what_it_was_trained_on(found: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each job the items learnt from and those answered are apart, and all are answered once (REC-15)."""
    from pipeline.training.recam import readers as training

    rows = options.list_open_items(ONE)
    seen: list[tuple[set[str], set[str]]] = []
    monkeypatch.setattr(training, "fit", lambda rest, *_, **__: SimpleNamespace(tensors=rest, config={}))

    def candidates(trained: pl.DataFrame, mine: pl.DataFrame, _: int) -> pl.DataFrame:
        seen.append((set(trained["article"]), set(mine["article"])))
        return mine.select("item_id", candidates=pl.concat_list("answer"))

    monkeypatch.setattr(training, "load", lambda rest, *_: rest)
    monkeypatch.setattr(training, "rank_candidates", candidates)
    jobs = [job for job in options.list_jobs([ONE]) if job["reader"] == "gated"]
    proposed = pl.concat([options.propose_words(rows, job, HOW) for job in jobs])
    assert sorted(proposed["item_id"]) == sorted(rows["item_id"])
    assert all(not learnt & asked for learnt, asked in seen)


def test_readers_are_trained_on_one_kind_and_tested_on_both(proposed: Stock) -> None:
    """The 2 x 2 of subtask 3 (REC-02) is in `evaluations`, with the baseline beside it, and on the page."""
    for subtask in building.SUBTASKS:
        assert options.publish_items(subtask, proposed.proposals[subtask], DAY, HOW, BY)
        trained = readers.train(DAY, subtask, changes=SMALL)
        assert readers.train(DAY, subtask, changes=SMALL) == trained
    for trained_on in building.SUBTASKS:
        model_id = readers.load_model(None, trained_on, DAY).model_id
        for tested_on in building.SUBTASKS:
            assert readers.cross_evaluate(DAY, trained_on, tested_on, model_id) == 3
    told = page.read_evaluations(DAY).filter("is_all")
    cells = set(told.select("trained_on", "tested_on").iter_rows())
    assert cells == {(one, other) for one in building.SUBTASKS for other in building.SUBTASKS}
    assert (told["low"] <= told["accuracy"]).all()
    assert (told["accuracy"] <= told["high"]).all()
    html = Path(page.write(DAY)).read_text(encoding="utf-8")
    assert "imperceptibility" in html
    assert "<svg" in html


def test_flags_of_raters_keep_items_from_readers(proposed: Stock) -> None:
    """Answers become flags; flagged items are left out; a rebuild keeps the flags of items that have not changed."""
    proposals = proposed.proposals[ONE]
    options.publish_items(ONE, proposals, DAY, HOW, BY)
    count = readers.read_all_items(ONE).height
    assert ratings.select(ONE, DAY) == ratings.select(ONE, DAY) == count
    labels = ratings.collect(ONE, tool="simulated")
    assert ratings.collect(ONE, tool="simulated") == labels
    rated = ratings.flag(ONE)
    flagged = readers.read_all_items(ONE)
    at_fault = flagged.filter(pl.col("is_unanswerable") | pl.col("is_ambiguous"))
    assert at_fault.height
    assert readers.read_items(ONE).height == count - at_fault.height
    options.publish_items(ONE, proposals, DAY, HOW, BY)
    assert readers.read_all_items(ONE).equals(flagged)
    run = warehouse.scan("runs", pl.col("step") == ratings.STEP).collect().row(0, named=True)
    assert run["kept_count"] == rated.items["n"].sum()
    assert run["dropped_count"] == rated.dropped.height


def test_a_file_without_tables(tmp_path: Path) -> None:
    """A file becomes files in the official format, with every token's reason and how it was made; again the same."""
    path = tmp_path / "summaries.jsonl"
    path.write_text("\n".join(sample.SUMMARIES.read_text(encoding="utf-8").splitlines()[:14]), encoding="utf-8")
    done = build.build_file(path, tmp_path / "items", [ONE], BY, HOW)
    paths = sorted((tmp_path / "items").glob(f"{ONE}_*.jsonl"))
    assert [items_of.read(path).items.height for path in paths] == done.sort("split")["item_count"].to_list()
    card = json.loads((tmp_path / "items" / "card.json").read_text(encoding="utf-8"))
    assert [one["reader"] for one in card["readers"][ONE]] == list(options.READERS)
    told = pl.read_parquet(tmp_path / "items" / "targets.parquet")
    dropped = pl.read_csv(tmp_path / "items" / "dropped.csv")
    target_count = told.filter(pl.col("reason").is_null() & (pl.col("subtask") == ONE)).height
    assert done["item_count"].sum() + dropped.filter(reason="too_few_choices").height == target_count
    with pytest.raises(BadInput, match="is there already"):
        build.build_file(path, tmp_path / "items", [ONE], BY, HOW)


def test_what_is_missing(tables: Path, tmp_path: Path) -> None:
    """No articles, no items, too few articles, an unknown subtask or rule: each is said, and nothing is written."""
    with pytest.raises(Missing, match="no English article has a summary"):
        targets.plan()
    with pytest.raises(Missing, match="cloze_items holds nothing of imperceptibility"):
        readers.read_items(ONE)
    assert options.list_jobs() == []
    path = tmp_path / "few.jsonl"
    path.write_text(sample.SUMMARIES.read_text(encoding="utf-8").splitlines()[0], encoding="utf-8")
    with pytest.raises(BadInput, match=r"few.jsonl: 1 articles have a target of imperceptibility; expected at least 4"):
        build.build_file(path, tmp_path / "out", [ONE], BY, HOW)
    assert not (tmp_path / "out").exists()
    with pytest.raises(BadInput, match="no subtask 'abstractness'"):
        targets.check_subtask("abstractness")
    with pytest.raises(BadInput, match="no rule 'best'"):
        options.parse_choosing({"rule": "best"})
