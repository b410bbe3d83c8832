"""Giving tasks to a Label Studio server and getting its export; what is sent twice arrives once.

Each call first reads what the server has. The token is in no message. A fault that may pass is Retry.
"""

import hashlib
import logging
from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from pipeline.errors import BadInput, Refused, Retry, SchemaDrift, UndertoneError
from pipeline.io.atomic import replace_file
from pipeline.label.label_files import parse_number
from pipeline.label.label_studio import RATERS
from pipeline.text.redact import mask_secrets

log = logging.getLogger(__name__)
_PAGE = 1000  # a server may give fewer: TASK_API_PAGE_SIZE_MAX
_BATCH = 500  # tasks in one import
_MOST_PAGES = 10_000
_TITLE = 50  # characters of a project's title
_SLOW = 300.0  # seconds for an import or export; 8,843 tasks took 3.5 s and 19.3 s
_QUOTED = 300  # characters of a server's message that are repeated
_LATER = {408, 425, 429}
_REFRESH = "/api/token/refresh/"
# of a task, all 0 or false until a rater begins it; `drafts` would hold the asker's own alone
_BEGUN = ("total_annotations", "cancelled_annotations", "draft_exists")
_COLUMNS = ",".join(("id", "data", *_BEGUN))  # a page of all columns takes eight times as long


class _Token(httpx.Auth):
    """A legacy token goes along as it is, a personal access token is exchanged for one that holds five minutes."""

    def __init__(self, token: str, address: str) -> None:
        self.secrets = [token]  # and what it was last exchanged for
        self._address = f"{address}{_REFRESH}"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        token, *access = self.secrets
        if token.count(".") != 2:  # a personal one is a JSON Web Token
            request.headers["Authorization"] = f"Token {token}"
            yield request
            return
        if access:
            request.headers["Authorization"] = f"Bearer {access[0]}"
            if (yield request).status_code != 401:
                return
        limits = request.extensions  # a request without them waits for ever
        answer = yield httpx.Request("POST", self._address, json={"refresh": token}, extensions=limits)
        answer.read()
        if answer.is_success:
            try:
                access = [str(answer.json()["access"])]
            except (ValueError, KeyError, TypeError) as why:
                message = f"Label Studio, POST {_REFRESH}: no `access` in the answer; is the address right?"
                raise SchemaDrift(message) from why
            self.secrets[1:] = access
            request.headers["Authorization"] = f"Bearer {access[0]}"
            yield request


