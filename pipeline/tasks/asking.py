"""Ask language models for the explicit forms that data sets lack, for graded groups, and for what they detect.

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
from pipeline.text.language import detect_language

Mode = Literal["live", "cache-only"]
OnProgress = Callable[[int], None]
ATTEMPTS = 2  # a refusal or an echo is asked once more


class Options(NamedTuple):
    """Which model to ask and how.

    With a `summary` the outcome of the requests is added to it, for a command that prints it and exits by it; without
    one it is raised, so that it sets the state of an Airflow task: see `Asked.check`.
    """

    model: str
    revision: str | None = None
    params: Mapping[str, Any] = {}
    mode: Mode = "live"
    concurrency: int = 16
    max_cost: float | None = None
    endpoint: Endpoint | None = None
    summary: Summary | None = None


def find_endpoint(base_url: str | None = None, key: str | None = None) -> Endpoint | None:
    """The service to ask: as given, else that of the environment; None where neither has one.

    The environment's key goes to the environment's address only, never to a given one.
    """
    if base_url or key:
        return Endpoint(base_url, key)
    uri, secret = settings.llm_uri(), settings.llm_key()
    return Endpoint(uri, secret) if uri or secret else None


def list_sources(sources: Sequence[str] = ()) -> list[str]:
    """List the sources, of those given or of all, with sentences whose explicit form a prompt can ask for."""
    rows = warehouse.scan("sentences", pl.col("prompt").is_not_null()).select(pl.col("source").unique().sort())
    available = rows.collect()["source"].to_list()
    if unknown := sorted(set(sources) - set(available)):
        raise BadInput(f"nothing to ask about {', '.join(unknown)}; there is {', '.join(available) or 'no source'}")
    return [source for source in available if not sources or source in sources]


def build_requests(source: str, options: Options, limit: int | None = None) -> dict[str, Request]:
    """Requests for the explicit forms of a source's sentences, by sentence, in the order of their ids."""
    has_prompt = (pl.col("source") == source) & pl.col("prompt").is_not_null()
    rows = warehouse.scan("sentences", has_prompt).sort("item_id").select("text", "prompt").collect()
    rows = rows.unique("text", keep="first", maintain_order=True).head(limit or rows.height)
    folder = settings.llm_prompts()
    return {
        text: _build_request(name, explicit.messages(text, name, folder), options) for text, name in rows.iter_rows()
    }


def _build_request(name: str, messages: list[dict[str, str]], options: Options) -> Request:
    """A request by the prompt of a name."""
    return Request(
        model=options.model, revision=options.revision, params=dict(options.params), prompt=name,
        prompt_version=prompt.load(name, settings.llm_prompts()).version, messages=messages,
    )  # fmt: skip


def estimate(sources: Sequence[str], options: Options, limit: int | None = None, *, batch: bool = False) -> Estimate:
    """Estimate what asking would cost; nothing is sent."""
    all_requests: list[Request] = []
    for source in list_sources(sources):
        all_requests += build_requests(source, options, limit).values()
    prices, output_tokens = cost.prices(settings.llm_prices()), settings.llm_max_tokens()
    return cost.estimate(all_requests, _open_ledger(), prices, batch=batch, output_tokens=output_tokens)


def ask(
    source: str, options: Options, limit: int | None = None, on_progress: OnProgress = lambda _: None,
    run_id: str = "cli", day: str | None = None,
) -> dict[str, object]:  # fmt: skip
    """Ask for the explicit forms a source lacks, and write the answers into `completions`.

    An answer that gives no sentence, or was cut off, is asked for once more. What the ledger has is not asked again.
    With a `day` the asking is recorded in `runs`.

    Returns:
        Counts: requests, answers, calls_sent, cached, tokens, cost_usd and what of it is a guess, and why some are
        missing.

    Raises:
        Retry: some requests failed for now; those answered are kept.
        Refused: the service refused, or no request has an answer.
    """
    started, todo = runs.start(), build_requests(source, options, limit)
    request_count, all_requests = len(todo), list(todo.values())
    missing: list[Miss] = []
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    total = Summary(options.max_cost)
    for attempt in range(ATTEMPTS):
        current = list(todo.values())
        asked = _ask_source(source, current, options, on_progress, run_id, attempt)
        counts.update(
            answers=0 if attempt else len(asked.answers), asked_again=len(todo) if attempt else 0,
            calls_sent=asked.calls_sent, cached=asked.cached, input_tokens=asked.input_tokens,
            output_tokens=asked.output_tokens, missing=len(asked.missing),
        )  # fmt: skip
        reasons.update(miss.reason for miss in asked.missing)
        total.add(current, asked)
        missing = missing if attempt else asked.missing
        todo = {
            text: request._replace(attempt=attempt + 1) for text, request in todo.items()
            if (answer := asked.answers.get(request.key))
            and (answer.is_cut or explicit.parse(answer.response, text, request.prompt).explicit is None)
        }  # fmt: skip
        all_requests += todo.values()
        if asked.stopped:
            break
    if day is not None:
        _record_run(source, day, options, all_requests, missing, run_id, started)
    why_missing = "; ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    costs = {"cost_usd": total.cost_usd, "guessed_usd": total.guessed_usd, "max_cost": options.max_cost}
    return {"source": source, "requests": request_count, **counts, **costs, "why_missing": why_missing}


