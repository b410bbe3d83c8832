"""The command that has texts judged by a language model, or by people."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import polars as pl
from typer import Argument, Exit, Option, echo

from pipeline import left_out, sample, warehouse
from pipeline.commands.asking import CacheOnly, MaxCost, build_options, finish, parse_params, show_estimate
from pipeline.commands.terminal import console, files
from pipeline.commands.terminal.options import Json, MaybeDay, TableFile, TextColumn, check_name, check_source, today
from pipeline.errors import BadInput, format_quantity
from pipeline.io.visible import BLANK
from pipeline.progress import track
from pipeline.score.signature import drop_earlier_scores
from pipeline.tasks.judging import judge as work
from pipeline.tasks.judging.modes import Plan
from pipeline.tasks.record.retry import retry


def judge(
    llm: Annotated[str, Option("--llm", help="Who judges: a language model, or a name.", callback=check_name)],
    file: Annotated[Path | None, Argument(help="Texts, perhaps with context; by default a sample of a day's.")] = None,
    text_column: TextColumn = None,
    day: MaybeDay = "",
    days: Annotated[int, Option(min=1, help="Days that end with --day.")] = 1,
    limit: Annotated[int | None, Option(min=1, help="Texts at most; of a day, of each source.")] = None,
    mode: Annotated[str, Option(help="scale: each text by itself; pairwise: two by two.")] = "scale",
    rubric: Annotated[str, Option(help="implicitness, quality or subtext.")] = "implicitness",
    repeats: Annotated[int, Option(min=1, help="Answers to a text, where the server gives no log probabilities.")] = 3,
    comparisons: Annotated[int, Option(min=1, help="Comparisons for each text, with pairwise.")] = 10,
    rounds: Annotated[int, Option(min=1, help="Rounds of the comparisons.")] = 10,
    seed: Annotated[int, Option(min=0)] = 42,
    out: TableFile = None,
    requests: Annotated[Path | None, Option(help="Send nothing; write the next round's questions as .jsonl.")] = None,
    answers: Annotated[list[Path] | None, Option(help="Answers: this .jsonl, cassette or `sample`; repeat it.")] = None,
    revision: Annotated[str | None, Option(help="Revision of the model, where its server names one.")] = None,
    params: Annotated[str | None, Option(help="Sampling parameters as JSON; log probabilities by default.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Print what the first round would cost.")] = False,
    cache_only: CacheOnly = False,
    max_cost: MaxCost = None,
    concurrency: Annotated[int, Option(min=1, help="Requests in flight at most.")] = 16,
    batch: Annotated[bool, Option("--batch", help="Hand over to the provider's batch API, or collect.")] = False,
    as_json: Json = False,
) -> None:
    """Judge how implicit texts are: by a language model, or by people with --requests and --answers.

    Adds the value (implicitness_judged), its interval and the number of answers to a file; writes those of a day into
    `scores`. Then prints whether the answers come from the texts.

    Examples: `undertone judge reviews.csv --llm gpt-4o-mini --max-cost 2 -o judged.csv`;
    `undertone judge --day 2026-11-19 --llm gpt-4o-mini --mode pairwise --limit 200`;
    `undertone judge lines.csv --llm ana --mode pairwise --rounds 3 --requests ask.jsonl --answers ana.jsonl`
    """
    check_source(file, day)
    if text_column and not file:
        raise BadInput("--text-column is about a file; the texts of a day are comments")
    is_offline = bool(requests or answers)
    answers = [sample.JUDGEMENTS if path == Path("sample") else path for path in answers or ()]
    if is_offline + batch + cache_only + dry_run > 1:
        raise BadInput("give only one of --requests or --answers, --batch, --cache-only and --dry-run")
    files.check_table(out)
    warehouse.create()
    plan = Plan(rubric, mode, repeats, comparisons, rounds, seed)
    if file:
        table, rows = files.read_comments(file, text_column, limit)
        left_out.record_rows("judge", {"no_text": int(rows["text"].fill_null("").str.contains(BLANK).sum())}, str(file))
        table = drop_earlier_scores(table, plan.metric, plan.columns)
    else:
        rows = work.sample_comments(day or today(), days, limit or work.SAMPLE)
    options, summary = build_options(llm, max_cost, cache_only)
    chosen_params = work.choose_params(plan, parse_params(params) if params else {} if is_offline else None)
    options = options._replace(revision=revision, params=chosen_params, concurrency=concurrency)
    if answers and not params:
        options = options._replace(params=work.choose_answered_params(rows, plan, options, answers))
    if dry_run:
        show_estimate(work.estimate(rows, plan, options, batch=batch), llm, as_json)
        return
    batches: list[pl.DataFrame] = []
    with track("judging") as on_progress:
        options = options._replace(on_progress=on_progress)
        ask = work.ask_files(answers or []) if is_offline else work.ask_service(options)
        ask = work.ask_batch(options, batches) if batch else ask
        judge_rows = partial(work.judge, rows, plan, options, ask)
        if file is None:
            rows = work.select_answered(rows, plan, options, ask) if answers and not requests else rows
            needs_all = is_offline or batch
            judge_rows = partial(work.judge_day, rows, day or today(), plan, options, ask, needs_all=needs_all)
        judgement = retry(judge_rows)
    if judgement.open_requests and (requests or batch):
        _hand_over(judgement, requests, batches, as_json)
        return
    judged_rows = table.hstack(judgement.rows.drop(rows.columns)) if file else judgement.rows
    if out:
        files.write_table(judged_rows, out)
    elif file or as_json:
        console.show(judged_rows, as_json)
    judged = judgement.rows[plan.metric].count()
    _report(judgement, judged, as_json, is_unwritten=is_offline and file is None)
    if not is_offline and not batch:
        finish(summary, as_json)
    if judgement.open_requests or judgement.useless_langs or not judged:
        raise Exit(1)


def _hand_over(judgement: work.Judgement, path: Path | None, batches: list[pl.DataFrame], as_json: bool) -> None:
    name = f"round {judgement.round} of at most {judgement.round_count}: {len(judgement.open_requests):,} requests"
    if path:
        files.write_table(work.describe_requests(judgement), path)
        console.report(f"{name} written to {path}; fill in `response` and give all answers so far by --answers")
    else:
        console.show(pl.concat(batches), as_json)
        console.report(f"{name} are open; run the same command again to collect their answers")


def _report(judgement: work.Judgement, judged: int, as_json: bool, *, is_unwritten: bool) -> None:
    reasons = dict(pl.Series([miss.reason for miss in judgement.missing], dtype=pl.String).value_counts().iter_rows())
    numbers = {"texts": judgement.rows.height, "judged": judged, "requests": len(judgement.requests)}
    if as_json:
        fields = {**numbers, "no_answer": reasons, "checks": judgement.checks.to_dicts()}
        echo(json.dumps({"judge": fields}, ensure_ascii=False), err=True)
        return
    count = format_quantity(len(judgement.requests), "request")
    console.report(f"{judged:,} of {judgement.rows.height:,} texts judged by {count}")
    for reason, count in reasons.items():
        console.report(f"{reason}: {count / len(judgement.requests):.1%} of the requests ({count:,})")
    for lang, check, value, low, high, count, _ in judgement.checks.drop_nulls("value").iter_rows():
        interval = "" if low is None else f" ({low:.2f} to {high:.2f})"
        console.report(f"{lang}, {check}: {value:.2f}{interval} of {count:,}")
    if judgement.open_requests and is_unwritten:
        count = format_quantity(len(judgement.open_requests), "open request")
        console.report(f"nothing is written into `scores`: {count}; --requests FILE lists them to be answered")
    for fault in judgement.faults:
        console.report(f"do not trust this judge: {fault}")
