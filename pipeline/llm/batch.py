"""A provider's batch API: a lost reply makes no second batch, as the provider's list is searched for our id."""

import json
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from pipeline.errors import BadInput, Retry
from pipeline.llm.client import mark_rejected
from pipeline.llm.ledger import answers, tables
from pipeline.llm.ledger.answers import BATCH
from pipeline.llm.ledger.cost import Budget, Call, format_usd
from pipeline.llm.ledger.tables import batches
from pipeline.llm.request import Request
from pipeline.llm.service import connection, limits, replies

if TYPE_CHECKING:
    import openai

LEASE = 30 * 86_400.0  # seconds; a provider keeps results about as long
LARGEST = (50_000, 190_000_000)  # requests and bytes of one file, under OpenAI's limits
_URL = "/v1/chat/completions"
_STALE = 3_600.0  # seconds after which another machine's unfinished submission is adopted


class Batch(NamedTuple):
    """A batch at its collection: the provider's status, answers recorded, and requests that are open again."""

    id: str
    status: str
    requests: int
    answered: int
    open: int
    detail: str | None = None


@dataclass
class Provider:
    engine: sa.Engine
    endpoint: connection.Endpoint
    budget: Budget
    timeout: float = 600.0
    max_retries: int = limits.RETRIES
    settle: float = 30.0  # seconds until a batch whose creation may have got through is taken for lost
    client: "openai.OpenAI" = field(init=False)

    def submit(self, requests: Iterable[Request], largest: tuple[int, int] = LARGEST) -> list[str]:
        """Submit the requests without an answer or a claim, each once; return the ids of all batches that hold one."""
        ids: dict[str, None] = {}
        unanswered = answers.find_unanswered(self.engine, requests)
        with self._open():
            for part in self._split_files(unanswered, *largest):
                batch_id, other_ids = self._claim(part)
                ids.update(dict.fromkeys(other_ids))
                if batch_id:
                    self._upload(batch_id)
                    ids[batch_id] = None
        return list(ids)

    def collect(self) -> list[Batch]:
        """Look at every submitted batch; record the answers of those that have ended, and free the other requests."""
        with self._open():
            return [self._collect(row) for row in _load_rows(self.engine, "submitted")]

    @contextmanager
    def _open(self) -> Iterator[None]:
        import openai

        with connection.open_client(self.endpoint, self.timeout, self.max_retries) as self.client:
            try:
                for row in [*_load_rows(self.engine, "preparing"), *_load_rows(self.engine, "creating")]:
                    self._mend(row)
                yield
            except openai.APIStatusError as why:
                reply = replies.add_excerpt(connection.read_error(why), self.endpoint.clean)
                if reply.outcome == "failed":
                    raise Retry(f"the language model's service answered {reply.detail}") from None
                raise replies.build_exception(reply) from None
            except openai.APIConnectionError as why:
                message = self.endpoint.clean(why.message)
                raise Retry(f"the language model's service cannot be reached: {message}") from None

    def _mend(self, row: Any) -> None:
        age = time.time() - row.changed_at
        is_row = [batches.c[name] == getattr(row, name) for name in ("id", "owner", "state")]
        if row.owner and not tables.has_ended(row.owner) and age <= _STALE:
            return
        with answers.write_transaction(self.engine) as con:  # its time stays
            if con.execute(sa.update(batches).where(*is_row).values(owner=tables.create_name())).rowcount != 1:
                return  # another process was faster
        if row.state == "preparing":
            _change(self.engine, row.id, state="dropped", detail="its process ended before anything was sent")
            return
        try:
            self._find(row.id, max(self.settle - age, 0.0))
        except Retry as why:
            _change(self.engine, row.id, state="dropped", detail=str(why))

    def _split_files(self, requests: Mapping[str, Request], most: int, most_bytes: int) -> Iterator[dict[str, Request]]:
        files: dict[str, dict[str, Request]] = defaultdict(dict)
        sizes: dict[str, int] = defaultdict(int)
        for key, request in requests.items():
            model, size = request.model, len(self._build_line(key, request))
            if files[model] and (len(files[model]) >= most or sizes[model] + size > most_bytes):
                yield files[model]
                files[model], sizes[model] = {}, 0
            files[model][key] = request
            sizes[model] += size
        yield from files.values()

    def _build_line(self, key: str, request: Request) -> bytes:
        params = connection.build_params(request, self.budget.output_tokens)
        body = {**params, "model": request.model, "messages": request.messages}
        entry = {"custom_id": key, "method": "POST", "url": _URL, "body": body}
        return json.dumps(entry, ensure_ascii=False).encode() + b"\n"

    def _claim(self, part: dict[str, Request]) -> tuple[str | None, list[str]]:
        """Claim requests for a new batch; return its id, None if it is empty, and other batches that hold some."""
        run_id, max_cost = self.budget.run_id, self.budget.max_cost
        batch_id = uuid.uuid4().hex
        row = {"id": batch_id, "run_id": run_id, "owner": tables.create_name(), "state": "preparing", "requests": 0}
        row |= {"model": next(iter(part.values())).model, "changed_at": time.time()}
        with answers.write_transaction(self.engine) as con:
            con.execute(sa.insert(batches).values(row))
        claims = answers.claim(self.engine, part, self.budget, BATCH + batch_id, LEASE)
        if claims.over_limit or not claims.claimed:
            with answers.write_transaction(self.engine) as con:
                answers.release(con, BATCH + batch_id)
                con.execute(sa.delete(batches).where(batches.c.id == batch_id))
        if claims.over_limit:
            keys = [*claims.claimed, *claims.over_limit]
            most_usd = format_usd(sum(self.budget.reserve(part[key], is_batch=True) for key in keys))
            raise BadInput(f"the batch may cost {most_usd}, over what {format_usd(max_cost)} leaves to run {run_id}")
        _change(self.engine, batch_id, requests=len(claims.claimed))
        other_ids = [owner.removeprefix(BATCH) for owner in claims.owners.values() if owner.startswith(BATCH)]
        return (batch_id if claims.claimed else None), other_ids

    def _upload(self, batch_id: str) -> None:
        import openai

        try:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"undertone-{batch_id}.jsonl"
                with path.open("wb") as file:
                    for key, request in answers.load_claimed(self.engine, BATCH + batch_id).items():
                        file.write(self._build_line(key, request))
                file_id = self.client.files.create(file=path, purpose="batch").id
            _change(self.engine, batch_id, state="creating", file_id=file_id)
            self._create(batch_id, file_id)
        except openai.OpenAIError as why:  # there is no batch: no file went up, or the service refused the request
            _change(self.engine, batch_id, state="dropped", detail=self.endpoint.clean(str(why)))
            raise
        except BaseException:
            _change(self.engine, batch_id, owner="")  # the next process adopts it
            raise

    def _create(self, batch_id: str, file_id: str) -> None:
        """Create the batch without the SDK's retries: a reply that was lost must not make a second one."""
        import openai

        metadata = {"undertone": batch_id, "run_id": self.budget.run_id[:500]}
        options: Any = {"endpoint": _URL, "completion_window": "24h", "metadata": metadata}
        try:
            batch = self.client.with_options(max_retries=0).batches.create(input_file_id=file_id, **options)
        except (openai.InternalServerError, openai.APIConnectionError):
            try:
                self._find(batch_id, self.settle)
            except openai.OpenAIError as why:
                raise Retry(f"whether batch {batch_id} was created is not known yet") from why
        else:
            _change(self.engine, batch_id, state="submitted", provider_id=batch.id)

    def _find(self, batch_id: str, seconds: float) -> None:
        end = time.monotonic() + seconds
        while True:
            for batch in self.client.batches.list(limit=100):
                if (batch.metadata or {}).get("undertone") == batch_id:
                    _change(self.engine, batch_id, state="submitted", provider_id=batch.id)
                    return
            if time.monotonic() >= end:
                raise Retry(f"batch {batch_id} was not created: the provider does not list it")
            time.sleep(min(5.0, max(seconds / 10, 0.05)))

    def _collect(self, row: Any) -> Batch:
        state = self.client.batches.retrieve(row.provider_id)
        if state.status in {"validating", "in_progress", "finalizing", "cancelling"}:
            return Batch(row.id, state.status, row.requests, 0, 0)
        open_count = 0
        for file_id in filter(None, (state.output_file_id, state.error_file_id)):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "output.jsonl"
                with self.client.files.with_streaming_response.content(file_id) as answer:
                    answer.stream_to_file(path)
                with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
                    open_count += self._record(iter(lambda: file.readline(limits.ANSWER_BYTES), ""), row)
        rest, now = answers.load_claimed(self.engine, BATCH + row.id), time.time()
        detail = f"the batch is {state.status} and has no answer to it"
        reply = replies.Reply("failed", detail=detail, began_at=now, ended_at=now)
        calls = [Call(key, request, reply, 0.0, "batch") for key, request in rest.items()]
        answers.record(self.engine, calls, BATCH + row.id, row.run_id)
        errors = (state.errors.data if state.errors else None) or []
        message = self.endpoint.clean("; ".join(error.message or "" for error in errors)) or None
        detail = f"{state.status}: {message}" if message else state.status
        _change(self.engine, row.id, state="collected", detail=detail)
        open_count += len(rest)
        return Batch(row.id, state.status, row.requests, row.requests - open_count, open_count, message)

    def _record(self, lines: Iterable[str], row: Any) -> int:
        """Record the replies to requests that the batch still claims; return the number that are no answers."""
        claimed = answers.load_claimed(self.engine, BATCH + row.id)
        calls: list[Call] = []
        for number, line in enumerate(lines, 1):
            try:
                key, reply = read_line(line, f"line {number}")
            except BadInput:
                continue
            if request := claimed.pop(key, None):
                reply = replies.add_excerpt(reply, self.endpoint.clean)
                calls.append(self.budget.bill(key, request, reply, "batch"))
        calls = mark_rejected(calls, set())
        answers.record(self.engine, calls, BATCH + row.id, row.run_id)
        return sum(call.reply.outcome != "answered" for call in calls)


