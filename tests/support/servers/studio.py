"""A loopback server that speaks the part of Label Studio's API we use, and fails where a test asks it to.

Written after version 1.23.2: a project's tasks come page by page with `total`, a page past the end is 404, an import
wants every value of the form to be text, annotations may exceed `maximum_annotations`, a title has 3 to 50 characters,
a personal access token is exchanged for one that is refused after a while. `label_studio_live_test` asks a real one.
"""

import json
import re
import threading
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

TOKEN = "c0ffee0123456789c0ffee0123456789c0ffee01"
PERSONAL = "eyJhbGciOi.eyJ0b2tlbl90eXBlIjoicmVmcmVzaCJ9.c0ffee-c0ffee"


@dataclass
class Studio:
    """Serves on a free port of 127.0.0.1 within `with`. Faults are used up one a request, by method and last word."""

    projects: list[dict[str, Any]] = field(default_factory=list)
    tasks: list[dict[str, Any]] = field(default_factory=list)
    faults: dict[str, list[Any]] = field(default_factory=dict)  # `POST import`: statuses, `drop`, or a (status, body)
    served: Counter[str] = field(default_factory=Counter)
    page_size: int = 100
    uses: int = 1000  # requests that an access token is good for
    uses_left: int = 0
    access: str = ""
    last_id: int = 0

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"studio": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        return self

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, tb: TracebackType | None) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def create_id(self) -> int:
        """Create an id."""
        self.last_id += 1
        return self.last_id

    def annotate(self, task_id: str, rater: int, values: dict[str, str], **more: Any) -> dict[str, Any]:
        """Answer a task, the newest of that id, as a rater (the id of a user); `more` is put into the annotation."""
        task = next(t for t in reversed(self.tasks) if t["data"]["task_id"] == task_id)
        number = self.create_id()
        annotation = {
            "id": number, "completed_by": rater, "was_cancelled": False, "ground_truth": False, "lead_time": 12.5,
            "created_at": f"2026-11-20T08:{number % 60:02}:00.000000Z",
            "updated_at": f"2026-11-20T08:{number % 60:02}:30.000000Z",
            "result": [build_result(name, value) for name, value in values.items()], **more,
        }  # fmt: skip
        task["annotations"].append(annotation)
        return annotation

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:  # noqa: PLR0911
        """Answer a request with status and body."""
        if path == "/api/projects/" and method == "POST":
            if not 3 <= len(body["title"]) <= 50:
                return 400, {"detail": "Validation error", "validation_errors": {"title": ["its length"]}}
            self.projects.append({"id": self.create_id(), **body})
            return 201, self.projects[-1]
        if path == "/api/projects/":
            projects = [p for p in reversed(self.projects) if query.get("title", "").lower() in p["title"].lower()]
            page, has_more = self.get_page(projects, query)
            return 200, {"count": len(projects), "next": "more" if has_more else None, "results": page}
        if path == "/api/tasks/":
            tasks = [t for t in self.tasks if t["project"] == int(query["project"])]
            page, _ = self.get_page(tasks, query)
            if not page and query["page"] != "1":
                return 404, {"detail": "Invalid page."}
            names = query["include"].split(",")
            page = [{name: value for name, value in count_answers(task).items() if name in names} for task in page]
            return 200, {"tasks": page, "total": len(tasks), "total_annotations": 0, "total_predictions": 0}
        if match := re.fullmatch(r"/api/tasks/(\d+)/", path):
            before = len(self.tasks)
            self.tasks = [task for task in self.tasks if task["id"] != int(match[1])]
            return (204 if len(self.tasks) < before else 404), b""
        if match := re.fullmatch(r"/api/projects/(\d+)/(import|export)", path):
            number = int(match[1])
            if number not in [p["id"] for p in self.projects]:
                return 404, {"detail": "Not found."}
            if match[2] == "export":
                return 200, [t for t in self.tasks if t["project"] == number]
            return self.import_tasks(number, body)
        return 404, {"detail": f"no {method} {path}"}

    def import_tasks(self, project: int, body: list[dict[str, Any]]) -> tuple[int, Any]:
        """Import tasks, all or none."""
        config = next(p["label_config"] for p in self.projects if p["id"] == project)
        for task in body:
            for name in re.findall(r'value="\$(\w+)"', config):
                if not isinstance(task["data"].get(name), str):
                    return 400, {"detail": f"data['{name}'] is no text", "validation_errors": {}}
        for task in body:
            self.tasks.append(
                {"id": self.create_id(), "project": project, "annotations": [], "predictions": [], **task}
            )
        return 201, {"task_count": len(body), "annotation_count": 0, "predictions_count": None, "duration": 0.1}

    def accepts(self, authorization: str | None) -> bool:
        """Return whether a token is good; one that was exchanged is good for `uses` requests."""
        if self.access and authorization == f"Bearer {self.access}" and self.uses_left:
            self.uses_left -= 1
            return True
        return authorization == f"Token {TOKEN}"

    def exchange(self, token: str) -> tuple[int, Any]:
        """Answer a personal access token."""
        if token != PERSONAL:
            return 401, {"detail": f"Token is invalid: {token}"}
        self.access, self.uses_left = f"access-{self.create_id()}", self.uses
        return 200, {"access": self.access}

    def get_page(self, rows: list[Any], query: dict[str, str]) -> tuple[list[Any], bool]:
        """Return a page, and whether there are more."""
        size = min(int(query["page_size"]), self.page_size)
        start = (int(query["page"]) - 1) * size
        return rows[start : start + size], start + size < len(rows)


