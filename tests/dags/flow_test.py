"""The DAGs run: the sample through all of them, twice, with and without a logical date, and with bad parameters."""

import contextlib
import datetime as dt
import json
from collections.abc import Callable, Iterator
from functools import partialmethod
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline import alerts, sample, warehouse
from pipeline.collect import fetch
from pipeline.collect.sites import netease
from pipeline.tables import TABLES
from pipeline.tasks.impscore import pairs, scoring
from pipeline.tasks.recam import abstractness, targets
from tests.examples.sources.writing import jsonl
from tests.support.rows.contents import check_equal, read_tables
from tests.support.rows.filled import filled
from tests.support.servers.llm_server import Server
from tests.support.servers.site import Answer, Site

DAY = sample.DAY
THREADS = ",".join(f"{column}={field}" for column, field in sample.THREAD_COLUMNS.items())
A_DATE = dt.datetime(2026, 11, 20, tzinfo=dt.UTC)
Run = Callable[..., Any]


@contextlib.contextmanager
def site_as_netease(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """The fixture site in the place of NetEase; it refuses its second page of comments."""
    second = "/api/v1/resource/comments/R_SO_4_186000?limit=20&offset=20"
    with Site(faults={second: [Answer(403)] * 9}) as site:
        for name in ("START", "ARTICLE"):
            address = getattr(netease, name)
            monkeypatch.setattr(netease, name, address.replace("https://music.163.com", site.origin))
        monkeypatch.setattr(fetch.Limits, "__init__", partialmethod(fetch.Limits.__init__, seconds_between=0.0))
        yield site


def states(run: Any) -> dict[str, str]:
    """State of each task, the worst of its mapped instances."""
    tasks: dict[str, str] = {}
    for ti in run.get_task_instances():
        if tasks.get(ti.task_id) in (None, "success"):
            tasks[ti.task_id] = str(ti.state)
    return tasks


def run_well(run: Run, dag_id: str, **conf: Any) -> Any:
    """The run of a DAG that succeeds."""
    dag_run = run(dag_id, **conf)
    assert dag_run.state == "success", f"{dag_id}: {states(dag_run)}"
    return dag_run


def run_twice(
    run: Run, *chain: tuple[str, dict[str, Any]], dates: tuple[dt.datetime | None, ...] = (None, None)
) -> dict[str, pl.DataFrame]:
    """The tables after DAGs that ran one after another; a second time they change no row."""
    tables: dict[str, pl.DataFrame] = {}
    for logical_date in dates:
        for dag_id, conf in chain:
            run_well(run, dag_id, logical_date=logical_date, day=DAY, **conf)
        expected, tables = tables, read_tables()
        check_equal(tables, expected)
    return tables


def read_tries(dag_run: Any, task_id: str) -> list[int]:
    """How often each mapped instance of a task was tried."""
    return [ti.try_number for ti in dag_run.get_task_instances() if ti.task_id == task_id]


@pytest.mark.slow
def test_sample_through_all_dags_twice(run: Run, home: Path, tiny_encoder: Path) -> None:
    """The sample goes through the daily chain (X-06); going through again, now with a logical date, changes no row.

    That training again changes none is tested by `test_data_sets_to_a_model`.
    """
    run_well(run, "impscore", day=DAY, epochs=1, cassette="sample", profile="paper")
    chain = [("collect", {"path": "sample", "source": "zhihu"}), ("tokenize", {}), ("score", {})]
    tables = run_twice(run, *chain, dates=(None, A_DATE))
    run_well(run, "report", logical_date=A_DATE, day=DAY)
    counts = {name: frame.height for name, frame in tables.items()}
    assert counts["comments"] == counts["scores"] == 60
    assert counts["tokens"] == tables["comments"].n_unique(["source", "text_hash"])
    assert counts["pairs"] == counts["completions"] == 260
    assert (home / "reports" / f"{DAY}.html").is_file()


def test_the_day_is_yesterday_by_default(run: Run) -> None:
    """Without key and parameter a run is about the day before it starts; an empty inbox is skipped, not failed."""
    dag_run = run("collect")
    assert states(dag_run)["publish"] == "skipped"
    assert dag_run.state == "success"


def test_a_misspelt_parameter_fails_at_once(
    run: Run, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A parameter the DAG does not know fails the first task on its first try, and nothing is written.

    The alert names the task and the type of its error. The form does not take a day that is not written as YYYY-MM-DD.
    """
    with pytest.raises(Exception, match="is not a 'date'"):
        run("tokenize", day="20261119")
    dag_run = run("tokenize", dai="no day")
    assert states(dag_run)["day"] == "failed"
    assert read_tries(dag_run, "day") == [1]
    assert "unknown parameters: dai" in "".join(capfd.readouterr())
    [message] = [record.getMessage() for record in caplog.records if record.name == alerts.log.name]
    alert = json.loads(message)
    assert (alert["kind"], alert["dag"], alert["task"], alert["error"]) == (
        "task_failed", "tokenize", "day", "BadInput"
    )  # fmt: skip
    assert "no day" not in message
    assert warehouse.get_snapshot_id("tokens") is None


def test_bad_file_fails_at_once_and_writes_nothing(run: Run, tmp_path: Path) -> None:
    """A broken file fails the task on its first try; no table has a snapshot, and nothing is announced downstream."""
    bad = jsonl(tmp_path / "bad.jsonl", {"text": "fine"}, '{"text": ')
    dag_run = run("collect", day=DAY, path=str(bad), source="mine")
    assert states(dag_run)["collect_source"] == "failed"
    assert states(dag_run)["publish"] == "upstream_failed"
    assert all(warehouse.get_snapshot_id(name) is None for name in TABLES)


def test_score_without_a_model_of_ones_own(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    """Without any training the shipped model scores a day; if asked to, the DAG explains both ends and fills the map.

    A model asked for by an unknown id fails at once, and nothing is published.
    """
    run("collect", day=DAY, path="sample", source="zhihu")
    dag_run = run("score", day=DAY, model_id="f" * 64)
    assert [ti.try_number for ti in dag_run.get_task_instances() if str(ti.state) == "failed"] == [1]
    assert "model ffffffffffff is not in" in "".join(capfd.readouterr())
    assert warehouse.get_snapshot_id("scores") is None
    assert states(run_well(run, "score", day=DAY)).items() >= {"words": "skipped", "places": "skipped"}.items()
    run_well(run, "score", day=DAY, explain=1, map=True)
    assert warehouse.scan("projections").collect().height == warehouse.scan("comments").collect().height
    assert warehouse.scan("scores_explained").collect()["comment_id"].n_unique() == 2
    rows = warehouse.scan("scores").collect()
    assert rows["model_id"].unique().to_list() == [scoring.load_model(None).model_id]
    assert rows.height == warehouse.scan("comments").collect().height


def test_a_failing_check_stops_the_report(run: Run, home: Path) -> None:
    """If a check does not hold, its mapped task fails and no report is written."""
    warehouse.overwrite("scores", warehouse.make_slice(day=DAY), filled("scores", {"comment_id": "of no comment"}))
    dag_run = run("report", day=DAY)
    assert states(dag_run)["check"] == "failed"
    assert states(dag_run)["page"] == "upstream_failed"
    assert not (home / "reports" / f"{DAY}.html").exists()


def test_a_refusal_half_way_is_announced(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a site gave before it refused is in the tables, and the day is announced; so is one without tokens by heal.

    Maintaining and healing run on fresh tables, with and without a logical date, and find nothing to do.
    """
    for logical_date in (None, A_DATE):
        assert run("maintain", logical_date=logical_date).state == "success"
        assert states(run("heal", logical_date=logical_date))["announce"] == "skipped"
    with site_as_netease(monkeypatch):
        dag_run = run("collect", day=DAY, source="netease", live=True, threads=["186000"])
    assert states(dag_run)["publish"] == "success"
    assert warehouse.scan("comments").select(pl.len()).collect().item() > 0
    assert states(run("heal"))["announce"] == "success"


def test_training_waits_for_pairs(run: Run) -> None:
    """With no sentences and no completions the weekly training is skipped, not failed, and nobody is asked."""
    task_states = states(run_well(run, "impscore", day=DAY))
    assert {task_states[task] for task in ("sentences", "answers", "pairs", "train")} == {"skipped"}
    assert {task_states[task] for task in ("data_sets", "questions", "sources")} == {"success"}
    assert all(warehouse.get_snapshot_id(name) is None for name in TABLES)


def test_a_sample_is_judged(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten comments of each source get a score by the judge; without a judge the run fails and names the setting.

    They are too few to train the scorer on, so that is skipped.
    """
    run("collect", day=DAY, path="sample", source="weibo")
    assert states(run("judge", day=DAY))["scores"] == "failed"
    with Server(write=lambda question, _: json.dumps({"score": len(question) % 5})) as server:
        monkeypatch.setenv("UNDERTONE_LLM_URL", server.url)
        dag_run = run_well(run, "judge", day=DAY, llm="m", limit=10, max_cost=None, distil=True)
        assert states(dag_run)["model"] == "skipped"
        assert server.sent.total() == 30
    assert warehouse.scan("scores").select("metric").collect()["metric"].to_list() == ["implicitness_judged"] * 10


def test_summaries_to_readers(
    run: Run, wordnet: None, tiny_encoder: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Articles with summaries become items, readers, a 2 x 2 matrix and a page."""
    monkeypatch.setattr(abstractness, "train", lambda *_: "0" * 64)
    monkeypatch.setattr(targets, "_score_concreteness", lambda words, _: {word: 1.4 / len(word) for word in words})
    path = jsonl(home.parent / "news.jsonl", *sample.SUMMARIES.read_text(encoding="utf-8").splitlines()[:8])
    run_well(run, "collect", day=DAY, path=str(path), source="news")
    small = {"hidden": 4, "longest": 20, "longest_gloss": 5, "epochs": 1, "vocabulary": 0}
    conf = {"rule": "paper", "rows_per_shard": 4, "in_context": False, "similar": 0.9999, "numbers": small, "epochs": 1}
    run_well(run, "recam", day=DAY, tool="simulated", **conf)
    tables = read_tables()
    assert set(tables["labels"]["project"]) == {"cloze_imperceptibility", "cloze_nonspecificity"}
    assert tables["cloze_items"]["subtask"].n_unique() == 2
    accuracies = tables["evaluations"].filter(metric="accuracy")
    assert accuracies.filter(pl.col("subset").is_in(["imperceptibility", "nonspecificity"])).height == 4
    assert (home / "reports" / f"cloze-{DAY}.html").is_file()


def test_articles_to_commenters_and_correlations(run: Run, home: Path) -> None:
    """Articles with comments become a corpus, commenters, grades, scores, correlations and a page."""
    run_well(run, "collect", day=DAY, path=str(sample.THREADS), source="sample_news", mapping=THREADS)
    run_well(run, "tokenize", day=DAY)
    small = {"hidden": 4, "embedding": 4, "epochs": 1}
    numbers = {"ir_t": {**small, "judged": 20, "foreign": 5}}
    run_well(run, "commenting", day=DAY, systems=["ir_t"], tool="simulated", rows_per_shard=20, numbers=numbers)
    tables = read_tables()
    assert set(tables["generated_comments"]["system"]) == {"ir_t", "human"}
    assert tables["metric_scores"]["is_weighted"].any()
    assert tables["studies"].filter(study="correlation").height > 0
    assert (home / "reports" / f"commenting-{DAY}.html").is_file()


def test_comments_and_sample_to_ndd(run: Run, wordnet: None, home: Path) -> None:
    """The sample's comments get a context shift, its sentences compressions, the distance tests."""
    run_well(run, "collect", day=DAY, path="sample", source="weibo")
    run_well(run, "tokenize", day=DAY)
    run_well(run, "ndd", day=DAY, systems=["fast_ndd", "fast_ndd_sc", "cosine"], limit=3, tool="simulated")
    tables = read_tables()
    assert tables["studies"].filter(subset="sample:simulated").height
    assert set(tables["models"]["kind"]) >= {"masked_lm_zh"}
    shifted = tables["scores"].filter(metric="context_shift")
    assert shifted.height == tables["comments"].height
    assert shifted["value"].is_between(0, 1).all()
    systems = {"gold", "unedited", "head", "tail", "random", "fast_ndd", "fast_ndd_sc"}
    assert set(tables["compressions"]["system"]) == systems  # counts have no states for cosine
    assert set(tables["studies"]["study"]) == {"compression", "similarity", "pruning", "predicates", "context_shift"}
    assert (home / "reports" / f"ndd-{DAY}.html").is_file()


def latent_hatred(folder: Path, count: int = 12) -> Path:
    """Below `folder`, Latent Hatred in its layout with sentences of our own; and something that is no data set."""
    (folder / "notes").mkdir(parents=True)
    post = "they brought {0} dishes again\tneighbours\tthe neighbours cook too much, {0} times"
    stages = {1: ["post\tclass", "nice day\tnot_hate"], 3: ["post\ttarget\timplied_statement"]}
    stages[3] += [post.format(number) for number in range(count)]
    for stage, lines in stages.items():
        jsonl(folder / "latent_hatred" / f"implicit_hate_v1_stg{stage}_posts.tsv", *lines)
    return folder


def test_data_sets_to_a_model(run: Run, tiny_encoder: Path, tmp_path: Path) -> None:
    """Data sets of a folder become sentences, pairs and a promoted model with its numbers; again nothing changes."""
    conf = {"data": str(latent_hatred(tmp_path / "sets")), "profile": "paper", "epochs": 2}
    tables = run_twice(run, ("impscore", conf))
    assert [tables[name].height for name in ("sentences", "pairs", "completions")] == [13, 12, 0]
    assert tables["models"].select("is_promoted").rows() == [(True,)]
    assert {"implicitness_accuracy", "length_baseline"} <= set(tables["evaluations"]["metric"])
    assert scoring.choose_model(None, DAY).model_id == tables["models"]["model_id"][0]


@pytest.mark.parametrize(
    ("dag_id", "conf"),
    [
        ("ndd", {"treebank": "none.conllu"}),
        ("ndd", {"model": "count", "adapt": "embedded"}),
        ("commenting", {"numbers": {"att": {"epoch": 2}}}),
        ("commenting", {"first_day": "2026-11-20", "last_day": "2026-11-01"}),
        ("studies", {"studies": ["detection"], "ask": "m", "detect": ["none"]}),
        ("recam", {"source": "none"}),
    ],
)
def test_what_cannot_be_computed_fails_in_the_first_task(run: Run, dag_id: str, conf: dict[str, Any]) -> None:
    """A missing file, a model or a number that there is not: its first task fails at once, and no task follows."""
    dag_run = run(dag_id, day=DAY, **conf)
    tasks, first = states(dag_run), "plan" if dag_id == "recam" else "check"
    assert tasks.pop(first) == "failed"
    assert read_tries(dag_run, first) == [1]
    assert {name for name, state in tasks.items() if state == "success"} <= {"day", "due"}


def test_a_language_model_is_asked(
    run: Run, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any, caplog: Any
) -> None:
    """Named in the form, a model is asked for what is missing, once; its key shows nowhere, its answers train."""
    key = "kanarienvogel-llm-0042"
    path = jsonl(tmp_path / "own.csv", "text,prompt", *(f"nice hat {n},explicit_en" for n in range(12)))
    pairs.import_sentences("mine", str(path), DAY, is_own=True)
    conf = {"day": DAY, "model": "small-model", "profile": "paper", "epochs": 1}
    with Server() as server:
        connection = {"conn_type": "generic", "host": server.url, "password": key}
        monkeypatch.setenv("AIRFLOW_CONN_UNDERTONE_LLM", json.dumps(connection))
        for _ in range(2):
            run_well(run, "impscore", **conf)
        assert (server.sent.total(), server.paid, server.keys) == (12, 0, {f"Bearer {key}"})
    assert warehouse.scan("pairs").collect().height == 12
    assert warehouse.scan("models").collect()["completion_models"].to_list() == [["small-model"]]
    assert key not in "".join(capfd.readouterr()) + caplog.text


@pytest.mark.slow
def test_labels_that_a_person_rejects_are_not_published(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated raters label the sample and a person sees the card; tests/distributed/equality_test.py approves one."""
    from airflow.providers.standard.operators.hitl import ApprovalOperator

    cards = []

    def respond(self: Any, context: Any) -> Any:
        cards.append(self.body)
        choice = {"chosen_options": [ApprovalOperator.REJECT], "params_input": {}, "timedout": False}
        user = {"id": "1", "name": "admin"}
        event = {**choice, "responded_at": dt.datetime.now(dt.UTC), "responded_by_user": user}
        return self.execute_complete(context, event)

    monkeypatch.setattr(ApprovalOperator, "execute", respond)
    run("collect", day=DAY, path="sample", source="weibo")
    tasks = states(run("csd", day=DAY, tool="simulated", limit=6))
    assert tasks["publish"] == tasks["train"] == tasks["score"] == "skipped"
    assert warehouse.scan("annotated_comments").collect().height == 0
    assert warehouse.scan("labels").collect().height > 0
    assert not (home / "releases").exists()
    assert "simulated raters" in cards[0]
