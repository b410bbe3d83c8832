"""Kubernetes as far as objects go: values that agree with docker/compose.yaml, and pods that ask for a GPU."""

import importlib
import re
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

from tests.docker.files import DOCKER, SERVICES, SHARED, load

VALUES: dict[str, Any] = yaml.safe_load((DOCKER / "values.yaml").read_text(encoding="utf-8"))
ENVIRONMENT = {variable["name"]: variable["value"] for variable in VALUES["env"]}
OF_THE_CLUSTER = {  # its addresses, and the folder where the chart mounts a volume for logs
    "AWS_ENDPOINT_URL", "AIRFLOW__CORE__EXECUTION_API_SERVER_URL", "AIRFLOW__LOGGING__BASE_LOG_FOLDER",
}  # fmt: skip
JOB = ("airflow", "jobs", "check", "--local", "--job-type", "SchedulerJob")  # compose asks for the port, a quicker way
NEEDS_CLIENT = "the kubernetes client is not installed: pip install -c constraints.txt -e '.[kubernetes]'"


@pytest.fixture
def policy(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """docker/airflow_local_settings.py as Airflow imports it, with an image of a registry."""
    module = load("airflow_local_settings.py")
    monkeypatch.setattr(module.conf, "get", lambda *_: "registry.example.org/undertone")
    return module


def test_values_agree_with_compose() -> None:
    """Airflow and tasks have the settings that compose gives, but for the executor and addresses."""
    assert SHARED["AIRFLOW__CORE__EXECUTOR"] == VALUES["executor"].split(",")[0]
    shared = {name: value for name, value in SHARED.items() if name != "AIRFLOW__CORE__EXECUTOR"}
    settings = {**shared, **SERVICES["worker-default"]["environment"], **SERVICES["scheduler"]["environment"]}
    ours = {name: value for name, value in ENVIRONMENT.items() if name not in OF_THE_CLUSTER}
    assert ours.items() <= settings.items()
    assert shared.keys() <= ENVIRONMENT.keys()
    assert SERVICES["worker-default"]["image"] == ":".join(VALUES["images"]["airflow"].values())


def test_who_gets_which_secret() -> None:
    """No secret stands in the values; workers have the tables' files and Airflow's parts Airflow's, as in compose."""
    parts = {part: values for part, values in VALUES.items() if isinstance(values, dict) and "extraVolumes" in values}
    secrets = {part: values["extraVolumes"][0]["secret"]["secretName"] for part, values in parts.items()}
    airflow = ("apiServer", "scheduler", "dagProcessor", "triggerer", "migrateDatabaseJob")
    assert secrets == {"workers": "undertone-worker", **dict.fromkeys(airflow, "undertone-airflow")}
    assert not any(VALUES["enableBuiltInSecretEnvVars"].values())
    for name in VALUES["enableBuiltInSecretEnvVars"]:
        if name.startswith("AIRFLOW__") and not name.endswith(("SQL_ALCHEMY_CONN", "RESULT_BACKEND")):
            assert ENVIRONMENT[f"{name}_CMD"].startswith("cat /run/secrets/")


def test_a_probe_is_what_the_image_has() -> None:
    """The chart's own command is a script of Airflow's image; each probe has one, compose's where that has the same."""
    services = {"dagProcessor": "dag-processor", "triggerer": "triggerer", "workers": "worker-default"}
    probes = [(VALUES["scheduler"][f"{name}Probe"], ("CMD", *JOB)) for name in ("startup", "liveness")]
    probes += [
        (VALUES[part]["livenessProbe"], SERVICES[name]["healthcheck"]["test"]) for part, name in services.items()
    ]
    for values, (kind, *command) in probes:
        assert values["command"] == (["sh", "-c", command[0].replace("$$", "$")] if kind == "CMD-SHELL" else command)
        assert values["timeoutSeconds"] == 45  # Airflow's command takes longer than the chart's 20 on a busy node


def test_nothing_runs_that_the_image_has_not() -> None:
    """No sidecar, no user job, no statistics, no other auth manager; workers do not ask for Airflow's database."""
    parts = ("scheduler", "dagProcessor", "triggerer", "workers")
    assert not any(VALUES[part]["logGroomerSidecar"]["enabled"] for part in parts)
    assert not VALUES["workers"]["waitForMigrations"]["enabled"]
    assert not VALUES["statsd"]["enabled"]
    assert not VALUES["createUserJob"]["defaultUser"]["enabled"]
    module, _, name = VALUES["config"]["core"]["auth_manager"].rpartition(".")
    assert isinstance(getattr(importlib.import_module(module), name), type)
    assert VALUES["apiServer"]["args"][-1] == SERVICES["api-server"]["command"][-1]
    assert ENVIRONMENT["AIRFLOW__LOGGING__BASE_LOG_FOLDER"] == "/opt/airflow/logs"  # airflowHome of the chart, + logs


def test_a_secret_that_is_named_is_made() -> None:
    """The commands in the file make each secret with all files that the environment and commands name for its pods."""
    text = (DOCKER / "values.yaml").read_text(encoding="utf-8").replace("\\\n#", "")
    commands = dict(re.findall(r"create secret generic (\S+)(.*)", text))
    paths = {name: re.findall(r"--from-file=([^\s=]+)", rest) for name, rest in commands.items()}
    files = {name: {path.rpartition("/")[2] for path in values} for name, values in paths.items()}
    needed = set(re.findall(r"/run/secrets/([\w.]+)", f"{ENVIRONMENT} {VALUES['apiServer']['args']}"))
    assert files["undertone-airflow"] == needed - {"user_key", "llm_key", "studio_key"}
    assert files["undertone-worker"] == needed - {"fernet_key", "jwt_secret", "users.json"} | {"credentials"}


def test_only_gpu_tasks_leave_celery(policy: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task of the queue `gpu` gets a pod with the override, any other is left as it is; DAG files say nothing.

    Airflow knows the hook by this name and calls it with what it has; the chart reads the text as a template.
    """
    import pluggy
    from airflow import policies

    monkeypatch.setattr(policy, "pod", lambda: "a pod")
    manager = pluggy.PluginManager(policies.local_settings_hookspec.project_name)
    manager.add_hookspecs(policies)
    policies.make_plugin_from_local_settings(manager, policy, {"task_instance_mutation_hook"})
    on_gpu, other = (SimpleNamespace(queue=name, executor=None, executor_config={}) for name in ("gpu", "default"))
    for task in (on_gpu, other):
        manager.hook.task_instance_mutation_hook(task_instance=task, dag_run=None)
    assert (on_gpu.executor, on_gpu.executor_config) == ("KubernetesExecutor", {"pod_override": "a pod"})
    assert (other.executor, other.executor_config) == (None, {})
    assert "KubernetesExecutor" in VALUES["executor"].split(",")
    assert "{{" not in (DOCKER / "airflow_local_settings.py").read_text(encoding="utf-8")


def test_a_pod_for_a_gpu(policy: ModuleType) -> None:
    """One GPU, the GPU image, a node that has one, shared memory as the GPU worker of compose has, time to end."""
    pytest.importorskip("kubernetes.client", reason=NEEDS_CLIENT)
    from kubernetes.client import ApiClient

    spec = ApiClient().sanitize_for_serialization(policy.pod())["spec"]
    (container,) = spec["containers"]
    assert container["name"] == "base"
    assert container["image"] == "registry.example.org/" + SERVICES["worker-gpu"]["image"]
    resources = container["resources"]
    assert resources["limits"]["nvidia.com/gpu"] == resources["requests"]["nvidia.com/gpu"] == "1"
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert spec["volumes"] == [{"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}]
    assert container["volumeMounts"] == [{"name": "shared-memory", "mountPath": "/dev/shm"}]  # noqa: S108
    assert SERVICES["worker-gpu"]["shm_size"] == "8g"
    assert spec["terminationGracePeriodSeconds"] == 3600
