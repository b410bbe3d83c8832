"""One cluster for all tests of this folder, and what they read its tables with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline import warehouse
from tests.distributed import cluster as made


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory, resources: Path) -> Iterator[made.Cluster]:
    """A running cluster, started once."""
    if lacking := made.missing():
        pytest.skip(lacking)
    folder = tmp_path_factory.mktemp("cluster")
    with made.cluster(folder / "all", more={"UNDERTONE_RESOURCES": str(resources)}) as running:
        yield running


@pytest.fixture
def cluster(installation: made.Cluster, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[made.Cluster]:
    """The running cluster; this process reads and writes its tables."""
    for name, value in installation.environment.items():
        if name.startswith(("UNDERTONE_", "AWS_")):
            monkeypatch.setenv(name, value)
    yield installation
    warehouse.close()
