"""What all services in docker/compose.yaml are: pinned, watched, bounded, on this machine only, without a secret."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

FILE = Path(__file__).resolve().parents[2] / "docker" / "compose.yaml"
FOUND: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = FOUND["services"]
SECRET = re.compile(r"PASSWORD|SECRET|TOKEN|KEY")
VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")

each_service = pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES)


@each_service
def test_an_image_is_pinned(service: dict[str, Any]) -> None:
    """An image has a version or a digest, and is nobody's latest."""
    assert re.fullmatch(r"[\w./-]+:\d[\w.-]*(@sha256:[0-9a-f]{64})?", service["image"])


@each_service
def test_a_service_is_watched_and_bounded(service: dict[str, Any]) -> None:
    """A service tells whether it is well, comes back, and takes no more than its share."""
    assert service["healthcheck"]["test"][0] == "CMD"
    assert {"interval", "timeout", "retries", "start_period"} < service["healthcheck"].keys()
    assert service["restart"] == "unless-stopped"
    assert {"mem_limit", "cpus", "pids_limit"} < service.keys()
    assert service["logging"]["options"].keys() == {"max-size", "max-file"}
    assert service["profiles"]


@each_service
def test_only_this_machine_reaches_a_port(service: dict[str, Any]) -> None:
    """A port is published on the loopback address alone."""
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    assert service.get("network_mode") != "host"


@each_service
def test_data_lies_in_named_volumes(service: dict[str, Any]) -> None:
    """What a service keeps outlives it, in a volume that the file declares."""
    assert {volume.partition(":")[0] for volume in service["volumes"]} <= FOUND["volumes"].keys()


@each_service
def test_no_secret_has_a_value(service: dict[str, Any]) -> None:
    """A secret comes from outside, and a service without it does not start."""
    secrets = {name: value for name, value in service["environment"].items() if SECRET.search(name)}
    assert secrets
    for value in secrets.values():
        found = VARIABLE.fullmatch(value)
        assert found is not None
        assert found[2] == "?"


def test_a_variable_must_be_set_or_is_harmless() -> None:
    """Every ${VARIABLE} says what is missing, or has a default that is no secret; none is silently empty."""
    found = VARIABLE.findall(FILE.read_text(encoding="utf-8"))
    assert len(found) == FILE.read_text(encoding="utf-8").count("${")
    for name, way, said in found:
        assert way in ("?", "-"), name
        assert said, name
        assert way == "?" or not SECRET.search(name), name


def test_label_studio_tells_nobody() -> None:
    """Label Studio sends no statistics, asks for no newer version, and takes nobody in without an invitation."""
    told = SERVICES["label-studio"]["environment"]
    assert {name: told[name] for name in ("COLLECT_ANALYTICS", "LATEST_VERSION_CHECK")} == {
        "COLLECT_ANALYTICS": "False",
        "LATEST_VERSION_CHECK": "false",
    }
    assert told["SENTRY_DSN"] == told["FRONTEND_SENTRY_DSN"] == ""
    assert told["LABEL_STUDIO_DISABLE_SIGNUP_WITHOUT_LINK"] == "true"


def test_compose_reads_it() -> None:
    """Docker Compose takes the file with the secrets set, and says which is missing without."""
    if (command := shutil.which("docker-compose")) is None:
        pytest.skip("docker-compose is not installed")
    text = FILE.read_text(encoding="utf-8")
    needed = {name for name, way, _ in VARIABLE.findall(text) if way == "?"}
    bare = {name: value for name, value in os.environ.items() if name not in needed}
    asked = [command, "-f", "-", "--profile", "labels", "config", "-q"]
    text = text.replace("name: undertone\n", "")  # which version 1 does not know
    whole, lacking = (
        subprocess.run(asked, env=bare | more, input=text, capture_output=True, text=True, check=False)
        for more in (dict.fromkeys(needed, "x"), {})
    )
    assert whole.returncode == 0, whole.stderr
    assert lacking.returncode != 0
    assert "a password" in lacking.stderr
