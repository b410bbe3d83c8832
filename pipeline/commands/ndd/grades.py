"""Commands about compressions as people grade them: out to raters, and back (NDD, appendix F)."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from pipeline import warehouse
from pipeline.commands.label import Raters
from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import Day, Json, this_run
from pipeline.tasks.ndd import grades
from pipeline.tasks.record.retry import retry

Source = Annotated[str, Option(help="Name that the compressions are filed under.")]


def rate(
    source: Source = "sample",
    rater: Raters = None,
    system: Annotated[
        list[str] | None, Option("--system", help="A system, or gold; repeat it; all there are by default.")
    ] = None,
    limit: Annotated[int, Option(min=1, help="Sentences at most, compressed by all these systems.")] = 100,
    out: Annotated[Path | None, Option("--out", "-o", help="Folder; below UNDERTONE_LABELLING by default.")] = None,
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
    grades.check_sheets(folder, rater or ())  # before anything is given out
    retry(grades.select_tasks, source, day, system or (), limit, this_run())
    count = grades.export(source, day, folder, rater or (), lang, limit, system or ())
    console.report(f"{folder}: {count:,} compressions")


def ratings(
    paths: Annotated[list[Path] | None, Argument(help="Filled sheets, or long tables.")] = None,
    source: Source = "sample",
    tool: Annotated[
        Literal["files", "simulated"], Option(help="Simulated raters are made up: for trying out.")
    ] = "files",
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
