"""Commands of ReCAM, and the options that they share."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pipeline.examples.recam.building import SUBTASKS

Subtask = Annotated[str | None, Option(help=f"{' or '.join(SUBTASKS)}; both by default.")]
OneSubtask = Annotated[str, Argument(help=" or ".join(SUBTASKS))]
Vectors = Annotated[Path | None, Option(help="Word vectors in GloVe's format; by default the encoder's.")]
Changes = Annotated[list[str] | None, Option("--set", help="NAME=VALUE of the profile; repeat it.")]
_SCORER = "Folder or id of a scorer of abstractness, or a file of ratings to use unchanged."
Scorer = Annotated[str | None, Option("--scorer", "--model", "-m", help=_SCORER)]
