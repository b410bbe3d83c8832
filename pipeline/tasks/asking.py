"""Asking language models: for the explicit forms that data sets lack, for graded groups, and what they detect.

Answers come from the ledger, where each is paid for once, and go into `completions`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import polars as pl

from pipeline import settings, warehouse
from pipeline.errors import BadInput, Missing
from pipeline.llm import batch as batches
from pipeline.llm import client, prompt
from pipeline.llm.asked import Asked, Miss
from pipeline.llm.ledger import answers as ledger
from pipeline.llm.ledger import cost, given_up
from pipeline.llm.ledger.cost import Estimate
from pipeline.llm.questions import explicit, graded, problematic
from pipeline.llm.request import MODERATION, Request, as_json
from pipeline.llm.service.connection import Endpoint
from pipeline.llm.summary import Summary
from pipeline.tables import empty
from pipeline.tasks.impscore import pairs
from pipeline.tasks.record import runs
from pipeline.text.language import language

Mode = Literal["live", "cache-only"]
Done = Callable[[int], None]
ATTEMPTS = 2  # a refusal or an echo is asked once more


class How(NamedTuple):
    """Whom to ask and how.

    With a `summary` what becomes of the requests is added to it, for a command that says so at its end and exits by it;
    without one it is raised, so that the state of an Airflow task tells: see `Asked.check`.
    """

    model: str
    revision: str | None = None
    params: Mapping[str, Any] = {}
    mode: Mode = "live"
    concurrency: int = 16
    max_cost: float | None = None
    endpoint: Endpoint | None = None
    summary: Summary | None = None


def endpoint(base_url: str | None = None, key: str | None = None) -> Endpoint | None:
    """Where to ask: as given, else as the environment says; None if neither says anything.

    The environment's key goes to the environment's address only, never to one given.
    """
    if base_url or key:
        return Endpoint(base_url, key)
    uri, secret = settings.llm_uri(), settings.llm_key()
    return Endpoint(uri, secret) if uri or secret else None


def wanted(sources: Sequence[str] = ()) -> list[str]:
    """Sources with sentences whose explicit form a prompt can ask for, of those given or of all."""
    rows = warehouse.scan("sentences", pl.col("prompt").is_not_null()).select(pl.col("source").unique().sort())
    found = rows.collect()["source"].to_list()
    if unknown := sorted(set(sources) - set(found)):
        raise BadInput(f"nothing to ask about {', '.join(unknown)}; there is {', '.join(found) or 'no source'}")
    return [source for source in found if not sources or source in sources]


def requests(source: str, how: How, limit: int | None = None) -> dict[str, Request]:
    """Questions about a source's sentences by the text asked about, in the order of their ids."""
    mine = (pl.col("source") == source) & pl.col("prompt").is_not_null()
    rows = warehouse.scan("sentences", mine).sort("item_id").select("text", "prompt").collect()
    rows = rows.unique("text", keep="first", maintain_order=True).head(limit or rows.height)
    return {text: _request(text, name, how) for text, name in rows.iter_rows()}


def _request(text: str, name: str, how: How, attempt: int = 0) -> Request:
    folder = settings.llm_prompts()
    return Request(
        model=how.model, revision=how.revision, params=dict(how.params), attempt=attempt, prompt=name,
        prompt_version=prompt.load(name, folder).version, messages=explicit.messages(text, name, folder),
    )  # fmt: skip


def estimate(sources: Sequence[str], how: How, limit: int | None = None, *, batch: bool = False) -> Estimate:
    """What asking would take; nothing is sent."""
    every = [request for source in wanted(sources) for request in requests(source, how, limit).values()]
    prices, output_tokens = cost.prices(settings.llm_prices()), settings.llm_max_tokens()
    return cost.estimate(every, _ledger(), prices, batch=batch, output_tokens=output_tokens)


