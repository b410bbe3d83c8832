"""The client of Label Studio against a loopback server: nothing doubled, nothing lost, no token shown."""

import logging
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest

from pipeline.errors import BadInput, Refused, Retry, SchemaDrift, UndertoneError
from pipeline.label import label_studio, schema, studio_client, task_files
from tests.support.servers.studio import PERSONAL, TOKEN, Studio

TITLE = "subtext 2026"
VALUES = dict.fromkeys(schema.FIELDS, "1") | {"emotion": "joy"}


@pytest.fixture
def studio(monkeypatch: pytest.MonkeyPatch) -> Iterator[Studio]:
    """A server of small pages, and small batches to it, so that a few tasks are many requests."""
    monkeypatch.setattr(studio_client, "_BATCH", 50)
    with Studio(page_size=20) as studio:
        yield studio


@pytest.fixture
def client(studio: Studio) -> Iterator[httpx.Client]:
    with studio_client.connect(studio.url, TOKEN, 5) as client:
        yield client


@pytest.fixture
def project(client: httpx.Client) -> int:
    return get_project(client)


def build_tasks(count: int = 3) -> pl.DataFrame:
    """Build tasks of our own comments."""
    return pl.DataFrame({
        "task_id": [f"{n:032x}" for n in range(count)], "text": [f"你可真准时，迟到第{n}次 😀" for n in range(count)],
        "context": [None if n % 2 else "开会" for n in range(count)], "lang": "zh",
        "schema_version": schema.hash_schema(),
    }, schema_overrides={"context": pl.String})  # fmt: skip


def build_items(count: int = 3, in_round: int = 1) -> list[dict[str, Any]]:
    return label_studio.build_tasks(task_files.build_rows(build_tasks(count).with_columns(round=in_round)))


def get_project(client: httpx.Client) -> int:
    return studio_client.get_project(client, TITLE, label_studio.build_config())


def list_ids(studio: Studio) -> list[str]:
    return [task["data"]["task_id"] for task in studio.tasks]


def test_a_project_is_created_once(studio: Studio, client: httpx.Client) -> None:
    """Asking twice for a title gives the same project, which gives each task to three raters, in stage 2 to one."""
    form = label_studio.build_config(stage=2)
    for _ in range(2):
        assert get_project(client) == 1
        assert studio_client.get_project(client, f"{TITLE} again", form, 2) == 2
    assert [p["maximum_annotations"] for p in studio.projects] == [3, 1]  # CSD-15: three raters, then one


def test_a_project_is_found_behind_others_of_like_titles(studio: Studio, client: httpx.Client, project: int) -> None:
    """Only the very title counts, page by page; which of two has the labels is not guessed."""
    studio.projects += [{"id": studio.create_id(), "title": f"{TITLE} {n}", "label_config": ""} for n in range(30)]
    assert get_project(client) == project
    assert studio.served["GET projects"] == 3
    studio.projects.append({**studio.projects[0], "id": 99})
    with pytest.raises(BadInput, match="2 projects"):
        get_project(client)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"label_config": "<View/>"}, "another form"), ({"maximum_annotations": 1}, "to 1 raters, expected 3")],
)  # fmt: skip
def test_a_project_that_does_not_fit_is_refused(
    studio: Studio, client: httpx.Client, project: int, change: dict[str, Any], message: str
) -> None:
    """A form of another schema, or another number of raters, is not labelled into."""
    studio.projects[0].update(change)
    with pytest.raises(BadInput, match=message):
        get_project(client)


def test_tasks_are_pushed_once(studio: Studio, client: httpx.Client, project: int) -> None:
    """What is there is not sent again, over pages and batches; a task given twice is sent once, in round 2 again."""
    pushes = [build_items(*size) for size in ((23,), (123,), (123,), (2, 2), (2, 2))]
    pushes[1] += build_items(5)
    assert [studio_client.push(client, project, items) for items in pushes] == [23, 100, 0, 2, 0]
    assert list_ids(studio) == [f"{n:032x}" for n in (*range(123), 0, 1)]


