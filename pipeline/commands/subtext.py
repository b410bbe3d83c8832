"""Commands about the two tasks of CSD: to recognise subtext, and to recover what comments mean."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from typer import Argument, Option

from pipeline import left_out, warehouse
from pipeline.commands.asking import CacheOnly, MaxCost, build_options, finish, stop_if_unanswered
from pipeline.commands.models import changes_of, end_training, train_registered
from pipeline.commands.terminal import console, files
from pipeline.commands.terminal import options as shared
from pipeline.errors import BadInput, format_quantity
from pipeline.examples.subtext import contexts
from pipeline.llm.outcome import Summary
from pipeline.metrics.recovery import compare_choices, compare_overlap
from pipeline.progress import track
from pipeline.score.signature import drop_earlier_scores
from pipeline.tasks.record import model_registry
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
    vectors: Annotated[Path | None, Option(help="Word vectors in GloVe's format, with --data; else trained.")] = None,
    profile: Annotated[str, Option(help="undertone or paper.")] = "undertone",
    changes: Annotated[list[str] | None, Option("--set", help="NAME=VALUE of the profile; repeat it.")] = None,
    promote: shared.Promote = False,
    force: shared.Force = False,
    day: shared.MaybeDay = "",
    as_json: shared.Json = False,
) -> None:
    """Train the recogniser on published labels, or on a file into a folder.

    Examples: `undertone train subtext`;
    `undertone train subtext --data tosarcasm/ --data-format tosarcasm --by-topic -o m/`;
    `undertone train subtext --data labelled.csv -o m/ --set units=pieces` (vectors of the encoder, such as a BERT)
    """
    recipe: dict[str, Any] = {"profile": profile, "changes": changes_of(changes or [])}
    if data is None and (out or vectors or by_topic):
        raise BadInput("--out, --vectors and --by-topic are about a file; give it by --data")
    shared.check_promote(out, promote)
    if data and (out is None or release or day):
        raise BadInput("--data needs --out, the folder of the model, and allows neither --release nor --day")
    with console.working("training"):
        if data and out:
            rows, model = recogniser.read(data, data_format, by_topic=by_topic), str(out)
            fit = partial(recogniser.fit, rows, path=vectors, **recipe)
            _, evaluations = model_registry.train_into(out, fit, force=force)
        else:
            model, evaluations = train_registered(recogniser.train, day, release, promote=promote, **recipe)
    console.print_result(recogniser.summarize(evaluations), {"model": model}, as_json)
    if not data:
        end_training(model)


def evaluate(
    data: Labelled = None,
    data_format: DataFormat = "own",
    by_topic: ByTopic = False,
    model: Folder = None,
    as_json: shared.Json = False,
) -> None:
    """Measure a recogniser: macro F1 with its interval, calibration, F1 without the context, and baselines.

    Example: `undertone evaluate subtext --data test.csv --model model/`
    """
    rows = recogniser.read(data, data_format, by_topic=by_topic) if data else recogniser.read_released()
    evaluations = recogniser.evaluate(rows, model)
    console.print_result(recogniser.summarize(evaluations), {"numbers": evaluations.to_dicts()}, as_json)


def score(
    file: Annotated[Path | None, Argument(help="Comments with text and context; a day's by default.")] = None,
    text_column: shared.TextColumn = None,
    day: shared.MaybeDay = "",
    model: Folder = None,
    out: shared.TableFile = None,
    as_json: shared.Json = False,
) -> None:
    """Score comments for subtext, the probability that there is some: of a file, or of a day into `scores`.

    Examples: `undertone score subtext comments.csv --model model/ -o scored.csv`;
    `undertone score subtext --day 2026-11-19`
    """
    shared.check_source(file, day)
    if file is None:
        warehouse.create()
        count = retry(recogniser.score_day, day or shared.today(), model, shared.this_run())
        console.report(f"{format_quantity(count, 'comment')} scored")
        return
    files.check_table(out)
    table, comments = files.read_comments(file, text_column)
    columns = (recogniser.METRIC, "signature")
    table = drop_earlier_scores(table, recogniser.METRIC, columns)
    scored = table.hstack(recogniser.score_frame(comments, model).select(columns))
    left_out.record_rows("score", {"no_text": scored[recogniser.METRIC].null_count()})
    if out:
        files.write_table(scored, out)
    else:
        console.show(scored, as_json)


Llm = Annotated[str | None, Option("--llm", help="Language model to ask.")]
RecoveryFolder = Annotated[str | None, Option("--model", "-m", help="Folder of a fitted model, instead of asking one.")]


def recover(
    file: Annotated[Path, Argument(help="Comments: columns text, perhaps context; csv, tsv, jsonl.")],
    llm: Llm = None,
    model: RecoveryFolder = None,
    text_column: shared.TextColumn = None,
    out: Annotated[Path | None, Option("--out", "-o", help="Write them: csv, tsv, jsonl, parquet.")] = None,
    limit: Annotated[int | None, Option(min=1, help="Comments at most.")] = None,
    max_cost: MaxCost = None,
    cache_only: CacheOnly = False,
    as_json: shared.Json = False,
) -> None:
    """Write what comments mean, in plain words and in their context (CSD's second task).

    Adds the columns plain, meaning and reason (why there is no meaning) to a file.

    Examples: `undertone recover comments.csv --llm gpt-4o-mini -o meanings.csv`;
    `undertone recover comments.csv --model model/`
    """
    table, rows = files.read_comments(file, text_column, limit)
    files.check_table(out)
    if out:
        table = drop_earlier_scores(table, recovery.SOURCE, recovery.COLUMNS)
    answers, summary = _recover(rows, llm, model, max_cost, cache_only)
    stop_if_unanswered(summary, as_json)
    for reason, count in answers.drop_nulls("reason")["reason"].value_counts(sort=True).iter_rows():
        console.report(f"no meaning for {format_quantity(count, 'comment')}: {reason}")
    if out:
        files.write_table(table.hstack(answers.select(recovery.COLUMNS)), out)
    else:
        console.show(answers.select("text", "plain", "meaning", "reason"), as_json)
    if llm:
        finish(summary, as_json)


def _recover(
    rows: pl.DataFrame, llm: str | None, model: str | None, max_cost: float | None, cache_only: bool
) -> tuple[pl.DataFrame, Summary]:
    if (llm is None) == (model is None):
        raise BadInput("give either --llm, a language model to ask, or --model, a fitted model")
    if model:
        with console.working("writing"):
            return recovery.generate(rows, model), Summary()
    warehouse.create()
    options, summary = build_options(llm or "", max_cost, cache_only)
    with track("asking", rows.height) as on_progress:
        return recovery.recover(rows, options._replace(on_progress=on_progress)), summary


def evaluate_recovery(
    references: Annotated[Path | None, Option(help="Comments with meanings; or CN-SarcasmBench.json.")] = None,
    choices: Annotated[Path | None, Option(help="Comments with readings: jsonl, or CN-SarcasmBench.json.")] = None,
    llm: Llm = None,
    model: RecoveryFolder = None,
    limit: Annotated[int | None, Option(min=1, help="Comments at most.")] = None,
    max_cost: MaxCost = None,
    cache_only: CacheOnly = False,
    as_json: shared.Json = False,
) -> None:
    """Measure recovery: overlap with references, or how often the right reading is chosen; and baselines.

    Without --llm or --model only the baselines are measured.

    Examples: `undertone evaluate recovery --references notes.csv --model model/`;
    `undertone evaluate recovery --choices CN-SarcasmBench.json --llm gpt-4o-mini --limit 200`
    """
    if (references is None) == (choices is None):
        raise BadInput("give --references or --choices")
    if choices and model:
        raise BadInput("a fitted model writes meanings and chooses none; give --references, or --llm")
    summary = picks = None
    if references:
        rows = contexts.read_references(references)[:limit]
        if llm or model:
            rows, summary = _recover(rows, llm, model, max_cost, cache_only)
    else:
        rows = contexts.read_choices(choices or Path())[:limit]
        if llm:
            warehouse.create()
            options, summary = build_options(llm, max_cost, cache_only)
            with track("asking", rows.height) as on_progress:
                picks = recovery.choose(rows, options._replace(on_progress=on_progress))
    if summary:
        stop_if_unanswered(summary, as_json)
    table = compare_overlap(rows) if references else compare_choices(rows, picks)
    console.print_result(table, table.row(0, named=True) if summary else {}, as_json)
    if llm and summary:
        finish(summary, as_json)


def train_recovery(
    references: Annotated[Path, Argument(help="Comments with their meanings: csv, tsv, jsonl.")],
    out: Annotated[Path, Option("--out", "-o", help="New folder of the model.")],
    start: Annotated[str | None, Option("--from", help="Model to begin with: folder or hub name@revision.")] = None,
    epochs: Annotated[int | None, Option(min=1)] = None,
    learning_rate: Annotated[float | None, Option(min=0)] = None,
    seed: Annotated[int | None, Option(min=0)] = None,
    as_json: shared.Json = False,
) -> None:
    """Fit a sequence-to-sequence model that writes meanings; without --from a small one of random weights.

    Example: `undertone train recovery notes.csv -o model/ --from google/mt5-small@<commit>`
    """
    rows = recovery.split_references(contexts.read_references(references))
    changes = {"epochs": epochs, "learning_rate": learning_rate, "seed": seed}
    with console.working("training"):
        history = recovery.train(rows, out, start=start, changes=changes)
    console.show(history, as_json)
