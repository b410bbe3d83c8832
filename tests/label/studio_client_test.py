"""The client of Label Studio against a loopback server: nothing doubled, nothing lost, no token told."""

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
from tests.support.studio import PERSONAL, TOKEN, Studio

TITLE = "subtext 2026"
SAID = dict.fromkeys(schema.FIELDS, "1") | {"emotion": "joy"}


@pytest.fixture
def studio(monkeypatch: pytest.MonkeyPatch) -> Iterator[Studio]:
    """A server of small pages, and small batches to it, so that a few tasks are many requests."""
    monkeypatch.setattr(studio_client, "_BATCH", 50)
    with Studio(most_items=20) as studio:
        yield studio


@pytest.fixture
def client(studio: Studio) -> Iterator[httpx.Client]:
    with studio_client.connect(studio.url, TOKEN, 5) as client:
        yield client


def tasks(count: int = 3) -> pl.DataFrame:
    """Tasks of our own comments."""
    return pl.DataFrame({
        "task_id": [f"{n:032x}" for n in range(count)], "text": [f"你可真准时，迟到第{n}次 😀" for n in range(count)],
        "context": [None if n % 2 else "开会" for n in range(count)], "lang": "zh",
        "schema_version": schema.hash_schema(),
    }, schema_overrides={"context": pl.String})  # fmt: skip


def items(count: int = 3) -> list[dict[str, Any]]:
    return label_studio.to_tasks(task_files.build_rows(tasks(count)))


def made(client: httpx.Client) -> int:
    return studio_client.get_project(client, TITLE, label_studio.build_config())


def test_a_project_is_made_once(studio: Studio, client: httpx.Client) -> None:
    """Asking twice for a title gives the same project, which gives each task to three raters, in stage 2 to one."""
    assert made(client) == made(client)
    form = label_studio.build_config(stage=2)
    assert studio_client.get_project(client, f"{TITLE} again", form, 2) == studio_client.get_project(
        client, f"{TITLE} again", form, 2
    )
    assert [p["maximum_annotations"] for p in studio.projects] == [3, 1]  # CSD-15: three raters, then one


def test_a_project_is_found_behind_others_of_like_titles(studio: Studio, client: httpx.Client) -> None:
    """The server filters by part of a title, page by page; only the very title counts."""
    wanted = made(client)
    studio.projects += [{"id": studio.new_id(), "title": f"{TITLE} {n}", "label_config": ""} for n in range(30)]
    assert made(client) == wanted
    assert studio.served["GET projects"] == 3


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"label_config": "<View/>"}, "another form"),
        ({"maximum_annotations": 1}, "to 1 raters, expected 3"),
    ],
)
def test_a_project_that_does_not_fit_is_refused(
    studio: Studio, client: httpx.Client, change: dict[str, Any], told: str
) -> None:
    """A form of another schema, or another number of raters, is not labelled into."""
    made(client)
    studio.projects[0].update(change)
    with pytest.raises(BadInput, match=told):
        made(client)


def test_two_projects_of_a_title_are_refused(studio: Studio, client: httpx.Client) -> None:
    """Which of the two has the labels is not guessed."""
    made(client)
    studio.projects.append({**studio.projects[0], "id": 99})
    with pytest.raises(BadInput, match="2 projects"):
        made(client)


def test_tasks_are_pushed_once(studio: Studio, client: httpx.Client) -> None:
    """What is there is not sent again, over pages and batches, and a task given twice is sent once."""
    number = made(client)
    assert studio_client.push(client, number, items(23)) == 23
    assert studio_client.push(client, number, items(123) + items(5)) == 100
    assert studio_client.push(client, number, items(123)) == 0
    assert [t["data"]["task_id"] for t in studio.tasks] == [f"{n:032x}" for n in range(123)]


def test_a_second_round_is_another_task(studio: Studio, client: httpx.Client) -> None:
    """The same comment in round 2 is pushed beside round 1."""
    number = made(client)
    again = label_studio.to_tasks(task_files.build_rows(tasks(2).with_columns(round=2)))
    assert studio_client.push(client, number, items(2)) + studio_client.push(client, number, again) == 4
    assert studio_client.push(client, number, again) == 0