def connect(address: str, token: str, seconds: float = 30.0) -> httpx.Client:
    """Create a client of the server at an address, for use in `with`; BadInput repeats neither address nor token."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise BadInput("the address of Label Studio should be like https://label.example.org, without a password")
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise BadInput("the token of Label Studio is empty, or holds a space, a line break or a letter outside ASCII")
    base = address.rstrip("/")
    headers = {"Accept": "application/json"}
    return httpx.Client(base_url=base, auth=_Token(token, base), headers=headers, timeout=seconds)


def get_project(client: httpx.Client, title: str, config: str, stage: int = 1, raters: int | None = None) -> int:
    """Return the id of the project of that title; create the project if there is none.

    Each task is given to so many raters, by default `RATERS[stage]`. BadInput: there are several of that title, or the
    one there has the form of another schema or stage, or gives tasks to another number of raters.
    """
    title, raters = _shorten_title(title), raters or RATERS[stage]
    projects = [project for project in _list_projects(client, title) if project.get("title") == title]
    if len(projects) > 1:
        ids = ", ".join(str(project.get("id")) for project in projects)
        problem = f"Label Studio has {len(projects)} projects titled {title!r} ({ids})"
        raise BadInput(f"{problem}; expected one: rename the rest")
    if not projects:
        settings = {"title": title, "label_config": config, "maximum_annotations": raters}
        settings |= {"show_collab_predictions": False, "show_skip_button": True}
        return _get_id(_request_json(client, "POST", "/api/projects/", json=settings))
    marker, actual_raters = config.partition('className="')[2].partition('"')[0], projects[0].get("maximum_annotations")
    if marker not in str(projects[0].get("label_config")):
        problem = f"project {title!r} of Label Studio has another form"
        raise BadInput(f"{problem}; expected that of {marker}: take a new title")
    if actual_raters != raters:
        problem = f"project {title!r} of Label Studio gives a task to {actual_raters} raters, expected {raters}"
        raise BadInput(f"{problem}: change its annotations per task, or take a new title")
    return _get_id(projects[0])


def push(client: httpx.Client, project_id: int, tasks: Iterable[Mapping[str, Any]]) -> int:
    """Import the tasks (see `label_studio.build_tasks`) that the project does not have yet; return their count.

    A task is known by task_id and round in its data. An import goes on at the server when the process that asked for it
    is killed, and may end after the next push has looked: of copies all but one are removed, unless a rater has begun
    them.
    """
    existing_keys = _remove_copies(client, project_id)
    new_tasks = {key: task for task in tasks if (key := _make_key(task)) not in existing_keys}
    remaining_tasks = iter(new_tasks.values())
    while batch := list(islice(remaining_tasks, _BATCH)):
        answer = _request_json(client, "POST", f"/api/projects/{project_id}/import", json=batch, timeout=_SLOW)
        if answer.get("task_count") != len(batch):
            raise SchemaDrift(f"Label Studio took {answer.get('task_count')} tasks, expected {len(batch)}")
    if new_tasks and (missing := new_tasks.keys() - _remove_copies(client, project_id)):
        raise Retry(f"{len(missing)} tasks of project {project_id} of Label Studio were taken, but are not there")
    return len(new_tasks)


def _remove_copies(client: httpx.Client, project_id: int) -> set[tuple[str, int]]:
    """Remove copies of the project's tasks that no rater has begun; return the keys of the tasks. One of each stays."""
    copies: dict[tuple[str, int], list[tuple[bool, int]]] = {}
    for task in _list_tasks(client, project_id):
        is_begun = any(task.get(name, True) for name in _BEGUN)  # what the server leaves out may be
        copies.setdefault(_make_key(task), []).append((not is_begun, task["id"]))
    for key, copies_of_task in copies.items():
        for is_untouched, number in sorted(copies_of_task)[1:]:
            if is_untouched:
                log.info("task %s is twice in Label Studio: removing its copy %s", key[0], number)
                _request(client, "DELETE", f"/api/tasks/{number}/", allowed_status=404)
    return set(copies)


def export(client: httpx.Client, project_id: int, path: Path) -> None:
    """Write the project's JSON export, all its tasks and annotations, to a file (see `label_studio.read_export`)."""
    params = {"exportType": "JSON", "download_all_tasks": "true"}
    address = f"/api/projects/{project_id}/export"
    try:
        with (
            client.stream("GET", address, params=params, timeout=_SLOW) as answer,
            replace_file(path) as draft,
            draft.open("wb") as file,
        ):
            if not answer.is_success:
                answer.read()
                raise _make_error(client, answer)
            file.writelines(answer.iter_bytes())
    except httpx.HTTPError as why:
        raise Retry(f"Label Studio, GET {address}: {type(why).__name__}") from why


