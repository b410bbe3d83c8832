"""Commands about people who rank graded groups, or choose the sentence that means the same."""

from pathlib import Path
from typing import Annotated

import polars as pl
from typer import Argument, Option

from pipeline import warehouse
from pipeline.commands.label import Folder, Raters, RatingTool, Tool
from pipeline.commands.measures import read_default_groups
from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import Day, Json, Model, this_run
from pipeline.examples.impscore import groups, questions
from pipeline.progress import track
from pipeline.tasks.impscore import user_study
from pipeline.tasks.impscore.user_study import check_kind
from pipeline.tasks.labelling import projects
from pipeline.tasks.record.retry import retry

Kind = Annotated[str, Argument(help="ranking, choice or meaning.")]
Items = Annotated[
    Path | None, Option(help="Graded groups, or choice questions, as .jsonl; by default of the shipped groups.")
]


def rate(
    kind: Kind,
    items: Items = None,
    limit: Annotated[int, Option(min=1, help="Items at most; ten as in the paper by default.")] = 10,
    out: Folder = None,
    rater: Raters = None,
    tool: RatingTool = "files",
    day: Day = "",
) -> None:
    """Have people rank graded groups, number their meanings, or choose the sentence that means the same (ImpScore).

    Writes tasks, guidelines, rules for whom to recruit (appendix A.5), and a sheet for each person. Ten people get two
    sets, each half of the items.

    Examples: `undertone groups rate ranking --rater anna --rater ben`; `undertone groups rate choice --items mine.jsonl
    --tool label_studio`
    """
    rows = _read_items(kind, items)
    folder = out or user_study.get_project(kind, rows).folder
    projects.check_sheets(folder, rater or (), "item")  # before anything is given out
    warehouse.create()
    retry(user_study.select, kind, rows, day, limit, this_run())
    if tool == "label_studio":
        console.report(f"{user_study.push(kind, rows, projects.find_studio()):,} tasks given to Label Studio")
        return
    console.report(f"{folder}: {user_study.export(kind, rows, folder, rater or ()):,} tasks")


def ratings(
    kind: Kind,
    answers: Annotated[list[Path] | None, Argument(help="Answers: sheets, or long tables.")] = None,
    items: Items = None,
    tool: Tool = "files",
    model: Model = None,
    as_json: Json = False,
) -> None:
    """Import people's answers and compare each person and a model with the given order, and with the paper's table 5.

    Examples: `undertone groups ratings ranking anna.xlsx ben.xlsx`; `undertone groups ratings choice --tool simulated`
    """
    rows = _read_items(kind, items)
    studio = projects.find_studio() if tool == "label_studio" else None
    retry(user_study.collect, kind, rows, answers or (), tool, studio, this_run())
    with track("measuring") as on_progress:
        numbers = user_study.measure(kind, rows, model, this_run(), on_progress)
    if "simulated_1" in numbers["by"]:
        console.report("these answers are simulated: they are no judgement of the items or the model")
    paper = user_study.tabulate_paper(kind)
    console.print_result(numbers, {"paper": paper.to_dicts()}, as_json)
    if not as_json:
        console.table(paper, f"In the paper (table {11 if kind == 'meaning' else 5})")


def _read_items(kind: str, path: Path | None) -> pl.DataFrame:
    """Read graded groups or choice questions; by default the shipped groups for tests, or questions made of them."""
    if check_kind(kind) != "choice":
        return groups.read(path) if path else read_default_groups()[0]
    return questions.read(path) if path else questions.build_questions(read_default_groups()[0]).drop("group")
