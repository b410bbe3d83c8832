"""Airflow on this machine: start `airflow standalone` with its UI on loopback, and stop it without orphans.

Airflow's own log servers (one of the scheduler, one of the triggerer) listen on all addresses and cannot be told not
to; they answer only requests signed with the key of this installation.

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
from typing import TypedDict

import httpx
import psutil

from pipeline import private, settings
from pipeline.errors import Missing, Retry
from pipeline.private import make_folder

PORT = 8080
GRACE = 20.0  # seconds for an orderly stop
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
    package = Path(__file__).resolve().parents[2]
    for folder in (package.parent / "dags", package / "dags"):
        if (folder / "dag_defaults.py").is_file():
            return folder
    raise Missing("the folder dags/ was not installed with the package; reinstall undertone")


def password() -> tuple[str, bool]:
    """The admin password, and whether it was made just now. It lies in a file only its owner can read."""
    path = airflow_home() / "passwords.json"
    if path.is_file():
        return str(json.loads(path.read_text())["admin"]), False
    make_folder(airflow_home())
    made = secrets.token_urlsafe(12)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as file:
        json.dump({"admin": made}, file)
    return made, True


def environment(url: str, mark: str, logs: int, triggers: int, parallelism: int = 4) -> dict[str, str]:
    """The environment of the stack: ours without other Airflow settings, the UI and its interface on loopback."""
    home = airflow_home()
    own = {name: value for name, value in settings.environment().items() if not name.startswith("AIRFLOW__")}
    port = url.rpartition(":")[2]
    return {
        **own,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{own.get('PATH', '')}",  # standalone runs `airflow` by name
        "PYTHONPATH": os.pathsep.join([*filter(None, [own.get("PYTHONPATH")]), str(_LOCAL_SETTINGS)]),
        **settings.absolute(),  # a task does not run in the folder we stand in
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
        "AIRFLOW__LOGGING__FILE_TASK_HANDLER_NEW_FOLDER_PERMISSIONS": "0o700",
        "AIRFLOW__LOGGING__FILE_TASK_HANDLER_NEW_FILE_PERMISSIONS": "0o600",
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(logs),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(triggers),
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "120",  # at the default 30 it takes a tenth of a core
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
            start_new_session=True, umask=private.MASK, preexec_fn=_restore_interrupt,  # noqa: PLW1509  # single-threaded here
        )  # fmt: skip
    _CHILDREN[process.pid] = process
    started = State(pid=process.pid, started=psutil.Process(process.pid).create_time(), url=url, mark=mark)
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
        raise Missing(f"airflow is not installed beside {sys.executable}: pip install 'undertone[airflow]'")
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
    session, mine = _session(found), set[int]()
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        with contextlib.suppress(OSError, psutil.Error):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            if os.getsid(process.pid) == session or process.environ().get("UNDERTONE_STACK") == found["mark"]:
                mine |= {process.pid} | {child.pid for child in process.children(recursive=True)}
    return sorted(mine)


def _session(found: State) -> int | None:
    """The stack's session id, unless its pid is a stranger's now. While a session lives, its id is not reused."""
    with contextlib.suppress(psutil.NoSuchProcess):
        if abs(psutil.Process(found["pid"]).create_time() - found["started"]) > 1:
            return None
    return found["pid"]


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
