"""Commands about what NDD is worth: compressions measured and graded, tests of the distance, and their page."""

from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from typer import Argument, Option, echo

from pipeline import warehouse
from pipeline.commands.label import Folder, Raters
from pipeline.commands.ndd import Kind, Masked, PairWeights, SpanRange, Syntax, Weighting, warn_of_counts
from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import Day, Json, this_run
from pipeline.errors import BadInput, format_quantity
from pipeline.metrics.ndd import distance as metric
from pipeline.progress import iterate, track
from pipeline.tasks.labelling import projects
from pipeline.tasks.ndd import compressions, distance, grades, masked_lm, systems
from pipeline.tasks.record import runs
from pipeline.tasks.record.retry import retry

Source = Annotated[str, Option(help="Name that the compressions are filed under.")]


def compress_data(
    data: Annotated[Path | None, Option("--data", help="Sentences with people's compressions; or our sample.")] = None,
    data_format: Annotated[str, Option(help="Format of --data: own, google, broadcast or colloquial.")] = "own",
    source: Annotated[str, Option(help="Name to file the compressions under.")] = "sample",
    split: Annotated[str | None, Option(help="Part of the data, such as test.")] = None,
    system: Annotated[list[str] | None, Option(help="System; repeat it. By default all that the model can do.")] = None,
    ratio: Annotated[float | None, Option(help="Share of the words to keep; that of people by default.")] = None,
    divergence: Kind = "kl",
    weights: Weighting = "balanced",
    spans: SpanRange = "paper",
    thresholds: Annotated[bool, Option("--thresholds", help="Table 6 as well: Fast NDD without a ratio.")] = False,
    syntax: Syntax = None,
    model: Masked = None,
    day: Day = "",
    as_json: Json = False,
) -> None:
    """Compress a data set by every system and measure them, into `compressions` and `studies` (tables 3 and 5).

    A system with _sc compresses only sentences that have a tree; a second table has all systems on these.

    Example: `undertone ndd measure --data google.jsonl --data-format google --source google -m NAME@COMMIT`
    """
    if data is None and source != compressions.SAMPLE:
        raise BadInput("--source names the data; give --data as well")
    if data and source == compressions.SAMPLE:
        raise BadInput("--data needs a --source, the name to file its compressions under")
    warehouse.create()
    path, trees = (str(file) if file else None for file in (data, syntax))
    params: dict[str, Any] = {"source": source, "data": path, "format": data_format, "split": split, "syntax": trees}
    params |= {"ratio": ratio, "divergence": divergence, "weights": weights, "spans": spans, "model": model}
    params["systems"] = system or list(systems.SYSTEMS)
    compressions.check_params(params)
    job = compressions.make_job(params, day, model)
    names = compressions.list_systems(params["systems"], model, is_explicit=bool(system))
    warn_of_counts(masked_lm.load_model(model, day=day).model.signature)
    retry(compressions.publish, [compressions.stage(name, job) for name in names], source, day)
    retry(grades.publish, source, day)  # means of grades are of the compressions there are
    retry(compressions.publish_measures, source, day)
    if thresholds:
        with track("sentences compressed by each threshold") as on_progress:
            rows = compressions.try_thresholds(compressions.load_items(path, data_format, split), job, on_progress)
        retry(compressions.publish_thresholds, rows, source, day)
    for lang, numbers in systems.split_languages(compressions.load_measures(source, day)):
        if not as_json:
            console.report(f"{source}, {lang.replace(':common', ', the sentences that all systems compressed')}")
        console.show(numbers if as_json else compressions.summarize_measures(numbers), as_json)


def measure_distance(
    pairs: Annotated[Path | None, Option(help="Graded pairs, csv as STS-B or jsonl; the sample's by default.")] = None,
    syntax: Annotated[Path | None, Option(help="Treebank in CoNLL-U; the sample's by default.")] = None,
    limit: Annotated[int, Option(min=1, help="Sentences of the treebank, and of those that are edited.")] = 200,
    divergence: Annotated[
        str | None,
        Option(help="hellinger, kl or kl_reversed; by default the paper's, hellinger for pairs, kl for trees."),
    ] = None,
    weights: PairWeights = "mean",
    model: Masked = None,
    day: Day = "",
    as_json: Json = False,
) -> None:
    """Test the distance into `studies`: edits (table 1), overlap (figure 3), pruning (table 7), predicates (table 8).

    Example: `undertone ndd test --pairs stsb-en-dev.csv --syntax en_ewt-ud-test.conllu`
    """
    metric.check_options(divergence or "kl", weights)
    warehouse.create()
    rows_by_study = {}
    data, treebank = (str(path) if path else None for path in (pairs, syntax))
    warn_of_counts(masked_lm.load_model(model, day=day).model.signature)
    for study in iterate(distance.TESTS, "tests"):
        rows_by_study[study] = distance.run_study(study, day, model, data, treebank, limit, divergence, weights)  # type: ignore[arg-type]
        retry(compressions.replace_study, study, rows_by_study[study], day)
    if as_json:
        console.show(pl.concat(rows_by_study.values()), as_json=True)
    for study, rows in () if as_json else rows_by_study.items():
        console.report(study)
        console.table(distance.summarize_tests(rows))


