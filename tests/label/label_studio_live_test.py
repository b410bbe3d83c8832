"""Tasks and labels through a real Label Studio, where UNDERTONE_LABEL_STUDIO and its token are set."""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import httpx
import polars as pl
import pytest

from pipeline.errors import Refused
from pipeline.label import label_studio, schema, studio_client, task_files
from tests.support.servers.studio import build_result

ADDRESS, TOKEN = (os.environ.get(f"UNDERTONE_LABEL_STUDIO{name}", "") for name in ("", "_TOKEN"))
TEXTS = ["😀你可真准时，才迟到一小时", "Lovely weather & <b>rain</b> $text {{x}}", "=1+1\n这话谁说的"]
TASKS = pl.DataFrame({
    "task_id": [f"{n:032x}" for n in range(3)], "text": TEXTS, "context": [None, "开会", "<script>alert(1)</script>"],
    "lang": "zh", "schema_version": schema.hash_schema(),
})  # fmt: skip
VALUES = {"subtext": "1", "sarcasm": "0", "emotion": "None", "span": "1-4", "meaning": "嫌他迟到"}

pytestmark = pytest.mark.skipif(
    not (ADDRESS and TOKEN), reason="no Label Studio: set UNDERTONE_LABEL_STUDIO and UNDERTONE_LABEL_STUDIO_TOKEN"
)


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with studio_client.connect(ADDRESS, TOKEN) as client:
        yield client


@pytest.fixture
def project(client: httpx.Client) -> Iterator[int]:
    title = f"undertone test {secrets.token_hex(6)} {'x' * 40}"  # longer than the server takes
    form = label_studio.build_config()
    number = studio_client.get_project(client, title, form)
    assert studio_client.get_project(client, title, form) == number
    yield number
    client.delete(f"/api/projects/{number}/").raise_for_status()


def test_push_annotate_pull(client: httpx.Client, project: int, tmp_path: Path) -> None:
    """Tasks are given once, copies are removed, and what was answered comes back by field, with what was not."""
    items = label_studio.build_tasks(task_files.build_rows(TASKS))
    assert studio_client.push(client, project, items) == 3
    client.post(f"/api/projects/{project}/import", json=items[:2]).raise_for_status()  # as of a push that was killed
    assert studio_client.push(client, project, items) == 0
    tasks = {task["data"]["task_id"]: task for task in studio_client._list_tasks(client, project)}
    assert {key: task["data"] for key, task in tasks.items()} == {i["data"]["task_id"]: i["data"] for i in items}

    for key, name in zip(sorted(tasks), ("answered", "skipped", "begun"), strict=True):
        answer = {"result": [build_result(field, value) for field, value in VALUES.items()], "lead_time": 9.5}
        address = f"/api/tasks/{tasks[key]['id']}/{'drafts' if name == 'begun' else 'annotations/'}"
        params = {"was_cancelled": 1} if name == "skipped" else {}
        client.post(address, json=answer, params=params).raise_for_status()
    answered_tasks = sorted(studio_client._list_tasks(client, project), key=lambda task: str(task["data"]["task_id"]))
    begun_by = [[name for name in studio_client._BEGUN if task[name]] for task in answered_tasks]
    assert begun_by == [["total_annotations"], ["cancelled_annotations"], ["draft_exists"]]
    studio_client.export(client, project, tmp_path / "export.json")
    export = label_studio.parse_export(label_studio.read_export(tmp_path / "export.json"), TASKS)

    key, skipped, begun = TASKS["task_id"]
    assert dict(export.labels.filter(task_id=key).select("field", "value").iter_rows()) == VALUES
    assert export.labels.height == len(VALUES)
    reasons = export.skipped.group_by("task_id", "reason").len().sort("task_id").rows()
    unanswered = len(schema.FIELDS.keys() - VALUES.keys())
    assert reasons == [(key, "unanswered", unanswered), (skipped, "cancelled", 1), (begun, "draft", 1)]
    assert export.full_tasks.is_empty()


def test_a_wrong_token_is_refused() -> None:
    """The server's no to a token of either kind is Refused, and does not repeat it."""
    for token in ("0" * 40, "eyJhbGciOi.eyJ0b2tlbl90.c0ffee"):
        with studio_client.connect(ADDRESS, token) as client, pytest.raises(Refused) as error:
            studio_client.get_project(client, "no project", label_studio.build_config())
        assert token not in str(error.value)
