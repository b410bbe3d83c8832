"""What all services in docker/compose.yaml are: pinned, watched, bounded, on this machine only, without a secret."""

import ast
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from tests.docker.files import COMPOSE, DOCKER, ROOT, SERVICES, SHARED

FILE = DOCKER / "compose.yaml"
OURS = {name: service for name, service in SERVICES.items() if service["image"].startswith("undertone:")}
OTHERS = {name: service for name, service in SERVICES.items() if name not in OURS}
JOBS = {name for name in SERVICES if name.endswith("-init")}  # which end
SECRET = re.compile(r"PASSWORD|SECRET|TOKEN(?!S)|KEY|ALERT")
TASKS = {"undertone-init", "worker-default", "worker-gpu"}  # they have the tables
# settings that compose leaves alone: where things lie in the volume, and what a process hands to its own
NEVER = {"INBOX", "MODELS", "REPORTS", "LABELLING", "RELEASES", "RESOURCES", "HOME", "ATTEMPT", "DEBUG"}
VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")

each_service = pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES)
each_of_ours = pytest.mark.parametrize("service", OURS.values(), ids=OURS)


def secrets_of(service: dict[str, Any]) -> set[str]:
    """Names of the secrets that a service is given."""
    return {secret if isinstance(secret, str) else secret["source"] for secret in service.get("secrets", ())}


def test_images_are_pinned_or_built_here() -> None:
    """Images of others have a version and the digest of their content, ours a target of the Dockerfile."""
    for service in OTHERS.values():
        assert re.fullmatch(r"[\w./-]+:v?\d[\w.-]*@sha256:[0-9a-f]{64}", service["image"])
    for service in OURS.values():
        build = service["build"]
        assert service["image"].endswith(f"-{build['target']}")
        stages = re.findall(r"^FROM \S+ AS ([\w-]+)$", (ROOT / build["dockerfile"]).read_text(encoding="utf-8"), re.M)
        assert build["target"] in stages


@each_service
def test_a_service_is_bounded(service: dict[str, Any]) -> None:
    """A service takes no more than its share, of the log's disk too, wins no rights, and is for this machine alone."""
    assert {"mem_limit", "cpus", "pids_limit"} < service.keys()
    assert service["logging"]["options"].keys() == {"max-size", "max-file"}
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    assert service.get("network_mode") != "host"


