"""Commands of ReCAM, and the options that they share."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline.examples.recam.building import SUBTASKS

Subtask = Annotated[str | None, typer.Option(help=f"{' or '.join(SUBTASKS)}; both by default.")]
OneSubtask = Annotated[str, typer.Argument(help=" or ".join(SUBTASKS))]
Vectors = Annotated[Path | None, typer.Option(help="Word vectors in GloVe's format; by default the encoder's.")]
Changes = Annotated[list[str] | None, typer.Option("--set", help="NAME=VALUE of the profile; repeat it.")]
_SCORER = "Folder or id of a scorer of abstractness, or a file of ratings to use unchanged."
Scorer = Annotated[str | None, typer.Option("--scorer", "--model", "-m", help=_SCORER)]
