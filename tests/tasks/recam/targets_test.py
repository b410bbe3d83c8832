"""Cloze items as tasks: the sample's articles to targets, items, readers and a page."""

import json
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.examples.recam import building
from pipeline.examples.recam import items as cloze
from pipeline.slices import Staged
from pipeline.tasks.daily import collect
from pipeline.tasks.recam import options, page, ratings, readers, targets
from pipeline.tasks.record.day_texts import ArticlePart
from tests.tasks.conftest import put_back

DAY = sample.DAY
SMALL = {"hidden": 6, "longest": 40, "longest_gloss": 8, "epochs": 1, "vocabulary": 0}
RULES = targets.RULES._replace(similar=0.9999, numbers=SMALL)  # the tiny encoder's vectors are random
FIRST, SECOND = building.SUBTASKS

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

    home: Path
    targets: Path  # of the sample's first 24 articles with summaries; there is one of each that cannot be used, too
    counts: dict[str, int]  # of the targets
    staged: Path  # and what readers propose for them
    proposals: dict[str, list[Staged]]  # by subtask


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory, tiny_folder: Path, shared_wordnet: Path) -> Stock:
    """Made once, as twelve readers a subtask are trained for it."""
    folder = tmp_path_factory.mktemp("cloze")
    lines = sample.SUMMARIES.read_text(encoding="utf-8").splitlines()[:24]
    unfit = [
        {"id": "zh", "document": "今天的风很大，桥上没有人。", "summary": "人们希望风会停下来。"},
        {"id": "empty", "document": "", "summary": "They waited by the bridge in hope."},
        {"id": "none", "document": "They waited by the old bridge.", "summary": ""},
    ]
    path = folder / "summaries.jsonl"
    path.write_text("\n".join([*lines, *map(json.dumps, unfit)]), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"HOME": folder / "home", "ENCODER": tiny_folder, "RESOURCES": shared_wordnet}.items():
            patch.setenv(f"UNDERTONE_{name}", str(value))
        patch.setattr(targets, "_score_concreteness", abstract)
        warehouse.create()

        def copy(name: str) -> Path:
            warehouse.close()
            return shutil.copytree(folder / "home", folder / name)

        collect.import_files([path], "news", DAY)
        counts = publish_all(targets.plan())
        with_targets = copy("targets")
        jobs = {subtask: options.list_jobs([subtask]) for subtask in building.SUBTASKS}
        jobs[SECOND] = [job for job in jobs[SECOND] if job["reader"] == "gated"]  # of one, readers propose as of two
        proposals = {subtask: [options.stage_proposals(job, RULES) for job in jobs[subtask]] for subtask in jobs}
        return Stock(folder / "home", with_targets, counts, copy("staged"), proposals)


def publish_all(parts: list[ArticlePart]) -> dict[str, int]:
    """The targets of all parts, in the tables; their counts."""
    return targets.publish_targets([targets.stage_targets(part, RULES) for part in parts], DAY, RULES)