@pytest.mark.parametrize("fault", [500, 502, 429, "drop", "cut"])
def test_a_push_that_failed_is_run_again_without_doubles(
    studio: Studio, client: httpx.Client, project: int, fault: Any
) -> None:
    """An error before, or a connection lost after the import took effect, is Retry; the next push sends the rest."""
    studio.faults["POST import"] = ["ok", fault]  # the first batch arrives
    with pytest.raises(Retry, match="import"):
        studio_client.push(client, project, build_items(110))
    arrived = 100 if fault in ("drop", "cut") else 50
    assert len(studio.tasks) == arrived
    assert studio_client.push(client, project, build_items(110)) == 110 - arrived
    assert sorted(list_ids(studio)) == [f"{n:032x}" for n in range(110)]


def test_a_project_whose_creation_was_not_heard_of_is_found(studio: Studio, client: httpx.Client) -> None:
    """A connection lost after the project was created leaves one project."""
    studio.faults["POST projects"] = ["drop"]
    with pytest.raises(Retry):
        get_project(client)
    get_project(client)
    assert len(studio.projects) == 1


def test_push_annotate_pull(studio: Studio, client: httpx.Client, project: int, tmp_path: Path) -> None:
    """Every label that three raters give comes back once, by task, rater and field."""
    tasks = build_tasks(3)
    studio_client.push(client, project, build_items(3))
    for task in tasks["task_id"]:
        for rater in (11, 12, 13):
            studio.annotate(task, rater, {**VALUES, "sarcasm": str(rater - 12), "meaning": f"他迟到了，{rater}说"})
    studio.annotate(tasks["task_id"][0], 11, VALUES)  # the server takes a second answer of the same rater
    studio_client.export(client, project, tmp_path / "export.json")
    export = label_studio.parse_export(label_studio.read_export(tmp_path / "export.json"), tasks)
    fields = export.labels.filter(pl.col("field").is_in([*schema.FIELDS]))
    assert len(fields) == 3 * 3 * 8
    assert fields.select("task_id", "rater_id", "field").is_duplicated().sum() == 0
    assert export.skipped["reason"].to_list() == ["superseded"]
    assert set(export.full_tasks["task_id"]) == set(tasks["task_id"])
    sarcasm = fields.filter(field="sarcasm", task_id=tasks["task_id"][1])
    assert dict(sarcasm.select("rater_id", "value").iter_rows()) == {"ls-11": "-1", "ls-12": "0", "ls-13": "1"}
    assert export.labels.filter(field="meaning").height == 8  # one was in the superseded answer


def test_an_import_that_ends_late_leaves_no_copies(studio: Studio, client: httpx.Client, project: int) -> None:
    """Of a task that is there twice, the copy that no rater has begun is removed; the server goes on after a kill."""
    first, second, third, _ = (item["data"]["task_id"] for item in build_items(4))
    studio_client.push(client, project, build_items(3))
    studio.import_tasks(project, build_items(3))  # it comes through late
    studio.annotate(second, 11, VALUES)  # the copy
    studio.annotate(third, 11, {}, was_cancelled=True)
    next(t for t in studio.tasks if t["data"]["task_id"] == third)["drafts"] = [{"id": 1}]
    before = [t["id"] for t in studio.tasks]
    assert studio_client.push(client, project, build_items(4)) == 1
    after = [t["id"] for t in studio.tasks]
    assert after[:4] == [before[0], before[2], before[4], before[5]]  # of the third both were begun
    assert list_ids(studio)[:4] == [first, third, second, third]
    assert studio_client.push(client, project, build_items(4)) == 0
    assert [t["id"] for t in studio.tasks] == after


def test_a_copy_of_which_little_is_known_stays(studio: Studio, client: httpx.Client, project: int) -> None:
    """A server that does not say whether a rater has begun a task has none of its tasks removed."""
    copies = [{"id": n, "data": build_items(1)[0]["data"], "total_annotations": 0} for n in (7, 8)]
    studio.faults["GET tasks"] = [(200, {"tasks": copies, "total": 2})]
    assert studio_client.push(client, project, build_items(1)) == 0
    assert not [name for name in studio.served if name.startswith("DELETE")]