def test_who_waits_waits_for_what_will_be() -> None:
    """Services tell whether they are well, come back, and wait for jobs that ended and services that are watched."""
    for name, service in SERVICES.items():
        if name not in JOBS:
            assert service["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}, name
            assert {"interval", "timeout", "retries", "start_period"} < service["healthcheck"].keys(), name
            assert service["restart"] == "unless-stopped", name
        for other, wait in service.get("depends_on", {}).items():
            assert wait["condition"] == ("service_completed_successfully" if other in JOBS else "service_healthy"), name
            assert set(SERVICES[other].get("profiles", ())) <= set(service.get("profiles", ())), name


@each_of_ours
def test_ours_can_write_to_volumes_alone(service: dict[str, Any]) -> None:
    """Our containers have no capability and a root that nobody writes to; what is written in memory is bounded.

    What the environment and commands say of /run/secrets is there.
    """
    mounted = {secret if isinstance(secret, str) else secret["target"] for secret in service["secrets"]}
    text = f"{service['environment']} {service['command']}"
    assert set(re.findall(r"/run/secrets/([\w.]+)", text)) <= mounted
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert all("size=" in mount for mount in service["tmpfs"])
    assert "user" not in service  # which the image sets, and is not root
    assert "privileged" not in service


@each_service
def test_data_lies_in_named_volumes(service: dict[str, Any]) -> None:
    """What a service keeps outlives it, in a volume that the file declares; files of ours are only read."""
    for volume in service.get("volumes", ()):
        source, _, rest = volume.partition(":")
        if source.startswith("./"):
            assert rest.endswith(":ro")
            assert (DOCKER / source).is_file()
        else:
            assert source in COMPOSE["volumes"]


@each_service
def test_no_secret_has_a_value(service: dict[str, Any]) -> None:
    """A secret is a file, or comes from outside, or its service does not start; addresses have no password."""
    for name, value in service.get("environment", {}).items():
        assert not re.search(r"//[^/\s]*@", str(value)), name
        if not SECRET.search(name.replace("AIRFLOW__SECRETS__", "")):
            continue
        variable = VARIABLE.fullmatch(value)
        assert (variable and variable[2] == "?") or "/run/secrets/" in value or value == "/tmp/users.json", name  # noqa: S108


def test_a_variable_must_be_set_or_is_harmless() -> None:
    """Every ${VARIABLE} says what is missing, or has a default that is no secret."""
    text = FILE.read_text(encoding="utf-8")
    variables = VARIABLE.findall(text)
    assert len(variables) == text.count("${")
    for name, sign, value in variables:
        assert sign in ("?", "-"), name
        assert value or name.startswith("UNDERTONE_"), name  # which is as if it were not set: tests/settings_test.py
        assert sign == "?" or not SECRET.search(name), name


def test_the_secrets_are_those_that_are_made(tmp_path: Path) -> None:
    """docker/secrets.sh makes the files that are mounted, once, all different, for their owner's eyes."""
    folder = tmp_path / "secrets"
    command = ["sh", DOCKER / "secrets.sh", folder]
    subprocess.run(command, check=True)
    texts = {path.name: path.read_text() for path in folder.iterdir()}
    assert texts.keys() == {Path(secret["file"]).name for secret in COMPOSE["secrets"].values()} | {"store.env"}
    empty = {name for name, text in texts.items() if text.strip() in {"", "{}"}}
    assert empty == {"llm_key", "studio_key", "alert_url", "connections.json"}  # of others, and so not known here
    assert all((folder / name).stat().st_mode & 0o200 for name in empty)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert subprocess.run(command, check=False, capture_output=True).returncode != 0
    keys = [re.sub(r"\s", "", text) for name, text in texts.items() if name not in empty]
    assert len(set(keys)) == len(keys)
    Fernet(texts["fernet_key"])
    assert set().union(*map(secrets_of, SERVICES.values())) == COMPOSE["secrets"].keys()


def test_who_gets_which_secret() -> None:
    """Workers know neither Airflow's database nor its keys; Airflow's own parts know neither tables nor store."""
    airflow = {"pg_service_airflow", "fernet_key", "jwt_secret"}
    tables = {"pg_service_undertone", "aws_credentials"}
    for name, service in OURS.items():
        assert secrets_of(service) & (airflow | tables) == (tables if name in TASKS else airflow), name
        keys = {"user_key", "llm_key", "studio_key"}
        assert secrets_of(service) & keys == (keys if name in TASKS - {"undertone-init"} else set()), name
    assert [name for name, service in SERVICES.items() if "postgres_password" in secrets_of(service)] == ["postgres"]
    assert [name for name, service in SERVICES.items() if "users" in secrets_of(service)] == ["api-server"]


def test_every_setting_reaches_a_container() -> None:
    """What pipeline/settings.py reads is passed on to the workers, or to those that make deadlines and tell of them."""
    source = (ROOT / "pipeline" / "settings.py").read_text(encoding="utf-8")
    read = set(re.findall(r'_[a-z_]+(?:\(|, )"([A-Z_]+)"', source))
    read |= set(re.findall(r'"UNDERTONE_([A-Z_]+)"', source))
    passed = {name: set(service["environment"]) for name, service in OURS.items()}
    needed = {f"UNDERTONE_{name}" for name in read - NEVER}
    assert len(needed) > 15
    assert "UNDERTONE_DEADLINE_HOURS" in passed["dag-processor"]
    worker = passed["worker-default"] | {name.removesuffix("_FILE") for name in passed["worker-default"]}
    assert needed - worker == {"UNDERTONE_DEADLINE_HOURS"}  # `airflow dags test` fails with it
    alerting = {name for name, names in passed.items() if "UNDERTONE_ALERT_URL_FILE" in names}
    assert alerting == {"worker-default", "worker-gpu", "dag-processor", "triggerer"}


def test_airflow_knows_its_settings() -> None:
    """Each AIRFLOW__ variable, of docker/airflow.env too, is an option of Airflow's: a misspelt one is ignored.

    Airflow runs a command only for such settings that it knows to be secret; any other would be silently ignored.
    """
    from airflow.configuration import conf

    sections = conf.configuration_description.items()
    known = {(section, name) for section, description in sections for name in description["options"]} | {
        ("celery_broker_transport_options", "visibility_timeout"),
        ("scheduler", "num_stuck_in_queued_retries"),  # read by the scheduler, described nowhere
        ("core", "simple_auth_manager_passwords_file"),
    }
    names = {name for service in OURS.values() for name in service["environment"]} | SHARED.keys()
    assert any(name.endswith("_CMD") for name in names)
    for name in (name for name in names if name.startswith("AIRFLOW__")):
        _, section, key = name.removesuffix("_CMD").lower().split("__")
        assert (section, key) in known, name
        assert not name.endswith("_CMD") or (section, key) in conf.sensitive_config_values, name


def _queues(command: list[str]) -> set[str]:
    names = VARIABLE.sub(lambda match: match[3], command[command.index("--queues") + 1])
    return set(names.split(","))


def test_workers_serve_the_queues_of_the_dags() -> None:
    """Every queue that a DAG file names has a worker, and so has the default one; GPU tasks wait in the pool made."""
    named = {"queue": {SHARED["AIRFLOW__OPERATORS__DEFAULT_QUEUE"]}, "pool": set()}
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "dags").glob("*.py")]
    for node in (node for tree in trees for node in ast.walk(tree)):
        pairs = [(node.arg, node.value)] if isinstance(node, ast.keyword) else []
        if isinstance(node, ast.Dict):
            pairs = [(getattr(key, "value", None), value) for key, value in zip(node.keys, node.values, strict=True)]
        for name, value in pairs:
            if name in named and isinstance(value, ast.Constant):
                named[name].add(value.value)
    served = {name: _queues(SERVICES[name]["command"]) for name in ("worker-default", "worker-gpu")}
    assert served == {"worker-default": {"default"}, "worker-gpu": {"gpu"}}
    assert named == {"queue": set().union(*served.values()), "pool": {"gpu"}}
    words = shlex.split(SERVICES["airflow-init"]["command"][2])
    assert words[words.index("set") + 1] == "gpu"
    assert SHARED["AIRFLOW__CORE__EXECUTOR"] == "CeleryExecutor"


