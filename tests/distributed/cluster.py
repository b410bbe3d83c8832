"""A whole distributed installation on loopback, without Docker: what a team has on several machines, as processes here.

PostgreSQL (Airflow's metadata, the Iceberg catalog, ledger and spool: three databases), Redis, an S3-compatible store
(moto), Airflow's api-server, scheduler, DAG processor and triggerer, and a Celery worker for each of the queues
`default` and `gpu`. Airflow's settings are those of docker/airflow.env; only times and slots are made smaller.

Everything a part starts stays in the part's session, even a task whose worker is dead (a task has a process group of
its own), so a session is what is killed and measured. PostgreSQL's children have sessions of their own: they are found
as children.
"""

import contextlib
import ctypes
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import httpx
import psutil
import pytest
import sqlalchemy as sa
from cryptography.fernet import Fernet

from pipeline.commands.operate import demo
from pipeline.commands.operate.stack import Rest
from tests.docker.files import SHARED
from tests.support.servers.postgres import find_programs, run_as
from tests.support.servers.store import store_settings

STORES = ("postgres", "redis", "s3")
WORKERS = ("worker-default", "worker-gpu")
AIRFLOW = ("api", "scheduler", "dag-processor", "triggerer", *WORKERS)
NAMES = (*STORES, *AIRFLOW)
UPKEEP = ("heal", "maintain")  # stay paused: soon after its tick Airflow runs a DAG as soon as it is unpaused
DATABASES = ("airflow", "catalog", "ledger")
BUCKET = "undertone"
OURS = ("AIRFLOW", "UNDERTONE_", "AWS_")
PROGRAMS = find_programs() or Path()
SLOTS = 2  # tasks at once, of each worker and each pool, at first
# The worker of `default` has no torch. Imported once, before a worker forks its tasks, is what each would spend up to 2
# CPU seconds on, or 5 on the last. polars and pyarrow would not do: they start threads when they are imported, which
# are not there after a fork.
_CELERY, _IMPORTS = "AIRFLOW__CELERY__EXTRA_CELERY_CONFIG", ["pyiceberg.catalog.sql", "nltk"]
_OF_PART = {
    "worker-default": {
        _CELERY: json.dumps({"imports": _IMPORTS}),
        "PYTHONPATH": str(Path(__file__).with_name("torchless")),
    },
    "worker-gpu": {_CELERY: json.dumps({"imports": [*_IMPORTS, "sentence_transformers"]})},
}
_BIN = Path(sys.executable).parent


def missing() -> str | None:
    """What must be installed before a cluster can be started, or None."""
    if not find_programs():
        return "PostgreSQL is not installed (Debian: postgresql)"
    if not shutil.which("redis-server"):
        return "Redis is not installed (Debian: redis-server)"
    for program in ("moto_server", "celery"):
        if not (_BIN / program).is_file():
            return f"{program} is not installed (extras `dev` and `distributed`)"
    return None


