"""The databases of docker/compose.yaml, on a PostgreSQL of this machine: made by its scripts, open to owners alone."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import sqlalchemy as sa

from pipeline import warehouse

DOCKER = Path(__file__).resolve().parents[2] / "docker"
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


class Server(NamedTuple):
    """A PostgreSQL set up as the one of compose."""

    folder: Path
    port: int

    def services(self, whose: str) -> Path:
        """The service file of `airflow` or `undertone`, for this machine."""
        made = self.folder / f"{whose}.conf"
        told = (self.folder / "secrets" / f"pg_service_{whose}.conf").read_text()
        made.write_text(told.replace("host=postgres", "host=127.0.0.1"))
        return made

    def psql(self, address: str, sql: str) -> subprocess.CompletedProcess[str]:
        """What psql says of a statement, without a password of the environment."""
        asked = ["psql", f"{address} port={self.port}", "--no-psqlrc", "-tA", "-v", "ON_ERROR_STOP=1", "-c", sql]
        return subprocess.run(asked, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """PostgreSQL on loopback, with passwords, after docker/secrets.sh and docker/postgres.sh."""
    if not PROGRAMS or not shutil.which("psql"):
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    is_root = os.geteuid() == 0  # as whom PostgreSQL does not run
    as_server = ["runuser", "-u", "postgres", "--"] if is_root else []

    def run(program: str, *words: object) -> None:
        asked = [*as_server, str(PROGRAMS[-1].with_name(program)), "-D", str(folder / "data"), *map(str, words)]
        subprocess.run(asked, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, cwd="/")

    with tempfile.TemporaryDirectory(prefix="undertone-postgres-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "password").write_text("over all")
        if is_root:
            for path in (folder, folder / "password"):
                shutil.chown(path, "postgres")
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            port = int(held.getsockname()[1])
        run(
            "initdb", "--auth-host=scram-sha-256", "--auth-local=trust", "--username=postgres", "--no-sync",
            f"--pwfile={folder / 'password'}",
        )  # fmt: skip
        how = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
        run("pg_ctl", "-w", "-l", folder / "log", "-o", how, "start")
        try:
            made = Server(folder, port)
            subprocess.run(["sh", DOCKER / "secrets.sh", folder / "secrets"], check=True)
            place = {"PGHOST": str(folder), "PGPORT": str(port), "SECRETS": str(folder / "secrets")}
            subprocess.run(["sh", DOCKER / "postgres.sh"], check=True, env=os.environ | place)
            yield made
        finally:
            run("pg_ctl", "-m", "immediate", "stop")


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
def test_addresses_need_no_password(server: Server, driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver finds password and database by the service's name; workers' file has no service `airflow`."""
    monkeypatch.setenv("PGPORT", str(server.port))
    monkeypatch.setenv("PGSERVICEFILE", str(server.services("undertone")))
    for name in ("catalog", "ledger", "results"):
        engine = sa.create_engine(f"postgresql+{driver}:///?service={name}")
        with engine.connect() as connection:
            assert connection.execute(sa.text("select current_user, current_database()")).one() == (name, name)
        engine.dispose()
    with pytest.raises(sa.exc.OperationalError, match='"airflow" not found'):
        sa.create_engine(f"postgresql+{driver}:///?service=airflow").connect()


def test_a_role_reaches_its_own_database_alone(server: Server) -> None:
    """With the right password, each role is refused by the databases of the others."""
    names = ("airflow", "results", "catalog", "ledger")
    for role in names:
        password = (server.folder / "secrets" / f"db_{role}").read_text()
        for database in names:
            told = server.psql(f"host=127.0.0.1 user={role} password={password} dbname={database}", "select 1")
            assert (told.returncode == 0) == (role == database), (role, database)
            assert role == database or "permission denied for database" in told.stderr


def test_an_analyst_reads_the_catalog_alone(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docker/analyst.sql makes a role that lists the tables, writes nothing, and sees neither ledger nor metadata."""
    monkeypatch.setenv("PGPORT", str(server.port))
    monkeypatch.setenv("PGSERVICEFILE", str(server.services("undertone")))
    monkeypatch.setenv("UNDERTONE_CATALOG", "postgresql+psycopg2:///?service=catalog")
    monkeypatch.setenv("UNDERTONE_HOME", str(tmp_path))
    monkeypatch.delenv("UNDERTONE_WAREHOUSE", raising=False)
    created = warehouse.create()
    warehouse.close()
    asked = ["psql", f"host={server.folder} port={server.port} user=postgres dbname=catalog", "-v", "password=it's"]
    subprocess.run([*asked, "-v", "ON_ERROR_STOP=1", "-q", "-f", DOCKER / "analyst.sql"], check=True)
    analyst = "host=127.0.0.1 user=analyst password=it\\'s dbname="
    assert server.psql(f"{analyst}catalog", "select count(*) from iceberg_tables").stdout.strip() == str(len(created))
    for address, sql, why in (
        ("catalog", "set default_transaction_read_only = off; delete from iceberg_tables", "read-only"),
        ("catalog", "begin read write; delete from iceberg_tables", "permission denied for table"),
        ("catalog", "create table mine ()", "read-only"),
        ("ledger", "select 1", "permission denied for database"),
        ("airflow", "select 1", "permission denied for database"),
        ("results", "select 1", "permission denied for database"),
    ):
        told = server.psql(f"{analyst}{address}", sql)
        assert told.returncode != 0
        assert why in told.stderr, sql