def ask(
    source: str, how: How, limit: int | None = None, done: Done = lambda _: None, run_id: str = "cli",
    day: str | None = None,
) -> dict[str, object]:  # fmt: skip
    """Ask for the explicit forms a source lacks, and put the answers into `completions`.

    An answer that gives no sentence, or was cut off, is asked for once more. What the ledger has is not asked again.
    With a `day` a row of `runs` tells of it.

    Returns:
        Counts: requests, answers, calls_sent, cached, tokens, cost_usd and what of it is a guess, and why some are
        missing.

    Raises:
        Retry: some requests failed for now; those answered are kept.
        Refused: the service refused, or no request has an answer.
    """
    began, todo = runs.start(), requests(source, how, limit)
    every = list(todo.values())
    first = dict(todo)
    missing: list[Miss] = []
    told: Counter[str] = Counter()
    why: Counter[str] = Counter()
    total = Summary(how.max_cost)
    for attempt in range(ATTEMPTS):
        asked = _ask(list(todo.values()), how, done if not attempt else lambda _: None, run_id)
        rows = _rows(source, todo.values(), asked)
        if rows.height:
            pairs.add(source, rows, run_id)
        told.update(
            answers=rows.height if not attempt else 0, asked_again=0 if not attempt else len(todo),
            calls_sent=asked.calls_sent, cached=asked.cached, input_tokens=asked.input_tokens,
            output_tokens=asked.output_tokens, missing=len(asked.missing),
        )  # fmt: skip
        why.update(miss.reason for miss in asked.missing)
        total.add(list(todo.values()), asked)
        _conclude(list(todo.values()), asked, how, is_again=attempt > 0)
        missing = asked.missing if not attempt else missing
        useless = {
            text: request for text, request in todo.items()
            if (answer := asked.answers.get(request.key))
            and (answer.is_cut or explicit.parse(answer.response, text, request.prompt).explicit is None)
        }  # fmt: skip
        todo = {text: request._replace(attempt=attempt + 1) for text, request in useless.items()}
        every += todo.values()
        if asked.stopped:
            break
    if day is not None:
        _tell(source, day, how, every, missing, run_id, began)
    reasons = "; ".join(f"{count} {reason}" for reason, count in why.most_common())
    costs = {"cost_usd": total.cost_usd, "guessed_usd": total.guessed_usd, "max_cost": how.max_cost}
    return {"source": source, "requests": len(first), **told, **costs, "why_missing": reasons}


def batch(sources: Sequence[str], how: How, limit: int | None = None, run_id: str = "cli") -> pl.DataFrame:
    """Hand unanswered questions to the provider's batch API, and bring in what earlier batches answered.

    Run it again to collect: what is in a batch is not handed over twice. A row a batch, with its state.
    """
    if how.mode != "live":
        raise BadInput("a batch is handed over and paid; it cannot be cache-only")
    every = {source: requests(source, how, limit) for source in sources}
    if how.endpoint is None:
        raise Missing("nobody to ask: set UNDERTONE_LLM_URL (and UNDERTONE_LLM_KEY), or the Airflow connection")
    prices, output_tokens = cost.prices(settings.llm_prices()), settings.llm_max_tokens()
    collected = batches.collect(_ledger(), how.endpoint, prices=prices, output_tokens=output_tokens)
    asked = [request for mine in every.values() for request in mine.values()]
    handed = batches.submit(
        asked, _ledger(), how.endpoint, run_id=run_id, max_cost=how.max_cost, prices=prices,
        output_tokens=output_tokens,
    )  # fmt: skip
    for source, mine in every.items():
        known = ledger.answers(_ledger(), [request.key for request in mine.values()])
        if known:
            pairs.add(source, _rows(source, mine.values(), Asked(answers=known)), run_id)
    rows = [one._asdict() for one in collected]
    rows += [{"id": one, "status": "submitted"} for one in handed if one not in {row["id"] for row in rows}]
    schema = {"id": pl.String, "status": pl.String, "requests": pl.Int64, "answered": pl.Int64, "open": pl.Int64}
    return pl.DataFrame(rows, schema={**schema, "detail": pl.String})


