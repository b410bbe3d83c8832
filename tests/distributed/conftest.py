"""One cluster for all tests of this folder, and what they read its tables with."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from distributed import cluster as made
from pipeline import warehouse


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[made.Cluster]:
    """A running cluster, started once; what WordNet is made into is shared with other tests of the session."""
    if lacking := made.missing():
        pytest.skip(lacking)
    folder = tmp_path_factory.mktemp("cluster")
    resources = os.environ.get("UNDERTONE_RESOURCES") or str(tmp_path_factory.getbasetemp() / "resources")
    with made.cluster(folder / "all", more={"UNDERTONE_RESOURCES": resources}) as running:
        yield running


@pytest.fixture
def cluster(installation: made.Cluster, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[made.Cluster]:
    """The running cluster; this process reads and writes its tables."""
    for name, value in installation.environment.items():
        if name.startswith(("UNDERTONE_", "AWS_")):
            monkeypatch.setenv(name, value)
    yield installation
    warehouse.close()
