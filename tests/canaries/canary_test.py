"""Canaries: secrets planted wherever DAGs and commands take them from are afterwards nowhere, however things fail."""

import base64
import json
import os
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partialmethod
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine
from typer.testing import CliRunner

from pipeline import cli, settings, warehouse
from pipeline.collect import fetch
from pipeline.collect.sites import netease
from pipeline.errors import UndertoneError
from pipeline.llm.ledger import answers
from pipeline.sample import DAY
from pipeline.tasks.impscore import pairs
from tests.support.rows.held import write
from tests.support.search import find
from tests.support.servers.site import Site
from tests.support.servers.store import bucket, running_store, store_settings

CONNECTIONS = {name: f"kanarienvogel/{name}+0042" for name in ("user_key", "netease", "llm", "label_studio")}
SETTINGS = {
    name: f"kanarienvogel/{name}+0815" for name in ("UNDERTONE_USER_KEY", "UNDERTONE_LLM_KEY", "UNDERTONE_STUDIO_KEY")
}
AWS = {name: f"kanarienvogel-{name}-4711" for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
PASSWORD = "kanarienvogel-passwort-1234"
ADDRESSES = ("UNDERTONE_CATALOG", "UNDERTONE_LLM_LEDGER", "UNDERTONE_SPOOL")
FULL = f"postgresql+psycopg2://undertone:{PASSWORD}@127.0.0.1:1/undertone"


@contextmanager
def echo(status: int = 401) -> Iterator[tuple[str, list[str]]]:
    """A server that turns all down and repeats the key it was given, in every form; its address, and the keys."""
    keys: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            key = (self.headers.get("authorization") or "").partition(" ")[2]
            keys.append(key)
            forms = [key, quote(key, safe=""), key.encode().hex(), base64.b64encode(f"Bearer {key}".encode()).decode()]
            body = json.dumps({"error": {"message": " ".join(["no such key:", *forms])}, "detail": forms}).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PATCH = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", keys
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def music(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """The fixture site in the place of NetEase."""
    with Site() as site, monkeypatch.context() as patch:
        for name in ("START", "ARTICLE"):
            patch.setattr(netease, name, getattr(netease, name).replace("https://music.163.com", site.origin))
        patch.setattr(fetch.Limits, "__init__", partialmethod(fetch.Limits.__init__, seconds_between=0.0))
        yield site


def connect(monkeypatch: pytest.MonkeyPatch, name: str, host: str = "") -> None:
    """A connection with its canary."""
    connection = {"conn_type": "generic", "password": CONNECTIONS[name], **({"host": host} if host else {})}
    monkeypatch.setenv(f"AIRFLOW_CONN_UNDERTONE_{name.upper()}", json.dumps(connection))


@pytest.fixture
def read_output(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Callable[[], dict[str, str]]:
    """Reads output and logs."""
    return lambda: {"output": "\n".join(capfd.readouterr()), "logs": caplog.text}


def is_in_error(caught: pytest.ExceptionInfo[BaseException]) -> bool:
    """Whether the error as a log shows it, with all that caused it, has the password."""
    text = "".join(traceback.format_exception(caught.value))
    return bool(find({"password": PASSWORD}, [], texts={"error": text}))


@pytest.mark.slow
@pytest.mark.nightly
def test_no_secret_of_a_dag_is_left_anywhere(
    run: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch, read_output: Callable[[], dict[str, str]]
) -> None:
    """Secrets of connections and settings are in no log, XCom, rendered field, table, report or database.

    One that somebody puts into a parameter of a run is found: in Airflow's database, by table and column.
    """
    from airflow.configuration import conf

    for name, value in {**SETTINGS, **AWS}.items():
        monkeypatch.setenv(name, value)
    for name in ("user_key", "netease"):
        connect(monkeypatch, name)
    path = home.parent / "own.csv"
    path.write_text("text,prompt\nnice hat,explicit_en\nlovely shoes,explicit_en\n", encoding="utf-8")
    pairs.import_sentences("mine", str(path), DAY, is_own=True)
    assert run("collect", day=DAY, path="sample", source="weibo").state == "success"
    with music(monkeypatch) as site:
        assert run("collect", day=DAY, source="netease", live=True, threads=["186000"]).state == "success"
    cookies = {request.headers.get("cookie") for request in site.log if "api" in request.path}
    assert cookies == {CONNECTIONS["netease"]}  # there, and nowhere else
    users = warehouse.scan("comments").select("user_id").collect()["user_id"]
    assert users.is_not_null().all()
    with echo() as (address, keys):
        connect(monkeypatch, "llm", f"{address}/v1")
        assert run("impscore", day=DAY, model="small-model", profile="paper", epochs=1).state == "failed"
        assert set(keys) == {CONNECTIONS["llm"]}
    with echo(400) as (address, keys):
        connect(monkeypatch, "label_studio", address)
        assert run("csd", day=DAY, tool="label_studio", limit=2, project="p1").state == "failed"
        assert CONNECTIONS["label_studio"] in keys
    texts = read_output()
    assert "no such key" in texts["output"] + texts["logs"]  # the servers' answers are repeated, but for the key
    folders = [home, Path(os.environ["AIRFLOW_HOME"])]
    metadata = os.environ.get("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN") or conf.get("database", "sql_alchemy_conn")
    databases = [metadata, settings.catalog_uri(), settings.spool_uri(), settings.llm_ledger()]
    assert find({**CONNECTIONS, **SETTINGS, **AWS}, folders, databases, texts) == []
    run("collect", day=DAY, path=f"/nowhere/{CONNECTIONS['llm']}", source="mine")
    places = find(CONNECTIONS, [], [metadata], read_output())
    assert any("dag_run.conf" in place.location for place in places)
    assert {place.secret for place in places} == {"llm"}


@pytest.mark.parametrize("name", ADDRESSES)
@pytest.mark.parametrize(
    "address",
    [f"postgresql://u:{PASSWORD}/x@h/db", f"nonsense {PASSWORD}", f"postgresql://u@h:{PASSWORD}/db", f"{PASSWORD}://h"],
)
def test_an_address_that_is_none(name: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database's address that cannot be read is refused; nothing of it is repeated, nor by causes."""
    monkeypatch.setenv(name, address)
    connect_to: dict[str, Callable[[], object]] = {
        "UNDERTONE_CATALOG": warehouse.create,
        "UNDERTONE_LLM_LEDGER": lambda: answers.open_ledger(settings.llm_ledger()),
        "UNDERTONE_SPOOL": lambda: fetch.Spool(settings.spool_uri()),
    }
    with pytest.raises(Exception) as caught:  # noqa: PT011
        connect_to[name]()
    assert not is_in_error(caught)


@pytest.fixture
def talkative(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A database that refuses, by a driver that tells the whole address."""

    def refuse(dialect: Any, record: Any, arguments: Any, options: Any) -> None:
        raise dialect.dbapi.OperationalError(f"cannot connect with {FULL} {options}")

    sa.event.listen(Engine, "do_connect", refuse)
    yield
    sa.event.remove(Engine, "do_connect", refuse)


def test_a_driver_that_repeats_the_address(talkative: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a driver says of an address, ledger, spool and catalog repeat without its password."""
    for connect_to in (answers.open_ledger, fetch.Spool):
        with pytest.raises(UndertoneError) as caught:
            connect_to(FULL)
        assert not is_in_error(caught)
    monkeypatch.setenv("UNDERTONE_CATALOG", FULL)
    with pytest.raises(UndertoneError) as caught:
        warehouse.load_table("comments")
    assert not find({"password": PASSWORD}, [], texts={"error": str(caught.value)})
    warehouse.close()


def test_the_doctor_prints_no_secret(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`undertone doctor` says what is set, and nothing of what it is set to."""
    addresses = {"UNDERTONE_LLM_URL": "http://127.0.0.1:1/v1", "UNDERTONE_LLM_LEDGER": FULL, "UNDERTONE_SPOOL": FULL}
    for name, value in {**SETTINGS, **AWS, **addresses}.items():
        monkeypatch.setenv(name, value)
    result = CliRunner().invoke(cli.app, ["doctor"])
    assert "key for user ids" in result.output
    text = result.output + "".join(traceback.format_exception(result.exception) if result.exception else "")
    assert not find({**SETTINGS, **AWS, "password": PASSWORD}, [], texts={"doctor": text})


def test_nothing_of_the_store_is_in_the_tables(home: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """On an object store neither Iceberg's metadata, nor Parquet, nor the catalog holds its keys."""
    folder = tmp_path / "bucket"
    folder.mkdir()
    with (
        running_store() as (host, port),
        bucket(store_settings(f"http://{host}:{port}", "s3://canaries/x", **AWS)) as client,
    ):
        warehouse.create()
        write("a")
        assert warehouse.scan("comments").select(pl.len()).collect().item() == 1
        pages = client.get_paginator("list_objects_v2").paginate(Bucket="canaries")
        for number, item in enumerate(item for page in pages for item in page.get("Contents", [])):
            path = folder / f"{number}-{Path(item['Key']).name}"
            path.write_bytes(client.get_object(Bucket="canaries", Key=item["Key"])["Body"].read())
        warehouse.close()
    assert any(path.name.endswith(".metadata.json") for path in folder.iterdir())
    assert find(AWS, [home, folder], [settings.catalog_uri()], {"output": "".join(capfd.readouterr())}) == []
