"""The DAGs run: the sample through all of them, twice, with and without a logical date, and with bad parameters."""

import base64
import contextlib
import datetime as dt
import json
import urllib.parse
from collections.abc import Callable, Iterator
from functools import partialmethod
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline import sample, warehouse
from pipeline.collect import fetch
from pipeline.collect.sites import netease
from pipeline.tables import PROVENANCE
from pipeline.tasks.impscore import in_force, pairs
from pipeline.tasks.recam import abstractness, targets
from tests.distributed.cluster import missing
from tests.support.site import Answer, Site

DAY = sample.DAY
THREADS = ",".join(f"{ours}={theirs}" for ours, theirs in sample.THREAD_COLUMNS.items())
Run = Callable[..., Any]
in_the_cluster = pytest.mark.skipif(
    missing() is None, reason="a cluster can be started here: tests/distributed/equality_test.py runs this DAG"
)


def contents() -> dict[str, pl.DataFrame]:
    """Every table's rows in an order of their own, without the run's name, which is provenance only."""
    rows = {}
    for name in warehouse.names():
        frame = warehouse.scan(name).collect()
        frame = frame.drop(PROVENANCE if name == "runs" else "run_id", strict=False)
        rows[name] = frame.sort([c for c in frame.columns if not frame.schema[c].is_nested()])
    return rows


@contextlib.contextmanager
def site_as_netease(monkeypatch: pytest.MonkeyPatch, *, refuse: bool = False) -> Iterator[Site]:
    """The fixture site in the place of NetEase; with `refuse` it refuses its second page of comments."""
    second = "/api/v1/resource/comments/R_SO_4_186000?limit=20&offset=20"
    with Site(faults={second: [Answer(403)] * 9} if refuse else {}) as site:
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


@pytest.mark.slow
def test_sample_through_all_dags_twice(run: Run, home: Path, tiny_encoder: Path) -> None:
    """The sample goes through every DAG (X-06); going through again, now with a logical date, changes no row."""
    chain = [
        ("impscore", {"epochs": 2, "cassette": "sample", "profile": "paper"}),
        ("collect", {"path": "sample"}),
        ("tokenize", {}),
        ("score", {}),
        ("report", {}),
    ]
    before: dict[str, pl.DataFrame] = {}
    for logical_date in (None, dt.datetime(2026, 11, 20, tzinfo=dt.UTC)):
        for dag_id, conf in chain:
            dag_run = run(dag_id, logical_date=logical_date, day=DAY, **conf)
            assert dag_run.state == "success", f"{dag_id}: {states(dag_run)}"
        now = contents()
        for name, frame in before.items():
            assert frame.equals(now[name]), name
        before = now
    counts = {name: frame.height for name, frame in before.items()}
    assert counts["comments"] == counts["scores"] == 301
    assert counts["tokens"] == before["comments"].n_unique(["source", "text_hash"])
    assert counts["pairs"] == counts["completions"] == 260
    assert (home / "reports" / f"{DAY}.html").is_file()


def test_the_day_is_yesterday_by_default(run: Run) -> None:
    """Without key and parameter a run is about the day before it starts; an empty inbox is skipped, not failed."""
    dag_run = run("collect")
    assert states(dag_run)["publish"] == "skipped"
    assert dag_run.state == "success"


