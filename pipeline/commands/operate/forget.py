"""The command `forget`: erase everything that comes from some people's comments."""

import json
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Exit, Option, echo

from pipeline import settings
from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import this_run
from pipeline.errors import BadInput
from pipeline.tasks.erasure import run as work
from pipeline.tasks.erasure.models import summarize
from pipeline.tasks.erasure.request import Request, check_request


def forget(
    user_id: Annotated[
        list[str] | None,
        Option(help="Pseudonym (32 hexadecimal digits), or with --source an id as the site has it. Repeat it."),
    ] = None,
    comment_id: Annotated[list[str] | None, Option(help="A comment, of --source or of any. Repeat it.")] = None,
    thread_id: Annotated[list[str] | None, Option(help="An article; others' comments on it stay. Repeat it.")] = None,
    file: Annotated[Path | None, Option(help="A table with user_id, comment_id or thread_id, and source.")] = None,
    origin: Annotated[str | None, Option(help="All rows from an imported file of this name.")] = None,
    source: Annotated[str | None, Option(help="Source of what is named.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only count what would go.")] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    verify: Annotated[bool, Option(help="Search everything for what is left, before and after.")] = True,
    retrain: Annotated[bool, Option("--retrain", help="Train again what was in force and had to go.")] = False,
    grace_hours: Annotated[float, Option(help="Hours an unreferenced file stays; 0 if nothing else runs.", min=0)] = 24,
    as_json: Annotated[bool, Option("--json", help="One JSON object.")] = False,
) -> None:
    """Erase everything that comes from some comments, and write a receipt. Models that hold their words are erased too.

    Examples: `undertone forget --comment-id 42 --source weibo --dry-run`;
    `undertone forget --file requests.csv`; `undertone forget --origin comments.csv --yes`
    """
    request = Request(user_id or [], comment_id or [], thread_id or [], origin, source, file)
    key = settings.user_key()
    user_ids = check_request(request, key).user_ids  # refused before anybody is asked
    advice = "; a user id is only found with the UNDERTONE_USER_KEY of its import" if user_ids else ""
    if not (yes or dry_run or sys.stdin.isatty()):
        raise BadInput("it cannot be undone: give --yes where there is no terminal, or --dry-run to see what would go")
    if not yes:
        with console.working("searching"):
            preview = work.preview(request, key=key)
        if dry_run and as_json:
            echo(json.dumps({"is_dry_run": True, "stores": preview.to_dicts()}))
        elif preview.height:
            console.table(preview)
            console.report("files: those that hold it now; the erasure also removes old states of tables")
        else:
            console.report(f"nothing of it is here{advice}")
        if dry_run:
            return
        typer.confirm("Erase all of this for good?", abort=True, err=True)
    with console.working("erasing"):
        grace = timedelta(hours=grace_hours)
        outcome = work.forget(request, key=key, run_id=this_run(), verify=verify, grace=grace, retrain=retrain)
    models = summarize(outcome.models, outcome.problems)
    stores = outcome.receipts.select("store", "row_count", "file_count")
    erasure_id: Any = outcome.receipts["erasure_id"].first()
    if as_json:
        summary = {"erasure_id": erasure_id, "stores": stores.to_dicts(), "models": models}
        files = {"removed": outcome.removed_paths, "days": outcome.report_days, "closed": outcome.unreadable_paths}
        echo(json.dumps({**summary, **files, "is_verified": verify and not outcome.is_unmatched}))
        raise Exit(int(bool(outcome.problems) or outcome.is_unmatched))
    for path in outcome.unreadable_paths:
        console.report(f"encrypted, damaged, or too large unpacked; check it by hand: {path}")
    if not stores.height:
        console.report(f"nothing of it was here{advice}")
        return
    console.table(stores)
    scratch = "scratch: files that steps leave between them; all are removed, as each may hold its texts"
    notes = [scratch] if "scratch" in outcome.receipts["store"] else []
    notes += [f"removed {path}" for path in outcome.removed_paths]
    notes += [f"its report was removed; write it again: undertone report --day {day}" for day in outcome.report_days]
    for note in notes:
        console.report(note)
    for model in models:
        _print_model(model)
    ending = "nothing is left" if verify else "not verified"
    if outcome.is_unmatched:
        ending = f"but no comment has such a user id{advice}"
    console.report(f"receipt {erasure_id}, {ending}")
    raise Exit(int(bool(outcome.problems) or outcome.is_unmatched))


def _print_model(model: Mapping[str, Any]) -> None:
    name = f"{model['kind']} {model['model_id'][:20]}"
    share = f"{model['erased_ratio']:.2%} of its texts" if model["training_count"] else "its texts were not recorded"
    if model["action"] == "absent":
        console.report(f"{name} learnt from it ({share}); its files are not here: remove them where they are")
    elif model["action"] == "flagged":
        console.report(f"{name} learnt from it ({share}); it stays, as it holds numbers alone")
    else:
        replacement = f"; in force now: {model['in_force']}" if model["in_force"] else ""
        console.report(f"removed {name}, which holds words ({share}){replacement}")
    if model["replaced_by"]:
        console.report(f"  trained again: {model['replaced_by'][:12]}")
    elif model["train_again"]:
        advice = f"not trained again: {model['problem']}; later" if model["problem"] else "train it again"
        console.report(f"  {advice}: {model['train_again']}")