def count_answers(task: dict[str, Any]) -> dict[str, Any]:
    """Return the task with its numbers of answers."""
    skipped = sum(bool(answer["was_cancelled"]) for answer in task["annotations"])
    total = len(task["annotations"]) - skipped
    is_draft = bool(task.get("drafts"))
    return {**task, "total_annotations": total, "cancelled_annotations": skipped, "draft_exists": is_draft}


def build_result(name: str, value: str, **more: Any) -> dict[str, Any]:
    """Build what the editor makes of a choice, a text box or (value `start-end`) a span."""
    region: dict[str, Any] = {"id": "x", "from_name": name, "to_name": "text", "origin": "manual"}
    if name == "span":
        start, end = map(int, value.split("-"))
        return {**region, "type": "labels", "value": {"start": start, "end": end, "labels": ["span"], **more}}
    if name in ("plain", "meaning", "rhetoric"):
        return {**region, "type": "textarea", "value": {"text": [value]}}
    return {**region, "type": "choices", "value": {"choices": [value]}}


class _Handler(BaseHTTPRequestHandler):
    studio: Studio

    def _serve(self) -> None:
        studio, parts = self.studio, urlsplit(self.path)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"null")
        name = f"{self.command} {parts.path.rstrip('/').rpartition('/')[2]}"
        with studio._lock:
            studio.served[name] += 1
            faults = studio.faults.get(name, [])
            fault = faults.pop(0) if faults else None
            is_exchange = parts.path == "/api/token/refresh/"
            if not is_exchange and not studio.accepts(self.headers["Authorization"]):
                self._send(401, {"detail": f"Invalid token: {self.headers['Authorization']}"})
            elif isinstance(fault, tuple):
                self._send(*fault)
            elif isinstance(fault, int):
                self._send(fault, {"detail": "asked to fail"})
            elif is_exchange:
                self._send(*studio.exchange(body["refresh"]))
            else:
                query = {key: values[0] for key, values in parse_qs(parts.query).items()}
                answer = studio.answer(self.command, parts.path, query, body)
                if fault == "drop":  # it has taken effect, and the client does not hear of it
                    self.close_connection = True
                else:
                    self._send(*answer, is_cut=fault == "cut")

    do_GET = do_POST = do_DELETE = _serve  # noqa: N815  # names of http.server

    def _send(self, status: int, body: Any, *, is_cut: bool = False) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if is_cut else data)

    def log_message(self, *_: Any) -> None:
        """Log nothing: tests read what our side logs."""