def test_a_misspelt_parameter_fails_at_once(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    """A parameter the DAG does not know fails the first task on its first try, and nothing is written."""
    dag_run = run("tokenize", dai=DAY)
    assert states(dag_run)["day"] == "failed"
    assert [ti.try_number for ti in dag_run.get_task_instances() if ti.task_id == "day"] == [1]
    assert "unknown parameters: dai" in "".join(capfd.readouterr())
    assert warehouse.snapshot("tokens") is None


def test_a_day_in_another_form_is_refused(run: Run) -> None:
    """The form does not take a day that is not written as YYYY-MM-DD."""
    with pytest.raises(Exception, match="is not a 'date'"):
        run("tokenize", day="20261119")
    assert warehouse.snapshot("tokens") is None


def test_bad_file_fails_at_once_and_writes_nothing(run: Run, tmp_path: Path) -> None:
    """A broken file fails the task on its first try; no table has a snapshot, and nothing is announced downstream."""
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"text": "fine"}\n{"text": \n', encoding="utf-8")
    dag_run = run("collect", day=DAY, path=str(bad), source="mine")
    assert states(dag_run)["collect_source"] == "failed"
    assert states(dag_run)["publish"] == "upstream_failed"
    assert all(warehouse.snapshot(name) is None for name in warehouse.names())


def test_score_without_a_model_of_ones_own(run: Run) -> None:
    """Before any training a day is scored by the shipped model."""
    run("collect", day=DAY, path="sample", source="zhihu")
    dag_run = run("score", day=DAY)
    assert dag_run.state == "success", states(dag_run)
    rows = warehouse.scan("scores").collect()
    assert rows["model_id"].unique().to_list() == [in_force.load_model(None).model_id]
    assert rows.height == warehouse.scan("comments").collect().height


def test_score_by_a_model_that_is_not_there(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    """A model asked for by an id that nobody knows fails at once, and nothing is published."""
    run("collect", day=DAY, path="sample", source="zhihu")
    dag_run = run("score", day=DAY, model_id="f" * 64)
    assert dag_run.state == "failed"
    assert [ti.try_number for ti in dag_run.get_task_instances() if str(ti.state) == "failed"] == [1]
    assert "0 models in" in "".join(capfd.readouterr())
    assert warehouse.snapshot("scores") is None


def test_a_failing_check_stops_the_report(run: Run, home: Path) -> None:
    """If a check does not hold, its mapped task fails and no report is written."""
    stray = pl.DataFrame(
        {"source": ["zhihu"], "thread_id": ["1"], "comment_id": ["1"],
         "text_hash": ["0" * 32], "metric": ["implicitness"], "model_id": ["m"],
         "value": [1.0], "signature": ["implicitness|none"]}
    ).with_columns(day=pl.lit(DAY).str.to_date())  # fmt: skip
    warehouse.overwrite("scores", warehouse.slice_of(day=DAY), stray)
    dag_run = run("report", day=DAY)
    assert states(dag_run)["check"] == "failed"
    assert states(dag_run)["page"] == "upstream_failed"
    assert not (home / "reports" / f"{DAY}.html").exists()


def test_heal_announces_lost_days(run: Run) -> None:
    """Days with comments but no tokens are announced anew; when nothing is missing the task is skipped."""
    assert states(run("heal"))["announce"] == "skipped"
    run("collect", day=DAY, path="sample", source="weibo")
    assert states(run("heal"))["announce"] == "success"


@pytest.mark.parametrize("logical_date", [None, dt.datetime(2026, 11, 20, tzinfo=dt.UTC)], ids=["no date", "a date"])
def test_upkeep_runs(run: Run, logical_date: dt.datetime | None) -> None:
    """Maintaining and healing run on fresh tables, with and without a logical date."""
    assert run("maintain", logical_date=logical_date).state == "success"
    assert states(run("heal", logical_date=logical_date))["announce"] == "skipped"


def test_a_refusal_half_way_is_announced(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a site gave before it refused is in the tables, and the day is announced."""
    with site_as_netease(monkeypatch, refuse=True):
        dag_run = run("collect", day=DAY, source="netease", live=True, threads=["186000"])
    assert states(dag_run)["publish"] == "success"
    assert warehouse.scan("comments").select(pl.len()).collect().item() > 0


def test_training_waits_for_pairs(run: Run) -> None:
    """With no sentences and no completions the weekly training is skipped, not failed, and nobody is asked."""
    dag_run = run("impscore", day=DAY)
    assert dag_run.state == "success"
    task_states = states(dag_run)
    assert {task_states[task] for task in ("sentences", "answers", "pairs", "train")} == {"skipped"}
    assert {task_states[task] for task in ("data_sets", "questions", "sources")} == {"success"}
    assert all(warehouse.snapshot(name) is None for name in warehouse.names())


@in_the_cluster
def test_summaries_to_readers(
    run: Run, wordnet: None, tiny_encoder: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Articles with summaries become items, readers, a 2 x 2 matrix and a page."""
    monkeypatch.setattr(abstractness, "train", lambda *_: "0" * 64)
    monkeypatch.setattr(targets, "_score_concreteness", lambda words, _: {word: 1.4 / len(word) for word in words})
    path = home.parent / "news.jsonl"
    path.write_text(
        "".join(sample.SUMMARIES.read_text(encoding="utf-8").splitlines(keepends=True)[:12]), encoding="utf-8"
    )
    assert run("collect", day=DAY, path=str(path), source="news").state == "success"
    small = {"hidden": 4, "longest": 20, "longest_gloss": 5, "epochs": 1, "vocabulary": 0}
    conf = {"rule": "paper", "rows_per_shard": 6, "in_context": False, "similar": 0.9999, "numbers": small, "epochs": 1}
    dag_run = run("recam", day=DAY, **conf)
    assert dag_run.state == "success", states(dag_run)
    tables = contents()
    assert tables["cloze_items"]["subtask"].n_unique() == 2
    cells = tables["evaluations"].filter(pl.col("subset").is_in(["imperceptibility", "nonspecificity"]))
    assert cells.filter(metric="accuracy").height == 4
    assert (home / "reports" / f"cloze-{DAY}.html").is_file()


@in_the_cluster
def test_articles_to_commenters_and_correlations(run: Run, home: Path) -> None:
    """Articles with comments become a corpus, commenters, grades, scores, correlations and a page; again the same."""
    news = {"day": DAY, "path": str(sample.THREADS), "source": "sample_news", "mapping": THREADS}
    for dag_id, conf in (("collect", news), ("tokenize", {"day": DAY})):
        assert run(dag_id, **conf).state == "success"
    small = {"hidden": 4, "embedding": 4, "epochs": 1}
    conf = {
        "systems": ["ir_t", "seq2seq"], "tool": "simulated", "rows_per_shard": 10,
        "numbers": {"ir_t": {**small, "judged": 20, "foreign": 5}, "seq2seq": {**small, "vocabulary": 100}},
    }  # fmt: skip
    before: dict[str, pl.DataFrame] = {}
    for _ in range(2):
        dag_run = run("commenting", day=DAY, **conf)
        assert dag_run.state == "success", states(dag_run)
        now = contents()
        for name, frame in before.items():
            assert frame.equals(now[name]), name
        before = now
    assert set(before["generated_comments"]["system"]) == {"ir_t", "seq2seq", "human"}
    assert before["metric_scores"]["is_weighted"].any()
    assert before["studies"].filter(study="correlation").height > 0
    assert (home / "reports" / f"commenting-{DAY}.html").is_file()


@in_the_cluster
def test_comments_and_sample_to_ndd(run: Run, wordnet: None, home: Path) -> None:
    """The sample's comments get a context shift, its sentences compressions, the distance tests; again the same."""
    for dag_id, conf in (("collect", {"day": DAY, "path": "sample", "source": "weibo"}), ("tokenize", {"day": DAY})):
        assert run(dag_id, **conf).state == "success"
    before: dict[str, pl.DataFrame] = {}
    for _ in range(2):
        dag_run = run("ndd", day=DAY, systems=["fast_ndd", "fast_ndd_sc", "cosine"], limit=12)
        assert dag_run.state == "success", states(dag_run)
        now = contents()
        for name, frame in before.items():
            assert frame.equals(now[name]), name
        before = now
    assert set(before["models"]["kind"]) >= {"masked_lm_zh"}
    shifted = before["scores"].filter(metric="context_shift")
    assert shifted.height == before["comments"].height
    assert shifted["value"].is_between(0, 1).all()
    systems = {"gold", "unedited", "head", "tail", "random", "fast_ndd", "fast_ndd_sc"}
    assert set(before["compressions"]["system"]) == systems  # counts have no states for cosine
    assert set(before["studies"]["study"]) == {"compression", "similarity", "pruning", "predicates", "context_shift"}
    assert (home / "reports" / f"ndd-{DAY}.html").is_file()


def latent_hatred(folder: Path, count: int = 12) -> Path:
    """Below `folder`, Latent Hatred in its layout with sentences of our own; and something that is no data set."""
    (folder / "latent_hatred").mkdir(parents=True)
    (folder / "notes").mkdir()
    posts = [
        f"they brought {n} dishes again\tneighbours\tthe neighbours cook too much, {n} times" for n in range(count)
    ]
    stages = {1: ["post\tclass", "nice day\tnot_hate"], 3: ["post\ttarget\timplied_statement", *posts]}
    for stage, lines in stages.items():
        path = folder / "latent_hatred" / f"implicit_hate_v1_stg{stage}_posts.tsv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_data_sets_to_a_model(run: Run, tiny_encoder: Path, tmp_path: Path) -> None:
    """Data sets of a folder become sentences, pairs and a promoted model with its numbers; again nothing changes."""
    conf = {"day": DAY, "data": str(latent_hatred(tmp_path / "sets")), "profile": "paper", "epochs": 2}
    before: dict[str, pl.DataFrame] = {}
    for _ in range(2):
        dag_run = run("impscore", **conf)
        assert dag_run.state == "success", states(dag_run)
        now = contents()
        for name, frame in before.items():
            assert frame.equals(now[name]), name
        before = now
    assert states(dag_run)["answers"] == "skipped"
    assert [before[name].height for name in ("sentences", "pairs", "completions")] == [13, 12, 0]
    assert before["models"].select("is_promoted").rows() == [(True,)]
    assert {"implicitness_accuracy", "length_baseline"} <= set(before["evaluations"]["metric"])
    assert in_force.find_model_id(DAY) == before["models"]["model_id"][0]


def test_a_folder_that_is_not_there_fails_at_once(run: Run, tmp_path: Path) -> None:
    """A mistyped folder fails the first task on its first try, and nothing is trained."""
    dag_run = run("impscore", day=DAY, data=str(tmp_path / "none"))
    assert states(dag_run)["data_sets"] == "failed"
    assert states(dag_run)["train"] == "upstream_failed"
    assert [ti.try_number for ti in dag_run.get_task_instances() if ti.task_id == "data_sets"] == [1]


def test_a_language_model_is_asked(
    run: Run,
    tiny_encoder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Named in the form, a model is asked for what is missing, once; its key shows nowhere, its answers train."""
    from tests.support.llm_server import Server

    key = "kanarienvogel-llm-0042"
    path = tmp_path / "own.csv"
    path.write_text("text,prompt\n" + "".join(f"nice hat {n},explicit_en\n" for n in range(12)), encoding="utf-8")
    pairs.import_sentences("mine", str(path), DAY, is_own=True)
    conf = {"day": DAY, "model": "small-model", "profile": "paper", "epochs": 1}
    with Server() as server:
        connection = {"conn_type": "generic", "host": server.url, "password": key}
        monkeypatch.setenv("AIRFLOW_CONN_UNDERTONE_LLM", json.dumps(connection))
        for _ in range(2):
            dag_run = run("impscore", **conf)
            assert dag_run.state == "success", states(dag_run)
        assert (server.sent.total(), server.paid, server.keys) == (12, 0, {f"Bearer {key}"})
    assert warehouse.scan("pairs").collect().height == 12
    assert warehouse.scan("models").collect()["completion_models"].to_list() == [["small-model"]]
    assert key not in "".join(capfd.readouterr()) + caplog.text


def test_secrets_stay_secret(
    run: Run,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A key and a cookie planted in connections are in no log, XCom, rendered field, table, file or report."""
    canaries = ("kanarienvogel-schluessel-4711", "kanarienvogel-keks-0815")
    monkeypatch.setenv("AIRFLOW_CONN_UNDERTONE_USER_KEY", f'{{"conn_type": "generic", "password": "{canaries[0]}"}}')
    monkeypatch.setenv("AIRFLOW_CONN_UNDERTONE_NETEASE", f'{{"conn_type": "generic", "password": "{canaries[1]}"}}')
    assert run("collect", day=DAY, path="sample").state == "success"
    with site_as_netease(monkeypatch) as site:
        assert run("collect", day=DAY, source="netease", live=True, threads=["186000"]).state == "success"
    assert {r.headers.get("cookie") for r in site.log if "api" in r.path} == {canaries[1]}  # there, and nowhere else
    assert warehouse.scan("comments").select(pl.col("user_id").is_not_null().all()).collect().item()
    haystack = "".join(capfd.readouterr()).encode() + caplog.text.encode()
    for folder in (home, Path(__import__("os").environ["AIRFLOW_HOME"])):
        haystack += b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    for name in warehouse.names():
        haystack += str(warehouse.scan(name).collect().to_dicts()).encode()
    for canary in canaries:
        for form in (canary, base64.b64encode(canary.encode()).decode(), urllib.parse.quote(canary)):
            assert form.encode() not in haystack


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:Multiple rows returned with uselist=False"
)  # each `dag.test` is a version of the DAG
def test_labels_are_published_once_approved(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated raters label the sample and a person sees the card: rejected, nothing is published; approved, it is."""
    from airflow.providers.standard.operators.hitl import ApprovalOperator

    says, cards = [ApprovalOperator.REJECT, ApprovalOperator.APPROVE], []

    def answered(self: Any, context: Any) -> Any:
        cards.append(self.body)
        by = {"id": "1", "name": "admin"}
        event = {"chosen_options": [says.pop(0)], "params_input": {}, "responded_at": dt.datetime.now(dt.UTC)}
        return self.execute_complete(context, {**event, "timedout": False, "responded_by_user": by})

    monkeypatch.setattr(ApprovalOperator, "execute", answered)
    run("collect", day=DAY, path="sample")
    dag_run = run("csd", day=DAY, tool="simulated", limit=6)
    assert states(dag_run)["publish"] == "skipped"
    assert warehouse.scan("annotated_comments").collect().height == 0
    assert warehouse.scan("labels").collect().height > 0
    assert not (home / "releases").exists()
    dag_run = run("csd", day=DAY, tool="simulated", limit=6)
    assert dag_run.state == "success", states(dag_run)
    assert states(dag_run)["train"] == states(dag_run)["score"] == "skipped"
    published = warehouse.scan("annotated_comments").collect()
    assert 0 < published.height <= 30
    assert "simulated raters" in cards[0]
    assert (home / "releases" / "csd" / "README.md").is_file()
    assert (home / "reports" / "labels-csd.html").is_file()
