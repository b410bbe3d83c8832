"""Ask language models for explicit forms, graded groups and verdicts, each question once, into `completions`."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl
import sqlalchemy as sa

from pipeline import left_out, settings
from pipeline.errors import BadInput, Missing
from pipeline.llm import client, prompt
from pipeline.llm.batch import Provider
from pipeline.llm.ledger import answers as ledger
from pipeline.llm.ledger import cost
from pipeline.llm.outcome import Miss, Outcome, Summary
from pipeline.llm.questions import explicit, graded, problematic
from pipeline.llm.request import MODERATION, Request
from pipeline.llm.service.connection import Endpoint
from pipeline.tables import empty
from pipeline.tasks.impscore import pairs
from pipeline.tasks.record import runs
from pipeline.text.language import detect_language

ATTEMPTS = 2  # a request whose answer is a refusal or an echo is sent once more


class Options(NamedTuple):
    """The model to ask, and how; without a `summary` the outcome is raised, see `Outcome.check`."""

    model: str
    revision: str | None = None
    params: Mapping[str, Any] = {}
    mode: Literal["live", "cache-only"] = "live"
    concurrency: int = 16
    max_cost: float | None = None  # USD of the run
    endpoint: Endpoint | None = None
    summary: Summary | None = None
    run_id: str = "cli"
    prompts: str | Path | None = None  # folder with a prompt for each source; by default that of the settings
    on_progress: Callable[[int], None] = lambda _: None  # called with the number of requests that were settled


def find_endpoint(base_url: str | None = None, key: str | None = None) -> Endpoint | None:
    """Return the given endpoint, else that of the environment, whose key is sent only to its address; None without."""
    if base_url or key:
        return Endpoint(base_url, key)
    uri, secret = settings.llm_uri(), settings.llm_key()
    return Endpoint(uri, secret) if uri or secret else None


def list_sources(sources: Sequence[str] = (), prompts: str | Path | None = None) -> list[str]:
    """List the sources, among the given or all, that have sentences with a prompt; LUDWIG only if it is given.

    BadInput if a given source has nothing to ask about, or the folder `prompts` lacks the prompt of a source.
    """
    rows = pairs.scan_questions().select("source", "prompt", "is_alternative").unique().sort("source").collect()
    names = ", ".join(rows["source"].unique().sort())
    if unknown := sorted(set(sources) - set(rows["source"])):
        raise BadInput(f"nothing to ask about {', '.join(unknown)}; there is {names or 'no source'}")
    rows = rows.filter(pl.col("source").is_in(sources) if sources else ~pl.col("is_alternative"))
    if names and rows.is_empty():
        left_out.record_note(f"nothing is asked about {names}, which has labels' explicit forms; name it by --source")
    if prompts:
        prompt.check_sources(Path(prompts).expanduser(), rows.select("source", "prompt").iter_rows())
    return rows["source"].unique().sort().to_list()


def _build_requests(source: str, options: Options, limit: int | None) -> dict[str, Request]:
    rows = pairs.scan_questions().filter(pl.col("source") == source).sort("item_id").select("text", "prompt").collect()
    rows = rows.unique("text", keep="first", maintain_order=True).head(limit or rows.height)
    return {text: build_request(name, text, options, source) for text, name in rows.iter_rows()}


def build_request(name: str, text: str, options: Options, source: str | None = None) -> Request:
    """Build the request of a prompt about a text, perhaps of a source with a prompt of its own."""
    folder = Path(options.prompts).expanduser() if options.prompts else settings.llm_prompts()
    loading = (name, folder, source)
    messages, version = prompt.build_messages(text, *loading), prompt.load(*loading).version
    return Request(options.model, messages, name, version, dict(options.params), revision=options.revision)


def estimate(
    sources: Sequence[str], options: Options, limit: int | None = None, *, batch: bool = False
) -> cost.Estimate:
    """Estimate the cost of the requests for explicit forms; send nothing."""
    by_source = (_build_requests(source, options, limit) for source in list_sources(sources))
    return estimate_requests([request for part in by_source for request in part.values()], options, batch=batch)


def estimate_requests(requests: Sequence[Request], options: Options, *, batch: bool = False) -> cost.Estimate:
    """Estimate the cost of requests; send nothing."""
    unanswered = list(ledger.find_unanswered(_open_ledger(), requests).values())
    cached = len({request.key for request in requests}) - len(unanswered)
    return cost.estimate(unanswered, cached, _load_budget(options), is_batch=batch)


def ask(source: str, options: Options, limit: int | None = None, day: str | None = None) -> dict[str, object]:
    """Ask for the missing explicit forms of a source, and write the answers to `completions`.

    A request whose answer has no sentence, or was truncated, is sent once more. Answers in the ledger are reused.
    With a `day` the step is recorded in `runs`. Returns counts, costs, and the reasons of missing answers. Retry if
    some requests failed for now: the other answers are written. Refused if none has an answer.
    """
    started = runs.start()
    requests = _build_requests(source, options, limit)
    sent: list[list[Request]] = []
    outcomes: list[Outcome] = []
    total = Summary(max_cost=options.max_cost)
    for attempt in range(ATTEMPTS):
        sent.append(list(requests.values()))
        outcome = send(source, sent[-1], options, attempt)
        outcomes.append(outcome)
        total.add(sent[-1], outcome)
        requests = {
            text: request._replace(attempt=attempt + 1)
            for text, request in requests.items()
            if (answer := outcome.answers.get(request.key))
            and (answer.is_cut or explicit.parse(answer.response, text, request.prompt).explicit is None)
        }
        if outcome.stopped:
            break
    if day is not None:
        all_requests = [request for part in sent for request in part]
        record_run(source, day, options, all_requests, outcomes[0].missing, started)
    missing = [miss.reason for outcome in outcomes for miss in outcome.missing]
    names = ("calls_sent", "cached", "input_tokens", "output_tokens")
    return {
        "source": source, "requests": len(sent[0]), "answers": len(outcomes[0].answers),
        "asked_again": sum(map(len, sent[1:])),
        **{name: sum(getattr(outcome, name) for outcome in outcomes) for name in names}, "missing": len(missing),
        "cost_usd": total.cost_usd, "guessed_usd": total.guessed_usd, "max_cost": options.max_cost,
        "why_missing": "; ".join(f"{count} {reason}" for reason, count in Counter(missing).most_common()),
    }  # fmt: skip


def run_batch(sources: Sequence[str], options: Options, limit: int | None = None) -> pl.DataFrame:
    """Submit requests without an answer to the provider's batch API, once each, and collect: a row for each batch."""
    return submit({source: list(_build_requests(source, options, limit).values()) for source in sources}, options)


