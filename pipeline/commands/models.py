"""Commands that make, import and measure ImpScore models, and those that list and promote any model."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from typer import Argument, Exit, Option, echo

from pipeline import warehouse
from pipeline.commands import pairs
from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import Day, Force, Json, MaybeDay, Model, ModelFolder, Promote, this_run, today
from pipeline.errors import BadInput, format_quantity
from pipeline.progress import track
from pipeline.slices import parse_day
from pipeline.tasks.impscore import pairs as work
from pipeline.tasks.impscore import scoring, train
from pipeline.tasks.record import model_choice, model_registry
from pipeline.tasks.record.promotion import SCHEMA
from pipeline.tasks.record.retry import retry


def train_impscore(
    pairs_file: Annotated[Path | None, Option("--pairs", help="Pairs to train on; by default the table's.")] = None,
    out: ModelFolder = None,
    profile: Annotated[str, Option(help="undertone (with groups), paper, or official (released code).")] = "undertone",
    groups: Annotated[list[Path] | None, Option(help="Graded groups to learn from; by default the shipped.")] = None,
    use_sample: Annotated[bool, Option("--sample", help="Add the sample's pairs to the table first.")] = False,
    promote: Promote = False,
    force: Force = False,
    day: MaybeDay = "",
    epochs: Annotated[int | None, Option(min=1, help="The profile's unless given.")] = None,
    seed: Annotated[int | None, Option(help="42, as in the released code, unless given.")] = None,
    tune: Annotated[str | None, Option(help="What of the encoder is trained: none, adapter or full.")] = None,
    set_: Annotated[list[str] | None, Option("--set", help="NAME=VALUE of the recipe; repeat it.")] = None,
    as_json: Json = False,
) -> None:
    """Train ImpScore. The same pairs and numbers give the same model.

    Examples: `undertone train impscore --sample`;
    `undertone train impscore --pairs mine.csv --out model/ --profile paper`;
    `undertone train impscore --set gamma_implicitness=0.7 --set features=32`
    """
    options = {"epochs": epochs, "seed": seed, "tune": tune}
    changes = {**changes_of(set_ or []), **{name: value for name, value in options.items() if value is not None}}
    fitting: dict[str, Any] = {"profile": profile, "changes": changes}
    if out:
        if use_sample or promote or day:
            raise BadInput("--sample, --promote and --day are about the tables; with --out nothing is written there")
        rows = pairs.load_pairs(pairs_file, train.choose_split(profile)) if pairs_file else pairs.load_pairs(None)
        with track("encoding") as on_progress:
            model_id, numbers = train.train_file(rows, out, groups, force=force, on_progress=on_progress, **fitting)
    else:
        if pairs_file or groups:
            raise BadInput("with --pairs or --groups, give the folder of the model: --out DIR")
        warehouse.create()
        for source in retry(work.replay_cassette) if use_sample else ():
            count = retry(work.build, source, day or today(), train.choose_split(profile), None)
            console.report(f"{source}: {format_quantity(count, 'pair')}")
        with track("encoding") as on_progress:
            fitting |= {"promote": promote, "on_progress": on_progress}
            model_id, numbers = train_registered(train.train, day, **fitting)
        numbers = numbers.drop("kind", "day", "model_id").sort("metric", "subset", "split", "epoch")
    ref = str(out) if out else model_id
    updates = {name: head["recipe"]["updates"] for name, head in scoring.load_model(ref).config["heads"].items()}
    final, history = numbers.filter(pl.col("epoch") == 0).drop("epoch"), model_registry.tabulate_epochs(numbers)
    if as_json:
        facts = {"model": ref, "model_id": model_id, "updates": updates, **train.select_headline(final)}
        facts |= {"rows": train.summarize_evaluations(final).to_dicts(), "epochs": history.to_dicts()}
        echo(json.dumps(facts, ensure_ascii=False))
    else:
        console.table(history, "Epochs of the training", is_message=True)
        console.report("updates (optimizer steps): " + ", ".join(f"{name} {n:,}" for name, n in updates.items()))
        console.table(train.summarize_evaluations(final), wide=("subset",))
        echo(ref)
    if not out:
        end_training(model_id)


def end_training(*model_ids: str) -> None:
    """Print whether new models are promoted, and why not; exit code 1 if a rival of one is better."""
    promotions = {model_id[:12]: model_registry.read_model(model_id)["promotion"] for model_id in model_ids}
    for name, promotion in promotions.items():
        if promotion.get("is_worse"):
            console.table(pl.DataFrame(promotion["comparisons"], SCHEMA), "Held-out rows", is_message=True)
        word = "promoted" if promotion["is_promoted"] else "not promoted"
        console.report(f"model {name} is {word}: {promotion['reason']}")
        if not promotion["is_promoted"] and not promotion.get("is_barred"):
            console.report(f"`undertone models promote {name}` promotes it all the same")
    if any(row.get("is_worse") and not row["is_promoted"] for row in promotions.values()):
        raise Exit(1)


def train_registered(train: Callable[..., str], day: str, *args: Any, **options: Any) -> tuple[str, pl.DataFrame]:
    """Train on the tables into the registry, by a function of `tasks`; return the model's id and its evaluations."""
    warehouse.create()
    day = day or today()
    model_id = retry(train, day, *args, run_id=this_run(), **options)
    is_of_model = (pl.col("model_id") == model_id) & (pl.col("day") == parse_day(day))
    return model_id, warehouse.scan("evaluations", is_of_model).collect()