def run_batch(sources: Sequence[str], options: Options, limit: int | None = None, run_id: str = "cli") -> pl.DataFrame:
    """Submit unanswered questions to the provider's batch API, and collect what earlier batches answered.

    Run it again to collect: what is in a batch is not submitted twice. A row a batch, with its state.
    """
    if options.mode != "live":
        raise BadInput("a batch is submitted and paid; it cannot be cache-only")
    by_source = {source: list(build_requests(source, options, limit).values()) for source in sources}
    service = _check_endpoint(options)
    prices, output_tokens = cost.prices(settings.llm_prices()), settings.llm_max_tokens()
    collected = batches.collect(_open_ledger(), service, prices=prices, output_tokens=output_tokens)
    submitted = batches.submit(
        [request for part in by_source.values() for request in part], _open_ledger(), service, run_id=run_id,
        max_cost=options.max_cost, prices=prices, output_tokens=output_tokens,
    )  # fmt: skip
    for source, source_requests in by_source.items():
        answers = ledger.answers(_open_ledger(), [request.key for request in source_requests])
        _add_answers(source, source_requests, Asked(answers=answers), run_id)
    rows = [state._asdict() for state in collected]
    collected_ids = {row["id"] for row in rows}
    rows += [{"id": batch_id, "status": "submitted"} for batch_id in submitted if batch_id not in collected_ids]
    schema = {"id": pl.String, "status": pl.String, "requests": pl.Int64, "answered": pl.Int64, "open": pl.Int64}
    return pl.DataFrame(rows, schema={**schema, "detail": pl.String})


def count_calls() -> pl.DataFrame:
    """Calls of the ledger by model and outcome."""
    return _build_frame(given_up.status(_open_ledger())).drop("reason")


def list_given_up(model: str | None = None, reason: str | None = None) -> pl.DataFrame:
    """Calls whose requests no run asks any more, by model, outcome and reason."""
    return _build_frame(given_up.entries(_open_ledger(), model, reason))


def forgive(model: str | None = None, reason: str | None = None, *, is_clearing: bool) -> int:
    """Let given-up requests be asked again; return the number of their calls."""
    return given_up.forgive(_open_ledger(), model, reason, is_clearing=is_clearing)


def _build_frame(entries: Sequence[given_up.Entry]) -> pl.DataFrame:
    schema: dict[str, Any] = dict.fromkeys(("model", "outcome", "reason"), pl.String)
    schema |= dict.fromkeys(("calls", "requests"), pl.Int64) | dict.fromkeys(("cost_usd", "guessed_usd"), pl.Float64)
    return pl.DataFrame(entries, schema=schema, orient="row")


def _open_ledger() -> Any:
    return ledger.opened(settings.llm_ledger())


def _check_endpoint(options: Options) -> Endpoint:
    if options.endpoint is None:
        raise Missing("no service to ask: set UNDERTONE_LLM_URL (and UNDERTONE_LLM_KEY), or the Airflow connection")
    return options.endpoint


def _ask_source(
    source: str, all_requests: Sequence[Request], options: Options, on_progress: OnProgress, run_id: str,
    attempt: int = 0,
) -> Asked:  # fmt: skip
    """Ask, write the answers, and add what became of the requests to the summary, or raise it where there is none."""
    endpoint = _check_endpoint(options) if options.mode == "live" else None
    asked = client.ask(
        all_requests, _open_ledger(), endpoint, run_id=run_id, mode=options.mode, concurrency=options.concurrency,
        max_cost=options.max_cost, prices=cost.prices(settings.llm_prices()), output_tokens=settings.llm_max_tokens(),
        done=(lambda _: None) if attempt else on_progress,
    )  # fmt: skip
    _add_answers(source, all_requests, asked, run_id)
    if options.summary is None:
        asked.check(has_answers=attempt > 0)
    else:
        options.summary.add(all_requests, asked)
    return asked


def collect_answers(
    source: str, all_requests: Sequence[Request], options: Options, on_progress: OnProgress, run_id: str,
    day: str | None = None,
) -> Asked:  # fmt: skip
    """Ask, write the answers into `completions` under a source, and raise Retry if some requests are still open.

    With a `day` the asking is recorded in `runs`.
    """
    started = runs.start()
    asked = _ask_source(source, all_requests, options, on_progress, run_id)
    if day is not None:
        _record_run(source, day, options, all_requests, asked.missing, run_id, started)
    return asked


