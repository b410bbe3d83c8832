"""Commands about sentence compression."""

from pathlib import Path
from typing import Annotated

from typer import Option

from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import Json
from pipeline.tasks.ndd import datasets
from pipeline.tasks.record import runs


def evaluate(
    data: Annotated[Path, Option("--data", help="Sentences with compressions by people.")],
    data_format: Annotated[str, Option(help="Format of --data: own, google, broadcast or colloquial.")] = "own",
    predictions: Annotated[
        Path | None, Option(help="Compressions of the same sentences, in our own format; else baselines alone.")
    ] = None,
    split: Annotated[str | None, Option(help="Part of the data, such as test; all by default.")] = None,
    as_json: Json = False,
) -> None:
    """Measure compressions: F1, ROUGE, BLEU, ratio and length, with people's and baselines that read no word (NDD).

    `ratio` is of all words together, `ratio_macro` the mean over sentences; `length` is the mean number of words.

    Our own format has a sentence a line: {"words": [...], "kept": [true, ...]} or {"text": "...", "compressed": "..."}.

    Examples: `undertone evaluate compression --data google/ --data-format google`;
    `undertone evaluate compression --data test.jsonl --predictions mine.jsonl`
    """
    dataset = datasets.read(data, data_format, split)
    answers = datasets.read_predictions(predictions, dataset.rows) if predictions else None
    numbers = datasets.measure(dataset.rows, answers)
    console.show(numbers if as_json else datasets.summarize_measures(numbers), as_json)
    runs.report_dropped("read", dataset.dropped, str(data))
