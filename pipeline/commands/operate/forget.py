"""The command `forget`: erase everything that comes from some people's comments."""

import json
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from pipeline import settings
from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import this_run
from pipeline.errors import BadInput


def forget(
    user_id: Annotated[
        list[str] | None,
        typer.Option(help="Pseudonym (32 hexadecimal digits), or with --source an id as the site has it. Repeat it."),
    ] = None,
    comment_id: Annotated[list[str] | None, typer.Option(help="A comment, of --source or of any. Repeat it.")] = None,
    thread_id: Annotated[
        list[str] | None, typer.Option(help="An article, with its text; others' comments on it stay. Repeat it.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(help="csv, tsv, jsonl, xlsx or parquet with user_id, comment_id or thread_id, and source."),
    ] = None,
    origin: Annotated[str | None, typer.Option(help="Everything that an imported file of this name brought.")] = None,
    source: Annotated[str | None, typer.Option(help="Source of what is named.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    verify: Annotated[bool, typer.Option(help="Search everything for what is left, before and after.")] = True,
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Train again what was in force and had to go; without: the commands.")
    ] = False,
    grace_hours: Annotated[
        float, typer.Option(help="Hours a file that no table refers to stays; 0 only while nothing else runs.", min=0)
    ] = 24,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Erase everything that comes from some comments, and write a receipt. Models that hold their words are erased too.

    Examples: `undertone forget --comment-id 42 --source weibo --dry-run`;
    `undertone forget --file requests.csv`; `undertone forget --origin comments.csv --yes`
    """
    from pipeline.tasks.erasure import run as work
    from pipeline.tasks.erasure.models import summarize
    from pipeline.tasks.erasure.request import Request, check_request

    request = Request(user_id or [], comment_id or [], thread_id or [], origin, source, file)
    key = settings.user_key()
    check_request(request, key)  # refused before anybody is asked
    if not (yes or dry_run or sys.stdin.isatty()):
        raise BadInput("it cannot be undone: say --yes where nobody can be asked, or --dry-run to see what would go")
    if not yes:
        with console.working("looking for it"):
            found = work.preview(request, key=key)
        if dry_run and as_json:
            typer.echo(json.dumps({"is_dry_run": True, "stores": found.to_dicts()}))
        else:
            console.table(found) if found.height else console.say("nothing of it is here")
        if dry_run:
            return
        typer.confirm("Erase all of this for good?", abort=True, err=True)
    with console.working("erasing"):
        grace = timedelta(hours=grace_hours)
        done = work.forget(request, key=key, run_id=this_run(), verify=verify, grace=grace, retrain=retrain)
    models = summarize(done.models, done.problems)
    if as_json:
        stores = done.receipts.select("store", "row_count", "file_count").to_dicts()
        erasure_id = done.receipts["erasure_id"].first()
        told = {"erasure_id": erasure_id, "stores": stores, "models": models}
        typer.echo(json.dumps({**told, "removed": done.removed_paths, "days": done.report_days,
                               "closed": done.unreadable_paths,
                               "is_verified": verify}))  # fmt: skip
        raise typer.Exit(int(bool(done.problems)))
    for path in done.unreadable_paths:
        console.say(f"encrypted, damaged, or too large unpacked; look into it yourself: {path}")
    if not done.receipts.height:
        console.say("nothing of it was here")
        return
    console.table(done.receipts.select("store", "row_count", "file_count"))
    for path in done.removed_paths:
        console.say(f"removed {path}")
    for day in done.report_days:
        console.say(f"its report went; write it again: undertone report --day {day}")
    for model in models:
        _say_of_model(model)
    console.say(f"receipt {done.receipts['erasure_id'][0]}" + (", nothing is left" if verify else ", not verified"))
    raise typer.Exit(int(bool(done.problems)))


def _say_of_model(model: Mapping[str, Any]) -> None:
    """Say what became of a model, what answers in its place, and how it is trained again."""
    name = f"{model['kind']} {model['model_id'][:20]}"
    learnt = f"{model['erased_ratio']:.2%} of its texts" if model["training_count"] else "nobody knows of what texts"
    if model["action"] == "absent":
        console.say(f"{name} learnt from it ({learnt}); its files are not here: remove them where they are")
    elif model["action"] == "flagged":
        console.say(f"{name} learnt from it ({learnt}); it stays, as it holds numbers alone")
    else:
        now = f"; in force now: {model['in_force']}" if model["in_force"] else ""
        console.say(f"removed {name}, which holds words ({learnt}){now}")
    if model["replaced_by"]:
        console.say(f"  trained again: {model['replaced_by'][:12]}")
    elif model["train_again"]:
        why = f"not trained again: {model['problem']}; later" if model["problem"] else "train it again"
        console.say(f"  {why}: {model['train_again']}")
