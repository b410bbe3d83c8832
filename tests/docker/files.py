"""The files of docker/, read once for the tests."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
_LINES = [line.strip() for line in (DOCKER / "airflow.env").read_text(encoding="utf-8").splitlines()]
SHARED = dict(line.split("=", 1) for line in _LINES if line and not line.startswith("#"))
"""The environment that all services share, of docker/airflow.env."""


def load(name: str) -> ModuleType:
    """Import a Python file of docker/."""
    spec = importlib.util.spec_from_file_location(f"docker_{Path(name).stem}", DOCKER / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