def test_the_gpu_worker() -> None:
    """It has the GPU for one task at a time, room for PyTorch's loaders, and time to end what it does."""
    worker = SERVICES["worker-gpu"]
    assert worker["profiles"] == ["gpu"]
    assert worker["command"][-2:] == ["--concurrency", "1"]
    (device,) = worker["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
    assert worker["shm_size"] == "8g"
    assert worker["stop_grace_period"] == "1h"
    assert worker["environment"] == SERVICES["worker-default"]["environment"]


def test_label_studio_sends_nothing() -> None:
    """Label Studio sends no statistics, asks for no newer version, and takes nobody in without an invitation."""
    settings = SERVICES["label-studio"]["environment"]
    assert (settings["COLLECT_ANALYTICS"], settings["LATEST_VERSION_CHECK"]) == ("False", "false")
    assert settings["SENTRY_DSN"] == settings["FRONTEND_SENTRY_DSN"] == ""
    assert settings["LABEL_STUDIO_DISABLE_SIGNUP_WITHOUT_LINK"] == "true"


def test_compose_reads_it(tmp_path: Path) -> None:
    """Docker Compose takes the file with the secrets set, and says which is missing without."""
    if (command := shutil.which("docker-compose")) is None:
        pytest.skip("docker-compose is not installed")
    text = FILE.read_text(encoding="utf-8")
    needed = {name for name, sign, _ in VARIABLE.findall(text) if sign == "?"}
    bare = {name: value for name, value in os.environ.items() if name not in needed}
    (tmp_path / "compose.yaml").write_text(text.replace("name: undertone\n", ""))  # which version 1 does not know
    shutil.copy(DOCKER / "airflow.env", tmp_path)
    (tmp_path / "store.env").touch()
    words = [command, "-f", tmp_path / "compose.yaml", "--profile", "labels", "--profile", "gpu", "config", "-q"]
    complete, lacking = (
        subprocess.run(words, env=bare | more, capture_output=True, text=True, check=False)
        for more in (dict.fromkeys(needed, str(tmp_path)), {})
    )
    assert complete.returncode == 0, complete.stderr
    assert lacking.returncode != 0
    assert "the folder that docker/secrets.sh made" in lacking.stderr
