"""Airflow on this machine: start `airflow standalone` on loopback, stop it without orphans, and call its REST API.

SIGTERM orphans its children, so a session of its own is stopped by SIGINT, and what remains by pid.
"""

import contextlib
import json
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, TypedDict

import httpx
import psutil

from pipeline import private, settings
from pipeline.errors import Missing, Retry
from pipeline.io.atomic import write_text

log = logging.getLogger(__name__)
PORT = 8080
GRACE = 20.0  # seconds for an orderly stop
HEALTHY = 180  # seconds for the start
_LOCAL_SETTINGS = Path(__file__).with_name("local_settings")
_PARTS = ("metadatabase", "scheduler", "dag_processor", "triggerer")
_CHILDREN: "dict[int, subprocess.Popen[bytes]]" = {}  # stacks this process started, to be reaped when they end


class State(TypedDict):
    """What is remembered of a running stack, in <home>/airflow/stack.json."""

    pid: int
    started: float  # when that process began: pids come round again
    url: str
    mark: str


def airflow_home() -> Path:
    return settings.home() / "airflow"


def _read_state() -> State | None:
    path = airflow_home() / "stack.json"
    return json.loads(path.read_text()) if path.is_file() else None


def state() -> State | None:
    """The running stack, if one is."""
    stack = _read_state()
    return stack if stack and processes(stack) else None


def password() -> tuple[str, bool]:
    """The admin password, and whether it was made just now. It lies in a file only its owner can read."""
    path = airflow_home() / "passwords.json"
    if path.is_file():
        return str(json.loads(path.read_text())["admin"]), False
    private.make_folder(airflow_home())
    secret = secrets.token_urlsafe(12)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as file:
        json.dump({"admin": secret}, file)
    return secret, True


def environment(url: str, mark: str, logs: int, triggers: int) -> dict[str, str]:
    """The environment of the stack: ours without other Airflow settings, the UI and its interface on loopback."""
    home = airflow_home()
    ours = {name: value for name, value in settings.environment().items() if not name.startswith("AIRFLOW__")}
    return {
        **ours,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{ours.get('PATH', '')}",  # standalone runs `airflow` by name
        "PYTHONPATH": os.pathsep.join([*filter(None, [ours.get("PYTHONPATH")]), str(_LOCAL_SETTINGS)]),
        **settings.absolute(),  # a task does not run in our working directory
        "UNDERTONE_STACK": mark,  # every descendant carries it: one way to find them
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(settings.locate_shipped("dags/dag_defaults.py").parent),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS": "sqlite_wait.CONNECT_ARGS",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS_ASYNC": "sqlite_wait.CONNECT_ARGS",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": url.rpartition(":")[2],
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__LOGGING__FILE_TASK_HANDLER_NEW_FOLDER_PERMISSIONS": "0o700",
        "AIRFLOW__LOGGING__FILE_TASK_HANDLER_NEW_FILE_PERMISSIONS": "0o600",
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(logs),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(triggers),
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "120",  # at the default 30 it takes a tenth of a core
        "OMP_NUM_THREADS": ours.get("OMP_NUM_THREADS", "1"),
        "HF_HUB_OFFLINE": ours.get("HF_HUB_OFFLINE", "1"),
        "TOKENIZERS_PARALLELISM": "false",
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        "NO_COLOR": "1",
    }


def start() -> State:
    """Start Airflow and wait until it is healthy; the running one if there is one and no part of it has died."""
    if running := state():
        if _is_healthy(running["url"], 60):
            return running
        log.warning("a part of Airflow has died (%s); starting it again", airflow_home() / "standalone.log")
        stop()
    password()
    port, logs, triggers = _find_ports()
    url, mark = f"http://127.0.0.1:{port}", secrets.token_hex(8)
    env = environment(url, mark, logs, triggers)
    with (airflow_home() / "standalone.log").open("ab") as sink:
        path = Path(env["PATH"].split(os.pathsep)[0]) / "airflow"
        if not path.is_file():
            raise Missing(f"airflow is not installed next to {sys.executable}: pip install 'undertone-text[airflow]'")
        process = subprocess.Popen(
            ["airflow", "standalone"],
            executable=str(path),
            env=env,
            cwd=airflow_home(),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=private.MASK,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - single-threaded
        )
    _CHILDREN[process.pid] = process
    started = State(pid=process.pid, started=psutil.Process(process.pid).create_time(), url=url, mark=mark)
    write_text(airflow_home() / "stack.json", json.dumps(started))
    try:
        if not _is_healthy(url, HEALTHY, process):
            raise Retry(f"airflow was not healthy after {HEALTHY} s; see {airflow_home() / 'standalone.log'}")
    except BaseException:
        stop()
        raise
    return started


