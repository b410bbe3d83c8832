"""What all tests share: a home of their own, no network but loopback, the real data where it is given."""

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis

# a busy machine is slow, not wrong
hypothesis.register_profile("undertone", deadline=None)
hypothesis.load_profile("undertone")

# before any import of airflow, torch or a tokenizer
os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="undertone-airflow-")
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
os.environ["AIRFLOW__CORE__DAGS_FOLDER"] = str(Path(__file__).resolve().parents[1] / "dags")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
_GIVEN = ("UNDERTONE_DATA", "UNDERTONE_LABEL_STUDIO", "UNDERTONE_LABEL_STUDIO_TOKEN")  # what tests may find
for _name in [n for n in os.environ if n.startswith("UNDERTONE_") and n not in _GIVEN]:
    del os.environ[_name]

DAY = "2026-11-19"


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
    """A fresh UNDERTONE_HOME; nothing is created in it yet."""
    folder = tmp_path / "home"
    monkeypatch.setenv("UNDERTONE_HOME", str(folder))
    return folder


@pytest.fixture
def tables(home: Path) -> Iterator[Path]:
    """A home whose warehouse is set up, with empty tables."""
    from pipeline import warehouse

    warehouse.create()
    yield home
    warehouse.close()


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder of random weights as a folder, built once; see `tiny`."""
    import tiny

    return tiny.build(tmp_path_factory.mktemp("tiny"))


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


@pytest.fixture
def wordnet(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """WordNet is there, and what is made of it is made once for all workers of a test run."""
    from pipeline.errors import Missing
    from pipeline.text import wordnet

    try:
        wordnet.version()
    except Missing as why:
        pytest.skip(f"needs WordNet: {why}")
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    monkeypatch.setenv("UNDERTONE_RESOURCES", str(shared / "resources"))


@pytest.fixture(scope="session")
def data() -> Path:
    """The real data sets for development and CI."""
    folder = os.environ.get("UNDERTONE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("UNDERTONE_DATA does not name the folder of real data sets")
    return Path(folder)
