"""Commands that make and measure models: train, evaluate."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from pipeline import warehouse
from pipeline.commands import pairs
from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import Day, Json, Model, tell, today
from pipeline.errors import BadInput
from pipeline.progress import track
from pipeline.slices import parse_day
from pipeline.tasks.record.retry import retry


def train_impscore(
    pairs_file: Annotated[
        Path | None, typer.Option("--pairs", help="Pairs to train on; the table `pairs` by default.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder to write the model to, instead of the registry.")
    ] = None,
    profile: Annotated[
        str, typer.Option(help="undertone (learns from graded groups too), paper, or official (the released code's).")
    ] = "undertone",
    groups: Annotated[
        list[Path] | None, typer.Option(help="Graded groups to learn from; the shipped ones by default. Repeat it.")
    ] = None,
    use_sample: Annotated[bool, typer.Option("--sample", help="Add the sample's pairs to the table first.")] = False,
    promote: Annotated[
        bool, typer.Option("--promote", help="Score days by it even if it saw the sample's pairs alone.")
    ] = False,
    day: Day = "",
    epochs: Annotated[int | None, typer.Option(min=1, help="The profile's unless given.")] = None,
    seed: Annotated[int | None, typer.Option(help="42, as in the released code, unless given.")] = None,
    tune: Annotated[
        str | None,
        typer.Option(help="What of the encoder is trained: none, adapter or full; the profile's unless given."),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Another number of the recipe, as name=value; repeat it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Train ImpScore. The same pairs and numbers give the same model.

    Examples: `undertone train impscore --sample`;
    `undertone train impscore --pairs mine.csv --out model/ --profile paper`;
    `undertone train impscore --set gamma_implicitness=0.7 --set features=32`
    """
    from pipeline.tasks.impscore import train

    given = {"epochs": epochs, "seed": seed, "tune": tune}
    changes = {**changes_of(set_ or []), **{name: value for name, value in given.items() if value is not None}}
    if out:
        if use_sample or promote or day:
            raise BadInput("--sample, --promote and --day are about the tables; with --out nothing is put there")
        rows = pairs.given(pairs_file, train.choose_split(profile)) if pairs_file else pairs.given(None)
        with track("encoding") as done:
            model_id, numbers = train.train_file(rows, out, profile, changes, groups, done)
        where = str(out)
    else:
        if pairs_file or groups:
            raise BadInput("with --pairs or --groups, say where the model should go: --out DIR")
        model_id, numbers = _into_registry(day or today(), profile, changes, use_sample=use_sample, promote=promote)
        where = model_id
    final = numbers.filter(pl.col("epoch") == 0).drop("epoch")
    if as_json:
        first = {"model": where, "model_id": model_id, **train.select_headline(final)}
        typer.echo(json.dumps({**first, "rows": final.to_dicts()}, ensure_ascii=False))
        return
    console.table(train.summarize_evaluations(final), wide=("subset",))
    typer.echo(where)


def changes_of(given: list[str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for one in given:
        name, mark, value = one.partition("=")
        if not mark:
            raise BadInput(f"--set {one}: expected name=value")
        try:
            found[name] = json.loads(value)
        except json.JSONDecodeError:
            found[name] = value
    return found


def _into_registry(
    day: str, profile: str, changes: dict[str, object], *, use_sample: bool, promote: bool
) -> tuple[str, pl.DataFrame]:
    from pipeline.tasks.impscore import pairs as work
    from pipeline.tasks.impscore import train

    warehouse.create()
    if use_sample:
        for source in retry(partial(work.replay_cassette, day)):
            count = retry(partial(work.build, source, day, train.choose_split(profile), None))
            console.say(f"{source}: {count} pairs")
    with track("encoding") as done:
        model_id = retry(lambda: train.train(day, profile=profile, changes=changes, promote=promote, on_progress=done))
    numbers = warehouse.scan("evaluations", (pl.col("model_id") == model_id) & (pl.col("day") == parse_day(day))).drop(
        "kind", "day", "model_id"
    )
    return model_id, numbers.sort("metric", "subset", "split", "epoch").collect()


def evaluate_impscore(
    pairs_file: Annotated[
        Path | None, typer.Option("--pairs", help="Pairs to measure on; the table `pairs` by default.")
    ] = None,
    model: Model = None,
    as_json: Json = False,
) -> None:
    """Measure a model on pairs: both accuracies and the means of figure 3, by source, baselines beside them.

    Example: `undertone evaluate impscore --pairs mine.csv --model model/`
    """
    from pipeline.tasks.impscore import in_force, train

    rows = pairs.given(pairs_file, train.choose_split(in_force.load_model(model).config["profile"]))
    with track("encoding") as done:
        numbers = train.evaluate(rows, model, done)
    tell(
        train.summarize_evaluations(numbers), {**train.select_headline(numbers), "numbers": numbers.to_dicts()}, as_json
    )
