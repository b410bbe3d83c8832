"""Judge texts of a file, or a sample of a day's comments into `scores`: round by round, by a service or from files."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pipeline import left_out, settings, warehouse
from pipeline.errors import BadInput, Missing, Refused, check_name
from pipeline.io.lines import read_json_lines
from pipeline.io.visible import BLANK
from pipeline.llm import request
from pipeline.llm.ledger.answers import Answer
from pipeline.llm.outcome import Miss
from pipeline.llm.request import Request
from pipeline.metrics.judging import reliability
from pipeline.slices import LIST_DAYS, parse_day
from pipeline.tables import empty
from pipeline.tasks import asking
from pipeline.tasks.judging.modes import DECIMALS, LOGPROBS, MODES, SCALE, SCHEMA, Pairwise, Plan, Scale
from pipeline.tasks.record import runs
from pipeline.text.language import detect_language

SOURCE = "judge"  # of the answers in `completions`
SAMPLE = 300  # comments of each source
DAYS = 7
Replies = tuple[Mapping[str, Answer], bool]  # answers by key, and whether no other can still come
Ask = Callable[[Sequence[Request]], Replies]


class Judgement(NamedTuple):
    """Values of the rows, checks of the judge, and what has no answer."""

    rows: pl.DataFrame  # those that came in, with metric, low, high, answers, further labels, signature
    checks: pl.DataFrame
    missing: list[Miss]  # requests without an answer, or with one that could not be read
    requests: list[Request]  # all that were listed
    open_requests: list[Request]  # without an answer, in the round that is not complete
    round: int  # the last one, from 1
    round_count: int

    @property
    def faults(self) -> list[str]:
        """List the faults of the judge."""
        return [f"{row['lang']}: {row['fault']}" for row in self.checks.drop_nulls("fault").to_dicts()]

    @property
    def useless_langs(self) -> list[str]:
        """List the languages with a fault that makes their values worthless."""
        parts = self.checks.partition_by("lang", as_dict=True)
        return sorted(str(lang) for (lang,), part in parts.items() if reliability.is_useless(part))


def choose_params(plan: Plan, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Choose the parameters to send: the given ones, else what asks for log probabilities on a scale of digits."""
    if params is not None:
        return dict(params)
    return dict(LOGPROBS) if plan.mode == SCALE and plan.rubric != "subtext" else {}


def choose_answered_params(
    rows: pl.DataFrame, plan: Plan, options: asking.Options, paths: Sequence[Path]
) -> Mapping[str, Any]:
    """Choose the parameters of the requests that files answer: none, or the defaults of a service."""
    keys = {key for path in paths for key in _read_answers(path)}
    params = choose_params(plan, None)
    sessions = _start(_list_items(rows), plan, options._replace(params=params))
    has_answers = any(request.key in keys for session in sessions for request in session.list_requests(0))
    return params if has_answers else {}


def judge(rows: pl.DataFrame, plan: Plan, options: asking.Options, ask: Ask) -> Judgement:
    """Judge rows of text and context, perhaps null; equal ones are judged once, blank ones not at all.

    A round begins when the one before is complete; so the same questions follow from the same answers, and a run that
    was stopped goes on where it was. Values are of the answers until then.
    """
    items = _list_items(rows)
    sessions = _start(items, plan, options)
    round_count = max((session.round_count for session in sessions), default=0)
    requests, open_requests, missing, number = list[Request](), list[Request](), list[Miss](), 0
    while number < round_count and not open_requests:
        lists = [session.list_requests(number) for session in sessions if number < session.round_count]
        # by a hash, so that a limit on cost leaves a random sample
        round_requests = sorted(chain.from_iterable(lists), key=lambda request: request.key)
        answers, is_complete = ask(round_requests)
        unanswered = [request for request in round_requests if request.key not in answers]
        open_requests = [] if is_complete else unanswered
        missing += [Miss(request, "no answer", is_open=False) for request in unanswered]
        for session in sessions:
            session.add_answers(answers)
        requests += round_requests
        number += 1
    reasons = {key: reason for session in sessions for key, reason in session.reasons.items()}
    missing += [Miss(r, reasons[r.key], is_open=False) for r in requests if r.key in reasons]
    values = pl.concat([pl.DataFrame(schema=SCHEMA), *(session.estimate() for session in sessions)], how="diagonal")
    values = values.with_columns(pl.col(pl.Float64).round(DECIMALS)).rename({"value": plan.metric})
    judged = rows.drop(set(values.columns) - {"item"}, strict=False).with_columns(_item=items["item"])
    judged = judged.join(values, left_on="_item", right_on="item", how="left", maintain_order="left").drop("_item")
    checks = [session.check().insert_column(0, pl.lit(session.lang).alias("lang")) for session in sessions]
    checks = [pl.DataFrame(schema={"lang": pl.String, **reliability.SCHEMA}), *checks]
    return Judgement(judged, pl.concat(checks), missing, requests, open_requests, number, round_count)


