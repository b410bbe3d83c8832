"""Airflow on this machine: start `airflow standalone` on loopback, talk to it over REST, stop it without orphans.

SIGTERM orphans its children, and a shell's background job ignores SIGINT; so it is started in a session of its own
with SIGINT restored, stopped by SIGINT, and what is left after a grace time is stopped by pid (all facts measured).
"""

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self, TypedDict

import httpx
import psutil

from pipeline import settings
from pipeline.errors import Missing, Retry

PORT = 8080
GRACE = 20.0  # seconds for an orderly stop
_PARTS = ("metadatabase", "scheduler", "dag_processor", "triggerer")
_ENDED = ("success", "failed")


_CHILDREN: "dict[int, subprocess.Popen[bytes]]" = {}  # stacks this process started, to be reaped when they end


class State(TypedDict):
    """What is remembered of a running stack, in <home>/airflow/stack.json."""

    pid: int
    url: str
    mark: str


def airflow_home() -> Path:
    """Airflow's own folder."""
    return settings.home() / "airflow"


def state() -> State | None:
    """The running stack, if one is."""
    path = airflow_home() / "stack.json"
    if not path.is_file():
        return None
    found: State = json.loads(path.read_text())
    return found if processes(found) else None


def dags_folder() -> Path:
    """The DAG files: beside the package in a checkout, inside it in an installed wheel."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package.parent / "dags", package / "dags"):
        if (folder / "house.py").is_file():
            return folder
    raise Missing("the folder dags/ was not installed with the package; reinstall undertone")


def password() -> tuple[str, bool]:
    """The admin password, and whether it was made just now. It lies in a file only its owner can read."""
    path = airflow_home() / "passwords.json"
    if path.is_file():
        return str(json.loads(path.read_text())["admin"]), False
    airflow_home().mkdir(parents=True, exist_ok=True, mode=0o700)
    made = secrets.token_urlsafe(12)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as file:
        json.dump({"admin": made}, file)
    return made, True


def environment(url: str, mark: str, logs: int, triggers: int, parallelism: int = 4) -> dict[str, str]:
    """The environment of the stack: ours without other Airflow settings, everything on loopback."""
    home = airflow_home()
    own = {name: value for name, value in settings.environment().items() if not name.startswith("AIRFLOW__")}
    port = url.rpartition(":")[2]
    return {
        **own,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{own.get('PATH', '')}",  # standalone runs `airflow` by name
        "UNDERTONE_HOME": str(settings.home()),
        "UNDERTONE_STACK": mark,  # every descendant carries it: one way to find them
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags_folder()),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": str(parallelism),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": port,
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(logs),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(triggers),
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
        "OMP_NUM_THREADS": own.get("OMP_NUM_THREADS", "1"),
        "HF_HUB_OFFLINE": own.get("HF_HUB_OFFLINE", "1"),
        "TOKENIZERS_PARALLELISM": "false",
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        "NO_COLOR": "1",
    }


def start(timeout: float = 180) -> State:
    """Start Airflow and wait until it is healthy; the running one if there is one."""
    if running := state():
        return running
    password()
    wanted, logs, triggers = _ports(PORT)
    url, mark = f"http://127.0.0.1:{wanted}", secrets.token_hex(8)
    log = airflow_home() / "standalone.log"
    with log.open("ab") as sink:
        process = subprocess.Popen(
            ["airflow", "standalone"],
            env=(env := environment(url, mark, logs, triggers)), executable=_airflow(env),
            stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT, cwd=airflow_home(),
            start_new_session=True, preexec_fn=_restore_interrupt,  # noqa: PLW1509  # single-threaded here
        )  # fmt: skip
    _CHILDREN[process.pid] = process
    started = State(pid=process.pid, url=url, mark=mark)
    (airflow_home() / "stack.json").write_text(json.dumps(started))
    try:
        _wait_healthy(url, process, timeout)
    except BaseException:
        stop()
        raise
    return started


def _restore_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _airflow(env: dict[str, str]) -> str:
    path = Path(env["PATH"].split(os.pathsep)[0]) / "airflow"
    if not path.is_file():
        raise Missing(f"airflow is not installed beside {sys.executable}; run `make setup`")
    return str(path)


def _ports(preferred: int) -> tuple[int, int, int]:
    """The preferred port if free, and two free ones; all held at once so that they differ."""
    with contextlib.ExitStack() as stack:
        held = []
        for wanted in (preferred, 0, 0):
            sock = stack.enter_context(socket.socket())
            try:
                sock.bind(("127.0.0.1", wanted))
            except OSError:
                sock.bind(("127.0.0.1", 0))
            held.append(int(sock.getsockname()[1]))
    return held[0], held[1], held[2]


def _wait_healthy(url: str, process: "subprocess.Popen[bytes]", timeout: float) -> None:
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if process.poll() is not None:
            raise Missing(f"airflow ended with {process.returncode}; see {airflow_home() / 'standalone.log'}")
        with contextlib.suppress(httpx.HTTPError, ValueError, KeyError):
            health = httpx.get(f"{url}/api/v2/monitor/health", timeout=3, trust_env=False).json()
            if all(health[part]["status"] == "healthy" for part in _PARTS):
                return
        time.sleep(0.5)
    raise Retry(f"airflow was not healthy after {timeout:.0f} s; see {airflow_home() / 'standalone.log'}")


def processes(found: State) -> list[int]:
    """Every living process of the stack: of its session, with its mark in the environment, or below one of those.

    A changed process title overwrites the environment of the api-server and workers, and a task has a process group
    of its own; so none of the three ways is enough alone.
    """
    mark, mine = f"UNDERTONE_STACK={found['mark']}".encode(), set[int]()
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        with contextlib.suppress(OSError, psutil.Error):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            if os.getsid(process.pid) == found["pid"] or _marked(process, mark):
                mine |= {process.pid} | {child.pid for child in process.children(recursive=True)}
    return sorted(mine)


def _marked(process: psutil.Process, mark: bytes) -> bool:
    name, _, value = mark.decode().partition("=")
    return process.environ().get(name) == value


def stop(grace: float = GRACE) -> int:
    """Stop the stack; return how many processes had to be killed. Killing is safe: every task is a transaction."""
    path = airflow_home() / "stack.json"
    if not path.is_file():
        return 0
    found: State = json.loads(path.read_text())
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if found["pid"] in processes(found):
            os.kill(found["pid"], signal.SIGINT)
    left = _gone_within(found, grace)
    for sig in (signal.SIGTERM, signal.SIGKILL):
        for pid in processes(found):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sig)
        _gone_within(found, 5)
    path.unlink(missing_ok=True)
    return left


def _gone_within(found: State, seconds: float) -> int:
    end = time.monotonic() + seconds
    while processes(found) and time.monotonic() < end:
        if child := _CHILDREN.get(found["pid"]):
            child.poll()  # reaps it
        time.sleep(0.25)
    return len(processes(found))


class Rest:
    """Airflow's REST interface, version 2."""

    def __init__(self, url: str) -> None:
        """Log in as admin."""
        credentials = {"username": "admin", "password": password()[0]}
        answer = httpx.post(f"{url}/auth/token", json=credentials, timeout=30, trust_env=False)
        answer.raise_for_status()
        token = answer.json()["access_token"]
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=f"{url}/api/v2", headers=headers, timeout=60, trust_env=False)

    def __enter__(self) -> Self:
        """Use it in a `with`, which closes its connections."""
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def call(self, method: str, path: str, accept: tuple[int, ...] = (200, 201, 204), **kwargs: Any) -> Any:
        """The answer's JSON; another status than accepted is Retry."""
        answer = self._http.request(method, path, **kwargs)
        if answer.status_code not in accept:
            raise Retry(f"Airflow: {method} {path} answered {answer.status_code}: {answer.text[:300]}")
        return answer.json() if answer.content else None

    def wait_for_dags(self, wanted: set[str], timeout: float = 120) -> None:
        """Wait until the DAGs are parsed."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if errors := self.call("GET", "/importErrors")["import_errors"]:
                raise Missing(f"{errors[0]['filename']} cannot be imported:\n{errors[0]['stack_trace']}")
            if wanted <= {dag["dag_id"] for dag in self.call("GET", "/dags", params={"limit": 100})["dags"]}:
                return
            time.sleep(0.5)
        raise Retry(f"the DAGs {', '.join(sorted(wanted))} were not parsed within {timeout:.0f} s")

    def pool(self, name: str, slots: int) -> None:
        """Make a pool unless it is there. A missing pool leaves tasks scheduled for ever, so pools come first."""
        body = {"name": name, "slots": slots, "description": "", "include_deferred": False}
        self.call("POST", "/pools", (200, 201, 409), json=body)

    def unpause(self, *dag_ids: str) -> None:
        """Let DAGs run."""
        for dag_id in dag_ids:
            self.call("PATCH", f"/dags/{dag_id}", json={"is_paused": False})

    def trigger(self, dag_id: str, day: str, conf: dict[str, Any] | None = None) -> str:
        """Start a run for a day; return its id."""
        body = {"logical_date": None, "partition_key": day, "conf": conf or {}}
        return str(self.call("POST", f"/dags/{dag_id}/dagRuns", json=body)["dag_run_id"])

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        """The DAG's runs, newest first."""
        answer = self.call("GET", f"/dags/{dag_id}/dagRuns", params={"order_by": "-id", "limit": 50})
        return list(answer["dag_runs"])

    def wait_run(self, dag_id: str, day: str, after: set[str], timeout: float = 600) -> dict[str, Any]:
        """Wait for a run for a day, other than those in `after`, to end; return it."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            for run in self.runs(dag_id):
                if run["dag_run_id"] not in after and run["partition_key"] == day and run["state"] in _ENDED:
                    return run
            time.sleep(0.5)
        raise Retry(f"{dag_id}: no run for {day} ended within {timeout:.0f} s")

    def failures(self, dag_id: str, run_id: str) -> list[str]:
        """Names of a run's failed tasks."""
        tasks = self.call("GET", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances")["task_instances"]
        return [task["task_id"] for task in tasks if task["state"] == "failed"]
