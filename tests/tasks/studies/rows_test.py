"""Studies: the grids, the description of data sets, the detection of implicit sentences, and the day's page."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from pipeline import sample, settings, warehouse
from pipeline.errors import BadInput
from pipeline.metrics.impscore.studies import tabulate_figure_3
from pipeline.models import encoder as encoders
from pipeline.models.impscore import DESIGNS
from pipeline.tasks import asking
from pipeline.tasks.impscore import pairs, rank, scoring
from pipeline.tasks.studies import rows as study_rows
from pipeline.training.impscore import heads
from pipeline.training.impscore.fit import make_recipe
from tests.support.servers.llm_server import Server
from tests.tasks.conftest import build_options

Enlist = Callable[..., str]

DAY, NEXT = sample.DAY, "2026-11-20"
SENTENCES = [
    ("nice hat", "implicit"), ("what an awful day", "explicit"), ("is it five already?", "implicit"),
    ("the soup is salty", "neither"), ("some of us get up early", "implicit"), ("close the door", "explicit"),
]  # fmt: skip
TEXTS = [text for text, _ in SENTENCES]
SPREAD = ["mean", "sd", "q00", "q05", "q25", "q50", "q75", "q95", "q100"]


def judge_text(prompt: str, _: int) -> str:
    """Answer yes to what is awful, no to what is early, and something else to the rest."""
    return "Yes." if "awful" in prompt else "no" if "early" in prompt else "I would rather not say"


@pytest.fixture
def judge(tables: Path) -> Iterator[Server]:
    """A loopback service."""
    with Server(write=judge_text) as running:
        yield running


def import_rows(source: str, rows: list[tuple[str, str]]) -> str:
    """Import sentences with their labels as a source; return its name."""
    path = settings.scratch("own") / f"{source}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(rows, schema=["text", "label"], orient="row").write_csv(path)
    pairs.import_sentences(source, str(path), DAY, is_own=True)
    return source


@pytest.fixture
def source(tables: Path) -> str:
    """Import the user's sentences, the first of them twice; return the source's name."""
    return import_rows("mine", [*SENTENCES, SENTENCES[0]])


@pytest.fixture
def model(enlist: Enlist) -> str:
    """A model with random weights on the tiny encoder, promoted for the day."""
    return enlist(DAY, 1)


def load_table(study: str | None = None) -> pl.DataFrame:
    """Load the table `studies` in a fixed order."""
    rows = warehouse.scan("studies").sort("study", "day", "setting", "metric", "subset", "run").collect()
    return rows.filter(pl.col("study") == study) if study else rows


def load_staged(shard: Any) -> pl.DataFrame:
    """Load the rows that a task has staged."""
    return pl.read_parquet(shard["path"])


def test_cells_of_the_grids() -> None:
    """Twelve designs and 120 settings, three runs each, are each trained once (IMP-29, IMP-30)."""
    cells = study_rows.list_cells("ablation", 3)
    assert Counter(cell["run"] for cell in cells) == {0: 12, 1: 12, 2: 12}
    assert [cell["setting"] for cell in cells[::3]] == [design._asdict() for design in DESIGNS]
    with pytest.raises(BadInput, match="no study of trainings 'data_sets'; there are ablation, sensitivity"):
        study_rows.list_cells("data_sets", 1)
    cells = study_rows.list_cells("sensitivity", 3)
    assert len(cells) == len({json.dumps(cell, sort_keys=True) for cell in cells}) == 360
    for name, count in (("gamma_implicitness", 6), ("gamma_pragmatics", 5), ("alpha", 4)):
        assert len({cell["setting"][name] for cell in cells}) == count
    assert {"gamma_implicitness": 0.5, "gamma_pragmatics": 0.7, "alpha": 1.0} in [cell["setting"] for cell in cells]


@pytest.mark.parametrize(("study", "size", "sizes"), [("ablation", 5, [5, 5, 2]), ("sensitivity", 50, [50, 50, 20])])
def test_every_cell_can_be_trained(study: str, size: int, sizes: list[int]) -> None:
    """Cells are cut into tasks of equal size but the last, in their order; each setting is one that a recipe takes."""
    plan, cells = study_rows.plan(study, 1, size), study_rows.list_cells(study, 1)
    assert [len(part) for part in plan] == sizes
    assert [cell for part in json.loads(json.dumps(plan)) for cell in part] == cells  # as Airflow hands them over
    assert len({make_recipe("paper", **cell["setting"]) for cell in cells}) == len(cells)


@pytest.fixture
def few_pairs(imported: Path, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> pl.DataFrame:
    """Have grids train on sixty pairs."""
    rows = pairs.load_all_pairs().head(60)
    monkeypatch.setattr(pairs, "load_all_pairs", lambda: rows)
    return rows


def test_a_cell_is_the_papers_training(few_pairs: pl.DataFrame, tmp_path: Path) -> None:
    """A cell gives both test accuracies of a training with profile paper, its setting, and a seed of its run."""
    setting = {"gamma_implicitness": 1.5, "gamma_pragmatics": 2.0, "alpha": 0.5}
    cells: list[study_rows.Cell] = [{"setting": setting, "run": 2}]
    progress: list[int] = []
    study_table = load_staged(study_rows.stage_cells("sensitivity", cells, DAY, 3, progress.append))
    assert progress == [1]
    encoder = encoders.load(settings.encoder(), settings.precision(), settings.threads())
    head = heads.fit(few_pairs, None, make_recipe("paper", **setting, seed=44, epochs=3), encoder, tmp_path)
    expected = tabulate_figure_3(head.triples.filter(pl.col("split") == "test"))["value"][:2]
    assert study_table["value"].to_list() == pytest.approx(expected.to_list(), abs=1e-6)
    assert study_table["metric"].to_list() == ["implicitness_accuracy", "pragmatics_accuracy"]
    assert [json.loads(text) for text in study_table["setting"]] == [setting] * 2
    assert set(study_table["run"]) == {2}
    assert set(study_table["row_count"]) == {few_pairs.filter(pl.col("split") == "test").height}
    assert study_table["model_id"].null_count() == 2


def test_trained_again_the_table_is_the_same(few_pairs: pl.DataFrame) -> None:
    """Publishing staged rows twice gives the same table; other days and studies stay."""
    parts = [[cell] for cell in study_rows.list_cells("ablation", 1)[:2]]
    shards = [study_rows.stage_cells("ablation", part, DAY, 1) for part in parts]
    assert study_rows.publish(shards, DAY) == 4
    before = load_table()
    sensitivity = study_rows.stage_cells("sensitivity", study_rows.list_cells("sensitivity", 1)[:1], DAY, 1)
    study_rows.publish([{**sensitivity, "seconds": 3600.0}, *shards], DAY)
    seconds = dict(warehouse.scan("runs", pl.col("step") == "study").select("source", "seconds").collect().iter_rows())
    assert seconds["ablation"] < 3600 <= seconds["sensitivity"]  # each has the time of its own parts
    again = study_rows.stage_cells("ablation", parts[0], DAY, 1)
    study_rows.publish([study_rows.stage_cells("ablation", parts[0], NEXT, 1)], NEXT)
    study_rows.publish([again], DAY)  # one cell replaces itself, the other stays
    assert_frame_equal(load_table("ablation").filter(pl.col("day") == before["day"][0]), before)
    assert load_table().height == 4 + 2 + 2


def test_a_data_set_described(source: str, model: str) -> None:
    """Of distinct sentences: implicitness of all and of the implicit part (IMP-40), and distances of all pairs."""
    study_table = load_staged(study_rows.stage_data_set(source, DAY, model))
    assert study_table["model_id"].unique().to_list() == [model]
    counts = study_table.group_by("study", "subset").agg(pl.col("row_count").unique(), pl.col("metric"))
    assert counts.sort("study", "subset").rows() == [
        ("data_sets", source, [6], SPREAD),
        ("data_sets", f"{source}:implicit", [3], SPREAD),
        ("diversity", source, [15], SPREAD),
    ]
    value = {tuple(key): number for *key, number in study_table.select("study", "subset", "metric", "value").rows()}
    scores = scoring.add_scores(pl.DataFrame({"text": TEXTS}), "text", model)["implicitness"].to_numpy()
    implicit = scores[[label == "implicit" for _, label in SENTENCES]]
    for subset, numbers in ((source, scores), (f"{source}:implicit", implicit)):
        assert value["data_sets", subset, "mean"] == pytest.approx(numbers.mean(), abs=1e-6)
        assert value["data_sets", subset, "sd"] == pytest.approx(numbers.std(ddof=1), abs=1e-6)
        assert value["data_sets", subset, "q50"] == pytest.approx(np.median(numbers), abs=1e-6)
        assert value["data_sets", subset, "q100"] == pytest.approx(numbers.max(), abs=1e-6)
    text_pairs = (
        pl.DataFrame({"a": TEXTS}).join(pl.DataFrame({"b": TEXTS}), how="cross").filter(pl.col("a") < pl.col("b"))
    )
    distances = rank.add_distances(text_pairs, "a", "b", model)["pragmatic_distance"].to_numpy()
    assert value["diversity", source, "q50"] == pytest.approx(np.median(distances), abs=2e-6)
    assert value["diversity", source, "mean"] == pytest.approx(distances.mean(), abs=2e-6)


def test_a_benchmark_is_its_problematic_part(tables: Path, model: str) -> None:
    """Of the paper's six data sets the texts that are hate count, beside the paper's numbers (section 7.1; IMP-40)."""
    rows = [(f"{text} {n}", label) for text, label in SENTENCES for n in range(2)]
    import_rows("dghsd", rows)
    import_rows("mine", rows)
    shards = [study_rows.stage_data_set(source, DAY, model) for source in ("dghsd", "mine")]
    assert study_rows.publish(shards, DAY) == load_table().height
    spreads = study_rows.load_spreads(DAY)
    assert spreads.columns == ["study", "subset", "mean", "sd", "row_count", "paper_count"]
    counts = {(study, subset): sizes for study, subset, *sizes in spreads.drop("mean", "sd").rows()}
    assert counts["data_sets", "dghsd"] == [10, 22_175]
    assert counts["data_sets", "dghsd:implicit"] == [6, 3_439]
    assert counts["data_sets", "mine"] == [12, None]
    assert counts["diversity", "dghsd"] == [45, None]


def test_a_fault_of_the_scores_costs_nothing(
    judge: Server, source: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A score outside [0, 2], as of a Euclidean design, is refused before a request is sent (IMP-42)."""
    columns = {"implicitness": 2.5, "signature": pl.lit(None)}
    monkeypatch.setattr(scoring, "add_scores", lambda rows, *_: rows.with_columns(**columns))
    with pytest.raises(BadInput, match=r"not 2\.5; 5 of 5 texts fit no bin: use a model whose I is a cosine"):
        study_rows.stage_detection(source, DAY, build_options(judge), model)
    assert judge.sent.total() == 0