@pytest.mark.parametrize(
    ("count", "error", "message"),
    [(3, Retry, r"3 tasks of project 1 .* not there"), (2, SchemaDrift, "took 2 tasks, expected 3")],
)
def test_the_servers_count_is_not_enough(
    studio: Studio, client: httpx.Client, project: int, count: int, error: type[UndertoneError], message: str
) -> None:
    """The server's own count is compared with ours, and what was pushed is looked for."""
    studio.faults["POST import"] = [(201, {"task_count": count})]
    with pytest.raises(error, match=message):
        studio_client.push(client, project, build_items(3))
    assert studio_client.push(client, project, build_items(3)) == 3


@pytest.mark.parametrize("length", [50, 51])
def test_a_title_fits(studio: Studio, client: httpx.Client, length: int) -> None:
    """The server takes 50 characters (measured, 1.23.2): a longer title is shortened, to no other's, always alike."""
    titles = [f"{letter * (length - 20)} round 1 adjudicator" for letter in "ab"]
    form = label_studio.build_config(stage=2)
    assert [studio_client.get_project(client, title, form, 2) for title in titles * 2] == [1, 2, 1, 2]
    assert all(p["title"].endswith(" round 1 adjudicator") for p in studio.projects)
    same_ends = [studio_client._shorten_title(f"{'a' * 40}{n}{'b' * 40}") for n in range(20)]
    assert len(set(same_ends)) == 20
    assert {len(title) for title in same_ends} == {50}


def test_a_personal_access_token_is_exchanged(studio: Studio, tmp_path: Path) -> None:
    """It gives what a legacy token gives; it is exchanged once, and again when what it was exchanged for is refused."""
    with studio_client.connect(studio.url, PERSONAL, 5) as client:
        project = get_project(client)
        studio_client.push(client, project, build_items(110))
        assert studio.served["POST refresh"] == 1
        studio.uses_left = 0
        studio_client.export(client, project, tmp_path / "export.json")
        assert studio.served["POST refresh"] == 2
        studio.uses, studio.uses_left = 1, 0
        assert studio_client.push(client, project, build_items(110)) == 0
    assert len(label_studio.read_export(tmp_path / "export.json")) == len(studio.tasks) == 110


def test_a_token_that_stays_refused_ends(studio: Studio) -> None:
    """What was exchanged and is refused at once is Refused, not asked for without end."""
    studio.uses = 0
    with studio_client.connect(studio.url, PERSONAL, 5) as client, pytest.raises(Refused, match="projects/: 401"):
        get_project(client)
    assert studio.served["POST refresh"] == 1


@pytest.mark.parametrize(
    ("request_name", "fault", "error", "message"),
    [
        ("GET projects", 401, Refused, "asked to fail"), ("GET projects", 403, Refused, "token"),
        ("GET projects", 404, BadInput, "404"), ("GET projects", 400, BadInput, "asked to fail"),
        ("GET projects", 503, Retry, "503"), ("GET projects", "drop", Retry, "GET /api/projects/"),
        ("GET projects", (200, b"<html>"), SchemaDrift, "not JSON"),
        ("GET projects", (200, []), SchemaDrift, "found list"), ("GET projects", (200, {}), SchemaDrift, "results"),
        ("GET projects", (302, {}), BadInput, "302"), ("POST refresh", 401, Refused, "token/refresh/: 401"),
        ("POST refresh", 404, BadInput, "token/refresh/: 404"), ("POST refresh", 503, Retry, "token/refresh/: 503"),
        ("POST refresh", (200, b"<html>"), SchemaDrift, "no `access`"),
        ("POST refresh", (200, {"token": "x"}), SchemaDrift, "no `access`"),
        ("POST refresh", (200, []), SchemaDrift, "no `access`"),
    ],
)  # fmt: skip
def test_what_goes_wrong_has_a_kind(
    studio: Studio, request_name: str, fault: Any, error: type[UndertoneError], message: str
) -> None:
    """A no is Refused, a passing fault is Retry, what a person must correct is BadInput with the server's words."""
    studio.faults[request_name] = [fault]
    token = PERSONAL if request_name == "POST refresh" else TOKEN
    with studio_client.connect(studio.url, token, 5) as client, pytest.raises(error, match=message):
        get_project(client)


