"""Commands about cloze questions on abstract words."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline.commands import console
from pipeline.commands.options import Json, show

app = typer.Typer(no_args_is_help=True, help="Cloze questions on abstract words.")


@app.callback()
def group() -> None:
    """Cloze questions on abstract words."""


@app.command()
def audit(
    file: Annotated[Path, typer.Argument(help="Items, a JSON object a line: article, question, option_0 …, label.")],
    as_json: Json = False,
) -> None:
    """What a set of items gives away to who does not read: accuracy by how often options are right elsewhere, and more.

    Example: `undertone cloze audit Task_1_dev.jsonl`
    """
    from pipeline.examples import cloze
    from pipeline.metrics import cloze_audit

    found = cloze.read(file, strict=False)
    if found.dropped.height:
        console.say(f"left out, as two of their options are the same: {found.dropped.height}")
    show(cloze_audit.audit(found.items), as_json)