def _record_run(
    source: str, day: str, options: Options, all_requests: Sequence[Request], missing: Sequence[Miss], run_id: str,
    started: runs.Start,
) -> None:  # fmt: skip
    """Record an asking: requests, those that stay without an answer, and what all tries of the run spent on them."""
    prompts = {request.key: request.prompt for request in all_requests if not request.attempt}
    dropped = pl.DataFrame(
        [(source, miss.reason.partition(":")[0], miss.request.key) for miss in missing],
        schema={"source": pl.String, "reason": pl.String, "row_key": pl.String}, orient="row",
    ).unique("row_key", maintain_order=True)  # fmt: skip
    spent = ledger.spending(_open_ledger(), run_id, sorted({request.key for request in all_requests}))
    cost_usd = spent.cost_usd if spent.priced or not spent.calls else None
    total = Asked(input_tokens=spent.input_tokens, output_tokens=spent.output_tokens, cost_usd=cost_usd)
    origin = f"{options.model}: {', '.join(sorted(set(prompts.values())))}"
    config = {name: getattr(options, name) for name in ("model", "revision", "mode")} | {"params": dict(options.params)}
    runs.record_step(source, day, origin, "ask", len(prompts) - dropped.height, dropped, config, run_id, started, total)


def _add_answers(source: str, all_requests: Sequence[Request], asked: Asked, run_id: str) -> None:
    """Write answers into `completions`."""
    rows = [
        {
            "completion_id": request.key, "source": source, "model": request.model, "prompt": request.prompt,
            "prompt_version": request.prompt_version, "messages": as_json(request.messages),
            "params": as_json(request.params), "attempt": request.attempt, "response": answer.response,
            "mode": answer.mode, "revision": request.revision, "input_tokens": answer.input_tokens,
            "output_tokens": answer.output_tokens, "finish_reason": answer.finish_reason,
        }
        for request in all_requests
        if (answer := asked.answers.get(request.key))
    ]  # fmt: skip
    if rows:
        completions = pl.DataFrame(rows, schema=empty("completions").schema)
        pairs.add(source, completions.unique("completion_id", maintain_order=True), run_id)


def ask_verdicts(
    source: str, texts: Sequence[str], options: Options, on_progress: OnProgress = lambda _: None, run_id: str = "cli",
    day: str | None = None,
) -> list[str | None]:  # fmt: skip
    """Ask a model whether each text is problematic: yes, no, other; None for a text without an answer.

    A model `moderation:NAME` is NAME at the provider's moderation endpoint, whose flag counts as yes (IMP-42).

    Raises:
        Retry: some requests failed for now; those answered are kept.
    """
    langs = (
        pl.DataFrame({"text": list(texts)}, schema={"text": pl.String}).select(lang=detect_language())["lang"].to_list()
    )
    all_requests = [
        _build_verdict_request(text, "zh" if lang == "zh" else "en", options)
        for text, lang in zip(texts, langs, strict=True)
    ]
    asked = collect_answers(source, all_requests, options, on_progress, run_id, day)
    answers = (asked.answers.get(request.key) for request in all_requests)
    return [problematic.parse(answer.response) if answer else None for answer in answers]


def _build_verdict_request(text: str, lang: str, options: Options) -> Request:
    kind, _, model = options.model.partition(":")
    if kind == MODERATION and model:
        messages = [{"role": "user", "content": text}]
        return Request(model, messages, MODERATION, "1", dict(options.params), revision=options.revision)
    return _build_request(f"problematic_{lang}", problematic.messages(text, lang, settings.llm_prompts()), options)


def ask_groups(
    intents: Sequence[str], lang: str, options: Options, on_progress: OnProgress = lambda _: None, run_id: str = "cli"
) -> pl.DataFrame:
    """Ask a model to write a graded group for each intent.

    Returns:
        A row an intent: intent, sentences (null if there are none), reason.
    """
    folder = settings.llm_prompts()
    todo = {
        intent: _build_request(f"graded_{lang}", graded.messages(intent, lang, folder), options) for intent in intents
    }  # fmt: skip
    results = {}
    for attempt in range(ATTEMPTS):
        asked = _ask_source("graded_groups", list(todo.values()), options, on_progress, run_id, attempt)
        for intent, request in todo.items():
            answer = asked.answers.get(request.key)
            parsed = graded.parse(answer.response, lang) if answer else graded.Parsed(None, "no_answer")
            results[intent] = (intent, parsed.sentences, parsed.reason)
        if asked.stopped:
            break
        todo = {
            intent: request._replace(attempt=attempt + 1) for intent, request in todo.items()
            if results[intent][2] not in {None, "no_answer"}
        }  # fmt: skip
    return pl.DataFrame(
        list(results.values()),
        schema={"intent": pl.String, "sentences": pl.List(pl.String), "reason": pl.String},
        orient="row",
    )
