"""Ask language models for missing explicit forms, for graded groups and for verdicts on texts.

The ledger pays for each answer once; answers are written to `completions`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
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

    The outcome of the requests is added to `summary`, for a command that prints it and derives its exit code from it.
    Without a `summary` the outcome is raised, so that it sets the state of an Airflow task: see `Asked.check`.
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
    """Return the given endpoint, else that of the environment; None without either.

    The key of the environment is sent only to the address of the environment.
    """
    if base_url or key:
        return Endpoint(base_url, key)
    uri, secret = settings.llm_uri(), settings.llm_key()
    return Endpoint(uri, secret) if uri or secret else None


def list_sources(sources: Sequence[str] = ()) -> list[str]:
    """List the sources, among the given or all, that have sentences with a prompt."""
    rows = warehouse.scan("sentences", pl.col("prompt").is_not_null()).select(pl.col("source").unique().sort())
    available = rows.collect()["source"].to_list()
    if unknown := sorted(set(sources) - set(available)):
        raise BadInput(f"nothing to ask about {', '.join(unknown)}; there is {', '.join(available) or 'no source'}")
    return [source for source in available if not sources or source in sources]


def build_requests(source: str, options: Options, limit: int | None = None) -> dict[str, Request]:
    """Build the requests for the explicit forms of a source, by sentence, in the order of their ids."""
    has_prompt = (pl.col("source") == source) & pl.col("prompt").is_not_null()
    rows = warehouse.scan("sentences", has_prompt).sort("item_id").select("text", "prompt").collect()
    rows = rows.unique("text", keep="first", maintain_order=True).head(limit or rows.height)
    folder = settings.llm_prompts()
    return {
        text: _build_request(prompt_name, explicit.messages(text, prompt_name, folder), options)
        for text, prompt_name in rows.iter_rows()
    }


def _build_request(name: str, messages: list[dict[str, str]], options: Options) -> Request:
    return Request(
        model=options.model, revision=options.revision, params=dict(options.params), prompt=name,
        prompt_version=prompt.load(name, settings.llm_prompts()).version, messages=messages,
    )  # fmt: skip


def estimate(sources: Sequence[str], options: Options, limit: int | None = None, *, batch: bool = False) -> Estimate:
    """Estimate the cost of the requests for explicit forms; send nothing."""
    by_source = [build_requests(source, options, limit).values() for source in list_sources(sources)]
    all_requests = list(chain.from_iterable(by_source))
    prices, output_tokens = cost.prices(settings.llm_prices()), settings.llm_max_tokens()
    return cost.estimate(all_requests, _open_ledger(), prices, batch=batch, output_tokens=output_tokens)


def ask(
    source: str, options: Options, limit: int | None = None, on_progress: OnProgress = lambda _: None,
    run_id: str = "cli", day: str | None = None,
) -> dict[str, object]:  # fmt: skip
    """Ask for the missing explicit forms of a source, and write the answers to `completions`.

    A request whose answer has no sentence, or was truncated, is sent once more. Answers in the ledger are reused.
    With a `day` the step is recorded in `runs`.

    Returns:
        Counts: requests, answers, calls_sent, cached, tokens, cost_usd, the guessed part of it, and the reasons of
        missing answers.

    Raises:
        Retry: some requests failed for now; the answers of the others are written.
        Refused: the service refused, or no request has an answer.
    """
    started = runs.start()
    requests = build_requests(source, options, limit)
    request_count, all_requests = len(requests), list(requests.values())
    missing: list[Miss] = []
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    total = Summary(options.max_cost)
    for attempt in range(ATTEMPTS):
        current = list(requests.values())
        outcome = _ask_source(source, current, options, on_progress, run_id, attempt)
        counts.update(
            answers=0 if attempt else len(outcome.answers), asked_again=len(requests) if attempt else 0,
            calls_sent=outcome.calls_sent, cached=outcome.cached, input_tokens=outcome.input_tokens,
            output_tokens=outcome.output_tokens, missing=len(outcome.missing),
        )  # fmt: skip
        reasons.update(miss.reason for miss in outcome.missing)
        total.add(current, outcome)
        missing = missing if attempt else outcome.missing
        requests = {
            text: request._replace(attempt=attempt + 1) for text, request in requests.items()
            if (answer := outcome.answers.get(request.key))
            and (answer.is_cut or explicit.parse(answer.response, text, request.prompt).explicit is None)
        }  # fmt: skip
        all_requests += requests.values()
        if outcome.stopped:
            break
    if day is not None:
        _record_run(source, day, options, all_requests, missing, run_id, started)
    why_missing = "; ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    costs = {"cost_usd": total.cost_usd, "guessed_usd": total.guessed_usd, "max_cost": options.max_cost}
    return {"source": source, "requests": request_count, **counts, **costs, "why_missing": why_missing}


def run_batch(sources: Sequence[str], options: Options, limit: int | None = None, run_id: str = "cli") -> pl.DataFrame:
    """Submit the requests without an answer to the provider's batch API, and collect the answers of earlier batches.

    Run it again to collect: a request in a batch is not submitted twice. Returns a row for each batch, with its state.
    """
    if options.mode != "live":
        raise BadInput("a batch is submitted and paid; it cannot be cache-only")
    by_source = {source: list(build_requests(source, options, limit).values()) for source in sources}
    service = _check_endpoint(options)
    prices, output_tokens = cost.prices(settings.llm_prices()), settings.llm_max_tokens()
    collected = batches.collect(_open_ledger(), service, prices=prices, output_tokens=output_tokens)
    submitted = batches.submit(
        list(chain.from_iterable(by_source.values())), _open_ledger(), service, run_id=run_id,
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
    """Count the calls of the ledger by model and outcome."""
    return _build_frame(given_up.status(_open_ledger())).drop("reason")


def list_given_up(model: str | None = None, reason: str | None = None) -> pl.DataFrame:
    """Count the calls of requests that no run sends any more, by model, outcome and reason."""
    return _build_frame(given_up.entries(_open_ledger(), model, reason))


def forgive(model: str | None = None, reason: str | None = None, *, is_clearing: bool) -> int:
    """Let runs send given-up requests again; return the number of their calls."""
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
    """Send requests, write the answers, and add the outcome to the summary, or raise it without a summary."""
    endpoint = _check_endpoint(options) if options.mode == "live" else None
    outcome = client.ask(
        all_requests, _open_ledger(), endpoint, run_id=run_id, mode=options.mode, concurrency=options.concurrency,
        max_cost=options.max_cost, prices=cost.prices(settings.llm_prices()), output_tokens=settings.llm_max_tokens(),
        done=(lambda _: None) if attempt else on_progress,
    )  # fmt: skip
    _add_answers(source, all_requests, outcome, run_id)
    if options.summary is None:
        outcome.check(has_answers=attempt > 0)
    else:
        options.summary.add(all_requests, outcome)
    return outcome


def collect_answers(
    source: str, all_requests: Sequence[Request], options: Options, on_progress: OnProgress, run_id: str,
    day: str | None = None,
) -> Asked:  # fmt: skip
    """Send requests, write the answers to `completions` under a source, and raise Retry if some are still open.

    With a `day` the step is recorded in `runs`.
    """
    started = runs.start()
    outcome = _ask_source(source, all_requests, options, on_progress, run_id)
    if day is not None:
        _record_run(source, day, options, all_requests, outcome.missing, run_id, started)
    return outcome


def _record_run(
    source: str, day: str, options: Options, all_requests: Sequence[Request], missing: Sequence[Miss], run_id: str,
    started: runs.Start,
) -> None:  # fmt: skip
    """Record a step: its requests, those without an answer, and the cost of all attempts of the run."""
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


def _add_answers(source: str, all_requests: Sequence[Request], outcome: Asked, run_id: str) -> None:
    """Write answers to `completions`."""
    rows = [
        {
            "completion_id": request.key, "source": source, "model": request.model, "prompt": request.prompt,
            "prompt_version": request.prompt_version, "messages": as_json(request.messages),
            "params": as_json(request.params), "attempt": request.attempt, "response": answer.response,
            "mode": answer.mode, "revision": request.revision, "input_tokens": answer.input_tokens,
            "output_tokens": answer.output_tokens, "finish_reason": answer.finish_reason,
        }
        for request in all_requests
        if (answer := outcome.answers.get(request.key))
    ]  # fmt: skip
    if rows:
        completions = pl.DataFrame(rows, schema=empty("completions").schema)
        pairs.add_completions(source, completions.unique("completion_id", maintain_order=True), run_id)


def ask_verdicts(
    source: str, texts: Sequence[str], options: Options, on_progress: OnProgress = lambda _: None, run_id: str = "cli",
    day: str | None = None,
) -> list[str | None]:  # fmt: skip
    """Ask a model whether each text is problematic: yes, no, other; None for a text without an answer.

    A model `moderation:NAME` is NAME at the provider's moderation endpoint, whose flag counts as yes (IMP-42).

    Raises:
        Retry: some requests failed for now; the answers of the others are written.
    """
    rows = pl.DataFrame({"text": list(texts)}, schema={"text": pl.String})
    langs = rows.select(lang=detect_language())["lang"]
    all_requests = [
        _build_verdict_request(text, "zh" if lang == "zh" else "en", options)
        for text, lang in zip(texts, langs, strict=True)
    ]
    outcome = collect_answers(source, all_requests, options, on_progress, run_id, day)
    answers = (outcome.answers.get(request.key) for request in all_requests)
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
        A row for each intent: intent, sentences (null if there are none), reason.
    """
    folder = settings.llm_prompts()
    requests = {
        intent: _build_request(f"graded_{lang}", graded.messages(intent, lang, folder), options) for intent in intents
    }  # fmt: skip
    results = {}
    for attempt in range(ATTEMPTS):
        outcome = _ask_source("graded_groups", list(requests.values()), options, on_progress, run_id, attempt)
        for intent, request in requests.items():
            answer = outcome.answers.get(request.key)
            parsed = graded.parse(answer.response, lang) if answer else graded.Parsed(None, "no_answer")
            results[intent] = (intent, parsed.sentences, parsed.reason)
        if outcome.stopped:
            break
        requests = {
            intent: request._replace(attempt=attempt + 1) for intent, request in requests.items()
            if results[intent][2] not in {None, "no_answer"}
        }  # fmt: skip
    return pl.DataFrame(
        list(results.values()),
        schema={"intent": pl.String, "sentences": pl.List(pl.String), "reason": pl.String},
        orient="row",
    )
