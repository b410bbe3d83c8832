"""Commands about sentence compression."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline.commands.terminal.options import Json, show


def evaluate(
    data: Annotated[Path, typer.Option("--data", help="Sentences with compressions by people.")],
    data_format: Annotated[str, typer.Option(help="Format of --data: own, google, broadcast or colloquial.")] = "own",
    predictions: Annotated[
        Path | None, typer.Option(help="Compressions of the same sentences, in our own format; else baselines alone.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Part of the data, such as test; all by default.")] = None,
    as_json: Json = False,
) -> None:
    """Measure compressions: F1, ROUGE, BLEU, ratio and length, with people's and baselines that read no word (NDD).

    `ratio` is of all words together, `ratio_macro` the mean over sentences; `length` is the mean number of words.

    Our own format has a sentence a line: {"words": [...], "kept": [true, ...]} or {"text": "...", "compressed": "..."}.

    Examples: `undertone evaluate compression --data google_test1000.jsonl --data-format google`;
    `undertone evaluate compression --data test.jsonl --predictions mine.jsonl`
    """
    from pipeline.tasks.ndd import datasets
    from pipeline.tasks.record import runs

    dataset = datasets.read(data, data_format, split)
    answers = datasets.read_predictions(predictions, dataset.rows) if predictions else None
    numbers = datasets.measure(dataset.rows, answers)
    show(numbers if as_json else datasets.summarize_measures(numbers), as_json)
    runs.report_dropped("read", dataset.dropped, str(data))