def ledger_status() -> pl.DataFrame:
    """Calls of the ledger by model and outcome."""
    return _entries(given_up.status(_ledger())).drop("reason")


def given_up_requests(model: str | None = None, reason: str | None = None) -> pl.DataFrame:
    """Calls whose requests no run asks any more, by model, outcome and reason."""
    return _entries(given_up.entries(_ledger(), model, reason))


def forgive(model: str | None = None, reason: str | None = None, *, is_clearing: bool) -> int:
    """Let such requests be asked again; return the number of their calls."""
    return given_up.forgive(_ledger(), model, reason, is_clearing=is_clearing)


def _entries(entries: Sequence[given_up.Entry]) -> pl.DataFrame:
    kinds: dict[str, Any] = dict.fromkeys(("model", "outcome", "reason"), pl.String)
    kinds |= dict.fromkeys(("calls", "requests"), pl.Int64) | dict.fromkeys(("cost_usd", "guessed_usd"), pl.Float64)
    return pl.DataFrame(entries, schema=kinds, orient="row")


def _ledger() -> Any:
    return ledger.opened(settings.llm_ledger())


def _ask(every: Sequence[Request], how: How, done: Done, run_id: str) -> Asked:
    if how.mode == "live" and how.endpoint is None:
        raise Missing("nobody to ask: set UNDERTONE_LLM_URL (and UNDERTONE_LLM_KEY), or the Airflow connection")
    return client.ask(
        every, _ledger(), how.endpoint, run_id=run_id, mode=how.mode, concurrency=how.concurrency,
        max_cost=how.max_cost, prices=cost.prices(settings.llm_prices()), output_tokens=settings.llm_max_tokens(),
        done=done,
    )  # fmt: skip


def _conclude(every: Sequence[Request], asked: Asked, how: How, *, is_again: bool = False) -> None:
    """Add what became of the requests to the summary, or raise it where there is none."""
    if how.summary is None:
        asked.check(has_answers=is_again)
    else:
        how.summary.add(every, asked)


def put(
    source: str, every: Sequence[Request], how: How, done: Done, run_id: str, day: str | None = None
) -> Asked:  # fmt: skip
    """Ask, keep the answers in `completions` under a source, and raise Retry if some are still open.

    With a `day` a row of `runs` tells of it.
    """
    began = runs.start()
    found = _ask(every, how, done, run_id)
    pairs.add(source, _rows(source, every, found), run_id)
    _conclude(every, found, how)
    if day is not None:
        _tell(source, day, how, every, found.missing, run_id, began)
    return found


def _tell(
    source: str, day: str, how: How, every: Sequence[Request], missing: Sequence[Miss], run_id: str, began: runs.Start
) -> None:
    """Tell of an asking: requests, those that stay without an answer, and what all tries of the run spent on them."""
    first = {request.key: request.prompt for request in every if not request.attempt}
    gone = pl.DataFrame(
        [(source, miss.reason.partition(":")[0], miss.request.key) for miss in missing],
        schema={"source": pl.String, "reason": pl.String, "row_key": pl.String}, orient="row",
    ).unique("row_key", maintain_order=True)  # fmt: skip
    spent = ledger.spending(_ledger(), run_id, sorted({request.key for request in every}))
    cost_usd = spent.cost_usd if spent.priced or not spent.calls else None
    origin = f"{how.model}: {', '.join(sorted(set(first.values())))}"
    config = {"model": how.model, "revision": how.revision, "params": dict(how.params), "mode": how.mode}
    taken = Asked(input_tokens=spent.input_tokens, output_tokens=spent.output_tokens, cost_usd=cost_usd)
    runs.tell(source, day, origin, "ask", len(first) - gone.height, gone, config, run_id, began, taken)


