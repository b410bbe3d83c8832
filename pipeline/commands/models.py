"""Commands that make and measure models: train, evaluate, import."""

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

    options = {"epochs": epochs, "seed": seed, "tune": tune}
    changes = {**changes_of(set_ or []), **{name: value for name, value in options.items() if value is not None}}
    if out:
        if use_sample or promote or day:
            raise BadInput("--sample, --promote and --day are about the tables; with --out nothing is written there")
        rows = pairs.load_pairs(pairs_file, train.choose_split(profile)) if pairs_file else pairs.load_pairs(None)
        with track("encoding") as on_progress:
            model_id, numbers = train.train_file(rows, out, profile, changes, groups, on_progress)
    else:
        if pairs_file or groups:
            raise BadInput("with --pairs or --groups, give the folder of the model: --out DIR")
        model_id, numbers = _train_in_tables(day or today(), profile, changes, use_sample=use_sample, promote=promote)
    ref = str(out) if out else model_id
    final = numbers.filter(pl.col("epoch") == 0).drop("epoch")
    if as_json:
        facts = {"model": ref, "model_id": model_id, **train.select_headline(final)}
        facts["rows"] = train.summarize_evaluations(final).to_dicts()
        typer.echo(json.dumps(facts, ensure_ascii=False))
        return
    console.table(train.summarize_evaluations(final), wide=("subset",))
    typer.echo(ref)


def changes_of(settings: list[str]) -> dict[str, object]:
    """Parse `name=value` of each `--set`; a value that is no JSON is text."""
    changes: dict[str, object] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise BadInput(f"--set {setting}: expected name=value")
        try:
            changes[name] = json.loads(value)
        except json.JSONDecodeError:
            changes[name] = value
    return changes


def _train_in_tables(
    day: str, profile: str, changes: dict[str, object], *, use_sample: bool, promote: bool
) -> tuple[str, pl.DataFrame]:
    from pipeline.tasks.impscore import pairs as work
    from pipeline.tasks.impscore import train

    warehouse.create()
    if use_sample:
        for source in retry(partial(work.replay_cassette, day)):
            count = retry(partial(work.build, source, day, train.choose_split(profile), None))
            console.say(f"{source}: {count} pairs")
    with track("encoding") as on_progress:
        fit = partial(train.train, day, profile=profile, changes=changes, promote=promote, on_progress=on_progress)
        model_id = retry(fit)
    numbers = warehouse.scan("evaluations", (pl.col("model_id") == model_id) & (pl.col("day") == parse_day(day)))
    numbers = numbers.drop("kind", "day", "model_id").sort("metric", "subset", "split", "epoch")
    return model_id, numbers.collect()


def evaluate_impscore(
    pairs_file: Annotated[
        Path | None, typer.Option("--pairs", help="Pairs to measure on; the table `pairs` by default.")
    ] = None,
    model: Model = None,
    as_json: Json = False,
) -> None:
    """Measure a model on pairs: both accuracies and the means of figure 3, by source, with baselines.

    Example: `undertone evaluate impscore --pairs mine.csv --model model/`
    """
    from pipeline.tasks.impscore import in_force, train

    rows = pairs.load_pairs(pairs_file, train.choose_split(in_force.load_model(model).config["profile"]))
    with track("encoding") as on_progress:
        numbers = train.evaluate(rows, model, on_progress)
    facts = {**train.select_headline(numbers), "numbers": numbers.to_dicts()}
    tell(train.summarize_evaluations(numbers), facts, as_json)


def import_model(
    file: Annotated[Path, typer.Argument(help="The state of the authors' model, as safetensors.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder to write the model to, instead of the registry.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="The variant, such as space=s2p, unless the paper's; repeat it.")
    ] = None,
) -> None:
    """Import the public checkpoint of ImpScore as a model on the encoder in force, which is not promoted.

    Example: `undertone models import impscore.safetensors`, with UNDERTONE_ENCODER set to all-mpnet-base-v2
    """
    from pipeline.tasks.impscore import checkpoint
    from pipeline.tasks.record import model_registry

    fit = partial(checkpoint.read_checkpoint, file, changes_of(set_ or []))
    if out:
        model_registry.train_into(out, fit)
    else:
        warehouse.create()
    typer.echo(out or retry(partial(model_registry.train, today(), fit, "cli")))
