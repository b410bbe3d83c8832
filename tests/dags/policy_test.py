"""What holds for every DAG file: it parses light, documents itself, and keeps the house rules."""

import ast
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from pipeline import settings, tables
from pipeline.errors import BadInput, Missing, Refused, SchemaDrift
from tests.support.dag_run import DAGS

FILES = sorted(path for path in DAGS.glob("*.py"))
IDS = {"collect", "tokenize", "csd", "impscore", "recam", "commenting", "ndd", "score", "report", "studies", "heal"}
IDS |= {"maintain", "forget", "judge"}
HEAVY = ("torch", "transformers", "sentence_transformers", "stanza", "nltk", "jieba", "polars", "pyiceberg", "duckdb",
         "pyarrow", "matplotlib", "sklearn")  # fmt: skip


def test_all_dags_import(bag: Any) -> None:
    """No DAG file fails to import, and these are all there are."""
    assert bag.import_errors == {}
    assert set(bag.dags) == IDS


def test_forms_have_the_defaults_of_the_library(bag: Any) -> None:
    """The numbers of forms, written there because a DAG file imports nothing heavy, are the library's defaults."""
    from pipeline.examples.commenting.threads import Rules
    from pipeline.examples.recam import building
    from pipeline.tasks.commenting import corpus
    from pipeline.tasks.daily import score
    from pipeline.tasks.daily import tokenize as tokens
    from pipeline.tasks.judging import judge
    from pipeline.tasks.recam import targets
    from pipeline.warehouse.upkeep.limits import Limits

    limits = Limits()
    expected = {
        "score": {"rows_per_shard": score.ROWS_PER_SHARD},
        "tokenize": {"rows_per_shard": tokens.ROWS_PER_SHARD},
        "recam": {"rows_per_shard": targets.ROWS_PER_SHARD, "similar": building.SIMILAR},
        "judge": {"days": judge.DAYS, "limit": judge.SAMPLE},
        "commenting": {"rows_per_shard": corpus.ROWS_PER_SHARD, **{
            name: getattr(Rules(), name)
            for name in ("least_words", "least_comments", "test_comments", "comment_words", "likes", "references")
        }},
        "maintain": {
            "keep_days": limits.keep.days, "grace_hours": limits.grace / timedelta(hours=1),
            "quiet_hours": limits.quiet / timedelta(hours=1), "small_files": limits.files,
            "target_megabytes": limits.target >> 20, "gigabytes": limits.budget >> 30, "verify_weeks": limits.weeks,
        },
    }  # fmt: skip
    forms = {dag_id: {name: bag.dags[dag_id].params[name] for name in names} for dag_id, names in expected.items()}
    assert forms == expected


def test_tasks_of_the_default_queue_need_no_torch() -> None:
    """What a task imports that is not on the queue `gpu` is there where torch is not: only GPU workers need it."""
    imports = {}
    for file in FILES:
        for function in (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)):
            if "GPU" not in " ".join(map(ast.unparse, function.decorator_list)):
                lines = [ast.unparse(node) for node in ast.walk(function) if isinstance(node, ast.ImportFrom)]
                inner = (node for node in ast.walk(function) if node is not function)
                if lines and not any(isinstance(node, ast.FunctionDef) for node in inner):
                    imports[f"{file.stem}.{function.name}"] = "; ".join(lines)
    code = (
        "import json, sys\n"
        "failures = {}\n"
        f"for name, lines in {imports!r}.items():\n"
        "    try:\n"
        "        exec(lines)\n"
        "    except ImportError as error:\n"
        "        failures[name] = str(error)\n"
        "print(json.dumps(failures))\n"
    )
    paths = [Path(__file__).parents[1] / "distributed" / "torchless", DAGS, DAGS.parent]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert len(imports) > 50
    assert json.loads(process.stdout.splitlines()[-1]) == {}


def test_parses_light() -> None:
    """Beyond airflow.sdk itself no DAG file loads a heavy module."""
    code = (
        "import sys, json, importlib\n"
        "import airflow.sdk\n"
        "from airflow.sdk import CronPartitionTimetable, PartitionedAssetTimetable, ExceptionRetryPolicy, Param, dag\n"
        f"sys.path.append({str(DAGS)!r})\n"
        "loaded = {}\n"
        f"for name in {[file.stem for file in FILES]!r}:\n"
        "    before = set(sys.modules)\n"
        "    importlib.import_module(name)\n"
        "    loaded[name] = sorted(set(sys.modules) - before)\n"
        "print(json.dumps(loaded))\n"
    )
    process = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    loaded = json.loads(process.stdout.splitlines()[-1])
    assert len(loaded) == len(FILES)
    assert {file: heavy for file, names in loaded.items() if (heavy := sorted({*HEAVY} & {*names}))} == {}


