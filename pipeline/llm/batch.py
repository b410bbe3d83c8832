"""A provider's batch API, and the same files carried by hand (`vllm run-batch -i out.jsonl -o back.jsonl`).

A batch's requests are claimed before anything leaves, and its row in the ledger goes through preparing, creating,
submitted and collected. Creating a batch is never retried blindly: where the reply is lost, by a kill too, the
provider's list of batches is searched for our id in `metadata`. Answers go into the same ledger as live ones, by
`custom_id`, which is the request's key; what a batch did not answer is free to be asked again.
"""

import json
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import sqlalchemy as sa

from pipeline.errors import BadInput, Retry
from pipeline.io.atomic import replace_file
from pipeline.llm.client import blamed
from pipeline.llm.ledger import answers, cost, owners
from pipeline.llm.ledger.answers import BATCH, Call
from pipeline.llm.ledger.cost import Price
from pipeline.llm.ledger.tables import batches
from pipeline.llm.request import Request
from pipeline.llm.service import connection, limits, replies
from pipeline.llm.service.connection import Endpoint
from pipeline.llm.service.replies import Reply

if TYPE_CHECKING:
    import openai

LEASE = 30 * 86_400.0  # seconds; a provider keeps results about as long
LARGEST = (50_000, 190_000_000)  # requests and bytes of one file, under OpenAI's limits
_URL: Literal["/v1/chat/completions"] = "/v1/chat/completions"
_STALE = 3_600.0  # seconds after which another machine's unfinished submission is looked after
_RUNNING = {"validating", "in_progress", "finalizing", "cancelling"}


class Batch(NamedTuple):
    """A batch at its collection: the provider's status, answers brought in, and requests that are open again."""

    id: str
    status: str
    requests: int
    answered: int
    open: int
    detail: str | None = None


def submit(
    requests: Iterable[Request], engine: sa.Engine, endpoint: Endpoint, *, run_id: str, max_cost: float | None = None,
    prices: Mapping[str, Price] | None = None, output_tokens: int | None = None,
    timeout: float = 600.0, max_retries: int = 8, settle: float = 30.0, largest: tuple[int, int] = LARGEST,
) -> list[str]:  # fmt: skip
    """Hand what nobody has answered or is asking to the provider; ids of all batches that hold a request of these.

    What was malformed three times, or rejected at last, is left out. One batch a model and file. Run again after a
    kill it hands nothing over twice: it waits `settle` seconds for a batch whose creation may have got through before
    it takes it for lost.
    """
    table = cost.prices() if prices is None else prices
    found: dict[str, None] = {}
    with connection.opened(endpoint, timeout, max_retries) as client:
        _mend(engine, client, endpoint, settle)
        for part in _files(_unanswered(requests, engine), output_tokens, *largest):
            reserved = {key: _reserve(r, table, max_cost, output_tokens) for key, r in part.items()}
            id_, others = _claimed(engine, part, reserved, run_id, max_cost)
            found.update(dict.fromkeys(others))
            if id_:
                _hand_over(engine, client, endpoint, id_, run_id, settle, output_tokens)
                found[id_] = None
    return list(found)


def collect(
    engine: sa.Engine, endpoint: Endpoint, *, prices: Mapping[str, Price] | None = None,
    output_tokens: int | None = None, timeout: float = 600.0,
    max_retries: int = 8, settle: float = 30.0,
) -> list[Batch]:  # fmt: skip
    """Look at every batch handed over; bring in the answers of those that have ended, and free what they left."""
    table = cost.prices() if prices is None else prices
    with connection.opened(endpoint, timeout, max_retries) as client, _said(endpoint):
        _mend(engine, client, endpoint, settle)
        return [_collect(engine, client, endpoint, row, table, output_tokens) for row in _rows(engine, "submitted")]


def export(path: Path, requests: Iterable[Request], engine: sa.Engine, output_tokens: int | None = None) -> int:
    """Write what the ledger has no answer to as a batch file, to be carried by hand; return the number of lines."""
    unanswered = _unanswered(requests, engine)
    with replace_file(path) as draft, draft.open("wb") as file:
        file.writelines(_line(key, request, output_tokens) for key, request in unanswered.items())
    return len(unanswered)


