"""Commands about the subtext recogniser."""

from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pipeline import warehouse
from pipeline.commands.models import changes_of, end_training, read_evaluations
from pipeline.commands.pairs import table_writer
from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import (
    Force,
    Json,
    MaybeDay,
    Promote,
    TextColumn,
    check_promote,
    check_source,
    this_run,
    today,
)
from pipeline.errors import BadInput
from pipeline.tasks.record.retry import retry
from pipeline.tasks.subtext import recogniser, recovery

Labelled = Annotated[Path | None, Option("--data", help="Labelled comments: text, context, label[, split, topic].")]
DataFormat = Annotated[str, Option(help="Format of --data: own, published, tosarcasm or cold.")]
ByTopic = Annotated[bool, Option("--by-topic", help="Split again, so that no topic is in two splits.")]
Folder = Annotated[str | None, Option("--model", "-m", help="Folder of a recogniser, or its id.")]


def train(
    data: Labelled = None,
    out: Annotated[Path | None, Option("--out", "-o", help="Folder of the model, with --data.")] = None,
    data_format: DataFormat = "own",
    by_topic: ByTopic = False,
    release: Annotated[str | None, Option(help="A release of annotated_comments; all by default.")] = None,
    vectors: Annotated[
        Path | None, Option(help="Word vectors in GloVe's format, with --data; else they are trained.")
    ] = None,
    profile: Annotated[str, Option(help="undertone or paper.")] = "undertone",
    changes: Annotated[list[str] | None, Option("--set", help="NAME=VALUE of the profile; repeat it.")] = None,
    promote: Promote = False,
    force: Force = False,
    day: MaybeDay = "",
    as_json: Json = False,
) -> None:
    """Train the recogniser on published labels, or on a file into a folder.

    Examples: `undertone train subtext`;
    `undertone train subtext --data tosarcasm/ --data-format tosarcasm --by-topic -o m/`
    """
    recipe_changes = changes_of(changes or [])
    if data is None and (out or vectors or by_topic):
        raise BadInput("--out, --vectors and --by-topic are about a file; give it by --data")
    check_promote(out, promote)
    if data:
        if out is None or release or day:
            raise BadInput("--data needs --out, the folder of the model, and allows neither --release nor --day")
        with console.working("training"):
            rows = recogniser.read(data, data_format, by_topic=by_topic)
            evaluations = recogniser.train_file(rows, out, profile, recipe_changes, vectors, force=force)
        model = str(out)
    else:
        warehouse.create()
        train_release = partial(recogniser.train, day or today(), release, profile=profile, changes=recipe_changes)
        with console.working("training"):
            model = retry(train_release, promote=promote, run_id=this_run())
        evaluations = read_evaluations(model, day or today())
    console.print_result(recogniser.summarize(evaluations), {"model": model}, as_json)
    if not data:
        end_training(model)


def evaluate(
    data: Labelled = None,
    data_format: DataFormat = "own",
    by_topic: ByTopic = False,
    model: Folder = None,
    as_json: Json = False,
) -> None:
    """Measure a recogniser: macro F1 with its interval, calibration, F1 without the context, and baselines.

    Example: `undertone evaluate subtext --data test.csv --model model/`
    """
    rows = recogniser.read(data, data_format, by_topic=by_topic) if data else recogniser.read_released()
    evaluations = recogniser.evaluate(rows, model)
    console.print_result(recogniser.summarize(evaluations), {"numbers": evaluations.to_dicts()}, as_json)


def score(
    file: Annotated[Path | None, Argument(help="Comments with text and context; a day's by default.")] = None,
    text_column: TextColumn = None,
    day: MaybeDay = "",
    model: Folder = None,
    out: Annotated[Path | None, Option("--out", "-o", help="Write csv, tsv, jsonl or parquet.")] = None,
    as_json: Json = False,
) -> None:
    """Score comments for subtext, the probability that there is some: of a file, or of a day into `scores`.

    Examples: `undertone score subtext comments.csv --model model/ -o scored.csv`;
    `undertone score subtext --day 2026-11-19`
    """
    check_source(file, day)
    if file is None:
        warehouse.create()
        count = retry(recogniser.score_day, day or today(), model, this_run())
        console.report(f"{count:,} comments scored")
        return
    writer = table_writer(out) if out else None
    scored = recogniser.score_frame(recovery.read_comments(file, text_column), model)
    if writer:
        with writer:
            writer.write(scored)
    else:
        console.show(scored, as_json)
