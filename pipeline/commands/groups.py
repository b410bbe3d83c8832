"""Commands about graded groups: models and people rank them, or choose the sentence that means the same."""

import json
from pathlib import Path
from typing import Annotated

import polars as pl
from typer import Argument, Option

from pipeline import warehouse
from pipeline.commands.label import Folder, Raters, RatingTool, Tool
from pipeline.commands.terminal import console, files
from pipeline.commands.terminal.options import Day, Json, Model, this_run
from pipeline.errors import BadInput, format_quantity
from pipeline.examples.impscore import groups as graded
from pipeline.progress import track
from pipeline.score.reference import WEAK, describe_weakness
from pipeline.tasks.impscore import rank as ranking
from pipeline.tasks.impscore import user_study
from pipeline.tasks.impscore.train import read_shipped_groups
from pipeline.tasks.labelling import projects
from pipeline.tasks.record.retry import retry

Kind = Annotated[str, Argument(help="ranking, choice or meaning.")]
Items = Annotated[Path | None, Option(help="Graded groups, or choice questions, as .jsonl; by default the shipped.")]


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
    rows = user_study.read_items(kind, items)
    folder = out or user_study.get_project(kind, rows).folder
    projects.check_sheets(folder, rater or (), "item")  # before anything is given out
    warehouse.create()
    retry(user_study.select, kind, rows, day, limit, this_run())
    if tool == "label_studio":
        tasks, _, project = user_study.read_tasks(kind, rows)
        count = projects.push(project, tasks, projects.find_studio())
        console.report(f"{format_quantity(count, 'task')} given to Label Studio")
        return
    console.report(f"{folder}: {format_quantity(user_study.export(kind, rows, folder, rater or ()), 'task')}")


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
    rows = user_study.read_items(kind, items)
    retry(user_study.collect, kind, rows, answers or (), tool, projects.find_studio(), this_run())
    with track("measuring") as on_progress:
        numbers = user_study.measure(kind, rows, model, this_run(), on_progress)
    if "simulated_1" in numbers["by"]:
        console.report("these answers are simulated: they are no judgement of the items or the model")
    paper = user_study.tabulate_paper(kind)
    console.print_result(numbers, {"paper": paper.to_dicts()}, as_json)
    if not as_json:
        console.table(paper, f"In the paper (table {11 if kind == 'meaning' else 5})")


def rank(
    groups: Annotated[Path | None, Option(help="Graded groups as .jsonl; by default shipped test groups.")] = None,
    model: Model = None,
    as_json: Json = False,
) -> None:
    """Rank graded groups by implicitness: Kendall's tau and Spearman's rho, with surface baselines.

    A line of the file is {"group": name, "sentences": [from most explicit to most implicit]}.

    Examples: `undertone groups rank`; `undertone groups rank --groups mine.jsonl --model model/ --json`
    """
    sentences, training_groups = (graded.read(groups), None) if groups else read_default_groups()
    if groups:
        ranking.warn_of_training(sentences, model)
    with track("ranking", sentences.height) as on_progress:
        correlations = ranking.rank(sentences, model, on_progress, training_groups)
    console.print_result(correlations, correlations.drop("by").row(0, named=True), as_json)
    if (tau := correlations["kendall_tau"][0]) < WEAK:
        console.report(describe_weakness({"": tau}))


def agree(
    ratings: Annotated[
        Path | None,
        Option(help="Orders as .jsonl: rater, group, ranks (1 is the most explicit); by default the table's."),
    ] = None,
    groups: Annotated[Path | None, Option(help="The ranked groups, as .jsonl; by default shipped test groups.")] = None,
    model: Model = None,
    figure: Annotated[Path | None, Option(help="Also draw the matrix of Kendall's tau, as .svg.")] = None,
    as_json: Json = False,
) -> None:
    """Measure how far raters, the order of the groups and a model agree on graded groups, each with each.

    Examples: `undertone groups agree --ratings ratings.jsonl --groups groups.jsonl`; `undertone groups agree` (of
    people's orders in the tables)
    """
    from pipeline.report.figures import draw_matrix

    files.check_folder(figure)
    sentences = graded.read(groups) if groups else read_default_groups()[0]
    orders = graded.read_ratings(ratings, sentences) if ratings else user_study.load_orders(sentences)
    matrices = ranking.measure_agreement(sentences, orders, model)
    kendall, spearman, concordance = (matrices[name] for name in ("kendall", "spearman", "concordance"))
    if figure:
        if "set" in kendall.columns:
            raise BadInput("--figure draws the orders of a file; give them with --ratings")
        svg = draw_matrix(kendall["by"].to_list(), kendall.drop("by").to_numpy(), "Kendall's tau")
        figure.write_text(svg, encoding="utf-8")
    console.print_result(kendall, {"spearman": spearman.to_dicts(), "concordance": concordance.to_dicts()}, as_json)
    if not as_json:
        console.table(spearman, "Spearman's rho")
        console.table(concordance, "Kendall's W")


def choose(
    questions: Annotated[Path | None, Option(help="Choice questions as .jsonl; by default of shipped groups.")] = None,
    model: Model = None,
    out: Annotated[Path | None, Option("--out", "-o", help="Also write every answer.")] = None,
    as_json: Json = False,
) -> None:
    """Answer choice questions: the option of least pragmatic distance to the reference.

    A line of the file is {"reference": text, "options": [texts], "answer": place of the right one, from 0}.

    Examples: `undertone groups choose`; `undertone groups choose --questions mine.jsonl --json`
    """
    files.check_table(out)
    rows = user_study.read_items("choice", questions)
    if questions:
        ranking.warn_of_training(rows.select(level=1, text="reference"), model, "questions")
    with track("choosing") as on_progress:
        answered = ranking.choose(rows, model, on_progress)
    if out:
        table = answered
        if out.suffix.lower() in {".csv", ".tsv"}:  # there a list is joined by blanks, and options have some
            options = [json.dumps(texts, ensure_ascii=False) for texts in answered["options"].to_list()]
            table = answered.with_columns(options=pl.Series(options, dtype=pl.String))
        files.write_table(table, out)
    accuracy = ranking.measure_accuracy(answered)
    console.print_result(accuracy, accuracy.drop("by").row(0, named=True), as_json)


def read_default_groups() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read the shipped English groups that the shipped model was not trained on, and those that it was trained on."""
    rows = read_shipped_groups("en")
    is_test = pl.col("split") == "test"
    return rows.filter(is_test), rows.filter(~is_test)