def _list_items(rows: pl.DataFrame) -> pl.DataFrame:
    texts = rows.select(
        pl.col("text").fill_null("").str.strip_chars(),
        pl.col("context").cast(pl.String).str.strip_chars().replace("", None),
    )
    words = texts.select(text=pl.concat_str("text", pl.col("context").fill_null(""), separator=" "))
    lang = pl.when(words.select(detect_language()).to_series() == "zh").then(pl.lit("zh")).otherwise(pl.lit("en"))
    number = pl.struct("text", "context").rank("dense").cast(pl.Int64)
    return texts.with_columns(lang=lang, item=pl.when(~pl.col("text").str.contains(BLANK)).then(number))


def _start(items: pl.DataFrame, plan: Plan, options: asking.Options) -> list[Scale] | list[Pairwise]:
    distinct = items.drop_nulls("item").unique("item").sort("item")
    parts = distinct.partition_by("lang", as_dict=True, maintain_order=True)
    columns = ("item", "text", "context")
    return [
        MODES[check_name("mode", plan.mode, MODES)](part.select(columns), str(lang), plan, options)
        for (lang,), part in parts.items()
    ]  # type: ignore[return-value]


def estimate(rows: pl.DataFrame, plan: Plan, options: asking.Options, *, batch: bool = False) -> pl.DataFrame:
    """Estimate what the first round would cost, and name the requests of all rounds; send nothing."""
    sessions = _start(_list_items(rows), plan, options)
    requests = [request for session in sessions for request in session.list_requests(0)]
    first = asking.estimate_requests(requests, options, batch=batch)
    count = sum(session.request_count for session in sessions)
    return pl.DataFrame([{"round": 1, **first._asdict(), "requests_of_all_rounds": count}])


def ask_service(options: asking.Options) -> Ask:
    """Return what sends requests to the service, or takes their answers from the ledger alone."""
    has_answers = False

    def ask(requests: Sequence[Request]) -> Replies:
        nonlocal has_answers
        outcome = asking.send(SOURCE, requests, options, has_answers=has_answers)
        has_answers = True
        return outcome.answers, asking.look_up(requests)[1]

    return ask


def ask_batch(options: asking.Options, batches: list[pl.DataFrame]) -> Ask:
    """Return what hands a round over to the provider's batch API, or collects it; states go to `batches`."""

    def ask(requests: Sequence[Request]) -> Replies:
        if not asking.look_up(requests)[1]:
            batches.append(asking.submit({SOURCE: requests}, options))
        return asking.look_up(requests)

    return ask


def ask_function(function: Callable[[str, str], str]) -> Ask:
    """Return what takes each answer from a function of the instructions and the question."""

    def ask(requests: Sequence[Request]) -> Replies:
        texts = {request.key: [message["content"] for message in request.messages] for request in requests}
        replies = {key: function(*pair) for key, pair in texts.items()}
        if wrong := [reply for reply in replies.values() if not isinstance(reply, str)]:
            expected = """the text of a JSON object, such as '{"score": 2}'"""
            raise BadInput(f"llm: the function should answer with {expected}, found {type(wrong[0]).__name__}")
        return {key: Answer(key, reply, "import") for key, reply in replies.items()}, True

    return ask


def ask_files(paths: Sequence[Path]) -> Ask:
    """Return what takes the answers of files: lines with id and response, or of a cassette."""
    answers = dict(chain.from_iterable(_read_answers(path).items() for path in paths))
    has_answers = False

    def ask(requests: Sequence[Request]) -> Replies:
        keys = [request.key for request in requests if request.key in answers]
        nonlocal has_answers
        has_answers = has_answers or bool(keys)
        if answers and not has_answers:
            names = ", ".join(map(str, paths))
            reason = f"none of the {len(answers):,} answers fits one of {len(requests):,} requests"
            raise BadInput(f"{names}: {reason}; give the texts, --llm, --mode, --params and --seed of these requests")
        replies = {key: Answer(key, answers[key], "import") for key in keys}
        return replies, len(replies) == len({request.key for request in requests})

    return ask


def _read_answers(path: Path) -> dict[str, str]:
    """Read answers by the key of their request; of several to one request the last counts."""
    first = next((entry for _, entry in read_json_lines(path)), {})
    if "prompt" in first and "input" in first:
        return dict(request.read_cassette(path).select("completion_id", "response").iter_rows())
    answers = {}
    for number, entry in read_json_lines(path):
        key, response = entry.get("id"), entry.get("response")
        if isinstance(key, str) and response is None:  # not answered yet
            continue
        if not isinstance(key, str) or not isinstance(response, str | dict):
            raise BadInput(f"{path}, line {number}: expected id (of --requests) and response, an object or its text")
        answers[key] = response if isinstance(response, str) else json.dumps(response)
    return answers