def _find_ports(count: int) -> list[int]:
    """Find free ports, held all at once so that they differ."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [int(sock.getsockname()[1]) for sock in sockets]


def _die_with_us() -> None:
    """Have a part stopped when the tests are killed and cannot stop it (PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


class Cluster:
    """A running installation; use it in a `with`, which starts and removes it.

    Attributes:
        home: The folder that all machines share: models, reports, labelling, and Airflow's logs.
        environment: What every part runs with; the tests need its UNDERTONE_* and AWS_* to read the same tables.
        rest: Airflow's REST interface, logged in.
        url: Where that is.
        asleep: Since when tasks wait for an approval; see `Rest.approve`.
        slots: Tasks at once of a worker that is started.
    """

    rest: Rest

    def __init__(self, folder: Path, heartbeat: int = 20, **more: str) -> None:
        """Choose ports and places in a new folder, which is removed at the end; nothing is started yet.

        A worker that is silent for `heartbeat` seconds is taken for dead. `more` are settings beside the cluster's own.
        """
        self.folder, self.home = folder, folder / "home"
        self._ports = dict(zip(("postgres", "redis", "s3", "api", "triggers"), _find_ports(5), strict=True))
        self.url = f"http://127.0.0.1:{self._ports['api']}"
        self._data = Path(tempfile.mkdtemp(prefix="undertone-postgres-"))  # where the user postgres can reach it
        self.environment = {**self._environment(heartbeat), **more}
        self.asleep: dict[tuple[str, int], float] = {}
        self.slots = SLOTS
        self._log_sizes: dict[str, int] = {}  # how long a part's log was when it was started last
        self._started: dict[str, list[subprocess.Popen[bytes]]] = {name: [] for name in NAMES}

    def database(self, name: str) -> str:
        """SQLAlchemy address of a database of the cluster."""
        return f"postgresql+psycopg2://undertone@127.0.0.1:{self._ports['postgres']}/{name}"

    def _environment(self, heartbeat: int) -> dict[str, str]:
        """The environment of every part: ours without Airflow's and Undertone's settings, and those of the cluster."""
        airflow = self.home / "airflow"
        return {
            **outside(),
            **SHARED,
            # smaller than a team's, so that a test need not wait minutes for a death to be noticed
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": str(heartbeat),
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
            "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT": "30",
            "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT_CHECK_INTERVAL": "5",
            "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
            "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "15",
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
            "AIRFLOW__CORE__DEFAULT_POOL_TASK_SLOT_COUNT": str(SLOTS),
            # all parts are on one machine, so a task instance tells by the user's name, not the host's, who ran it
            "AIRFLOW__CORE__HOSTNAME_CALLABLE": "getpass.getuser",
            # where things are
            "PATH": f"{_BIN}{os.pathsep}{os.environ.get('PATH', '')}",
            "AIRFLOW_HOME": str(airflow),
            "AIRFLOW__CORE__DAGS_FOLDER": str(Path(__file__).parents[2] / "dags"),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self._ports["api"]),
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(self._ports["triggers"]),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": self.database("airflow"),
            "AIRFLOW__CELERY__RESULT_BACKEND": f"db+{self.database('airflow')}",
            "AIRFLOW__CELERY__BROKER_URL": f"redis://127.0.0.1:{self._ports['redis']}/0",
            "UNDERTONE_HOME": str(self.home),
            "UNDERTONE_CATALOG": self.database("catalog"),
            "UNDERTONE_LLM_LEDGER": self.database("ledger"),
            "UNDERTONE_SPOOL": self.database("ledger"),
            **store_settings(f"http://127.0.0.1:{self._ports['s3']}", f"s3://{BUCKET}/warehouse"),
            # secrets, made for this cluster alone
            "AIRFLOW__API__SECRET_KEY": secrets.token_hex(),
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(64),
            "AIRFLOW__CORE__FERNET_KEY": Fernet.generate_key().decode(),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(airflow / "passwords.json"),
            # a machine without network but loopback
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
            "NO_COLOR": "1",
        }

    def __enter__(self) -> Self:
        """Start everything and wait until it is well: tables made, pools there, DAGs parsed and, but for
        `UPKEEP`, unpaused.
        """
        try:
            self._set_up()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _set_up(self) -> None:
        (self.home / "airflow").mkdir(parents=True)
        (self.folder / "logs").mkdir()
        password = secrets.token_urlsafe(12)
        self.home.joinpath("airflow", "passwords.json").write_text(json.dumps({"admin": password}))
        self._initdb()
        for name in STORES:
            self.start(name)
        self._make_databases()
        self._run(_BIN / "airflow", "db", "migrate")
        self._run(_BIN / "undertone", "init")
        for name in AIRFLOW:
            self.start(name, wait=False)
        for name in AIRFLOW:
            self.wait(name)
        self.rest = Rest(self.url, password)
        self.rest.pool("gpu", SLOTS)
        self.rest.wait_for_dags(set(demo.ALL))
        self.rest.unpause(*(dag for dag in demo.ALL if dag not in UPKEEP))

    def _initdb(self) -> None:
        if run_as():
            shutil.chown(self._data, "postgres", "postgres")
        words = ["-D", self._data / "data", "-A", "trust", "-U", "undertone", "--no-sync", "-E", "UTF8"]
        command = [PROGRAMS / "initdb", *words, "--locale=C.UTF-8"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", **run_as())

    def _make_databases(self) -> None:
        engine = sa.create_engine(self.database("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        with engine.connect() as connection:
            for name in DATABASES:
                connection.execute(sa.text(f"create database {name}"))
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
        store = pytest.importorskip("boto3").client("s3", endpoint_url=self.environment["AWS_ENDPOINT_URL"], **keys)
        store.create_bucket(Bucket=BUCKET)
        store.close()

    def _run(self, *words: object) -> None:
        command = list(map(str, words))
        options: dict[str, Any] = {"env": self.environment, "cwd": self.home, "capture_output": True, "text": True}
        result = subprocess.run(command, check=False, **options)
        if result.returncode:
            raise RuntimeError(f"{' '.join(command)}: {result.stderr[-2000:]}")

    def _list_words(self, name: str) -> list[str]:
        """The command that starts a part."""
        port = str(self._ports.get(name))
        options = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "max_connections=200"]
        airflow, postgres = _BIN / "airflow", PROGRAMS / "postgres"
        queue = name.removeprefix("worker-")
        worker = [airflow, "celery", "worker", "-q", queue, "-c", self.slots, "-H", f"{queue}@%h", "--skip-serve-logs"]
        words: dict[str, list[object]] = {
            "postgres": [postgres, "-D", self._data / "data", "-p", port, *(f"-c{option}" for option in options)],
            # kept on disk: what workers had not taken yet outlives a death
            "redis": ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes",
                      "--dir", self.folder],
            "s3": [_BIN / "moto_server", "-H", "127.0.0.1", "-p", port],
            "api": [airflow, "api-server", "-w", "1", "--host", "127.0.0.1", "--port", port],
            "scheduler": [airflow, "scheduler", "--skip-serve-logs"],
            "dag-processor": [airflow, "dag-processor"],
            "triggerer": [airflow, "triggerer", "--skip-serve-logs"],
            "worker": [*worker, "--without-mingle", "--without-gossip"],
        }  # fmt: skip
        return list(map(str, words["worker" if name in WORKERS else name]))

    def log(self, name: str) -> str:
        """What a part wrote so far, over all its lives."""
        return (self.folder / "logs" / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def start(self, name: str, *, wait: bool = True) -> None:
        """Start a part that is not running; wait until it is well."""
        env = {**self.environment, "LOGNAME": name, **_OF_PART.get(name, {})}  # see AIRFLOW__CORE__HOSTNAME_CALLABLE
        with (self.folder / "logs" / f"{name}.log").open("ab") as log:
            self._log_sizes[name] = log.tell()
            part = subprocess.Popen(
                self._list_words(name),
                env=env,
                cwd="/" if name == "postgres" else self.home,
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=_die_with_us,  # noqa: PLW1509 - it only makes a system call
                **(run_as() if name == "postgres" else {}),
            )
        self._started[name].append(part)
        if wait:
            self.wait(name)

    def wait(self, name: str, timeout: float = 240) -> None:
        """Wait until a part is well; a part that ended instead is an error with its last words."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if self._started[name][-1].poll() is not None:
                break
            if self.is_well(name):
                return
            time.sleep(0.2)
        raise RuntimeError(f"{name} is not well: {self.log(name)[-3000:]}")

    def is_well(self, name: str) -> bool:
        """Whether a part answers."""
        if name in WORKERS:
            path = self.folder / "logs" / f"{name}.log"
            return b" ready." in path.read_bytes()[self._log_sizes[name] :]
        if name in STORES:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._ports[name]), timeout=2):
                return name != "postgres" or self._answers()
            return False
        with contextlib.suppress(httpx.HTTPError, ValueError, KeyError):
            health = httpx.get(f"{self.url}/api/v2/monitor/health", timeout=3, trust_env=False).json()
            part = {"api": "metadatabase"}.get(name, name.replace("-", "_"))
            return bool(health[part]["status"] == "healthy")
        return False

    def _answers(self) -> bool:
        with contextlib.suppress(sa.exc.OperationalError):
            sa.create_engine(self.database("postgres"), poolclass=sa.NullPool).connect().close()
            return True
        return False

    def kill(self, name: str, *, tasks: bool = True) -> None:
        """Kill a part and all it started; return when they are gone.

        Without its `tasks`, those of a worker go on as ghosts, as when only its main process and its pool are killed.
        """
        spared = set() if tasks else {process.pid for process in self.tasks(name)}
        processes = [process for process in self.processes(name) if process.pid not in spared]
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._started[name][-1].wait(timeout=60)
        psutil.wait_procs(processes, timeout=60)

    def restart(self, name: str) -> None:
        """Kill a part and start it again; wait until it is well."""
        self.kill(name)
        self.start(name)

    def processes(self, name: str) -> list[psutil.Process]:
        """All living processes that a part started in any of its lives."""
        sessions = {process.pid for process in self._started[name]}
        living: dict[int, psutil.Process] = {}
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError, PermissionError):
                if os.getsid(process.pid) in sessions:
                    family = [process, *(process.children(recursive=True) if process.pid in sessions else [])]
                    living |= {child.pid: child for child in family if child.status() != psutil.STATUS_ZOMBIE}
        return list(living.values())

    def tasks(self, *names: str) -> list[psutil.Process]:
        """The processes that run tasks now, of all workers or of those named."""
        tasks = []
        for process in (process for name in names or WORKERS for process in self.processes(name)):
            with contextlib.suppress(psutil.NoSuchProcess, IndexError):
                if process.cmdline()[0].startswith("airflow worker -- "):
                    tasks.append(process)
        return tasks

    def close(self) -> None:
        """Kill everything and remove it; safe to repeat."""
        if hasattr(self, "rest"):
            self.rest.__exit__()
        for name in reversed(NAMES):  # the stores last
            if self._started[name]:
                self.kill(name)
            for process in self._started[name]:
                process.wait()
        shutil.rmtree(self._data, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def outside() -> dict[str, str]:
    """Our environment without Airflow's, Undertone's and the store's settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