def read_line(line: str, location: str) -> tuple[str, replies.Reply]:
    """Read the key and the reply of a line of a batch's output or error file."""
    try:
        entry = json.loads(line)
        key, response, error = entry["custom_id"], entry.get("response") or {}, entry.get("error") or {}
        status, body = response.get("status_code"), response.get("body")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as why:
        raise BadInput(f"{location}: should be a line of a batch's output, with custom_id and response") from why
    if status == 200:
        reply = replies.read_answer(body)
    else:
        detail = json.dumps(error or body, ensure_ascii=False)
        code = status if isinstance(status, int) else None
        outcome = "failed" if code is None else replies.classify_error(code, detail)
        reply = replies.Reply(outcome, status=code, detail=detail[:2_000])
    now = time.time()
    return str(key), reply._replace(began_at=now, ended_at=now)


def _load_rows(engine: sa.Engine, state: str) -> list[Any]:
    with engine.connect() as con:
        return list(con.execute(sa.select(batches).where(batches.c.state == state).order_by(batches.c.changed_at)))


def _change(engine: sa.Engine, batch_id: str, **values: Any) -> None:
    """Change a batch; one that is dropped gives its claims back."""
    with answers.write_transaction(engine) as con:
        if values.get("state") == "dropped":
            answers.release(con, BATCH + batch_id)
        con.execute(sa.update(batches).where(batches.c.id == batch_id).values(**values, changed_at=time.time()))
