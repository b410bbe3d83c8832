"""The command that compares two measures of the same texts."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import Json, check_source, this_run, today
from pipeline.errors import BadInput
from pipeline.tasks.calibration import calibrate as work
from pipeline.tasks.record.retry import retry


def calibrate(
    a: Annotated[str | None, Argument(help="scorer, scorer:MODEL, judge, judge:NAME, people:FIELD or grades.")] = None,
    b: Annotated[str | None, Argument(help="The measure to compare it with, such as judge.")] = None,
    file: Annotated[Path | None, Option(help="Compare two columns of this file instead.")] = None,
    columns: Annotated[tuple[str, str] | None, Option("--columns", "-c", help="The two columns.")] = None,
    rater: Annotated[list[str] | None, Option(help="A column of one rater's values, two or more; repeat it.")] = None,
    day: Annotated[str, Option("--day", help="UTC day, YYYY-MM-DD.", show_default="all days")] = "",
    days: Annotated[int, Option(min=1, help="Days that end with --day.")] = 1,
    epsilon: Annotated[
        float, Option(min=0, max=1, help="Advantage of a rater in the test: 0.2 expert, 0.15 trained, 0.1 crowd.")
    ] = 0.15,
    as_json: Json = False,
) -> None:
    """Compare two measures: a scorer, a judge, people, columns of a file.

    Prints correlation, error and curve of A against B, next to a constant, length, punctuation and words. Intervals are
    of 95 %, over threads. With two raters or more it tests whether A may replace one. Of tables, the map of A to B and
    all figures go into `studies`. Exit code 1 if a measure is constant or looks random.

    Examples: `undertone calibrate scorer judge`; `undertone calibrate judge:gpt-4o-mini people:subtext`;
    `undertone calibrate --file scored.csv -c implicitness judged --rater anna --rater ben`
    """
    check_source(file, day)
    if file:
        if a or not columns:
            raise BadInput("name the two columns of --file by -c A B, and no other measure")
        names = columns
        result = work.compare_columns(file, *names, rater or (), epsilon)
    else:
        if not a or not b or columns or rater:
            raise BadInput("name two measures, such as `undertone calibrate scorer judge`, or --file and -c")
        names = (a, b)
        result = work.compare_sides(a, b, day or None, days, epsilon)
        retry(work.write_study, result, a, b, day or today(), this_run())
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
            verdict = "may replace a rater" if test.passes else "may not replace a rater"
            shares = (
                f"as good as one on {test.advantage:.0%} of the texts, wins {test.winning_rate:.0%} of {len(test.n)}"
            )
            console.report(f"alternative-annotator test: {names[0]} {verdict} ({shares} raters)")
    for fault in compared.faults:
        console.report(f"do not trust this measure: {fault}")
    if compared.faults:
        raise Exit(1)