@pytest.mark.parametrize("fault", [500, 502, 429, "drop", "cut"])
def test_a_push_that_failed_is_run_again_without_doubles(studio: Studio, client: httpx.Client, fault: Any) -> None:
    """An error before, or a connection lost after the import took effect, is Retry; the next push sends the rest."""
    number = made(client)
    studio.faults["POST import"] = ["ok", fault]  # the first batch arrives
    with pytest.raises(Retry, match="import"):
        studio_client.push(client, number, items(110))
    arrived = 100 if fault in ("drop", "cut") else 50
    assert len(studio.tasks) == arrived
    assert studio_client.push(client, number, items(110)) == 110 - arrived
    assert sorted(t["data"]["task_id"] for t in studio.tasks) == [f"{n:032x}" for n in range(110)]


def test_a_project_whose_making_was_not_heard_of_is_found(studio: Studio, client: httpx.Client) -> None:
    """A connection lost after the project was made leaves one project."""
    studio.faults["POST projects"] = ["drop"]
    with pytest.raises(Retry):
        made(client)
    made(client)
    assert len(studio.projects) == 1


def test_push_annotate_pull(studio: Studio, client: httpx.Client, tmp_path: Path) -> None:
    """Every label that three raters give comes back once, by task, rater and field."""
    given = tasks(3)
    number = made(client)
    studio_client.push(client, number, items(3))
    for task in given["task_id"]:
        for rater in (11, 12, 13):
            studio.annotate(task, rater, {**SAID, "sarcasm": str(rater - 12), "meaning": f"他迟到了，{rater}说"})
    studio.annotate(given["task_id"][0], 11, SAID)  # the server takes a second answer of the same rater
    studio_client.export(client, number, tmp_path / "export.json")
    pulled = label_studio.parse_export(label_studio.read_export(tmp_path / "export.json"), given)
    fields = pulled.labels.filter(pl.col("field").is_in([*schema.FIELDS]))
    assert len(fields) == 3 * 3 * 8
    assert fields.select("task_id", "rater_id", "field").is_duplicated().sum() == 0
    assert pulled.skipped["reason"].to_list() == ["superseded"]
    assert set(pulled.taken["task_id"]) == set(given["task_id"])
    sarcasm = fields.filter(pl.col("field") == "sarcasm", pl.col("task_id") == given["task_id"][1])
    assert dict(sarcasm.select("rater_id", "value").iter_rows()) == {"ls-11": "-1", "ls-12": "0", "ls-13": "1"}
    assert pulled.labels.filter(pl.col("field") == "meaning").height == 8  # one was in the superseded answer


def test_an_import_that_ends_after_the_next_push_has_looked_leaves_no_copies(
    studio: Studio, client: httpx.Client
) -> None:
    """Of a task that is there twice, what nobody has begun is taken out; the server goes on when a push is killed."""
    number = made(client)
    studio_client.push(client, number, items(3))
    studio.take(number, items(3))  # it comes through late
    studio.annotate(items(3)[1]["data"]["task_id"], 11, SAID)  # the copy
    studio.annotate(items(3)[2]["data"]["task_id"], 11, {}, was_cancelled=True)
    next(t for t in studio.tasks if t["data"]["task_id"] == items(3)[2]["data"]["task_id"])["drafts"] = [{"id": 1}]
    before = [(t["id"], t["data"]["task_id"]) for t in studio.tasks]
    assert studio_client.push(client, number, items(4)) == 1
    stay = [(t["id"], t["data"]["task_id"]) for t in studio.tasks]
    assert stay[:4] == [before[0], before[2], before[4], before[5]]  # of the third both were begun
    assert studio_client.push(client, number, items(4)) == 0
    assert [(t["id"], t["data"]["task_id"]) for t in studio.tasks] == stay


def test_a_copy_of_which_little_is_told_stays(studio: Studio, client: httpx.Client) -> None:
    """A server that does not say whether somebody has begun a task has none of its tasks taken out."""
    number = made(client)
    two = [{"id": n, "data": items(1)[0]["data"], "total_annotations": 0} for n in (7, 8)]
    studio.faults["GET tasks"] = [(200, {"tasks": two, "total": 2})]
    assert studio_client.push(client, number, items(1)) == 0
    assert not [name for name in studio.served if name.startswith("DELETE")]


def test_a_copy_that_another_push_took_out_is_gone(studio: Studio, client: httpx.Client) -> None:
    """Two pushes at a time choose the same copy, and the one who comes second does not fail."""
    number = made(client)
    studio.take(number, items(1) + items(1))
    studio.faults["DELETE 3"] = [404]
    assert studio_client.push(client, number, items(1)) == 0
    assert studio.served["DELETE 3"] == 1


def test_tasks_that_were_taken_but_are_not_there_are_retry(studio: Studio, client: httpx.Client) -> None:
    """What was pushed is looked for; the server's word for it is not enough."""
    number = made(client)
    studio.faults["POST import"] = [(201, {"task_count": 3})]
    with pytest.raises(Retry, match=r"3 tasks of project 1 .* not there"):
        studio_client.push(client, number, items(3))
    assert studio_client.push(client, number, items(3)) == 3