def list_(as_json: Json = False) -> None:
    """List the models of the tables: which are promoted, which answers now, and the number that each is known by.

    Example: `undertone models list`
    """
    rows = model_registry.list_models()
    if not as_json:
        marks = pl.col("is_promoted", "is_in_force").replace_strict({True: "yes", False: ""}, return_dtype=pl.String)
        rows = rows.with_columns(pl.col("model_id").str.slice(0, 12), marks)
        rows = rows.rename({"is_promoted": "promoted", "is_in_force": "in force"})
    console.show(rows, as_json)
    if not rows.height:
        console.report("no model is in the tables; `undertone train --help` lists what trains one")


def show_model(
    ref: Annotated[str, Argument(metavar="ID", help="Id, or its beginning.")], as_json: Json = False
) -> None:
    """Show a model: its hyperparameters, its evaluations, its epochs, and how it compares with its rivals.

    Example: `undertone models show 3f2a91`
    """
    row = model_registry.read_model(ref)
    evaluations = model_registry.read_evaluations(row)
    epochs, finals = model_registry.tabulate_epochs(evaluations), evaluations.filter(pl.col("epoch") == 0)
    if as_json:
        echo(json.dumps({**row, "evaluations": evaluations.to_dicts()}, ensure_ascii=False, default=str))
        return
    promotion = row.pop("promotion")
    config = json.dumps(row["config"], ensure_ascii=False)
    facts = {**row, "config": config, "why": promotion.get("reason", "not recorded")}
    console.table(pl.DataFrame({"field": list(facts), "value": list(map(str, facts.values()))}), wide=("value",))
    if comparisons := promotion.get("comparisons"):
        console.table(pl.DataFrame(comparisons, SCHEMA), "\nComparison on held-out rows")
    if finals.height:
        has_percentile = ~pl.col("metric").str.starts_with("implicitness_of_")  # means, which have none
        evaluations = finals.filter((pl.col("split") == finals["split"].first()) & has_percentile).drop("epoch")
        console.table(evaluations, "\nEvaluations (--json has those of all splits)", wide=("metric", "subset"))
    if epochs.height:
        console.table(epochs, "\nEpochs of the training")


def promote(ref: Annotated[str, Argument(metavar="ID", help="Id, or its beginning.")], day: Day = "") -> None:
    """Promote a model from a day on, also if it is worse than its rivals. The request is recorded.

    Example: `undertone models promote 3f2a91`
    """
    row = retry(model_registry.promote, ref, day, this_run())
    console.report(f"model {row['model_id'][:12]} of kind {row['kind']} is in force from {row['day']} on")


def rollback(kind: Annotated[str, Argument(help="Kind of model, such as impscore.")]) -> None:
    """Take the newest promoted model of a kind out of force; the one before it is in force again.

    Example: `undertone models rollback impscore`
    """
    row = retry(model_registry.roll_back, kind, this_run())
    console.report(f"model {row['model_id'][:12]} of kind {kind} is no longer promoted")
    choice = model_choice.choose_model(kind)
    console.report(f"model {choice.model_id[:12]} answers now, {choice.reason}" if choice else f"no {kind} is in force")


def changes_of(settings: list[str]) -> dict[str, object]:
    """Parse `name=value` of each `--set`; a value that is no JSON is text."""
    changes: dict[str, object] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise BadInput(f"--set {setting}: expected name=value")
        if name == "profile":
            raise BadInput("--set profile: expected a number of the profile; choose the profile with --profile")
        try:
            changes[name] = json.loads(value)
        except json.JSONDecodeError:
            changes[name] = value
    return changes


def evaluate_impscore(
    pairs_file: Annotated[Path | None, Option("--pairs", help="Pairs to measure on; by default the table's.")] = None,
    model: Model = None,
    as_json: Json = False,
) -> None:
    """Measure a model on pairs: both accuracies and the means of figure 3, by source, with baselines.

    Example: `undertone evaluate impscore --pairs mine.csv --model model/`
    """
    rows = pairs.load_pairs(pairs_file, train.choose_split(scoring.load_model(model).config["profile"]))
    with track("encoding") as on_progress:
        numbers = train.evaluate(rows, model, on_progress)
    facts = {**train.select_headline(numbers), "numbers": numbers.to_dicts()}
    console.print_result(train.summarize_evaluations(numbers), facts, as_json)


def import_model(
    file: Annotated[Path, Argument(help="The state of the authors' model, as safetensors.")],
    out: ModelFolder = None,
    set_: Annotated[
        list[str] | None, Option("--set", help="The variant, such as space=s2p, unless the paper's; repeat it.")
    ] = None,
) -> None:
    """Import the public checkpoint of ImpScore as a model on the encoder in force, which is not promoted.

    Example: `undertone models import impscore.safetensors`, with UNDERTONE_ENCODER set to all-mpnet-base-v2
    """
    fit = partial(train.read_checkpoint, file, changes_of(set_ or []))
    if out:
        model_registry.train_into(out, fit)
    else:
        warehouse.create()
    echo(out or retry(model_registry.train, today(), fit, "cli"))