@pytest.fixture
def counts(stock: Stock, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """The articles and their targets in the tables."""
    for _ in put_back(stock.home, stock.targets, monkeypatch):
        yield stock.counts


@pytest.fixture
def proposed(stock: Stock, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stock]:
    """What readers propose for the targets."""
    for _ in put_back(stock.home, stock.staged, monkeypatch):
        yield stock


def scan_dropped(step: str) -> pl.DataFrame:
    """What a step dropped."""
    return warehouse.scan("dropped", pl.col("step") == step).collect()


def test_targets_are_the_same_in_any_number_of_shards(counts: dict[str, int]) -> None:
    """Cut in one or in many shards the same rows come out; each token of each summary is there for both subtasks.

    Another language and a summary without a text have their reason; the funnel adds up.
    """
    dropped = scan_dropped(targets.STEP)
    reasons = dict(dropped.filter(pl.col("reason") != "no_target").select("row_key", "reason").iter_rows())
    assert reasons == {"zh": "not_english", "empty": "no_text"}
    run = warehouse.scan("runs", pl.col("step") == targets.STEP).collect().row(0, named=True)
    assert (run["read_count"], run["dropped_count"]) == (24 * 2 + 2, dropped.height)
    tokens = warehouse.scan("cloze_targets").collect().sort("subtask", "thread_id", "start")
    assert counts == dict(tokens.filter(pl.col("reason").is_null())["subtask"].value_counts(sort=True).iter_rows())
    assert min(counts.values()) > 24
    parts = targets.plan(rows_per_shard=7)
    assert len(parts) == 4
    assert publish_all(parts) == counts
    assert warehouse.scan("cloze_targets").collect().sort("subtask", "thread_id", "start").equals(tokens)
    assert tokens.group_by("subtask").len()["len"].n_unique() == 1
    assert tokens["thread_id"].n_unique() == 24


def test_items_have_five_options_by_readers_that_did_not_see_them(proposed: Stock) -> None:
    """Items and those left out are the targets; every check on the tables holds; made again they are the same."""
    proposals, target_count = proposed.proposals[FIRST], proposed.counts[FIRST]
    assert len(proposals) == 12
    count = options.publish_items(FIRST, proposals, DAY, RULES)
    items = readers.read_all_items(FIRST)
    dropped = scan_dropped(options.STEP)
    assert (count, count + dropped.height) == (items.height, target_count)
    assert set(dropped["reason"]) <= {"too_few_choices"}
    assert count > target_count / 2
    words = warehouse.scan("cloze_targets", pl.col("reason").is_null()).collect()
    rows = items.join(words, on=["source", "subtask", "thread_id", "start"], how="left", maintain_order="left")
    right = rows.select(pl.col("word").str.to_lowercase(), cloze.select_right_option().str.to_lowercase())
    assert right["word"].equals(right["answer"])
    assert all(not warehouse.run_check(name) for name in ("cloze_items_have_targets", "funnel_adds_up"))
    assert options.publish_items(FIRST, proposals, DAY, RULES) == count
    assert readers.read_all_items(FIRST).equals(items)
    numbers = warehouse.scan("evaluations", pl.col("kind") == options.get_kind(FIRST)).collect()
    assert set(numbers["subset"]) == set(options.READERS)
    assert numbers.filter(metric="mrr")["value"].is_between(0, 1).all()


def test_no_reader_proposes_for_what_it_was_trained_on(counts: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each job the items learnt from and those answered are apart, and all are answered once (REC-15)."""
    from pipeline.training.recam import readers as training

    rows = options.list_open_items(FIRST)
    articles: list[tuple[set[str], set[str]]] = []
    monkeypatch.setattr(training, "fit", lambda rest, *_, **__: SimpleNamespace(tensors=rest, config={}))

    def rank_candidates(trained: pl.DataFrame, fold: pl.DataFrame, _: int) -> pl.DataFrame:
        articles.append((set(trained["article"]), set(fold["article"])))
        return fold.select("item_id", candidates=pl.concat_list("answer"))

    monkeypatch.setattr(training, "load", lambda rest, *_: rest)
    monkeypatch.setattr(training, "rank_candidates", rank_candidates)
    jobs = [job for job in options.list_jobs([FIRST]) if job["reader"] == "gated"]
    proposals = pl.concat([options.propose_words(rows, job, RULES) for job in jobs])
    assert sorted(proposals["item_id"]) == sorted(rows["item_id"])
    assert all(not trained & answered for trained, answered in articles)


def test_readers_are_trained_on_one_kind_and_tested_on_both(proposed: Stock) -> None:
    """The 2 x 2 of subtask 3 (REC-02) is in `evaluations`, with the baseline beside it, and on the page."""
    for subtask in building.SUBTASKS:
        assert options.publish_items(subtask, proposed.proposals[subtask], DAY, RULES)
        trained = readers.train(DAY, subtask, changes=SMALL, promote=True)
        assert readers.train(DAY, subtask, changes=SMALL, promote=True) == trained
    for trained_on in building.SUBTASKS:
        model_id = readers.load_model(None, trained_on, DAY).model_id
        for tested_on in building.SUBTASKS:
            assert readers.evaluate_crossed(DAY, trained_on, tested_on, model_id) == 3
    cells = page.read_evaluations(DAY).filter("is_all")
    assert set(cells.select("trained_on", "tested_on").iter_rows()) == set(product(building.SUBTASKS, repeat=2))
    assert (cells["low"] <= cells["accuracy"]).all()
    assert (cells["accuracy"] <= cells["high"]).all()
    html = Path(page.write(DAY)).read_text(encoding="utf-8")
    assert "imperceptibility" in html
    assert "<svg" in html


def test_flags_of_raters_keep_items_from_readers(proposed: Stock) -> None:
    """Answers become flags; flagged items are left out; a rebuild keeps the flags of items that have not changed."""
    proposals = proposed.proposals[FIRST]
    options.publish_items(FIRST, proposals, DAY, RULES)
    count = readers.read_all_items(FIRST).height
    folder = str(ratings.get_project(FIRST).folder)
    expected = {"project": f"cloze_{FIRST}", "place": folder, "tasks": count, "waiting": count}
    assert ratings.assign_tasks(FIRST, DAY, "files") == expected
    assert ratings.collect_answers(FIRST, DAY, "files", None, "cli") == 0
    label_count = ratings.collect(FIRST, tool="simulated")
    assert ratings.collect(FIRST, tool="simulated") == label_count
    assert ratings.assign_tasks(FIRST, DAY, "simulated")["waiting"] == 0
    noise, selection = ratings.flag(FIRST)
    flagged = readers.read_all_items(FIRST)
    faulty = flagged.filter(pl.col("is_unanswerable") | pl.col("is_ambiguous"))
    assert faulty.height
    assert readers.read_items(FIRST).height == count - faulty.height
    options.publish_items(FIRST, proposals, DAY, RULES)
    assert readers.read_all_items(FIRST).equals(flagged)
    run = warehouse.scan("runs", pl.col("step") == ratings.STEP).collect().row(0, named=True)
    assert (run["kept_count"], run["dropped_count"]) == (noise["n"].sum(), selection.dropped.height)
    labels = warehouse.scan("labels").collect()
    by_people = labels.filter(rater_id="simulated_1").with_columns(rater_id=pl.lit("anna"), tool=pl.lit("file"))
    warehouse.overwrite("labels", {"project": f"cloze_{FIRST}"}, pl.concat([labels, by_people]))
    _, selection = ratings.flag(FIRST)
    assert selection.raters["rater_id"].to_list() == ["anna"]
    assert selection.dropped.filter(reason="simulated").height == 4 * count  # simulated raters


def test_what_is_missing(tables: Path, tmp_path: Path) -> None:
    """No articles, no items, too few articles, an unknown subtask or rule: each is named, and nothing is written."""
    with pytest.raises(Missing, match="no English article has a summary"):
        targets.plan()
    with pytest.raises(Missing, match="cloze_items holds nothing of imperceptibility"):
        readers.read_items(FIRST)
    assert options.list_jobs() == []
    path = tmp_path / "few.jsonl"
    path.write_text(sample.SUMMARIES.read_text(encoding="utf-8").splitlines()[0], encoding="utf-8")
    with pytest.raises(BadInput, match=r"few.jsonl: 1 articles have a target of imperceptibility; expected at least 4"):
        options.build_file(path, tmp_path / "out", [FIRST], RULES)
    assert not (tmp_path / "out").exists()
    with pytest.raises(BadInput, match="no subtask 'abstractness'"):
        targets.check_subtask("abstractness")
    with pytest.raises(BadInput, match="no rule 'best'"):
        targets.parse_rules({"rule": "best"})
    with pytest.raises(BadInput, match="no measure of word senses 'best'"):
        targets.parse_rules({"senses": "best"})


def test_thresholds_are_numbers_of_a_run() -> None:
    """`--set` and the DAG's `numbers` change the rules for words; the readers get the other numbers."""
    values = {"numbers": {"specific_from": 5, "concrete_from": 0.3, "epochs": 2}, "similar": 0.9}
    expected = targets.Rules(concrete_from=0.3, specific_from=5, similar=0.9, numbers={"epochs": 2})
    assert targets.parse_rules(values) == expected
    for value in (1.5, "0.3", True):
        with pytest.raises(BadInput, match="concrete_from should be a number from 0 to 1; found"):
            targets.parse_rules({"numbers": {"concrete_from": value}})


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"numbers": {"epoch": 2}}, "epoch"),
        ({"profile": "masked", "epochs": -1}, "epochs"),
        ({"profile": "nope"}, "no profile 'nope'; there are gated"),
        ({"start": "none.txt"}, "start: none.txt: there is no such file"),
        ({"vectors": "none.txt"}, "vectors: none.txt: there is no such file"),
    ],
)
def test_parameters_that_readers_cannot_use(params: dict[str, object], message: str) -> None:
    """The first task of the DAG refuses them, before words are looked for; those of the form are fine."""
    names = ("ratings", "vectors", "conllu", "start", "epochs", "seed")
    values = {**dict.fromkeys(names), "numbers": {}, "profile": "gated", "rule": "paper", "is_small": False}
    options.check_params(values)
    with pytest.raises(BadInput, match=message):
        options.check_params({**values, **params})
