"""What all tests share: a home of their own, no network but loopback, the real data where it is given."""

import atexit
import hashlib
import os
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis
from sqlalchemy import Engine, event

from pipeline import left_out

# a busy machine is slow, not wrong
hypothesis.register_profile("undertone", deadline=None, max_examples=50)
hypothesis.load_profile("undertone")

# before any import of airflow, torch or a tokenizer
os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="undertone-airflow-")
atexit.register(shutil.rmtree, os.environ["AIRFLOW_HOME"], ignore_errors=True)
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
os.environ["AIRFLOW__CORE__DAGS_FOLDER"] = str(Path(__file__).resolve().parents[1] / "dags")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
_GIVEN = (  # what tests may find
    "UNDERTONE_DATA", "UNDERTONE_LABEL_STUDIO", "UNDERTONE_LABEL_STUDIO_TOKEN", "UNDERTONE_TEST_MASKED_LM",
)  # fmt: skip
for _name in [n for n in os.environ if n.startswith("UNDERTONE_") and n not in _GIVEN]:
    del os.environ[_name]
os.environ["UNDERTONE_PRECISION"] = "float32"  # scores are the same on all machines

DAY = "2026-11-19"
PIPELINE = Path(__file__).resolve().parents[1] / "pipeline"


@event.listens_for(Engine, "connect")
def _do_not_wait_for_the_disk(connection: Any, _: Any) -> None:
    """No test pulls the plug, and a catalog that waits for the disk at every commit takes most of a small test."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """One more than there are cores: the tests that kill, stall and wait leave theirs idle."""
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else (os.cpu_count() or 1) + 1


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connecting anywhere but to this machine fails."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise PermissionError(f"tests may not connect to {address[0]}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh UNDERTONE_HOME; nothing is created in it yet, and nothing is recorded as left out."""
    left_out.clear()
    folder = tmp_path / "home"
    monkeypatch.setenv("UNDERTONE_HOME", str(folder))
    for name in [n for n in os.environ if n.startswith("AIRFLOW_CTX_") or n == "UNDERTONE_ATTEMPT"]:
        del os.environ[name]  # a DAG that an earlier test ran in this process left them
    os.umask(0o022)  # and its own
    return folder


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose warehouse is set up, to be copied."""
    from pipeline import warehouse

    folder = tmp_path_factory.mktemp("empty")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERTONE_HOME", str(folder))
        warehouse.create()
        warehouse.close()
    return folder


@pytest.fixture
def tables(empty_home: Path, home: Path) -> Iterator[Path]:
    """A home whose warehouse is set up, with empty tables.

    Creating them takes longer than most tests, so it is a copy; the paths in Iceberg's metadata and in its catalog are
    absolute, and become those of this home.
    """
    from pipeline import warehouse

    shutil.copytree(empty_home, home)
    for path in home.glob("warehouse/**/*.metadata.json"):
        path.write_text(path.read_text(encoding="utf-8").replace(str(empty_home), str(home)), encoding="utf-8")
    for path in home.glob("warehouse/**/checksums"):  # of the other paths
        shutil.rmtree(path)
    with closing(sqlite3.connect(home / "catalog.db")) as catalog, catalog:
        catalog.execute(
            "UPDATE iceberg_tables SET metadata_location = replace(metadata_location, ?, ?)",
            (str(empty_home), str(home)),
        )
    yield home
    warehouse.close()


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder of random weights as a folder, built once; see `tiny`."""
    from tests.support.rows import tiny

    return tiny.build(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def tiny(tiny_folder: Path) -> Any:
    """The encoder of that folder."""
    from pipeline.models import encoder

    return encoder.load(str(tiny_folder), device="cpu")


@pytest.fixture(scope="session")
def bert(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a tiny BERT of random weights with its head for masked words, which reads 64 pieces."""
    import torch
    from transformers import AutoConfig, AutoTokenizer, BertForMaskedLM

    folder = tmp_path_factory.mktemp("headed")
    with torch.random.fork_rng():
        torch.manual_seed(7)
        BertForMaskedLM(AutoConfig.from_pretrained(tiny_folder)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_folder).save_pretrained(folder)
    return folder


@pytest.fixture
def tiny_encoder(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The setting UNDERTONE_ENCODER names the tiny encoder."""
    monkeypatch.setenv("UNDERTONE_ENCODER", str(tiny_folder))
    return tiny_folder


@pytest.fixture(scope="session")
def resources(request: pytest.FixtureRequest) -> Path:
    """A folder of resources for all workers and all runs of tests of the same code, kept with pytest's cache."""
    code = hashlib.blake2b(digest_size=8)
    for path in sorted(PIPELINE.rglob("*.py")):
        code.update(path.read_bytes())
    cache: Any = request.config.cache
    folder = Path(cache.mkdir(f"resources-{code.hexdigest()}"))
    for other in folder.parent.glob("resources-*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    return folder


@pytest.fixture(scope="session")
def shared_wordnet(resources: Path) -> Path:
    """WordNet is there, and what is made of it, in 20 CPU seconds, lies in this folder."""
    from pipeline.errors import Missing
    from pipeline.text import wordnet

    try:
        wordnet.read_version()
    except Missing as why:
        pytest.skip(f"needs WordNet: {why}")
    return resources


@pytest.fixture(scope="session")
def read_counts(shared_wordnet: Path) -> Any:
    """Reads the counts of WordNet's tagger, once for all tests: every load takes half a CPU second."""
    from pipeline.text import tagging

    return cache(tagging._load_count_tags)


@pytest.fixture
def wordnet(shared_wordnet: Path, read_counts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting UNDERTONE_RESOURCES names the folder of what is made of WordNet."""
    monkeypatch.setenv("UNDERTONE_RESOURCES", str(shared_wordnet))
    monkeypatch.setattr("pipeline.text.tagging._load_count_tags", read_counts)


@pytest.fixture(scope="session")
def data() -> Path:
    """The real data sets for development and CI."""
    folder = os.environ.get("UNDERTONE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("UNDERTONE_DATA does not name the folder of real data sets")
    return Path(folder)