def _rows(source: str, every: Any, asked: Asked) -> pl.DataFrame:
    """Answers as rows of `completions`."""
    found = [
        {
            "completion_id": request.key, "source": source, "model": request.model, "prompt": request.prompt,
            "prompt_version": request.prompt_version, "messages": as_json(request.messages),
            "params": as_json(request.params), "attempt": request.attempt, "response": answer.response,
            "mode": answer.mode, "revision": request.revision, "input_tokens": answer.input_tokens,
            "output_tokens": answer.output_tokens, "finish_reason": answer.finish_reason,
        }
        for request in every
        if (answer := asked.answers.get(request.key))
    ]  # fmt: skip
    return pl.DataFrame(found, schema=empty("completions").schema).unique("completion_id", maintain_order=True)


def verdicts(
    source: str, texts: Sequence[str], how: How, done: Done = lambda _: None, run_id: str = "cli",
    day: str | None = None,
) -> list[str | None]:  # fmt: skip
    """What a model says of each text, problematic or not: yes, no, other; None for a text it gave no answer about.

    A model `moderation:NAME` is NAME at the provider's moderation endpoint, whose flag counts as yes (IMP-42).

    Raises:
        Retry: some requests failed for now; those answered are kept.
    """
    langs = pl.DataFrame({"text": list(texts)}, schema={"text": pl.String}).select(lang=language())["lang"].to_list()
    every = [_question(text, "zh" if lang == "zh" else "en", how) for text, lang in zip(texts, langs, strict=True)]
    found = put(source, every, how, done, run_id, day)
    answers = (found.answers.get(request.key) for request in every)
    return [problematic.parse(answer.response) if answer else None for answer in answers]


def _question(text: str, lang: str, how: How) -> Request:
    kind, _, model = how.model.partition(":")
    if kind == MODERATION and model:
        said = [{"role": "user", "content": text}]
        return Request(model, said, MODERATION, "1", dict(how.params), revision=how.revision)
    folder = settings.llm_prompts()
    name = f"problematic_{lang}"
    return Request(
        model=how.model, revision=how.revision, params=dict(how.params), prompt=name,
        prompt_version=prompt.load(name, folder).version, messages=problematic.messages(text, lang, folder),
    )  # fmt: skip


def groups(
    intents: Sequence[str], lang: str, how: How, done: Done = lambda _: None, run_id: str = "cli"
) -> pl.DataFrame:
    """Graded groups that a model writes for intents: group, intent, sentences; or the reason there is none.

    Returns:
        A row an intent: intent, sentences (null if there are none), reason.
    """
    folder = settings.llm_prompts()
    name = f"graded_{lang}"
    every = [
        Request(
            model=how.model, revision=how.revision, params=dict(how.params), prompt=name,
            prompt_version=prompt.load(name, folder).version, messages=graded.messages(intent, lang, folder),
        )
        for intent in intents
    ]  # fmt: skip
    todo, found = dict(zip(intents, every, strict=True)), {}
    for attempt in range(ATTEMPTS):
        asked = _ask(list(todo.values()), how, done if not attempt else lambda _: None, run_id)
        pairs.add("graded_groups", _rows("graded_groups", todo.values(), asked), run_id)
        for intent, request in todo.items():
            answer = asked.answers.get(request.key)
            parsed = graded.parse(answer.response, lang) if answer else graded.Parsed(None, "no_answer")
            found[intent] = (intent, parsed.sentences, parsed.reason)
        _conclude(list(todo.values()), asked, how, is_again=attempt > 0)
        if asked.stopped:
            break
        todo = {
            intent: request._replace(attempt=attempt + 1)
            for intent, request in todo.items()
            if found[intent][2] not in {None, "no_answer"}
        }
    return pl.DataFrame(
        list(found.values()),
        schema={"intent": pl.String, "sentences": pl.List(pl.String), "reason": pl.String},
        orient="row",
    )