def submit(by_source: Mapping[str, Sequence[Request]], options: Options) -> pl.DataFrame:
    """Submit and collect as `run_batch` does the requests of each source."""
    if options.mode != "live":
        raise BadInput("a batch is submitted and paid; it cannot be cache-only")
    provider = Provider(_open_ledger(), _check_endpoint(options), _load_budget(options))
    collected = provider.collect()
    submitted_ids = provider.submit(request for requests in by_source.values() for request in requests)
    for source, requests in by_source.items():
        answers, _ = ledger.look_up(_open_ledger(), [request.key for request in requests])
        _add_answers(source, requests, answers, options)
    rows = [state._asdict() for state in collected]
    collected_ids = {row["id"] for row in rows}
    rows += [{"id": batch_id, "status": "submitted"} for batch_id in submitted_ids if batch_id not in collected_ids]
    schema = {"id": pl.String, "status": pl.String, "requests": pl.Int64, "answered": pl.Int64, "open": pl.Int64}
    return pl.DataFrame(rows, schema={**schema, "detail": pl.String})


def count_calls(model: str | None = None, reason: str | None = None, *, of_all: bool = False) -> pl.DataFrame:
    """Count the calls of requests that no run sends any more, or of all, by model, outcome and reason."""
    rows = [tuple(row) for row in ledger.list_entries(_open_ledger(), model, reason, of_all=of_all)]
    schema: dict[str, Any] = dict.fromkeys(("model", "outcome", "reason"), pl.String)
    schema |= dict.fromkeys(("calls", "requests"), pl.Int64) | dict.fromkeys(("cost_usd", "guessed_usd"), pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row").drop(["reason"] if of_all else [])


def forgive(model: str | None = None, reason: str | None = None, *, is_clearing: bool) -> int:
    """Let runs send given-up requests again; return the number of their calls."""
    return ledger.forgive(_open_ledger(), model, reason, is_clearing=is_clearing)


def _open_ledger() -> sa.Engine:
    return ledger.open_ledger(settings.llm_ledger())


def _load_budget(options: Options) -> cost.Budget:
    prices = cost.load_prices(settings.llm_prices())
    return cost.Budget(options.run_id, prices, settings.llm_max_tokens(), options.max_cost)


def _check_endpoint(options: Options) -> Endpoint:
    if options.endpoint is None:
        raise Missing("no service to ask: set UNDERTONE_LLM_URL (and UNDERTONE_LLM_KEY), or the Airflow connection")
    return options.endpoint


def look_up(requests: Sequence[Request]) -> tuple[dict[str, ledger.Answer], bool]:
    """Look up answers in the ledger, by key, and whether no other request can be answered by sending it again."""
    keys = {request.key for request in requests}
    answers, given_up_keys = ledger.look_up(_open_ledger(), keys)
    return answers, len(answers) + len(given_up_keys) == len(keys)


def send(
    source: str, requests: Sequence[Request], options: Options, attempt: int = 0, *, has_answers: bool = False
) -> Outcome:
    """Send requests, write the answers, and add the outcome to the summary, or raise it without a summary."""
    endpoint = _check_endpoint(options) if options.mode == "live" else None
    progress: dict[str, Any] = {} if attempt else {"on_progress": options.on_progress}
    budget = _load_budget(options)
    outcome = client.ask(requests, _open_ledger(), endpoint, budget, concurrency=options.concurrency, **progress)
    _add_answers(source, requests, outcome.answers, options)
    if options.summary is None:
        outcome.check(has_answers=has_answers or attempt > 0)
    else:
        options.summary.add(requests, outcome)
    return outcome


def collect_answers(
    source: str, requests: Sequence[Request], options: Options, day: str | None = None
) -> list[ledger.Answer | None]:
    """Send requests, write the answers to `completions`, and return them in order of request; Retry if some failed."""
    started = runs.start()
    outcome = send(source, requests, options)
    if day is not None:
        record_run(source, day, options, requests, outcome.missing, started)
    return [outcome.answers.get(request.key) for request in requests]


def record_run(
    source: str, day: str, options: Options, requests: Sequence[Request], missing: Sequence[Miss], started: runs.Start
) -> None:
    """Record a step: its requests, those without an answer, and the cost of all attempts of the run."""
    prompts = {request.key: request.prompt for request in requests if not request.attempt}
    rows = [(source, miss.reason.partition(":")[0], miss.request.key) for miss in missing]
    schema = dict.fromkeys(("source", "reason", "row_key"), pl.String)
    dropped = pl.DataFrame(rows, schema=schema, orient="row").unique("row_key", maintain_order=True)
    spent = ledger.sum_spending(_open_ledger(), options.run_id, sorted({request.key for request in requests}))
    if spent.calls and not spent.priced:
        spent.cost_usd = None
    origin = f"{options.model}: {', '.join(sorted(set(prompts.values())))}"
    config = {name: getattr(options, name) for name in ("model", "revision", "mode")} | {"params": dict(options.params)}
    answered_count = len(prompts) - dropped.height
    runs.record_step(source, day, origin, "ask", answered_count, dropped, config, options.run_id, started, spent)


def _add_answers(
    source: str, requests: Sequence[Request], answers: Mapping[str, ledger.Answer], options: Options
) -> None:
    names = ("response", "mode", "input_tokens", "output_tokens", "finish_reason")
    rows = [
        request.as_row() | {name: getattr(answer, name) for name in names} | {"completion_id": request.key}
        for request in requests
        if (answer := answers.get(request.key))
    ]
    if rows:
        completions = pl.DataFrame(rows, schema=empty("completions").schema).with_columns(source=pl.lit(source))
        pairs.add_completions(source, completions.unique("completion_id", maintain_order=True), options.run_id)


def ask_verdicts(
    source: str, texts: Sequence[str], options: Options, day: str | None = None
) -> list[problematic.Answer | None]:
    """Ask a model whether each text is problematic: yes, no, other, None if unanswered; Retry as `collect_answers`."""
    langs = pl.DataFrame({"text": texts}, schema={"text": pl.String}).select(detect_language()).to_series()
    kind, _, model = options.model.partition(":")
    if kind == MODERATION and model:
        common: Any = {"params": dict(options.params), "revision": options.revision}
        messages = [[{"role": "user", "content": text}] for text in texts]
        requests = [Request(model, message, MODERATION, "1", **common) for message in messages]
    else:
        names = [f"problematic_{'zh' if lang == 'zh' else 'en'}" for lang in langs]
        requests = [build_request(name, text, options) for name, text in zip(names, texts, strict=True)]
    answers = collect_answers(source, requests, options, day)
    return [problematic.parse(answer.response) if answer else None for answer in answers]


def ask_groups(intents: Sequence[str], lang: str, options: Options) -> pl.DataFrame:
    """Ask for a graded group for each intent: rows of intent, sentences (null if there are none), reason."""
    requests = {intent: build_request(f"graded_{lang}", intent, options) for intent in intents}
    groups = dict.fromkeys(intents, graded.Parsed(None, "no_answer"))
    for attempt in range(ATTEMPTS):
        outcome = send("graded_groups", list(requests.values()), options, attempt)
        for intent, request in requests.items():
            answer = outcome.answers.get(request.key)
            groups[intent] = graded.parse(answer.response, lang) if answer else graded.Parsed(None, "no_answer")
        if outcome.stopped:
            break
        requests = {
            intent: request._replace(attempt=attempt + 1)
            for intent, request in requests.items()
            if groups[intent].reason not in {None, "no_answer"}
        }
    rows = [(intent, group.sentences, group.reason) for intent, group in groups.items()]
    schema: dict[str, Any] = {"intent": pl.String, "sentences": pl.List(pl.String), "reason": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")