@pytest.mark.parametrize("length", [50, 51, 60, 200])
def test_a_title_fits(studio: Studio, client: httpx.Client, length: int) -> None:
    """The server takes 50 characters (measured, 1.23.2): a longer title is shortened, to no other's, always alike."""
    titles = [f"{letter * (length - 20)} round 1 adjudicator" for letter in "ab"]
    made_ = [studio_client.get_project(client, title, label_studio.build_config(stage=2), 2) for title in titles * 2]
    assert made_ == [1, 2, 1, 2]
    assert all(p["title"].endswith(" round 1 adjudicator") for p in studio.projects)
    same_ends = [studio_client._shorten_title(f"{'a' * 40}{n}{'b' * 40}") for n in range(20)]
    assert len(set(same_ends)) == 20
    assert {len(title) for title in same_ends} == {50}


def test_a_personal_access_token_is_exchanged(studio: Studio, tmp_path: Path) -> None:
    """It gives what a legacy token gives; it is exchanged once, and again when what it was exchanged for is refused."""
    with studio_client.connect(studio.url, PERSONAL, 5) as client:
        number = made(client)
        studio_client.push(client, number, items(110))
        assert studio.served["POST refresh"] == 1
        studio.left = 0
        studio_client.export(client, number, tmp_path / "export.json")
        assert studio.served["POST refresh"] == 2
        studio.uses = 1
        studio.left = 0
        assert studio_client.push(client, number, items(110)) == 0
    assert len(label_studio.read_export(tmp_path / "export.json")) == 110
    assert len(studio.tasks) == 110


@pytest.mark.parametrize(
    ("fault", "error", "told"),
    [
        (401, Refused, "token/refresh/: 401"),
        (404, BadInput, "token/refresh/: 404"),
        (503, Retry, "token/refresh/: 503"),
        ((200, b"<html>"), SchemaDrift, "no `access`"),
        ((200, {"token": "x"}), SchemaDrift, "no `access`"),
        ((200, []), SchemaDrift, "no `access`"),
    ],
)
def test_an_exchange_that_fails_has_a_kind(studio: Studio, fault: Any, error: type[UndertoneError], told: str) -> None:
    """A token that is refused, and a server that cannot exchange it, are told apart."""
    studio.faults["POST refresh"] = [fault]
    with studio_client.connect(studio.url, PERSONAL, 5) as client, pytest.raises(error, match=told):
        made(client)


def test_an_exchange_waits_no_longer_than_a_request(studio: Studio) -> None:
    """The request for an access token has the limits of the one it is made for; httpx gives it none of its own."""
    with studio_client.connect(studio.url, PERSONAL, 5) as client:
        request = client.build_request("GET", "/api/projects/")
        assert client.auth is not None
        exchange_request = next(client.auth.sync_auth_flow(request))
    assert exchange_request.url.path == "/api/token/refresh/"
    assert exchange_request.extensions["timeout"] == request.extensions["timeout"]
    assert set(request.extensions["timeout"].values()) == {5}


def test_a_token_that_stays_refused_ends(studio: Studio) -> None:
    """What was exchanged and is refused at once is Refused, not asked for without end."""
    studio.uses = 0
    with studio_client.connect(studio.url, PERSONAL, 5) as client, pytest.raises(Refused, match="projects/: 401"):
        made(client)
    assert studio.served["POST refresh"] == 1


@pytest.mark.parametrize(
    ("fault", "error", "told"),
    [
        (401, Refused, "told to fail"),
        (403, Refused, "token"),
        (404, BadInput, "404"),
        (400, BadInput, "told to fail"),
        (503, Retry, "503"),
        ("drop", Retry, "GET /api/projects/"),
        ((200, b"<html>"), SchemaDrift, "not JSON"),
        ((200, []), SchemaDrift, "found list"),
        ((200, {}), SchemaDrift, "results"),
        ((302, {}), BadInput, "302"),
    ],
)
def test_what_goes_wrong_has_a_kind(
    studio: Studio, client: httpx.Client, fault: Any, error: type[UndertoneError], told: str
) -> None:
    """A no is Refused, a passing fault is Retry, what a person must mend is BadInput with the server's words."""
    studio.faults["GET projects"] = [fault]
    with pytest.raises(error, match=told):
        made(client)