def describe_requests(judgement: Judgement) -> pl.DataFrame:
    """Describe the open requests for a file: id, the round, the instructions, and the question as a person reads it."""
    names = ("id", "model", "prompt", "instructions", "question", "response")
    rows = [(r.key, r.model, r.prompt, *(m["content"] for m in r.messages), None) for r in judgement.open_requests]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    return frame.insert_column(1, pl.lit(judgement.round).alias("round"))


def sample_comments(day: str, days: int = DAYS, limit: int = SAMPLE) -> pl.DataFrame:
    """Draw at most `limit` comments of each source of `days` until a day, by their keys: a higher limit adds."""
    key = ["source", "day", "thread_id", "comment_id"]
    first = parse_day(day) - timedelta(days=days - 1)
    comments = warehouse.scan("comments", pl.col("day").is_between(first, parse_day(day)))
    comments = comments.select(*key, "text_hash", "text", "context").with_columns(
        rank=pl.concat_str(*key[2:], separator="\t").hash(seed=1).rank("ordinal").over("source")
    )
    rows = comments.filter(pl.col("rank") <= limit).drop("rank").sort(key).collect()
    if not rows.height:
        raise Missing(f"there are no comments from {first} to {day}; {LIST_DAYS}")
    return rows


def select_answered(rows: pl.DataFrame, plan: Plan, options: asking.Options, ask: Ask) -> pl.DataFrame:
    """Select the sources all of whose texts have answers on a scale; a part of a source is no random sample of it."""
    if plan.mode != SCALE or not judge(rows, plan, options, ask).open_requests:
        return rows
    parts = rows.partition_by("source", maintain_order=True)
    parts = [part for part in parts if not judge(part, plan, options, ask).open_requests]
    if not parts:
        return rows
    answered = pl.concat(parts)
    left_out.record_rows("judge", {"not_all_answered": rows.height - answered.height})
    return answered


def judge_day(
    rows: pl.DataFrame, day: str, plan: Plan, options: asking.Options, ask: Ask, *, needs_all: bool = False
) -> Judgement:
    """Judge comments of `sample_comments` and write their values into `scores`, in place of those of this judge.

    If `needs_all` is set and a round is not complete, nothing is written. A limit on cost ends a run early. Signatures
    end with the number of comments of source and day, so that growth after the judgement is seen.

    Refused if the answers do not come from the texts of a language; no value of it is written. Retry if some requests
    failed for now; the answers of the others are kept.
    """
    started = runs.start()
    is_judged = pl.col("day").is_in(rows["day"].unique().to_list())
    sizes = warehouse.scan("comments", is_judged).group_by("source", "day").agg(_size=pl.len()).collect()
    judgement = judge(rows, plan, options, ask)
    if judgement.open_requests and needs_all:
        return judgement
    missing = [miss for miss in judgement.missing if not miss.request.attempt]
    asking.record_run(SOURCE, day, options, judgement.requests, missing, started)
    maker = {"metric": plan.metric, "model_id": f"{options.model}:{plan.mode}"}
    scores = judgement.rows.with_columns(**{name: pl.lit(value) for name, value in maker.items()}, value=plan.metric)
    scores = scores.join(sizes, on=["source", "day"], how="left", maintain_order="left")
    scores = scores.with_columns(signature=pl.format("{}|day:{}", "signature", "_size"))
    langs = judgement.useless_langs
    for lang in langs:
        scores = scores.filter(~pl.col("signature").str.contains(f"|lang:{lang}|", literal=True))
    scores = scores.drop_nulls("value").select(empty("scores").columns)
    for (scored_day,), part in scores.partition_by("day", as_dict=True).items():
        warehouse.overwrite("scores", {**warehouse.make_slice(day=str(scored_day)), **maker}, part, options.run_id)
    if langs:
        languages = " and ".join(langs)
        raise Refused(f"the judge is of no use, no value of {languages} is written: {'; '.join(judgement.faults)}")
    return judgement


def run(
    day: str,
    plan: Plan,
    options: asking.Options,
    days: int = DAYS,
    limit: int = SAMPLE,
    params: Mapping[str, Any] | None = None,
) -> dict[str, object]:
    """Judge a sample of the comments of some days by the model of the options, else by that of the settings."""
    model = options.model or settings.judge()
    if not model:
        raise BadInput("name the language model that judges, by the parameter llm or UNDERTONE_JUDGE")
    rows = sample_comments(day, days, limit)
    options = options._replace(model=model, params=choose_params(plan, params))
    judgement = judge_day(rows, day, plan, options, ask_service(options))
    judged = judgement.rows[plan.metric].count()
    return {"model": model, "comments": rows.height, "judged": judged, "faults": judgement.faults}
