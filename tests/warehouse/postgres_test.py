"""The catalog on PostgreSQL, by one setting. Skipped where PostgreSQL's programs are not installed."""

import getpass
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from pipeline import warehouse
from pipeline.errors import BadInput, Missing
from tests.support.filled import DAY, filled

pytest.importorskip("psycopg2", reason="the extra `distributed` is not installed")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A throw-away PostgreSQL on loopback; its SQLAlchemy address."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [Path(shutil.which("initdb") or "")]
    if not programs[-1].is_file():
        pytest.skip("PostgreSQL is not installed here")
    folder = Path(tempfile.mkdtemp(prefix="undertone-pg-"))
    folder.chmod(0o755)
    be = ["runuser", "-u", "postgres", "--"] if getpass.getuser() == "root" else []  # it refuses to run as root
    data = folder / "data"
    if be:
        data.mkdir()
        shutil.chown(data, "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    control = str(programs[-1].with_name("pg_ctl"))
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"

    def quietly(*words: str) -> None:
        subprocess.run([*be, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    quietly(str(programs[-1]), "-D", str(data), "-A", "trust", "-U", "undertone", "--no-sync")
    quietly(control, "-D", str(data), "-w", "-o", options, "start")
    yield f"postgresql+psycopg2://undertone@127.0.0.1:{port}/postgres"
    quietly(control, "-D", str(data), "-m", "immediate", "stop")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def on_postgres(server: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A warehouse whose catalog lies in PostgreSQL."""
    monkeypatch.setenv("UNDERTONE_CATALOG", server)
    warehouse.create()
    yield
    warehouse.close()
    engine = sa.create_engine(server)
    with engine.begin() as connection:
        connection.execute(sa.text("drop table iceberg_tables, iceberg_namespace_properties"))
    engine.dispose()


def test_one_setting_is_enough(on_postgres: None, home: Path) -> None:
    """Created, written twice, read and queried, with no SQLite catalog in the home."""
    rows = filled("comments", {"comment_id": "1"}, {"comment_id": "2"})
    for _ in range(2):
        assert warehouse.overwrite("comments", warehouse.slice_of(day=DAY), rows) == 2
    assert warehouse.query("select count(*) as n from comments")["n"][0] == 2
    assert warehouse.maintain("comments")["rows"] == 2
    assert warehouse.create() == []
    assert not (home / "catalog.db").exists()


def test_tables_that_the_server_lost_are_recovered(on_postgres: None, server: str) -> None:
    """With the catalog's own tables dropped nothing is created over the files, and a recovery has every row."""
    warehouse.overwrite("comments", warehouse.slice_of(day=DAY), filled("comments", {"comment_id": "1"}))
    engine = sa.create_engine(server)
    with engine.begin() as connection:
        connection.execute(sa.text("drop table iceberg_tables, iceberg_namespace_properties"))
    engine.dispose()
    with pytest.raises(BadInput, match="recover-catalog"):
        warehouse.create()
    with pytest.raises(Missing, match="recover-catalog"):
        warehouse.scan("comments")
    assert {row.action for row in warehouse.recover()} == {"registered"}
    assert warehouse.query("select count(*) as n from comments")["n"][0] == 1
    assert warehouse.backup() is None