def test_verdicts(judge: Server, source: str) -> None:
    """Yes, no, other, and None where there is no answer, in the order of the texts; Chinese is asked in Chinese."""
    texts = ["awful", "early", "nice", "你可真准时", "awful"]
    assert asking.ask_verdicts(source, texts, build_options(judge)) == ["yes", "no", "other", "other", "yes"]
    assert asking.ask_verdicts(source, texts, build_options(judge, "moderation:m")) == ["yes", "no", "no", "no", "yes"]
    asking.ask_verdicts(source, texts, build_options(judge, "meta-llama/Llama-3.1-8B-Instruct"))
    assert {r["model"]: r.get("max_tokens") for r in judge.requests if "model" in r}["small-model"] == 2_048
    assert judge.requests[-1]["max_tokens"] == 3  # figure 15
    cached = asking.Options("small-model", mode="cache-only")
    assert asking.ask_verdicts(source, [*texts[:2], "never asked"], cached) == ["yes", "no", None]
    completions = warehouse.scan("completions").collect().select("model", "prompt").rows()
    completions = [row for row in completions if "Llama" not in row[0]]
    prompts = {("small-model", "problematic_en"): 3, ("small-model", "problematic_zh"): 1, ("m", "moderation"): 4}
    assert Counter(completions) == prompts
    assert judge.served["awful"] == 3  # once by each
    assert pairs.build(source, DAY) == 0  # a verdict is no explicit form


@pytest.mark.parametrize(("kind", "metrics"), [("ranking", 2), ("choice", 1)])
def test_people_answer_questionnaires(
    tables: Path, enlist: Enlist, kind: str, metrics: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All ten items wait; without answers nothing is published, then means of simulated people and the model, once."""
    monkeypatch.setattr(study_rows.studies, "lay_out", lambda vectors: vectors[:, :2])  # takes half a minute
    model_id = enlist(DAY, 1)
    assignment = study_rows.assign_tasks(kind, DAY, "files")
    assert (assignment["tasks"], assignment["waiting"]) == (10, 10)
    assert (Path(assignment["place"]) / "hiring.md").is_file()
    counts = [study_rows.collect_answers(kind, DAY, tool, None, "r") for tool in ("files", "simulated", "simulated")]
    assert counts[0] == 0 < counts[1] == counts[2]
    rows = load_table()
    assert set(rows["model_id"]) == {model_id}
    people = rows.filter(pl.col("setting").str.contains('"by": "simulated"'))
    assert (rows.height, people.height) == (2 * metrics, metrics)
    assert set(people["row_count"]) == {50}  # five people, ten items
    assert "People and the model on graded groups" in Path(study_rows.write_report(DAY)).read_text(encoding="utf-8")
