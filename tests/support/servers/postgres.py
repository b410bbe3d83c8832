"""A throw-away PostgreSQL."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


def find_programs() -> Path | None:
    """The folder of PostgreSQL's programs, the newest there is."""
    paths = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    path = paths[-1] if paths else shutil.which("initdb")
    return Path(path).parent if path else None


def run_as() -> dict[str, Any]:
    """Options of `subprocess` to run it as another user than root, which it refuses."""
    return {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}


@contextmanager
def running_postgres(*initdb: str, sockets: bool = False) -> Iterator[tuple[Path, int]]:
    """A PostgreSQL on loopback: its folder, in which its socket may lie, and its port."""
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed here")
    with tempfile.TemporaryDirectory(prefix="undertone-postgres-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "password").write_text("over all")
        for path in (folder, folder / "password") if run_as() else ():
            shutil.chown(path, "postgres")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = int(free.getsockname()[1])

        def run(program: str, *words: object) -> None:
            command = [programs / program, "-D", folder / "data", *map(str, words)]
            subprocess.run(
                command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, cwd="/", **run_as()
            )

        run("initdb", "--no-sync", f"--pwfile={folder / 'password'}", *initdb)
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c fsync=off"
        options += f" -c unix_socket_directories={folder if sockets else repr('')}"
        run("pg_ctl", "-w", "-l", folder / "log", "-o", options, "start")
        try:
            yield folder, port
        finally:
            run("pg_ctl", "-m", "immediate", "stop")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A throw-away PostgreSQL on loopback; its SQLAlchemy address."""
    with running_postgres("--auth=trust", "--username=undertone") as (_, port):
        yield f"postgresql+psycopg2://undertone@127.0.0.1:{port}/postgres"
