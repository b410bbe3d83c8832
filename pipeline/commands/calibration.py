"""Commands about how far measures can be trusted: compared in pairs, on sets at hand, and taught by a judge."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import polars as pl
from typer import Argument, Exit, Option, echo

from pipeline import warehouse
from pipeline.commands.models import end_training
from pipeline.commands.terminal import console, files
from pipeline.commands.terminal import options as shared
from pipeline.errors import BadInput
from pipeline.progress import track
from pipeline.tasks.calibration import calibrate as comparison
from pipeline.tasks.calibration import distillation
from pipeline.tasks.record import model_registry
from pipeline.tasks.record.retry import retry
from pipeline.tasks.studies import validation

Paths = list[Path] | None
Columns = tuple[str, str]


def calibrate(
    a: Annotated[str | None, Argument(help="scorer, scorer:MODEL, judge, judge:NAME, people:FIELD or grades.")] = None,
    b: Annotated[str | None, Argument(help="The measure to compare it with, such as judge.")] = None,
    file: Annotated[Path | None, Option(help="Compare two columns of this file instead.")] = None,
    columns: Annotated[Columns | None, Option("--columns", "-c", help="The two columns of --file to compare.")] = None,
    rater: Annotated[list[str] | None, Option(help="A column of one rater's values, two or more; repeat it.")] = None,
    day: Annotated[str, Option("--day", help="UTC day, YYYY-MM-DD.", show_default="all days")] = "",
    days: Annotated[int, Option(min=1, help="Days that end with --day.")] = 1,
    epsilon: Annotated[
        float, Option(min=0, max=1, help="Advantage of a rater in the test: 0.2 expert, 0.15 trained, 0.1 crowd.")
    ] = 0.15,
    as_json: shared.Json = False,
) -> None:
    """Compare two measures: a scorer, a judge, people, columns of a file.

    Prints correlation, error and curve of A against B, next to a constant, length, punctuation and words. Intervals are
    of 95 %, over threads. With two raters or more it tests whether A may replace one. Of tables, the map of A to B and
    all figures go into `studies`. Exit code 1 if a measure is constant or looks random.

    Examples: `undertone calibrate scorer judge`; `undertone calibrate judge:gpt-4o-mini people:subtext`;
    `undertone calibrate --file scored.csv -c implicitness judged --rater anna --rater ben`
    """
    shared.check_source(file, day)
    if file:
        if a or not columns:
            raise BadInput("name the two columns of --file by -c A B, and no other measure")
        names = columns
        result = comparison.compare_columns(file, *names, rater or (), epsilon)
    else:
        if not a or not b or columns or rater:
            raise BadInput("name two measures, such as `undertone calibrate scorer judge`, or --file and -c")
        names = (a, b)
        result = comparison.compare_sides(a, b, day or None, days, epsilon)
        retry(comparison.write_study, result, a, b, day or shared.today(), shared.this_run())
    compared, test = result.comparison, result.replacement
    console.print_result(
        compared.measures,
        {
            "a": names[0], "b": names[1], "faults": compared.faults,
            "subsets": compared.subsets.to_dicts(), "curve": compared.curve.to_dicts(),
            "maps": {name: {"x": knots.x.tolist(), "y": knots.y.tolist()} for name, knots in compared.maps.items()},
            "replacement": test and test._asdict(),
        },
        as_json,
    )  # fmt: skip
    if not as_json:
        console.show(compared.subsets, as_json)
        console.show(compared.curve, as_json)
        if test:
            verdict = f"{names[0]} may {'' if test.passes else 'not '}replace a rater"
            shares = f"good as one on {test.advantage:.0%} of the texts, wins {test.winning_rate:.0%} of {len(test.n)}"
            console.report(f"alternative-annotator test: {verdict} (as {shares} raters)")
    for fault in compared.faults:
        console.report(f"do not trust this measure: {fault}")
    if compared.faults:
        raise Exit(1)


def distil(
    file: Annotated[Path | None, Argument(help="Judged texts of `undertone judge -o`; by default the tables'.")] = None,
    column: Annotated[str, Option("--column", "-c", help="Column of the judge's values.")] = "implicitness_judged",
    text_column: Annotated[str | None, Option(help="Column with the texts; text or comment by default.")] = None,
    judge: Annotated[str, Option(help="Which judge of the tables, where there are several.")] = "",
    out: shared.ModelFolder = None,
    curve: Annotated[bool, Option("--curve", help="Only measure, also after 100, 300, 1,000 and 3,000 texts.")] = False,
    price: Annotated[float | None, Option(min=0, help="USD for a judged text, for the costs of --curve.")] = None,
    promote: shared.Promote = False,
    force: shared.Force = False,
    day: shared.MaybeDay = "",
    as_json: shared.Json = False,
) -> None:
    """Train the scorer on judged texts, so that it scores others like the judge.

    The model that answers now gets a new readout; its distances stay. Prints how far the new model agrees with the
    judge on texts that it did not see, next to the old one and to length, punctuation and words. Exit code 1 if one of
    them agrees better.

    Examples: `undertone distil`; `undertone distil judged.csv --curve --price 0.0004`;
    `undertone distil judged.csv --out model/`
    """
    if (out or curve) and (promote or day):
        raise BadInput("--promote and --day are about the tables; with --out or --curve nothing is written there")
    warehouse.create()
    rows = distillation.read_judged(file, column, text_column) if file else distillation.load_judged(judge)
    frames = [distillation.measure_rivals(rows)]
    if curve:
        frames.append(distillation.measure_curve(rows, price=price))
    with TemporaryDirectory() as scratch:
        if folder := out or (Path(scratch) / "model" if curve else None):
            model_registry.train_into(folder, lambda: distillation.fit(rows), force=force)
            ref = str(folder)
        else:
            source = (rows, day or shared.today(), None if file else judge)
            ref = retry(distillation.train, *source, promote=promote, run_id=shared.this_run())
        frames.append(distillation.measure_model(rows, ref, price))
    agreement = pl.concat(frames).sort("lang", maintain_order=True)
    if curve and not out:
        console.print_result(agreement, {"model": None}, as_json)
        console.report("a curve only measures, so no model is registered; without --curve, distil trains one")
        return
    console.print_result(agreement, {"model": ref}, as_json)
    if not as_json:
        echo(ref)
    if not out:
        end_training(ref)


def validate(
    model: Annotated[list[str] | None, Option("--model", "-m", help="One more model; repeat it.")] = None,
    groups: Annotated[Paths, Option(help="Graded groups as .jsonl; repeat it.")] = None,
    pairs: Annotated[Paths, Option(help="Pairs, as for `evaluate impscore --pairs`; repeat it.")] = None,
    labelled: Annotated[Paths, Option(help="Texts labelled 1 (ironic, figurative) or 0; repeat it.")] = None,
    columns: Annotated[Columns, Option("--columns", "-c", help="Text and label.")] = ("text", "label"),
    values: Annotated[Paths, Option(help="Text and value, by a judge or another scorer; repeat it.")] = None,
    texts: Annotated[Path | None, Option(help="Only write the texts of all sets here, to judge them.")] = None,
    out: Annotated[Path | None, Option("--out", "-o", help="Csv to add rows to; others' stay.")] = None,
    day: shared.Day = "",
    as_json: shared.Json = False,
) -> None:
    """Measure every scorer on every graded, paired and labelled set at hand, next to surface and chance.

    Scorers are the model in force, the shipped one, those of --model, judges of the tables, and --values. Sets are the
    shipped graded groups and obvious pairs, the pairs of the tables, and your files. Intervals are of 95 %. The numbers
    go into `studies`; `undertone study page` draws them.

    Examples: `undertone validate`; `undertone validate --labelled irony.csv -c tweet is_ironic --out benchmark.csv`;
    `undertone validate --texts texts.csv && undertone judge texts.csv --llm gpt-4o-mini -o gpt.csv && undertone
    validate --values gpt.csv`
    """
    if out and out.suffix.lower() != ".csv":
        raise BadInput(f"{out}: a table of benchmarks is a .csv file")
    earlier_rows = validation.read_numbers(out) if out and out.is_file() else pl.DataFrame(schema=validation.SCHEMA)
    warehouse.create()
    sets: dict[str, Any] = {"groups": groups, "pair_files": pairs, "labelled": labelled, "columns": columns}
    if texts:
        frame = pl.concat([benchmark.rows.select("text") for benchmark in validation.list_benchmarks(**sets)[0]])
        files.write_frames([frame.unique(maintain_order=True)], texts)
        return
    with track("scoring") as on_progress:
        numbers, missing = validation.measure(day, model or (), values, on_progress, **sets)
    retry(validation.write_study, numbers, missing, day, shared.this_run())
    rows = numbers if as_json else numbers.drop("data", "signature", "version")
    console.print_result(rows, {"missing": missing}, as_json)
    for name, advice in missing.items():
        console.report(f"not at hand: {name}; {advice}")
    if out:
        rival_rows = earlier_rows.join(numbers, on=["set", "lang", "by", "data", "version"], how="anti")
        files.write_frames([pl.concat([rival_rows, numbers])], out)