@pytest.mark.parametrize("file", [f for f in FILES if f.stem in {*IDS, "segment"}], ids=lambda path: path.stem)
def test_holds_no_logic(file: Any) -> None:
    """A DAG file wires: no while loops, no classes, no task longer than 20 lines.

    It bears the name of no standard-library module, which it would hide from every task.
    """
    assert file.stem not in sys.stdlib_module_names
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        assert not isinstance(node, (ast.While, ast.ClassDef)), f"line {node.lineno}"
    tasks = [inner for outer in tree.body if isinstance(outer, ast.FunctionDef) for inner in ast.walk(outer)
             if isinstance(inner, ast.FunctionDef) and inner is not outer]  # fmt: skip
    assert max(task.end_lineno - task.lineno for task in tasks) <= 20


def test_house_rules(bag: Any) -> None:
    """Every DAG has docs with triage notes, an owner, tags of the enum, retries, the retry policy and no start date."""
    from dag_defaults import Tag

    for dag in bag.dags.values():
        assert "**Triage.**" in dag.doc_md, dag.dag_id
        assert dag.tags <= {tag.value for tag in Tag}, dag.dag_id
        assert dag.tags, dag.dag_id
        assert not dag.catchup
        for task in dag.tasks:
            assert task.owner == "undertone"
            assert task.retries >= 2, task.task_id
            assert task.retry_policy is not None, task.task_id
            assert task.start_date is None


