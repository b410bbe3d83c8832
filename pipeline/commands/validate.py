"""The command that measures every scorer on every set at hand."""

from functools import partial
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from pipeline import warehouse
from pipeline.commands.terminal import console, files
from pipeline.commands.terminal.options import Day, Json, print_result, this_run, today
from pipeline.errors import BadInput
from pipeline.progress import track
from pipeline.tasks.record.retry import retry

Paths = list[Path] | None


def validate(
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="One more model, a folder or an id; repeat it.")
    ] = None,
    groups: Annotated[Paths, typer.Option(help="Graded groups as .jsonl; repeat it.")] = None,
    pairs: Annotated[Paths, typer.Option(help="Pairs, as for `evaluate impscore --pairs`; repeat it.")] = None,
    labelled: Annotated[
        Paths, typer.Option(help="Texts with a label: 1 is ironic, figurative, …, 0 is not; repeat it.")
    ] = None,
    columns: Annotated[
        tuple[str, str], typer.Option("--columns", "-c", help="Columns of --labelled: of the text and of the label.")
    ] = ("text", "label"),
    values: Annotated[
        Paths, typer.Option(help="Values of texts by a judge or another scorer: columns text and value; repeat it.")
    ] = None,
    texts: Annotated[
        Path | None, typer.Option(help="Only write the texts of all sets to this file, for `undertone judge`.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Add the rows to this csv; the rows of other scorers stay.")
    ] = None,
    page: Annotated[bool, typer.Option("--page", help="Also write the page of studies.")] = False,
    day: Day = "",
    as_json: Json = False,
) -> None:
    """Measure every scorer at hand on every graded, paired or labelled set at hand, next to surface and chance.

    Scorers are the model in force, the shipped one, those of --model, judges of the tables, and --values. Sets are the
    shipped graded groups and obvious pairs, the pairs of the tables, and your files. Intervals are of 95 %. The numbers
    go into `studies`.

    Examples: `undertone validate`; `undertone validate --labelled irony.csv -c tweet is_ironic --out benchmark.csv`;
    `undertone validate --texts texts.csv && undertone judge texts.csv --llm gpt-4o-mini -o gpt.csv && undertone
    validate --values gpt.csv --page`
    """
    from pipeline.tasks.studies import validation as work

    if out and out.suffix.lower() != ".csv":
        raise BadInput(f"{out}: a table of benchmarks is a .csv file")
    warehouse.create()
    sets = work.Files(groups or (), pairs or (), labelled or (), columns)
    if texts:
        distinct = pl.concat([benchmark.rows.select("text") for benchmark in work.list_benchmarks(sets)[0]]).unique(
            maintain_order=True
        )
        files.write_frames([distinct], texts)
        return
    day = day or today()
    with track("scoring") as on_progress:
        numbers, missing = retry(partial(work.run, day, model or (), sets, values or (), this_run(), on_progress))
    print_result(numbers if as_json else numbers.drop("data", "signature", "version"), {"missing": missing}, as_json)
    for name, advice in missing.items():
        console.report(f"not at hand: {name}; {advice}")
    if out:
        files.write_frames([_add_rows(out, numbers)], out)
    if page:
        from pipeline.tasks.studies import page as study_page

        with console.working("drawing"):
            console.report(f"wrote {study_page.write(day)}")


def _add_rows(path: Path, numbers: pl.DataFrame) -> pl.DataFrame:
    """Add the rows to those of a file, in place of those of the same set, scorer and version."""
    if not path.is_file():
        return numbers
    rows = pl.read_csv(path, schema_overrides=numbers.schema)
    if rows.columns != numbers.columns:
        raise BadInput(f"{path}: expected the columns {', '.join(numbers.columns)}; found {', '.join(rows.columns)}")
    keys = ["set", "lang", "by", "data", "version"]
    return pl.concat([rows.join(numbers, on=keys, how="anti", nulls_equal=True), numbers])
