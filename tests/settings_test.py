"""What pipeline/settings.py makes of the environment that a container is given: empty values, and secrets as files."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from pipeline import settings
from pipeline.errors import BadInput

SECRETS = {
    "USER_KEY": settings.user_key, "LLM_KEY": settings.llm_key, "STUDIO_KEY": settings.studio_key,
    "ALERT_URL": settings.alert_url,
}  # fmt: skip
OTHERS = {
    "DEADLINE_HOURS": settings.deadline_hours, "IMPORT_BYTES": settings.import_limits,
    "IMPORT_CHARACTERS": settings.import_limits, "IMPORT_MEMORY": settings.import_memory,
    "IMPORT_SECONDS": settings.import_seconds, "LLM_URL": settings.llm_uri, "LLM_PRICES": settings.llm_prices,
    "LLM_PROMPTS": settings.llm_prompts, "LLM_MAX_TOKENS": settings.llm_max_tokens, "STUDIO_URL": settings.studio_uri,
    "PRECISION": settings.precision, "KEEP_EMBEDDINGS": settings.keep_embeddings, "ENCODER": settings.encoder,
    "CONTACT": settings.contact,
}  # fmt: skip


@pytest.mark.parametrize(("name", "read"), {**SECRETS, **OTHERS}.items(), ids=[*SECRETS, *OTHERS])
def test_empty_is_not_set(monkeypatch: pytest.MonkeyPatch, name: str, read: Callable[[], object]) -> None:
    """A variable that docker/compose.yaml passes on without a value, `${NAME:-}`, is as if it were not there."""
    monkeypatch.delenv(f"UNDERTONE_{name}", raising=False)
    default = read()
    monkeypatch.setenv(f"UNDERTONE_{name}", "")
    assert read() == default


def test_threads_are_those_of_openmp(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a list, which is of nested loops, the first counts; what is no number above 0 is as if it were not set."""
    monkeypatch.setenv("OMP_NUM_THREADS", "4,2")
    assert settings.threads() == 4
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert settings.threads() == os.cpu_count()


@pytest.mark.parametrize(("name", "read"), SECRETS.items(), ids=SECRETS)
def test_a_secret_may_be_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, read: Callable[[], object]
) -> None:
    """The file's content counts without its line break, the variable goes before it, and an empty file is none.

    A file that cannot be read is an error with its setting: to go on without the key would drop user ids.
    """
    monkeypatch.delenv(f"UNDERTONE_{name}", raising=False)
    path = tmp_path / "secret"
    monkeypatch.setenv(f"UNDERTONE_{name}_FILE", str(path))
    with pytest.raises(BadInput, match=f"UNDERTONE_{name}_FILE.*secret cannot be read"):
        read()
    path.write_text("from a file\n")
    assert read() in ("from a file", b"from a file")
    path.write_text("\n")
    assert read() is None
    monkeypatch.setenv(f"UNDERTONE_{name}", "from the variable")
    assert read() in ("from the variable", b"from the variable")


def test_paths_mean_the_same_in_every_folder(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was given relative to one folder is told from the root, so that a process elsewhere finds it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key").write_text("secret\n", encoding="utf-8")
    folders = {"RELEASES": "out", "LABELLING": "sheets", "LLM_PRICES": "prices.json", "LLM_PROMPTS": "prompts"}
    for name, value in {**folders, "CATALOG": "sqlite:///tables.db", "USER_KEY_FILE": "key"}.items():
        monkeypatch.setenv(f"UNDERTONE_{name}", value)
    variables = settings.absolute()
    monkeypatch.chdir("/")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    readers = (settings.releases, settings.labelling, settings.llm_prices, settings.llm_prompts)
    assert [read() for read in readers] == [tmp_path / name for name in folders.values()]
    assert settings.catalog_uri() == f"sqlite:///{tmp_path / 'tables.db'}"
    assert settings.user_key() == b"secret"


def test_addresses_that_nobody_gave_are_not_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child is given no path that was not set; an address that is no file comes back as it was given."""
    assert not {"UNDERTONE_CATALOG", "UNDERTONE_SPOOL", "UNDERTONE_LLM_PRICES"} & set(settings.absolute())
    address = "postgresql+psycopg2://undertone:a%40b@127.0.0.1/catalog"
    monkeypatch.setenv("UNDERTONE_CATALOG", address)
    assert settings.catalog_uri() == address


def test_polars_decodes_two_row_groups_ahead(tmp_path: Path) -> None:
    """Polars obeys what settings ask of it; by default it may hold whole tables of ours decoded."""
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "a.parquet")
    code = f"import polars, pipeline.settings; polars.scan_parquet('{tmp_path}/a.parquet').collect(engine='streaming')"
    environment = {**os.environ, "POLARS_VERBOSE": "1"}
    process = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "prefetch_limit: 2," in process.stderr