def import_(path: Path, requests: Iterable[Request], engine: sa.Engine, *, run_id: str) -> Batch:
    """Bring in the answers of a batch file to these requests. The first answer to a key stays; other keys are left."""
    wanted = _unanswered(requests, engine)
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as why:
        raise BadInput(f"{path}: cannot be read: {why.strerror}") from why
    except UnicodeDecodeError as why:
        raise BadInput(f"{path}: not UTF-8") from why
    lines_read = [_reply(line, f"{path}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]
    calls = [
        Call(key, wanted[key], _counted(wanted[key], reply), None, "import")
        for key, reply in lines_read
        if key in wanted
    ]
    answers.record(engine, calls, "import", run_id)
    answered = len({call.key for call in calls if call.reply.outcome == "answered"})
    detail = f"{len(lines_read) - len(calls)} lines to other requests, or to such as have an answer"
    return Batch(str(path), "import", len(wanted), answered, len(wanted) - answered, detail)


def _counted(request: Request, reply: Reply) -> Reply:
    """The reply as the ledger can hold it: with tokens that can be, and an excerpt of what could not be read."""
    bill = cost.bill(request, reply, None)
    reply = reply._replace(input_tokens=bill.input_tokens, output_tokens=bill.output_tokens)
    return replies.with_excerpt(reply, lambda text: replies.printable(text[:500]))


def _unanswered(requests: Iterable[Request], engine: sa.Engine) -> dict[str, Request]:
    left: dict[str, Request] = {}
    for part in answers.parts(requests):
        known = answers.answers(engine, part)
        left.update((key, request) for key, request in part.items() if key not in known)
    return left


def _files(
    requests: Mapping[str, Request], output_tokens: int | None, most: int, most_bytes: int
) -> Iterator[dict[str, Request]]:
    """The requests cut into files: one model each, not too many lines, not too many bytes."""
    files: dict[str, tuple[dict[str, Request], int]] = defaultdict(lambda: ({}, 0))
    for key, request in requests.items():
        size = len(_line(key, request, output_tokens))
        part, total = files[request.model]
        if part and (len(part) >= most or total + size > most_bytes):
            yield part
            part, total = {}, 0
        part[key] = request
        files[request.model] = part, total + size
    yield from (part for part, _ in files.values())


def _line(key: str, request: Request, output_tokens: int | None) -> bytes:
    body = {**connection.sent_params(request, output_tokens), "model": request.model, "messages": request.messages}
    entry = {"custom_id": key, "method": "POST", "url": _URL, "body": body}
    return json.dumps(entry, ensure_ascii=False).encode() + b"\n"


def _reserve(request: Request, table: Mapping[str, Price], max_cost: float | None, output_tokens: int | None) -> float:
    connection.check_params(request)
    price = cost.price_of(request.model, table) if max_cost is not None else table.get(request.model)
    return cost.reserve(request, price, output_tokens, batch=True) if price else 0.0


def _claimed(
    engine: sa.Engine, part: dict[str, Request], reserved: dict[str, float], run_id: str, max_cost: float | None
) -> tuple[str | None, list[str]]:
    """A new batch's row with its claims, and the ids of other batches that hold requests of the part."""
    id_ = uuid.uuid4().hex
    row = {"id": id_, "run_id": run_id, "owner": owners.me(), "model": next(iter(part.values())).model}
    with answers.writing(engine) as con:
        con.execute(sa.insert(batches).values(**row, state="preparing", requests=0, changed_at=time.time()))
    claimed, _ = answers.claim(
        engine, part, reserved, BATCH + id_, run_id, LEASE, limit=max_cost, keep_requests=True
    )  # fmt: skip
    others = [owner.removeprefix(BATCH) for owner in claimed.others.values() if owner.startswith(BATCH)]
    if claimed.over or not claimed.mine:
        with answers.writing(engine) as con:
            answers.free(con, BATCH + id_)
            con.execute(sa.delete(batches).where(batches.c.id == id_))
    if claimed.over:
        most = sum(reserved[key] for key in [*claimed.mine, *claimed.over])
        raise BadInput(f"the batch may cost {cost.usd(most)}, over what {cost.usd(max_cost)} leaves to run {run_id}")
    _change(engine, id_, requests=len(claimed.mine))
    return (id_ if claimed.mine else None), others


def _hand_over(
    engine: sa.Engine, client: "openai.OpenAI", endpoint: Endpoint, id_: str, run_id: str, settle: float,
    output_tokens: int | None,
) -> None:  # fmt: skip
    """Upload a claimed batch's file and have the batch created, once."""
    import openai

    with _said(endpoint):
        try:
            file_id = _upload(client, id_, answers.held(engine, BATCH + id_), output_tokens)
            _change(engine, id_, state="creating", file_id=file_id)
            _create(engine, client, id_, file_id, run_id, settle)
        except openai.OpenAIError as why:  # there is no batch: no file went up, or the request was turned down
            _drop(engine, id_, endpoint.clean(str(why)))
            raise
        except BaseException:
            _change(engine, id_, owner="")  # whoever comes next looks after it
            raise


def _upload(client: "openai.OpenAI", id_: str, requests: Mapping[str, Request], output_tokens: int | None) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"undertone-{id_}.jsonl"
        with path.open("wb") as file:
            file.writelines(_line(key, request, output_tokens) for key, request in requests.items())
        return client.files.create(file=path, purpose="batch").id


def _create(engine: sa.Engine, client: "openai.OpenAI", id_: str, file_id: str, run_id: str, settle: float) -> None:
    """Create the batch without the SDK's retries: a reply that was lost must not make a second one."""
    import openai

    try:
        made = client.with_options(max_retries=0).batches.create(
            input_file_id=file_id, endpoint=_URL, completion_window="24h",
            metadata={"undertone": id_, "run_id": run_id[:500]},
        )  # fmt: skip
    except (openai.InternalServerError, openai.APIConnectionError):
        try:
            _find(engine, client, id_, settle)
        except openai.OpenAIError as why:
            raise Retry(f"whether batch {id_} was created is not known yet") from why
    else:
        _change(engine, id_, state="submitted", provider_id=made.id)


def _mend(engine: sa.Engine, client: "openai.OpenAI", endpoint: Endpoint, settle: float) -> None:
    """Finish what processes that are gone left between claiming and submitting."""
    for row in [*_rows(engine, "preparing"), *_rows(engine, "creating")]:
        age = time.time() - row.changed_at
        left_alone = not row.owner or owners.is_gone(row.owner) or age > _STALE
        if not left_alone or not _adopt(engine, row):
            continue
        if row.state == "preparing":
            _drop(engine, row.id, "its process ended before anything was sent")
            continue
        with _said(endpoint):
            try:
                _find(engine, client, row.id, max(settle - age, 0.0))
            except Retry as why:
                _drop(engine, row.id, str(why))


def _find(engine: sa.Engine, client: "openai.OpenAI", id_: str, settle: float) -> None:
    """Take the batch with our id from the provider's list, or raise Retry if it does not appear in time."""
    last = time.monotonic() + settle
    while True:
        for batch in client.batches.list(limit=100):
            if (batch.metadata or {}).get("undertone") == id_:
                _change(engine, id_, state="submitted", provider_id=batch.id)
                return
        if time.monotonic() >= last:
            raise Retry(f"batch {id_} was not created, as far as the provider's list says")
        time.sleep(min(5.0, max(settle / 10, 0.05)))


def _collect(
    engine: sa.Engine, client: "openai.OpenAI", endpoint: Endpoint, row: Any, table: Mapping[str, Price],
    output_tokens: int | None,
) -> Batch:  # fmt: skip
    state = client.batches.retrieve(row.provider_id)
    if state.status in _RUNNING:
        return Batch(row.id, state.status, row.requests, 0, 0)
    owner = BATCH + row.id
    open_ = 0
    for file_id in filter(None, (state.output_file_id, state.error_file_id)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "back.jsonl"
            with client.files.with_streaming_response.content(file_id) as answer:
                answer.stream_to_file(path)
            with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
                lines = iter(lambda: file.readline(limits.ANSWER_BYTES), "")
                open_ += _bring_in(engine, endpoint, lines, owner, row.run_id, table, output_tokens)
    left = answers.held(engine, owner)
    now = time.time()
    nothing = Reply("failed", detail=f"the batch is {state.status} and has no answer to it", began_at=now, ended_at=now)
    answers.record(engine, [Call(k, r, nothing, 0.0, "batch") for k, r in left.items()], owner, row.run_id)
    said = "; ".join(error.message or "" for error in (state.errors.data if state.errors else None) or [])
    detail = endpoint.clean(said) or None
    _change(engine, row.id, state="collected", detail=f"{state.status}: {detail}" if detail else state.status)
    open_ += len(left)
    return Batch(row.id, state.status, row.requests, row.requests - open_, open_, detail)


def _bring_in(
    engine: sa.Engine, endpoint: Endpoint, lines: Iterable[str], owner: str, run_id: str, table: Mapping[str, Price],
    output_tokens: int | None,
) -> int:  # fmt: skip
    """Record a file's replies to what its batch still holds; return how many are no answers. Broken lines are left."""
    held = answers.held(engine, owner)
    calls: list[Call] = []
    for number, line in enumerate(lines, 1):
        try:
            key, reply = _reply(line, f"line {number}")
        except BadInput:
            continue
        if request := held.pop(key, None):
            bill = cost.bill(request, reply, table.get(request.model), output_tokens, batch=True)
            reply = replies.with_excerpt(reply, endpoint.clean)
            reply = reply._replace(input_tokens=bill.input_tokens, output_tokens=bill.output_tokens)
            calls.append(Call(key, request, reply, bill.cost_usd, "batch", bill.guess))
    calls = blamed(calls, set())
    answers.record(engine, calls, owner, run_id)
    return sum(made.reply.outcome != "answered" for made in calls)


def _reply(line: str, where: str) -> tuple[str, Reply]:
    """The key and the reply of a line of a batch's output or error file."""
    try:
        entry = json.loads(line)
        key, response, error = entry["custom_id"], entry.get("response") or {}, entry.get("error") or {}
        status, body = response.get("status_code"), response.get("body")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as why:
        raise BadInput(f"{where}: should be a line of a batch's output, with custom_id and response") from why
    if status == 200:
        reply = replies.read_chat(body)
    else:
        said = json.dumps(error or body, ensure_ascii=False)
        outcome = replies.outcome_of(status, said) if isinstance(status, int) else "failed"
        reply = Reply(outcome, status=status if isinstance(status, int) else None, detail=said[:2_000])
    now = time.time()
    return str(key), reply._replace(began_at=now, ended_at=now)


def _rows(engine: sa.Engine, state: str) -> list[Any]:
    with engine.connect() as con:
        return list(con.execute(sa.select(batches).where(batches.c.state == state).order_by(batches.c.changed_at)))


def _change(engine: sa.Engine, id_: str, **values: Any) -> None:
    with answers.writing(engine) as con:
        con.execute(sa.update(batches).where(batches.c.id == id_).values(**values, changed_at=time.time()))


def _adopt(engine: sa.Engine, row: Any) -> bool:
    """Put our name on another's unfinished batch; whether nobody was faster. Its time stays."""
    mine = sa.update(batches).where(batches.c.id == row.id, batches.c.owner == row.owner, batches.c.state == row.state)
    with answers.writing(engine) as con:
        return con.execute(mine.values(owner=owners.me())).rowcount == 1


def _drop(engine: sa.Engine, id_: str, why: str) -> None:
    """Free a batch's requests, of which none is with the provider."""
    with answers.writing(engine) as con:
        answers.free(con, BATCH + id_)
        con.execute(
            sa.update(batches)
            .where(batches.c.id == id_)
            .values(state="dropped", detail=replies.printable(why), changed_at=time.time())
        )


@contextmanager
def _said(endpoint: Endpoint) -> Iterator[None]:
    """The SDK's errors as ours, without the key."""
    import openai

    try:
        yield
    except openai.APIStatusError as why:
        reply = replies.with_excerpt(connection.reply_of(why), endpoint.clean)
        if reply.outcome == "failed":
            raise Retry(f"the language model's service answered {reply.detail}") from None
        raise replies.error(reply) from None
    except openai.APIConnectionError as why:
        raise Retry(f"the language model's service cannot be reached: {endpoint.clean(why.message)}") from None
