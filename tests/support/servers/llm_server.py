"""A loopback server of OpenAI's shape that misbehaves by a seed, and counts at its end of the wire.

What happens to a prompt's n-th sending depends on seed, prompt and n alone, not on threads. The answer to a prompt is
the same text unless `write` says otherwise, so a test can tell whose answer it got.
"""

import contextlib
import itertools
import json
import random
import re
import select
import socket
import sys
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Faults:
    """Shares of sendings that fail, and how."""

    too_many: float = 0.0  # 429 with Retry-After
    broken: float = 0.0  # 500
    malformed: float = 0.0  # 200 that is no chat completion
    hang: float = 0.0  # no answer until the client goes away
    seed: int = 0
    retry_after: float = 0.1
    seconds: float = 0.0  # an answer takes


@dataclass
class Server:
    """Serves on a free port of 127.0.0.1 within `with`; everything it counts is by the prompt, the last message."""

    faults: Faults = field(default_factory=Faults)
    errors: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)  # what a prompt always gets
    write: Callable[[str, int], str] = lambda prompt, _: f"answer to {prompt}"  # by the prompt and n
    usage: Any = field(default_factory=lambda: dict(USAGE))  # the tokens of each answer
    page: bytes | None = None  # in place of an answer
    page_after: int = 0  # answers
    sent: Counter[str] = field(default_factory=Counter)
    served: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    sent_after_success: list[str] = field(default_factory=list)
    too_early: list[str] = field(default_factory=list)  # prompts that came before their Retry-After was over
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: set[str | None] = field(default_factory=set)
    most_in_flight: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    finish_batches: bool = True  # else they stay in progress until `finish`
    lose_create: int = 0  # replies to a batch's creation that are lost on their way
    refuse_batches: int = 0  # the status they are turned down with
    batch_status: str = "completed"
    unanswered: set[str] = field(default_factory=set)  # prompts that a batch leaves out

    def __enter__(self) -> Self:
        outer = self

        class Handler(_Handler):
            server_of_test = outer

        self._lock = threading.Lock()
        self._in_flight = 0
        self._not_before: dict[str, float] = defaultdict(float)
        self._http = _Http(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"
        return self

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, tb: TracebackType | None) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.close_all()
        self._http.server_close()
        assert self._http.bugs == []

    @property
    def paid(self) -> int:
        """Answers served beyond the first to each prompt."""
        return self.served.total() - len(self.served)

    def completion(self, body: dict[str, Any], text: str | None = None) -> tuple[int, dict[str, str], bytes] | None:
        """Return status, headers and body of the answer to one request; None means it hangs."""
        prompt = text or body["messages"][-1]["content"]
        with self._lock:
            self.sent[prompt] += 1
            self.requests.append(body) if len(self.requests) < 100 else None
            if self.served[prompt]:
                self.sent_after_success.append(prompt)
            if time.monotonic() < self._not_before[prompt]:
                self.too_early.append(prompt)
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
            kind, answer = self._draw(prompt)
            self.kinds[kind] += 1
        time.sleep(self.faults.seconds)
        with self._lock:
            self._in_flight -= 1
            if kind == "answered":
                self.served[prompt] += 1
            if kind == "too_many":
                self._not_before[prompt] = time.monotonic() + self.faults.retry_after
        return answer

    def moderation(self, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes] | None:
        """Answer a text given to the moderation endpoint, which flags what holds the word `awful`."""
        text = body["input"]
        answer = self.completion(body, text)
        with contextlib.suppress(ValueError, LookupError, TypeError):  # what is no answer stays as it is
            if answer and isinstance(json.loads(answer[2])["choices"][0]["message"]["content"], str):
                result = {"id": "modr-1", "model": "served-moderation-1", "results": [{"flagged": "awful" in text}]}
                return 200, {}, json.dumps(result).encode()
        return answer

    def _draw(self, prompt: str) -> tuple[str, tuple[int, dict[str, str], bytes] | None]:
        if prompt in self.errors:
            status, body = self.errors[prompt]
            return "error", (status, {}, json.dumps(body).encode())
        if self.page is not None and self.served.total() >= self.page_after:
            return "malformed", (200, {"Content-Type": "text/html"}, self.page)
        dice = random.Random(f"{self.faults.seed}:{prompt}:{self.sent[prompt]}")
        kinds = ("too_many", "broken", "malformed", "hang")
        ends = itertools.accumulate(getattr(self.faults, kind) for kind in kinds)
        number = dice.random()
        kind = next((kind for kind, end in zip(kinds, ends, strict=True) if number < end), "answered")
        if kind == "answered":
            answer = chat(prompt, self.write(prompt, self.sent[prompt])) | {"usage": self.usage}
            return kind, (200, {}, json.dumps(answer).encode())
        if kind == "too_many":
            return kind, (429, {"Retry-After": str(self.faults.retry_after)}, b'{"error": {"message": "slow down"}}')
        if kind == "broken":
            return kind, (500, {}, b"oops")
        bad = [b'{"id": "x", "choi', b'{"choices": []}', json.dumps(chat(prompt, None)).encode(), b"[]"]
        return kind, (200, {}, dice.choice(bad)) if kind == "malformed" else None

    def create_batch(self, body: dict[str, Any]) -> dict[str, Any]:
        """Create a batch over an uploaded file."""
        batch = {
            "id": f"batch_{uuid.uuid4().hex}", "object": "batch", "status": "in_progress", "created_at": 0, **body,
            "output_file_id": None, "error_file_id": None,
        }  # fmt: skip
        self.batches[batch["id"]] = batch
        if self.finish_batches:
            self.finish(batch)
        return batch

    def finish(self, batch: dict[str, Any]) -> None:
        """Answer the file's lines, some with an error, some not at all."""
        good, bad = [], []
        for line in self.files[batch["input_file_id"]].decode().splitlines():
            entry = json.loads(line)
            prompt = entry["body"]["messages"][-1]["content"]
            if prompt in self.unanswered:
                continue
            status, body = self.errors.get(prompt, (200, chat(prompt)))
            self.served[prompt] += status == 200
            back = {"id": "r", "custom_id": entry["custom_id"], "response": {"status_code": status, "body": body}}
            (good if status == 200 else bad).append(json.dumps({**back, "error": None}, ensure_ascii=False))
        batch.update(status=self.batch_status, output_file_id=self.keep(good), error_file_id=self.keep(bad))

    def keep(self, lines: list[str]) -> str | None:
        """Keep a file of these lines, if there are any."""
        if not lines:
            return None
        file_id = f"file_{uuid.uuid4().hex}"
        self.files[file_id] = "".join(line + "\n" for line in lines).encode()
        return file_id


USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def chat(prompt: str, content: str | None = "") -> dict[str, Any]:
    """Build a chat completion that repeats the prompt."""
    message = {"role": "assistant", "content": f"answer to {prompt}" if content == "" else content}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    completion = {"id": "c", "object": "chat.completion", "created": 0, "model": "served-model-1"}
    return {**completion, "choices": [choice], "usage": dict(USAGE)}


class _Http(ThreadingHTTPServer):
    daemon_threads = False  # joined at the end, so that none is left open
    request_queue_size = 256

    def __init__(self, *args: Any) -> None:
        self.open_sockets: set[Any] = set()
        self.bugs: list[BaseException | None] = []
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open_sockets.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open_sockets.discard(request)
        super().shutdown_request(request)

    def close_all(self) -> None:
        for request in list(self.open_sockets):
            with contextlib.suppress(OSError):  # its own thread, waiting to read, then ends
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *_: Any) -> None:
        """A client that was killed is no news; anything else is a fault of this file."""
        if not isinstance(why := sys.exception(), ConnectionError):
            self.bugs.append(why)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server_of_test: Server

    def do_POST(self) -> None:
        server = self.server_of_test
        length = int(self.headers["Content-Length"] or 0)
        data = self.rfile.read(length)
        if not data or len(data) < length:
            raise ConnectionAbortedError("the client was killed while it wrote")
        server.keys.add(self.headers["Authorization"])
        if self.path in ("/v1/chat/completions", "/v1/moderations"):
            answer = (server.moderation if self.path.endswith("moderations") else server.completion)(json.loads(data))
            if answer is None:
                select.select([self.connection], [], [], 60)  # readable when the client has closed
                self.close_connection = True
            else:
                self._send(*answer)
        elif self.path == "/v1/files":
            boundary = self.headers["Content-Type"].partition("boundary=")[2].strip('"').encode()
            parts = [p for p in data.split(b"--" + boundary) if b'name="file"' in p]
            lines = parts[0].partition(b"\r\n\r\n")[2].removesuffix(b"\r\n").decode().splitlines()
            file_id = server.keep(lines)
            self._json(
                {"id": file_id, "object": "file", "bytes": 1, "created_at": 0, "filename": "f", "purpose": "batch"}
            )
        elif self.path == "/v1/batches" and server.refuse_batches:
            self._send(server.refuse_batches, {}, b'{"error": {"message": "turned down"}}')
        elif self.path == "/v1/batches":
            batch = server.create_batch(json.loads(data))
            if server.lose_create:
                server.lose_create -= 1
                self.close_connection = True
            else:
                self._json(batch)
        else:
            self._send(404, {}, b'{"error": {"message": "no such path"}}')

    def do_GET(self) -> None:
        server = self.server_of_test
        if match := re.fullmatch(r"/v1/files/(\w+)/content", self.path):
            self._send(200, {"Content-Type": "application/octet-stream"}, server.files[match[1]])
        elif match := re.fullmatch(r"/v1/batches/(\w+)", self.path):
            self._json(server.batches[match[1]])
        else:  # the list of batches, two a page, so that paging is seen
            newest = list(reversed(server.batches.values()))
            after = re.search(r"after=(\w+)", self.path)
            start = next((i + 1 for i, b in enumerate(newest) if after and b["id"] == after[1]), 0)
            page = newest[start : start + 2]
            self._json({"object": "list", "data": page, "has_more": start + 2 < len(newest),
                        "first_id": None, "last_id": page[-1]["id"] if page else None})  # fmt: skip

    def _json(self, body: Any) -> None:
        self._send(200, {}, json.dumps(body).encode())

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
