"""The demo: Airflow up, the shipped sample through every DAG, and the results."""

import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import typer

from pipeline import sample, warehouse
from pipeline.commands.judge import judge
from pipeline.commands.operate import stack
from pipeline.commands.operate.stack import Rest
from pipeline.commands.terminal import console
from pipeline.commands.terminal.console import out, table, working
from pipeline.errors import UndertoneError
from pipeline.slices import parse_day
from pipeline.tasks.daily import report
from pipeline.tasks.impscore import references
from pipeline.tasks.labelling import release
from pipeline.tasks.upkeep import count_rows

CHAIN = ("collect", "tokenize", "score", "report")  # each starts the next by its asset
ALL = (*CHAIN, "impscore", "csd", "recam", "commenting", "ndd", "studies", "heal", "maintain", "forget")
READER = "undertone-reader"  # whose judgements of the comments the sample has
PROJECT = "simulated"  # what the demo's labels are, so that they are taken for nothing else
TRAINING: dict[str, Any] = {"cassette": "sample", "profile": "paper"}  # of `impscore`: a trial of seconds
GPU_SLOTS = 2  # tasks that may use torch at once
NEXT = (parse_day(sample.DAY) + timedelta(days=1)).isoformat()  # the sample once more, for `heal` to find


def up() -> stack.State:
    """Start Airflow on this machine, on loopback only. Example: `undertone up`"""
    warehouse.create()
    secret, is_new = stack.password()
    with working("starting Airflow"):
        running = stack.start()
        with Rest(running["url"]) as rest:
            rest.pool("gpu", GPU_SLOTS)
            rest.wait_for_dags(set(ALL))
            if is_new:  # later, what somebody paused stays paused
                rest.unpause(*ALL)
    file = stack.airflow_home() / "passwords.json"
    password = f"{secret}, kept in {file}" if is_new else f"in {file}"
    out.print(f"Airflow: {running['url']}  user admin, password {password}", soft_wrap=True)
    return running


def demo() -> None:
    """Run the shipped sample through the whole pipeline on Airflow, and show the results. Example: `undertone demo`"""
    console.report(f"the sample of {len(sample.list_sites())} sites, filed under {sample.DAY}")
    timer = time.monotonic()
    running = up()
    console.report(f"{time.monotonic() - timer:5.0f} s  Airflow is up")
    with Rest(running["url"]) as rest:
        rest.unpause(*CHAIN, "impscore", "csd")
        earlier = {dag: {run["dag_run_id"] for run in rest.runs(dag)} for dag in ALL}
        rest.trigger("impscore", sample.DAY, TRAINING)
        _await(rest, "impscore", earlier, timer)
        rest.trigger("collect", sample.DAY, {"path": "sample"})
        for dag in CHAIN:
            _await(rest, dag, earlier, timer)
        if not warehouse.scan("scores", pl.col("day") == parse_day(NEXT)).head(1).collect().height:
            _miss_a_day(rest, earlier, timer)
        rest.trigger("csd", sample.DAY, {"tool": "simulated", "project": PROJECT, "limit": 20})
        _await(rest, "csd", earlier, timer, approves=True)
    _show(running)


def _miss_a_day(rest: Rest, earlier: dict[str, set[str]], timer: float) -> None:
    """Let a second day arrive while `tokenize` is paused, and let `heal` announce the day that it missed."""
    rest.pause("tokenize")
    rest.trigger("collect", NEXT, {"path": "sample"})
    _await(rest, "collect", earlier, timer, NEXT)
    rest.unpause("tokenize", "heal")
    rest.call("POST", "/dags/heal/dagRuns", json={"logical_date": None, "conf": {}})
    for dag in ("heal", *CHAIN[1:]):
        _await(rest, dag, earlier, timer, NEXT)


def _await(
    rest: Rest, dag: str, earlier: dict[str, set[str]], timer: float, day: str = sample.DAY, *, approves: bool = False
) -> None:
    with working(f"{dag} is running" + (", by simulated raters, and approved as it asks" if approves else "")):
        run = rest.wait_run(dag, day, earlier[dag], approves=approves)
    name = dag if day == sample.DAY else f"{dag} of {day}"
    console.report(f"{time.monotonic() - timer:5.0f} s  {name}: {run['state']}")
    if run["state"] != "success":
        failed = ", ".join(rest.failures(dag, run["dag_run_id"]))
        raise UndertoneError(f"{dag} failed in {failed}; its log is in the UI")


def _show(running: stack.State) -> None:
    with suppress(typer.Exit):  # other comments of the day have no judgement
        judge(READER, day=sample.DAY, limit=1_000, repeats=1, answers=[Path("sample")])
    table(count_rows(), "\nTables")
    columns = (pl.col("judged", "percentile").round().cast(pl.Int64), "implicitness", "band", "source", "text")
    *ends, agreement = report.select_judged(sample.DAY, READER)
    for title, comments in zip(("Most", "Least"), ends, strict=True):
        table(comments.select(columns), f"\n{title} implicit, as {READER} judged (0 to 4), equal grades by likes")
    table(agreement, f"\nHow the model, which has the scores, agrees with {READER}")
    out.print(f"{READER} is a language model that read the sample blind; the scores are by the model in force.")
    references.warn_weak(None, references.load_reference(None))
    out.print(f"\nReport   {report.locate_page(sample.DAY)}", soft_wrap=True)
    out.print(f"Labels   {release.get_page_path(PROJECT)} (raters are simulated)", soft_wrap=True)
    missed = f"{NEXT} came while tokenize was paused; heal found it"
    out.print(f"Days     {report.write_health(NEXT)} ({missed})", soft_wrap=True)
    out.print(f"Airflow  {running['url']} (still running)", soft_wrap=True)
    out.print("Stop it  make down, or undertone down")
