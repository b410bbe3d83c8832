"""The databases of docker/compose.yaml, on a PostgreSQL of this machine: made by its scripts, open to owners alone."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import sqlalchemy as sa

from pipeline import warehouse
from tests.support.servers.postgres import running_postgres

DOCKER = Path(__file__).resolve().parents[2] / "docker"


class Server(NamedTuple):
    """A PostgreSQL set up as the one of compose."""

    folder: Path
    port: int

    def put_in_force(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Set the service file of `undertone`, for this machine."""
        path = self.folder / "undertone.conf"
        services = (self.folder / "secrets" / "pg_service_undertone.conf").read_text()
        path.write_text(services.replace("host=postgres", "host=127.0.0.1"))
        monkeypatch.setenv("PGPORT", str(self.port))
        monkeypatch.setenv("PGSERVICEFILE", str(path))

    def psql(self, address: str, sql: str) -> subprocess.CompletedProcess[str]:
        """Run a statement by psql, without a password of the environment."""
        options = ["--no-psqlrc", "-tA", "-v", "ON_ERROR_STOP=1", "-c", sql]
        command = ["psql", f"{address} port={self.port}", *options]
        return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """PostgreSQL on loopback, with passwords, after docker/secrets.sh and docker/postgres.sh."""
    if not shutil.which("psql"):
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    roles = ("--auth-host=scram-sha-256", "--auth-local=trust", "--username=postgres")
    with running_postgres(*roles, sockets=True) as (folder, port):
        subprocess.run(["sh", DOCKER / "secrets.sh", folder / "secrets"], check=True)
        place = {"PGHOST": str(folder), "PGPORT": str(port), "SECRETS": str(folder / "secrets")}
        subprocess.run(["sh", DOCKER / "postgres.sh"], check=True, env=os.environ | place)
        yield Server(folder, port)


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
def test_addresses_need_no_password(server: Server, driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver finds password and database by the service's name; workers' file has no service `airflow`."""
    server.put_in_force(monkeypatch)
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
            result = server.psql(f"host=127.0.0.1 user={role} password={password} dbname={database}", "select 1")
            assert (result.returncode == 0) == (role == database), (role, database)
            assert role == database or "permission denied for database" in result.stderr


def test_an_analyst_reads_the_catalog_alone(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docker/analyst.sql makes a role that lists the tables, writes nothing, and sees neither ledger nor metadata."""
    server.put_in_force(monkeypatch)
    monkeypatch.setenv("UNDERTONE_CATALOG", "postgresql+psycopg2:///?service=catalog")
    monkeypatch.setenv("UNDERTONE_HOME", str(tmp_path))
    monkeypatch.delenv("UNDERTONE_WAREHOUSE", raising=False)
    created = warehouse.create()
    warehouse.close()
    words = [f"host={server.folder} port={server.port} user=postgres dbname=catalog", "-v", "password=it's"]
    command = ["psql", *words, "-v", "ON_ERROR_STOP=1", "-q", "-f", DOCKER / "analyst.sql"]
    subprocess.run(command, check=True)
    analyst = "host=127.0.0.1 user=analyst password=it\\'s dbname="
    assert server.psql(f"{analyst}catalog", "select count(*) from iceberg_tables").stdout.strip() == str(len(created))
    for database, sql, message in (
        ("catalog", "set default_transaction_read_only = off; delete from iceberg_tables", "read-only"),
        ("catalog", "begin read write; delete from iceberg_tables", "permission denied for table"),
        ("catalog", "create table mine ()", "read-only"),
        ("ledger", "select 1", "permission denied for database"),
        ("airflow", "select 1", "permission denied for database"),
        ("results", "select 1", "permission denied for database"),
    ):
        result = server.psql(f"{analyst}{database}", sql)
        assert result.returncode != 0
        assert message in result.stderr, sql
