"""A throw-away PostgreSQL."""

import getpass
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A throw-away PostgreSQL on loopback; its SQLAlchemy address."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [Path(shutil.which("initdb") or "")]
    if not programs[-1].is_file():
        pytest.skip("PostgreSQL is not installed here")
    folder = Path(tempfile.mkdtemp(prefix="undertone-pg-"))
    folder.chmod(0o755)
    data = folder / "data"
    user = []
    if getpass.getuser() == "root":  # it refuses to run as root
        user = ["runuser", "-u", "postgres", "--"]
        data.mkdir()
        shutil.chown(data, "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"

    def run(program: str, *words: str) -> None:
        command = [*user, programs[-1].with_name(program), "-D", data, *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    run("initdb", "-A", "trust", "-U", "undertone", "--no-sync")
    run("pg_ctl", "-w", "-o", options, "start")
    yield f"postgresql+psycopg2://undertone@127.0.0.1:{port}/postgres"
    run("pg_ctl", "-m", "immediate", "stop")
    shutil.rmtree(folder, ignore_errors=True)
