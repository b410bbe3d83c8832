"""The command that measures every scorer on every set at hand."""

from pathlib import Path
from typing import Annotated, Any

import polars as pl
from typer import Option

from pipeline import warehouse
from pipeline.commands.terminal import console, files
from pipeline.commands.terminal.options import Day, Json, this_run
from pipeline.errors import BadInput
from pipeline.progress import track
from pipeline.tasks.record.retry import retry
from pipeline.tasks.studies import validation as work

Paths = list[Path] | None
Columns = tuple[str, str]


def validate(
    model: Annotated[list[str] | None, Option("--model", "-m", help="One more model; repeat it.")] = None,
    groups: Annotated[Paths, Option(help="Graded groups as .jsonl; repeat it.")] = None,
    pairs: Annotated[Paths, Option(help="Pairs, as for `evaluate impscore --pairs`; repeat it.")] = None,
    labelled: Annotated[Paths, Option(help="Texts labelled 1 (ironic, figurative) or 0; repeat it.")] = None,
    columns: Annotated[Columns, Option("--columns", "-c", help="Text and label.")] = ("text", "label"),
    values: Annotated[Paths, Option(help="Text and value, by a judge or another scorer; repeat it.")] = None,
    texts: Annotated[Path | None, Option(help="Only write the texts of all sets here, to judge them.")] = None,
    out: Annotated[Path | None, Option("--out", "-o", help="Csv to add rows to; others' stay.")] = None,
    day: Day = "",
    as_json: Json = False,
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
    earlier_rows = work.read_numbers(out) if out and out.is_file() else pl.DataFrame(schema=work.SCHEMA)
    warehouse.create()
    sets: dict[str, Any] = {"groups": groups, "pair_files": pairs, "labelled": labelled, "columns": columns}
    if texts:
        frame = pl.concat([benchmark.rows.select("text") for benchmark in work.list_benchmarks(**sets)[0]])
        files.write_frames([frame.unique(maintain_order=True)], texts)
        return
    with track("scoring") as on_progress:
        numbers, missing = work.measure(day, model or (), values, on_progress, **sets)
    retry(work.write_study, numbers, missing, day, this_run())
    console.print_result(
        numbers if as_json else numbers.drop("data", "signature", "version"), {"missing": missing}, as_json
    )
    for name, advice in missing.items():
        console.report(f"not at hand: {name}; {advice}")
    if out:
        rival_rows = earlier_rows.join(numbers, on=["set", "lang", "by", "data", "version"], how="anti")
        files.write_frames([pl.concat([rival_rows, numbers])], out)