def _find_ports() -> list[int]:
    """The preferred port if free, and two free ones; all held at once so that they differ."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(3)]
        for sock, port in zip(sockets, (PORT, 0, 0), strict=True):
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                sock.bind(("127.0.0.1", 0))
        return [int(sock.getsockname()[1]) for sock in sockets]


def _is_healthy(url: str, seconds: float, process: "subprocess.Popen[bytes] | None" = None) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process and process.poll() is not None:
            raise Missing(f"airflow ended with {process.returncode}; see {airflow_home() / 'standalone.log'}")
        with contextlib.suppress(httpx.HTTPError, ValueError, KeyError):
            health = httpx.get(f"{url}/api/v2/monitor/health", timeout=3, trust_env=False).json()
            if all(health[part]["status"] == "healthy" for part in _PARTS):
                return True
        time.sleep(0.5)
    return False


def processes(stack: State) -> list[int]:
    """Every living process of the stack: of its session, with its mark in the environment, or below one of those.

    A changed process title overwrites the environment of the api-server and workers, and a task has a process group
    of its own; so none of the three ways is enough alone.
    """
    session, pids = _find_session(stack), set[int]()
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        with contextlib.suppress(OSError, psutil.Error):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            if os.getsid(process.pid) == session or process.environ().get("UNDERTONE_STACK") == stack["mark"]:
                pids |= {process.pid} | {child.pid for child in process.children(recursive=True)}
    return sorted(pids)


def _find_session(stack: State) -> int | None:
    """The stack's session id, unless its pid is a stranger's now. While a session lives, its id is not reused."""
    with contextlib.suppress(psutil.NoSuchProcess):
        if abs(psutil.Process(stack["pid"]).create_time() - stack["started"]) > 1:
            return None
    return stack["pid"]


def stop() -> int:
    """Stop the stack; return how many processes had to be killed. Killing is safe: every task is a transaction."""
    stack = _read_state()
    if stack is None:
        return 0
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if stack["pid"] in processes(stack):
            os.kill(stack["pid"], signal.SIGINT)
    busy_count = _wait_for_end(stack, GRACE)
    for sig in (signal.SIGTERM, signal.SIGKILL):
        for pid in processes(stack):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sig)
        _wait_for_end(stack, 5)
    (airflow_home() / "stack.json").unlink(missing_ok=True)
    return busy_count


def _wait_for_end(stack: State, seconds: float) -> int:
    end = time.monotonic() + seconds
    while processes(stack) and time.monotonic() < end:
        if child := _CHILDREN.get(stack["pid"]):
            child.poll()  # reaps it
        time.sleep(0.25)
    return len(processes(stack))


_ENDED = ("success", "failed")
# Airflow 3.3 fails a task answered in the scheduler loop in which it fell asleep: it hears of the end of the first half
# when the second is queued already. A person is never that fast.
_PAUSE = 6.0


class Rest(contextlib.AbstractContextManager["Rest"]):
    """Airflow's REST interface, version 2; use it in a `with`, which closes its connections."""

    def __init__(self, url: str, secret: str | None = None) -> None:
        """Log in as admin, by default with the password of the stack of this installation."""
        credentials = {"username": "admin", "password": secret or password()[0]}
        answer = httpx.post(f"{url}/auth/token", json=credentials, timeout=30, trust_env=False)
        answer.raise_for_status()
        headers = {"Authorization": f"Bearer {answer.json()['access_token']}"}
        self._http = httpx.Client(base_url=f"{url}/api/v2", headers=headers, timeout=60, trust_env=False)

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def call(self, method: str, path: str, accept: tuple[int, ...] = (200, 201, 204), **kwargs: Any) -> Any:
        """The answer's JSON; another status than accepted is Retry."""
        answer = self._http.request(method, path, **kwargs)
        if answer.status_code not in accept:
            raise Retry(f"Airflow: {method} {path} answered {answer.status_code}: {answer.text[:300]}")
        return answer.json() if answer.content else None

    def wait_for_dags(self, dag_ids: set[str], timeout: float = 120) -> None:
        """Wait until the DAGs are parsed."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if errors := self.call("GET", "/importErrors")["import_errors"]:
                raise Missing(f"{errors[0]['filename']} cannot be imported:\n{errors[0]['stack_trace']}")
            if dag_ids <= {dag["dag_id"] for dag in self.call("GET", "/dags", params={"limit": 100})["dags"]}:
                return
            time.sleep(0.5)
        raise Retry(f"the DAGs {', '.join(sorted(dag_ids))} were not parsed within {timeout:.0f} s")

    def pool(self, name: str, slots: int) -> None:
        """Make a pool unless it is there. A missing pool leaves tasks scheduled for ever, so pools come first."""
        body = {"name": name, "slots": slots, "description": "", "include_deferred": False}
        self.call("POST", "/pools", (200, 201, 409), json=body)

    def pause(self, *dag_ids: str, is_paused: bool = True) -> None:
        """Let DAGs run no more until they are unpaused; what their assets announce meanwhile is lost to them."""
        for dag_id in dag_ids:
            self.call("PATCH", f"/dags/{dag_id}", json={"is_paused": is_paused})

    def unpause(self, *dag_ids: str) -> None:
        self.pause(*dag_ids, is_paused=False)

    def trigger(self, dag_id: str, day: str, conf: dict[str, Any] | None = None) -> str:
        """Start a run for a day, which is its partition key; return the id of the run."""
        body = {"logical_date": None, "conf": conf or {}, "partition_key": day}
        return str(self.call("POST", f"/dags/{dag_id}/dagRuns", json=body)["dag_run_id"])

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        """The DAG's runs, newest first."""
        return list(self.call("GET", f"/dags/{dag_id}/dagRuns", params={"order_by": "-id", "limit": 50})["dag_runs"])

    def wait_run(
        self, dag_id: str, day: str, after: set[str], timeout: float = 600, *, approves: bool = False
    ) -> dict[str, Any]:
        """Wait for the end of a run for a day, other than those in `after`; approve what it asks, if it should."""
        end = time.monotonic() + timeout
        asleep: dict[tuple[str, int], float] = {}
        while time.monotonic() < end:
            for run in self.runs(dag_id):
                if run["dag_run_id"] in after or run["partition_key"] not in (day, None):
                    continue
                if run["state"] in _ENDED:
                    return run
                if approves:
                    self.approve(dag_id, run["dag_run_id"], asleep)
            time.sleep(0.5)
        raise Retry(f"{dag_id}: no run for {day} ended within {timeout:.0f} s")

    def approve(self, dag_id: str, run_id: str, asleep: dict[tuple[str, int], float]) -> None:
        """Approve what a run has been asking for a while; `asleep` is remembered between calls."""
        run_path = f"/dags/{dag_id}/dagRuns/{run_id}"
        for question in self.call("GET", f"{run_path}/hitlDetails")["hitl_details"]:
            task = question["task_instance"]
            if question["response_received"] or task["state"] != "awaiting_input":
                continue
            now = time.monotonic()
            if now - asleep.setdefault((task["id"], task["try_number"]), now) >= _PAUSE:
                path = f"{run_path}/taskInstances/{task['task_id']}/-1/hitlDetails"
                self.call("PATCH", path, (200, 404, 409), json={"chosen_options": ["Approve"], "params_input": {}})

    def failures(self, dag_id: str, run_id: str) -> list[str]:
        """Names of a run's failed tasks."""
        tasks = self.call("GET", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances")["task_instances"]
        return [task["task_id"] for task in tasks if task["state"] == "failed"]
