"""What docker/airflow.env tells Airflow: settings that exist, no secret, and times that fit each other."""

import re

import pytest

from tests.docker.files import SHARED

UNDOCUMENTED = {"AIRFLOW__SCHEDULER__NUM_STUCK_IN_QUEUED_RETRIES"}  # read by scheduler_job_runner.py all the same


@pytest.mark.parametrize("name", SHARED)
def test_a_setting_exists(name: str) -> None:
    """Airflow knows the setting: one that is misspelt would be ignored without a word."""
    from airflow.configuration import conf

    section, option = name.removeprefix("AIRFLOW__").lower().split("__")
    assert name in UNDOCUMENTED or option in conf.configuration_description[section]["options"]


def test_a_task_outlives_what_it_waits_for() -> None:
    """Times fit each other, so that a task outlives what it waits for; no secret and no address stands there."""
    times = {name.rpartition("__")[2]: float(value) for name, value in SHARED.items() if value.isdigit()}
    assert times["TASK_INSTANCE_HEARTBEAT_TIMEOUT"] > 3 * 5  # beats at most 5 s apart, three may fail
    assert times["TASK_INSTANCE_HEARTBEAT_TIMEOUT"] < times["TASK_QUEUED_TIMEOUT"] < times["VISIBILITY_TIMEOUT"]
    assert times["DEFAULT_POOL_TASK_SLOT_COUNT"] <= times["PARALLELISM"]
    for name, value in SHARED.items():
        assert not re.search(r"PASSWORD|SECRET|FERNET|TOKEN|CONN$|URL", name)
        assert not re.search(r"[:/@]", value)
