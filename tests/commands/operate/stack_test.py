"""Airflow on this machine for real: the demo, a backfill, and no orphan after stopping.

Real data, and every DAG, go through a scheduler in tests/distributed.
"""

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from pipeline import sample, warehouse
from pipeline.commands.operate import demo, stack
from pipeline.tasks.daily import report
from pipeline.tasks.labelling import release

DAY = sample.DAY


@pytest.fixture
def airflow(home: Path) -> Any:
    """Nothing running before, nothing left after."""
    assert stack.state() is None
    yield
    stack.stop()
    warehouse.close()


def count_rows(day: str) -> dict[str, int]:
    """Count the rows of a day by table."""
    counts = warehouse.query(
        "select 'comments' as name, count(*) as n from comments where day = $1 "
        "union all select 'scores', count(*) from scores where day = $1 "
        "union all select 'articles', count(*) from articles where day = $1 "
        "union all select 'dropped', count(*) from dropped "
        "where day = $1 and step not in ('pairs', 'select', 'labels')",
        [day],
    )
    return dict(counts.rows())


def test_a_pid_that_came_round_again_is_a_stranger(home: Path) -> None:
    """After a reboot the remembered pid may be somebody else's: it and its session are not taken for the stack."""
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        old = stack.State(pid=stranger.pid, started=0.0, url="http://127.0.0.1:1", mark="none")
        assert stack.processes(old) == []
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize(("part", "imported"), [("scheduler", ["nltk"]), ("triggerer", [])])
def test_the_scheduler_alone_imports_before_it_forks(
    home: Path, tmp_path: Path, part: str, imported: list[str]
) -> None:
    """What tasks need is imported once where they are forked from; what cannot be imported is passed over."""
    for name in ("nltk", "pyiceberg", "sentence_transformers"):
        source = "" if name == "nltk" else "raise OSError"
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    env = stack.environment("http://127.0.0.1:1", "none", 2, 3)
    env["PYTHONPATH"] += os.pathsep + str(tmp_path)
    code = f"""
import multiprocessing, sys
multiprocessing.set_start_method("fork")
sys.argv = ["airflow", {part!r}]
from airflow_local_settings import *
print([*sys.modules.keys() & {{"nltk", "sentence_transformers"}}], [name for name in globals() if "lib" in name])
"""
    output = subprocess.check_output([sys.executable, "-c", code], env=env, text=True)
    assert output.strip() == f"{imported} []"


@pytest.mark.parametrize(("part", "seconds"), [("scheduler", 60), ("api-server", 5)])
def test_parts_wait_for_the_lock_of_sqlite(home: Path, part: str, seconds: int) -> None:
    """The scheduler waits a minute for SQLite's lock, since it ends after a few failures; the api-server does not."""
    env = stack.environment("http://127.0.0.1:1", "none", 2, 3)
    code = f"import sys; sys.argv = ['airflow', {part!r}]\nfrom airflow import settings\n"
    code += "print(settings.engine.connect().exec_driver_sql('pragma busy_timeout').scalar())"
    output = subprocess.check_output([sys.executable, "-c", code], env=env, text=True)
    assert output.splitlines()[-1] == str(seconds * 1000)


@pytest.mark.slow
@pytest.mark.alone
def test_demo_then_down(airflow: Any, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The demo works, also for a day that a paused DAG missed; Airflow is started once and tells its secret once; no
    process stays. That DAGs run again change no row is tested without a scheduler (tests/dags/flow_test.py).
    """
    demo.demo()
    output = capsys.readouterr().out
    secret = stack.password()[0]
    assert secret in output
    assert str(report.locate_page(DAY)) in output
    # each comment has a score by the model and one by the judge of the sample
    rows = {"comments": 301, "scores": 602, "articles": 30, "dropped": 23}
    assert (count_rows(DAY), count_rows(demo.NEXT)) == (rows, rows | {"scores": 301})
    published = warehouse.scan("annotated_comments").collect()
    assert 80 <= published.height <= 100  # 20 of each of five sites, less those deleted
    assert release.get_page_path(demo.PROJECT).is_file()
    running = stack.state()
    assert running is not None
    assert demo.up() == running
    output = capsys.readouterr().out
    assert secret not in output
    assert f"password in {stack.airflow_home() / 'passwords.json'}" in output
    assert stack.airflow_home().joinpath("passwords.json").stat().st_mode & 0o077 == 0
    port = int(running["url"].rpartition(":")[2])
    listening = []
    for pid in stack.processes(running):
        with contextlib.suppress(psutil.NoSuchProcess):  # a task that has ended since
            listening += [c.laddr for c in psutil.Process(pid).net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    assert {address.ip for address in listening if address.port == port} == {"127.0.0.1"}

    stack.stop()
    assert stack.processes(running) == []
    assert stack.state() is None