def page(day: Day = "") -> None:
    """Write the page of compressions and tests, and print its path. Example: `undertone ndd page`"""
    from pipeline.tasks.ndd import page as ndd_page

    with console.working("writing the page"):
        echo(ndd_page.write(day))


def evaluate(
    data: Annotated[Path, Option("--data", help="Sentences with compressions by people.")],
    data_format: Annotated[str, Option(help="Format of --data: own, google, broadcast or colloquial.")] = "own",
    predictions: Annotated[Path | None, Option(help="Compressions of these sentences, in our own format.")] = None,
    split: Annotated[str | None, Option(help="Part of the data, such as test; all by default.")] = None,
    as_json: Json = False,
) -> None:
    """Measure compressions: F1, ROUGE, BLEU, ratio and length, with people's and baselines that read no word (NDD).

    `ratio` is of all words together, `ratio_macro` the mean over sentences; `length` is the mean number of words.

    Our own format has a sentence a line: {"words": [...], "kept": [true, ...]} or {"text": "...", "compressed": "..."}.

    Examples: `undertone evaluate compression --data google_test1000.jsonl --data-format google`;
    `undertone evaluate compression --data test.jsonl --predictions mine.jsonl`
    """
    dataset = compressions.read_data_set(data, data_format, split)
    answers = compressions.read_predictions(predictions, dataset.rows) if predictions else None
    numbers = compressions.measure_predictions(dataset.rows, answers)
    console.show(numbers if as_json else compressions.summarize_measures(numbers), as_json)
    runs.report_dropped("read", dataset.dropped, str(data))


def rate(
    source: Source = "sample",
    rater: Raters = None,
    system: Annotated[list[str] | None, Option("--system", help="System, or gold; repeat it. All by default.")] = None,
    limit: Annotated[int, Option(min=1, help="Sentences at most, compressed by all these systems.")] = 100,
    out: Folder = None,
    lang: Annotated[Literal["zh", "en"], Option(help="Language of guidelines and sheets.")] = "zh",
    day: Day = "",
) -> None:
    """Give compressions to people, who grade syntax and meaning from 0 to 5 and do not see whose they are (table 13).

    Two people grade each sentence, with all its compressions. The day is that of the compressions.

    Examples: `undertone ndd rate --rater anna --rater ben --lang en`;
    `undertone ndd rate --source google --system ndd --system fast_ndd --system gold --limit 100 --rater anna
    --rater ben`
    """
    warehouse.create()
    folder = out or grades.get_project(source).folder
    projects.check_sheets(folder, rater or (), "sentence")  # before anything is given out
    retry(grades.select_tasks, source, day, system or (), limit, this_run())
    count = grades.export(source, day, folder, rater or (), lang, limit, system or ())
    console.report(f"{folder}: {format_quantity(count, 'compression')}")


def ratings(
    paths: Annotated[list[Path] | None, Argument(help="Filled sheets, or long tables.")] = None,
    source: Source = "sample",
    tool: Annotated[Literal["files", "simulated"], Option(help="Simulated raters are made up, to try it.")] = "files",
    day: Day = "",
    as_json: Json = False,
) -> None:
    """Take people's grades of compressions into `studies`; prints each system's means and how far raters agree.

    Without files those in `labels` in the folder of the source are read.

    Examples: `undertone ndd ratings anna.xlsx ben.xlsx`; `undertone ndd ratings --source google anna.xlsx`;
    `undertone ndd ratings --tool simulated --json`
    """
    counts = retry(grades.collect, source, day, paths or (), tool, this_run())
    agreement, means = grades.load_agreement(source, day), grades.load_means(source, day)
    if "simulated" in means["by"]:
        console.report("these grades are simulated: they are no judgement of the systems")
    if as_json:
        console.print_result(means, {**counts, "agreement": agreement.to_dicts()}, as_json=True)
        return
    console.table(grades.summarize_grades(source, day))
    console.table(agreement.drop("by"))
    console.report(", ".join(f"{name} {number:,}" for name, number in counts.items()))
    console.report("…_paper: the paper's means, of 100 of Google's sentences and its own systems")
