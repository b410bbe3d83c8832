"""Commands about recovering what comments mean."""

from pathlib import Path
from typing import Annotated

import polars as pl
from typer import Argument, Option

from pipeline import warehouse
from pipeline.commands.asking import CacheOnly, MaxCost, build_options, finish, stop_if_unanswered
from pipeline.commands.pairs import table_writer
from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import Json, TextColumn
from pipeline.errors import BadInput
from pipeline.examples.subtext import recovery as examples
from pipeline.llm.outcome import Summary
from pipeline.metrics.recovery import compare_choices, compare_overlap
from pipeline.progress import track
from pipeline.tasks.subtext import recovery

Llm = Annotated[str | None, Option("--llm", help="Language model to ask.")]
Folder = Annotated[str | None, Option("--model", "-m", help="Folder of a fitted model, instead of asking one.")]


def recover(
    file: Annotated[Path, Argument(help="Comments: columns text, perhaps context; csv, tsv, jsonl.")],
    llm: Llm = None,
    model: Folder = None,
    text_column: TextColumn = None,
    out: Annotated[Path | None, Option("--out", "-o", help="Write them: csv, tsv, jsonl, parquet.")] = None,
    limit: Annotated[int | None, Option(min=1, help="Comments at most.")] = None,
    max_cost: MaxCost = None,
    cache_only: CacheOnly = False,
    as_json: Json = False,
) -> None:
    """Write what comments mean, in plain words and in their context (CSD's second task).

    Examples: `undertone recover comments.csv --llm gpt-4o-mini -o meanings.csv`;
    `undertone recover comments.csv --model model/`
    """
    rows = recovery.read_comments(file, text_column)[:limit]
    writer = table_writer(out) if out else None
    meanings, summary = _recover(rows, llm, model, max_cost, cache_only)
    stop_if_unanswered(summary, as_json)
    for reason, count in meanings.drop_nulls("reason")["reason"].value_counts(sort=True).iter_rows():
        console.report(f"{count} comments have no meaning: {reason}")
    if writer:
        with writer:
            writer.write(meanings)
    else:
        console.show(meanings.select("text", "plain", "meaning", "reason"), as_json)
    if llm:
        finish(summary, as_json)


def _recover(
    rows: pl.DataFrame, llm: str | None, model: str | None, max_cost: float | None, cache_only: bool
) -> tuple[pl.DataFrame, Summary]:
    """Return the comments with their meanings, and the summary of the requests."""
    if (llm is None) == (model is None):
        raise BadInput("give either --llm, a language model to ask, or --model, a fitted model")
    if model:
        with console.working("writing"):
            return recovery.generate(rows, model), Summary()
    warehouse.create()
    options, summary = build_options(llm or "", max_cost, cache_only)
    with track("asking", rows.height) as on_progress:
        return recovery.recover(rows, options._replace(on_progress=on_progress)), summary


def evaluate(
    references: Annotated[
        Path | None, Option(help="Comments with their meanings: csv, tsv, jsonl, or CN-SarcasmBench.json.")
    ] = None,
    choices: Annotated[
        Path | None, Option(help="Comments with readings to choose from: jsonl, or CN-SarcasmBench.json.")
    ] = None,
    llm: Llm = None,
    model: Folder = None,
    limit: Annotated[int | None, Option(min=1, help="Comments at most.")] = None,
    max_cost: MaxCost = None,
    cache_only: CacheOnly = False,
    as_json: Json = False,
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
        rows = examples.read(references)[:limit]
        if llm or model:
            rows, summary = _recover(rows, llm, model, max_cost, cache_only)
    else:
        rows = examples.read_choices(choices or Path())[:limit]
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


def train(
    references: Annotated[Path, Argument(help="Comments with their meanings: csv, tsv, jsonl.")],
    out: Annotated[Path, Option("--out", "-o", help="New folder of the model.")],
    start: Annotated[
        str | None, Option("--from", help="Model to begin with: a folder, or a hub name with @revision.")
    ] = None,
    epochs: Annotated[int | None, Option(min=1)] = None,
    learning_rate: Annotated[float | None, Option(min=0)] = None,
    seed: Annotated[int | None, Option(min=0)] = None,
    as_json: Json = False,
) -> None:
    """Fit a sequence-to-sequence model that writes meanings; without --from a small one of random weights.

    Example: `undertone train recovery notes.csv -o model/ --from google/mt5-small@<commit>`
    """
    rows = recovery.split_references(examples.read(references))
    changes = {"epochs": epochs, "learning_rate": learning_rate, "seed": seed}
    with console.working("training"):
        history = recovery.train(rows, out, start=start, changes=changes)
    console.show(history, as_json)
