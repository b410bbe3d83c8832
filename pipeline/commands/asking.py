"""What commands that ask a language model have in common, and the commands about its ledger."""

import json
from typing import Annotated, Any

import polars as pl
import typer
from typer import Exit, Option, echo

from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import Json, check_name, this_run
from pipeline.errors import BadInput, format_quantity
from pipeline.llm.ledger import cost
from pipeline.llm.outcome import Summary
from pipeline.tasks import asking

MaxCost = Annotated[float | None, Option("--max-cost", min=0, help="USD that this may cost at most.")]
CacheOnly = Annotated[bool, Option("--cache-only", help="Take answers from the ledger alone.")]
Llm = Annotated[str | None, Option("--llm", help="Requests to this language model.")]
Reason = Annotated[str | None, Option("--reason", help="Requests whose reason holds these words.")]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")]


def build_options(model: str, max_cost: float | None, cache_only: bool) -> tuple[asking.Options, Summary]:
    """Build the options of this run, and the summary to which its outcomes are added."""
    summary = Summary(max_cost=max_cost)
    options = asking.Options(
        check_name(model),
        mode="cache-only" if cache_only else "live",
        max_cost=max_cost,
        endpoint=asking.find_endpoint(),
        summary=summary,
        run_id=this_run(),
    )
    return options, summary


def finish(summary: Summary, as_json: bool = False) -> None:
    """Print the summary, and exit by it: 0 if all requests are answered, 1 if a part is, 3 if none is.

    In JSON it goes to standard error too, as an object: standard output has the rows.
    """
    if as_json:
        echo(json.dumps({"asking": summary.as_dict()}, ensure_ascii=False), err=True)
    else:
        console.report(summary.sentence())
    summary.check()
    if summary.exit_code:
        raise Exit(summary.exit_code)


def show_estimate(estimate: pl.DataFrame, model: str, as_json: bool) -> None:
    """Show what requests would cost; if their model has no price, print how to give one."""
    console.show(estimate, as_json)
    if estimate["cost_usd"].null_count():
        console.report(cost.describe_missing_price(model, "the cost is unknown"))


def parse_params(text: str) -> dict[str, Any]:
    """Parse the JSON object of `--params`."""
    try:
        params = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise BadInput(f"--params: broken JSON: {error.msg}") from error
    if not isinstance(params, dict):
        raise BadInput('--params should be a JSON object, such as {"temperature": 0}')
    return params


def _refuse_constant(name: str) -> None:
    raise BadInput(f"--params: {name} is no JSON")


def stop_if_unanswered(summary: Summary, as_json: bool = False) -> None:
    """Exit if no request is answered or the service refused, before anything is written."""
    if summary.exit_code > 1 or summary.error:
        finish(summary, as_json)


def status(as_json: Json = False) -> None:
    """What the ledger holds, by model and outcome: calls, USD, what of it is a guess, requests given up.

    Example: `undertone llm status`
    """
    entries = asking.count_calls(of_all=True)
    if entries.height or as_json:
        console.show(entries, as_json)
    else:
        console.report("the ledger holds no calls: no language model was asked yet")


def retry(llm: Llm = None, reason: Reason = None, yes: Yes = False, as_json: Json = False) -> None:
    """Let requests be asked again that were given up: malformed three times, or rejected. Their cost stays booked.

    Examples: `undertone llm retry --llm gpt-4o-mini`; `undertone llm retry --reason "page of HTML" --yes`
    """
    _change("be asked again by the next run", llm, reason, yes, as_json, is_clearing=False)


def clear(llm: Llm = None, reason: Reason = None, yes: Yes = False, as_json: Json = False) -> None:
    """Let the same requests be asked again as by `retry`, and remove their calls; costs that are no guesses stay.

    Example: `undertone llm clear --reason malformed`
    """
    _change("be asked again, and their records removed", llm, reason, yes, as_json, is_clearing=True)


def _change(effect: str, llm: str | None, reason: str | None, yes: bool, as_json: bool, *, is_clearing: bool) -> None:
    entries = asking.count_calls(llm, reason)
    count = int(entries["calls"].sum())
    if count or as_json:
        console.show(entries, as_json)
    if not count:
        console.report("no such request was given up")
        return
    if not yes:
        typer.confirm(f"Shall the requests of {format_quantity(count, 'call')} {effect}?", abort=True, err=True)
    changed = asking.forgive(llm, reason, is_clearing=is_clearing)
    effect = "removed or set aside" if is_clearing else "set aside"
    console.report(f"{format_quantity(changed, 'call')} {effect}; later runs send their requests again")
