"""One cluster for all tests of this folder, and what they read its tables with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline import warehouse
from tests.distributed.cluster import Cluster, missing
from tests.distributed.comparison import put_in_force


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory, resources: Path) -> Iterator[Cluster]:
    """A running cluster, started once."""
    if lacking := missing():
        pytest.skip(lacking)
    folder = tmp_path_factory.mktemp("cluster")
    with Cluster(folder / "all", UNDERTONE_RESOURCES=str(resources)) as running:
        yield running


@pytest.fixture
def cluster(installation: Cluster, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The running cluster; this process reads and writes its tables."""
    put_in_force(monkeypatch, installation.environment)
    yield installation
    warehouse.close()