def test_a_server_that_is_not_there_is_retry() -> None:
    """A refused connection may pass."""
    with Studio() as gone:
        pass
    with studio_client.connect(gone.url, TOKEN, 5) as client, pytest.raises(Retry, match="ConnectError"):
        made(client)


@pytest.mark.parametrize("fault", [500, 403, "drop", "cut"])
def test_an_export_is_whole_or_not_there(studio: Studio, client: httpx.Client, tmp_path: Path, fault: Any) -> None:
    """An export that breaks off leaves the file of before, and nothing beside it."""
    number = made(client)
    studio_client.push(client, number, items(5))
    path = tmp_path / "export.json"
    path.write_text("before")
    studio.faults["GET export"] = [fault]
    with pytest.raises((Retry, Refused)):
        studio_client.export(client, number, path)
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["export.json"]
    assert path.read_text() == "before"
    studio_client.export(client, number, path)
    assert len(label_studio.read_export(path)) == 5


def test_tasks_that_change_while_listed_are_retry(studio: Studio, client: httpx.Client) -> None:
    """A page that tells another total could have let a task slip by."""
    number = made(client)
    studio_client.push(client, number, items(3))
    first = {"id": 1, "data": items(1)[0]["data"]}
    studio.faults["GET tasks"] = [(200, {"tasks": [first], "total": 4})]
    with pytest.raises(Retry, match="while they were listed"):
        studio_client.push(client, number, items(3))
    studio.faults["GET tasks"] = [(200, {"tasks": [first], "total": 4}), (200, {"tasks": [], "total": 3})]
    with pytest.raises(Retry, match="while they were listed"):
        studio_client.push(client, number, items(3))
    assert len(studio.tasks) == 3


def test_a_list_that_does_not_move_on_is_retry(studio: Studio, client: httpx.Client) -> None:
    """The same page again ends the walk."""
    number = made(client)
    page = (200, {"tasks": [{"id": 1, "data": items(1)[0]["data"]}], "total": 9})
    studio.faults["GET tasks"] = [page, page]
    with pytest.raises(Retry, match="changed"):
        studio_client.push(client, number, items(3))


def test_tasks_of_others_are_refused(studio: Studio, client: httpx.Client) -> None:
    """A task that somebody put into the project by hand has no task_id."""
    number = made(client)
    studio.tasks.append({"id": 5, "project": number, "data": {"text": "不是我们的"}, "annotations": []})
    with pytest.raises(BadInput, match=r"task 5 .* no task_id"):
        studio_client.push(client, number, items(1))


def test_an_import_that_took_another_number_is_told(studio: Studio, client: httpx.Client) -> None:
    """The server's own count is compared with ours."""
    number = made(client)
    studio.faults["POST import"] = [(201, {"task_count": 2})]
    with pytest.raises(SchemaDrift, match="took 2 tasks, expected 3"):
        studio_client.push(client, number, items(3))


@pytest.mark.parametrize(
    "address", ["", "label.example.org", "ftp://x.org", "http://", "https://me:secret@x.org", "https://x.org/?a=b"]
)
def test_an_address_is_one(address: str) -> None:
    """An address without scheme or host, or with a password, is refused and not repeated."""
    with pytest.raises(BadInput, match="address of Label Studio") as told:
        studio_client.connect(address, TOKEN)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "令牌"])
def test_a_token_fits_a_header(token: str) -> None:
    """A token that no header can hold is refused and not repeated."""
    with pytest.raises(BadInput, match="token of Label Studio") as told:
        studio_client.connect("https://label.example.org", token)
    assert not token or token not in str(told.value)


def test_the_token_is_told_to_nobody(studio: Studio, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """The token is in no error, its causes, or log, even where the server repeats it."""
    caplog.set_level(logging.DEBUG)
    wrong = "deadbeef" * 5
    told = ""
    cases: list[tuple[str, Any]] = [
        (wrong, None), (TOKEN, (400, {"detail": f"bad {TOKEN}"})), (TOKEN, 500), (TOKEN, "drop"),
        (PERSONAL, (400, {"detail": "bad access-1"})), (f"{PERSONAL}x", None),
    ]  # fmt: skip
    for token, fault in cases:
        studio.faults["GET projects"] = [fault] if fault else []
        with studio_client.connect(studio.url, token, 5) as client, pytest.raises(UndertoneError) as why:
            made(client)
        told += "".join(traceback.format_exception(why.value)) + repr(client.headers)
        assert ("***" in str(why.value)) == (fault not in (500, "drop"))
    for token in (wrong, TOKEN, PERSONAL, "access-1"):
        assert token not in told
        assert token not in caplog.text