def test_a_server_that_is_not_there_is_retry() -> None:
    """A refused connection may pass."""
    with Studio() as stopped:
        pass
    with studio_client.connect(stopped.url, TOKEN, 5) as client, pytest.raises(Retry, match="ConnectError"):
        get_project(client)


@pytest.mark.parametrize("fault", [500, 403, "drop", "cut"])
def test_an_export_is_whole_or_not_there(
    studio: Studio, client: httpx.Client, project: int, tmp_path: Path, fault: Any
) -> None:
    """An export that breaks off leaves the file of before, and no draft."""
    studio_client.push(client, project, build_items(5))
    path = tmp_path / "export.json"
    path.write_text("before")
    studio.faults["GET export"] = [fault]
    with pytest.raises((Retry, Refused)):
        studio_client.export(client, project, path)
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["export.json"]
    assert path.read_text() == "before"
    studio_client.export(client, project, path)
    assert len(label_studio.read_export(path)) == 5


@pytest.mark.parametrize(("totals", "verb"), [([4], "deleted"), ([4, 3], "changed"), ([9, 9], "changed")])
def test_tasks_that_change_while_listed_are_retry(
    studio: Studio, client: httpx.Client, project: int, totals: list[int], verb: str
) -> None:
    """A page with another total could have let a task slip by; the same page again ends the walk."""
    studio_client.push(client, project, build_items(3))
    first = {"id": 1, "data": build_items(1)[0]["data"]}
    studio.faults["GET tasks"] = [(200, {"tasks": [first] * (total != 3), "total": total}) for total in totals]
    with pytest.raises(Retry, match=f"{verb} while they were listed"):
        studio_client.push(client, project, build_items(3))
    assert len(studio.tasks) == 3


@pytest.mark.parametrize(
    ("address", "token", "message"),
    [
        *((address, TOKEN, "address of Label Studio") for address in (
            "", "label.example.org", "ftp://x.org", "http://", "https://me:secret@x.org", "https://x.org/?a=b"
        )),
        *(("https://label.example.org", token, "token of Label Studio") for token in (
            "", "two words", "line\nbreak", "令牌"
        )),
    ],
)  # fmt: skip
def test_addresses_and_tokens_are_checked(address: str, token: str, message: str) -> None:
    """An address without scheme or host, or with a password, and a token that no header holds: not repeated."""
    with pytest.raises(BadInput, match=message) as error:
        studio_client.connect(address, token)
    assert "secret" not in str(error.value)
    assert not token or token not in str(error.value)


def test_the_token_is_in_no_message(studio: Studio, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """The token is in no error, its causes, or log, even where the server repeats it."""
    caplog.set_level(logging.DEBUG)
    wrong = "deadbeef" * 5
    texts = ""
    cases: list[tuple[str, Any]] = [
        (wrong, None), (TOKEN, (400, {"detail": f"bad {TOKEN}"})), (TOKEN, 500), (TOKEN, "drop"),
        (PERSONAL, (400, {"detail": "bad access-1"})), (f"{PERSONAL}x", None),
    ]  # fmt: skip
    for token, fault in cases:
        studio.faults["GET projects"] = [fault] if fault else []
        with studio_client.connect(studio.url, token, 5) as client, pytest.raises(UndertoneError) as why:
            get_project(client)
        texts += "".join(traceback.format_exception(why.value)) + repr(client.headers)
        assert ("***" in str(why.value)) == (fault not in (500, "drop"))
    for token in (wrong, TOKEN, PERSONAL, "access-1"):
        assert token not in texts
        assert token not in caplog.text
