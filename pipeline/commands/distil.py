"""The command that trains the scorer on judged texts."""

from pathlib import Path
from typing import Annotated

import polars as pl
from typer import Argument, Option, echo

from pipeline import warehouse
from pipeline.commands.models import end_training
from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import Force, Json, MaybeDay, Promote, this_run, today
from pipeline.errors import BadInput
from pipeline.tasks.calibration import distillation as work
from pipeline.tasks.record.retry import retry


def distil(
    file: Annotated[
        Path | None, Argument(help="Judged texts of `undertone judge -o`; those in the tables by default.")
    ] = None,
    column: Annotated[str, Option("--column", "-c", help="Column of the judge's values.")] = "implicitness_judged",
    judge: Annotated[str, Option(help="Which judge of the tables, where there are several.")] = "",
    out: Annotated[
        Path | None, Option("--out", "-o", help="Folder to write the model to, instead of the registry.")
    ] = None,
    curve: Annotated[bool, Option("--curve", help="Measure after 100, 300, 1,000 and 3,000 texts too.")] = False,
    price: Annotated[float | None, Option(min=0, help="USD for a judged text, for the costs of --curve.")] = None,
    promote: Promote = False,
    force: Force = False,
    day: MaybeDay = "",
    as_json: Json = False,
) -> None:
    """Train the scorer on judged texts, so that it scores others like the judge.

    The model that answers now gets a new readout; its distances stay. Prints how far the new model agrees with the
    judge on texts that it did not see, next to the old one and to length, punctuation and words. Exit code 1 if one of
    them agrees better.

    Examples: `undertone distil`; `undertone distil judged.csv --curve --price 0.0004`;
    `undertone distil judged.csv --out model/`
    """
    if out and (promote or day):
        raise BadInput("--promote and --day are about the tables; with --out nothing is written there")
    warehouse.create()
    rows = work.read_judged(file, column) if file else work.load_judged(judge)
    frames = [work.measure_rivals(rows)]
    if curve:
        frames.append(work.measure_curve(rows, price=price))
    if out:
        work.train_file(rows, out, force=force)
        ref = str(out)
    else:
        ref = retry(work.train, rows, day or today(), promote=promote, run_id=this_run())
    agreement = pl.concat([*frames, work.measure_model(rows, ref, price)]).sort("lang", maintain_order=True)
    console.print_result(agreement, {"model": ref}, as_json)
    if not as_json:
        echo(ref)
    if not out:
        end_training(ref)