def test_unpausing_starts_nothing_at_once(bag: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However soon after a tick a scheduled DAG is unpaused, as the scheduler reads it, its first run is the next."""
    from airflow.serialization.serialized_objects import DagSerialization
    from airflow.timetables.base import TimeRestriction

    names = []
    for dag in bag.dags.values():
        timetable = DagSerialization.from_dict(DagSerialization.to_dict(dag)).timetable
        if not (cron := getattr(timetable, "_expression", None)):
            continue
        tick = datetime(2026, 11, 22 if cron.endswith("0") else 23, int(cron.split()[1]), tzinfo=UTC)
        for now in (tick + timedelta(hours=hours) for hours in (0.1, 14, 71)):
            monkeypatch.setattr("airflow.timetables.trigger.utcnow", lambda now=now: now)
            restriction = TimeRestriction(earliest=None, latest=None, catchup=False)
            run = timetable.next_dagrun_info_v2(last_dagrun_info=None, restriction=restriction)
            assert run.run_after > now, dag.dag_id
        names.append(dag.dag_id)
    assert set(names) == {"collect", "impscore", "heal", "maintain", "judge", "studies"}
    assert bag.dags["judge"].is_paused_upon_creation  # it costs money


def test_assets_are_the_tables(bag: Any) -> None:
    """Every table is an asset, described as in its DDL, and every table that a DAG's text names is an asset of it."""
    from dag_assets import PAGES, TABLES

    described = {name: asset.extra["description"] for name, asset in TABLES.items()}
    assert set(described) == set(tables.TABLES)
    for name, description in described.items():
        first_line = (DAGS.parent / "sql" / "tables" / f"{name}.sql").read_text(encoding="utf-8").partition("\n")[0]
        assert first_line.startswith(f"-- {description}"), name
    for dag in bag.dags.values():
        linked = {asset.name for task in dag.tasks for asset in [*task.inlets, *task.outlets]}
        named = set(re.findall("`([a-z_]+)`", dag.doc_md)) & set(described)
        assert dag.dag_id in ("heal", "maintain") or named <= linked, dag.dag_id
    pages = {asset.name for dag in bag.dags.values() for task in dag.tasks for asset in task.outlets} - set(described)
    assert pages == {page.name for page in PAGES.values()}


def test_schedules_are_settings(airflow_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting turns a schedule off or changes it; every DAG has one."""
    from dag_defaults import schedule

    assert set(settings.SCHEDULES) == IDS
    assert schedule("csd", has_day=True).partitioned_at_runtime  # a run by hand takes the day as its partition key
    assert schedule("score", has_day=True).asset_condition.name == "tokens"
    monkeypatch.setenv("UNDERTONE_SCHEDULES", "score=off; csd = 30 5 * * 2;")
    assert not schedule("score", has_day=True).can_be_scheduled
    assert schedule("forget", has_day=False) is None
    assert schedule("csd", has_day=True).expression == "30 5 * * 2"
    monkeypatch.setenv("UNDERTONE_SCHEDULES", "scores=off")
    with pytest.raises(BadInput, match=r"UNDERTONE_SCHEDULES: expected DAG=SCHEDULE .* found 'scores=off'"):
        schedule("score", has_day=True)


def test_gpu_tasks_wait_in_the_pool(bag: Any) -> None:
    """What imports torch goes to the queue and the pool `gpu`, so that it waits as scheduled and never starves."""
    gpu = {(dag.dag_id, task.task_id) for dag in bag.dags.values() for task in dag.tasks if task.queue == "gpu"}
    assert gpu >= {("impscore", "train"), ("score", "implicitness"), ("studies", "train"), ("studies", "describe")}
    assert gpu >= {("forget", "erase"), ("studies", "page"), *(("recam", task) for task in ("rules", "find", "items"))}
    task_ids = ("model", "count", "context_shift", "relate", "systems", "compress", "thresholds", "test", "page")
    assert gpu >= {("ndd", task) for task in task_ids}
    assert not [name for name in gpu if name[1] in ("publish", "pairs", "sentences", "answers", "questions", "ask")]
    assert all(bag.dags[d].get_task(t).pool == "gpu" for d, t in gpu)
    page = (DAGS.parent / "docs" / "dags.md").read_text(encoding="utf-8")
    rows = re.findall(r"`([a-z]+)`: ((?:`[a-z_.]+`(?:, )?)+)", page.partition("| tasks | GPU |")[2])
    assert {(dag_id, name) for dag_id, names in rows for name in re.findall("[a-z_.]+", names)} == gpu


def test_reducers_run_on_empty_days(bag: Any) -> None:
    """The task after a mapped one runs when nothing was mapped, or an empty day would keep its stale rows.

    In `impscore` neither a folder of data sets nor a model to ask is needed to train on what is in the tables.
    """
    reducers = [("collect", "publish"), ("tokenize", "publish"), ("score", "publish"), ("report", "page")]
    reducers += [("impscore", "questions"), ("impscore", "sources"), ("studies", "publish")]
    for dag_id, task_id in reducers:
        assert bag.dags[dag_id].get_task(task_id).trigger_rule == "none_failed"


def test_final_errors_are_not_retried(airflow_db: None) -> None:
    """The retry policy fails at once on bad input and its kin, and leaves Retry to be retried."""
    from dag_defaults import DEFAULTS

    rules = DEFAULTS["default_args"]["retry_policy"].rules
    names = {error.__name__ for error in (BadInput, Missing, Refused, SchemaDrift)}
    assert {rule.exception for rule in rules} == {f"pipeline.errors.{name}" for name in names}


def test_attempts_at_mapped_tasks_are_told_apart(airflow_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks mapped side by side do not overtake each other; a later try of the same one does."""
    from dag_defaults import mark_attempt

    monkeypatch.setenv("UNDERTONE_ATTEMPT", "")  # so that it is put back at the end
    attempts = []
    for index, minute in ((0, 1), (1, 2), (0, 3)):
        start_date = datetime(2026, 11, 19, 8, minute, tzinfo=UTC)
        ti = SimpleNamespace(dag_id="d", task_id="t", map_index=index, start_date=start_date)
        mark_attempt({"ti": ti})
        attempt = settings.attempt()
        assert attempt is not None
        attempts.append(attempt)
    first, other, second = attempts
    assert first.task == second.task != other.task
    assert first.began < second.began


def test_parameters(bag: Any) -> None:
    """Each parameter has a title and a description; what a form cannot refuse fails in a task before all others."""
    for dag in bag.dags.values():
        for name, param in ((name, dag.params.get_param(name)) for name in dag.params):
            assert param.schema.get("title"), f"{dag.dag_id}.{name}"
            assert param.schema.get("description") or param.description, f"{dag.dag_id}.{name}"
    for dag_id in ("ndd", "commenting", "studies"):
        dag = bag.dags[dag_id]
        assert dag.get_task("check").upstream_task_ids == set()
        assert [task.task_id for task in dag.tasks if not task.upstream_task_ids] == ["check"], dag_id


def test_choices_on_the_form_are_those_there_are(bag: Any) -> None:
    """The forms offer what the library has, so that Airflow refuses any other before a run; ImpScore's own first."""
    from pipeline.metrics.ndd.distance import DIVERGENCES, WEIGHTS, Weights
    from pipeline.score.compress.search import SPANS
    from pipeline.tasks.commenting import commenters
    from pipeline.tasks.ndd import systems
    from pipeline.tasks.recam import readers
    from pipeline.text.senses import MEASURES
    from pipeline.training.impscore.fit import PROFILES

    choices = {
        ("impscore", "profile"): PROFILES, ("ndd", "systems"): systems.SYSTEMS, ("ndd", "weights"): WEIGHTS,
        ("ndd", "divergence"): [None, *DIVERGENCES], ("ndd", "pair_weights"): get_args(Weights),
        ("ndd", "spans"): SPANS, ("commenting", "systems"): commenters.SYSTEMS,
        ("recam", "profile"): readers.list_modules(), ("recam", "senses"): MEASURES,
    }  # fmt: skip
    for (dag_id, name), values in choices.items():
        schema = bag.dags[dag_id].params.get_param(name).schema
        assert {*schema.get("items", schema)["enum"]} == {*values}, (dag_id, name)
    assert bag.dags["impscore"].params["profile"] == "undertone"
    assert bag.dags["impscore"].params["model"] is None  # nothing is paid for unless the form names a model
    assert bag.dags["impscore"].params["promote"] is False


def test_what_is_not_due_runs_nothing(bag: Any) -> None:
    """`due` skips no task that is mapped over a list of ours (Airflow skips the index -1 alone), so its rule must."""
    from airflow.sdk import XComArg

    for task in (task for dag in bag.dags.values() for task in dag.tasks if task.is_mapped):
        values = task._get_specified_expand_input().value
        is_literal = isinstance(values, dict) and not any(isinstance(value, XComArg) for value in values.values())
        assert not is_literal or task.trigger_rule == "all_success", (task.dag_id, task.task_id)