def _shorten_title(title: str) -> str:
    """Shorten a title to what the server takes: it begins and ends alike, and is no other title's."""
    if len(title) <= _TITLE:
        return title
    middle = f"…{hashlib.sha256(title.encode()).hexdigest()[:8]}"
    end = title[-_TITLE // 2 :]
    return f"{title[: _TITLE - len(middle) - len(end)]}{middle}{end}"


def _list_projects(client: httpx.Client, title: str) -> Iterator[dict[str, Any]]:
    for page in range(1, _MOST_PAGES):
        params: dict[str, Any] = {"title": title, "page": page, "page_size": _PAGE}
        answer = _request_json(client, "GET", "/api/projects/", params=params)
        results = answer.get("results")
        if not isinstance(results, list):
            raise SchemaDrift("Label Studio's list of projects has no `results`")
        yield from results
        if not answer.get("next"):
            return
    raise SchemaDrift("Label Studio's list of projects does not end")


def _list_tasks(client: httpx.Client, project_id: int) -> Iterator[dict[str, Any]]:
    """List all tasks of a project by page; Retry where their number changed meanwhile, as one may have slipped by."""
    task_ids: set[Any] = set()
    total = None
    params: dict[str, Any] = {"project": project_id, "page_size": _PAGE, "fields": "all", "include": _COLUMNS}
    for page in range(1, _MOST_PAGES):
        try:
            answer = _request_json(client, "GET", "/api/tasks/", params={**params, "page": page})
        except BadInput as why:
            if page == 1:
                raise
            raise Retry(f"{why}: tasks were deleted while they were listed") from why
        tasks, reported_total = answer.get("tasks"), answer.get("total")
        if not isinstance(tasks, list) or not isinstance(reported_total, int):
            raise SchemaDrift("Label Studio's list of tasks has no `tasks` and `total`")
        total = reported_total if total is None else total
        new_tasks = [task for task in tasks if task.get("id") not in task_ids]
        task_ids.update(task.get("id") for task in new_tasks)
        yield from new_tasks
        if total != reported_total or (not new_tasks and len(task_ids) < total):
            raise Retry(f"the tasks of project {project_id} of Label Studio changed while they were listed")
        if len(task_ids) >= total:
            return
    raise BadInput(f"the tasks of project {project_id} of Label Studio fill more than {_MOST_PAGES} pages")


def _make_key(task: Mapping[str, Any]) -> tuple[str, int]:
    data = task.get("data")
    if not isinstance(data, Mapping) or not isinstance(data.get("task_id"), str):
        raise BadInput(f"task {task.get('id')} of Label Studio has no task_id in its data; expected only tasks of ours")
    return data["task_id"], parse_number("round", data.get("round"))


def _get_id(server_project: Mapping[str, Any]) -> int:
    if not isinstance(server_project.get("id"), int):
        raise SchemaDrift("Label Studio listed a project without an id")
    return int(server_project["id"])


def _request_json(client: httpx.Client, method: str, address: str, **options: Any) -> dict[str, Any]:
    answer = _request(client, method, address, **options)
    try:
        body = answer.json()
    except ValueError as why:
        raise SchemaDrift(f"Label Studio, {method} {address}: the answer is not JSON; is the address right?") from why
    if not isinstance(body, dict):
        raise SchemaDrift(f"Label Studio, {method} {address}: expected a JSON object, found {type(body).__name__}")
    return body


def _request(
    client: httpx.Client, method: str, address: str, allowed_status: int | None = None, **options: Any
) -> httpx.Response:
    try:
        answer = client.request(method, address, **options)
    except httpx.HTTPError as why:
        raise Retry(f"Label Studio, {method} {address}: {type(why).__name__}") from why
    if not answer.is_success and answer.status_code != allowed_status:
        raise _make_error(client, answer)
    return answer


def _make_error(client: httpx.Client, answer: httpx.Response) -> UndertoneError:
    text = mask_secrets(answer.text, client.auth.secrets if isinstance(client.auth, _Token) else ())
    text = " ".join(text[:_QUOTED].split())
    message = f"Label Studio, {answer.request.method} {answer.request.url.path}: {answer.status_code} {text}".rstrip()
    if answer.status_code in (401, 403):
        advice = "is the token right? A legacy token must be switched on, a personal access token need not"
        return Refused(f"{message}; {advice}")
    return Retry(message) if answer.is_server_error or answer.status_code in _LATER else BadInput(message)
