"""Commands about labels: tasks out to raters, labels in, what raters disagree on, how far they agree, the data set."""

from pathlib import Path
from typing import Annotated, Literal

import polars as pl
import polars.selectors as cs
from typer import Argument, Option, echo

from pipeline import warehouse
from pipeline.collect.columns import parse
from pipeline.commands.terminal import console, files
from pipeline.commands.terminal.options import Day, Json, this_run
from pipeline.errors import BadInput
from pipeline.io.atomic import write_text
from pipeline.label import rating_files
from pipeline.label.selection import Rules
from pipeline.tasks.labelling import csd, projects
from pipeline.tasks.labelling import release as releases
from pipeline.tasks.record import pages, runs
from pipeline.tasks.record.retry import retry

Project = Annotated[str, Option("--project", "-p", help="Labelling project.")]
Tool = Annotated[Literal["files", "label_studio", "simulated"], Option(help="Simulated raters are made up, to try it.")]
RatingTool = Annotated[Literal["files", "label_studio"], Option("--tool", help="Files and sheets, or Label Studio.")]
Names = list[str] | None
Raters = Annotated[Names, Option("--rater", help="Also write a sheet (.xlsx) for this rater; repeat it.")]
Folder = Annotated[Path | None, Option("--out", "-o", help="Folder; below UNDERTONE_LABELLING by default.")]


def export(
    project: Project = "csd",
    day: Annotated[str, Option(help="Select comments of this day first; what is there stays.")] = "",
    ids: Annotated[Path | None, Option(help="Add the comments whose ids are in this file, as of `browse`.")] = None,
    out: Folder = None,
    rater: Raters = None,
    lang: Annotated[list[str], Option(help="Languages to select; repeat it.")] = ["zh"],  # noqa: B006
    hot: Annotated[bool, Option("--hot", help="Only comments the site listed as hot.")] = False,
    min_chars: Annotated[int, Option(min=1, help="Characters of a comment at least.")] = 4,
    max_chars: Annotated[int, Option(min=1, help="Characters of a comment at most.")] = 200,
    min_likes: Annotated[int, Option(min=0, help="Upvotes of a comment at least.")] = 0,
    any_context: Annotated[bool, Option("--any-context", help="Also comments that answer nothing.")] = False,
    per_thread: Annotated[int | None, Option(min=1, help="Comments of a thread at most.")] = None,
    limit: Annotated[int | None, Option(min=1, help="Comments of a source at most.")] = None,
    as_json: Json = False,
) -> None:
    """Give comments to raters: tasks.jsonl, the guidelines, and sheets to fill in.

    Examples: `undertone label export --day 2026-11-19 --limit 200 --rater anna --rater ben --rater chen`;
    `undertone label export -o tasks/`; `undertone label export --project veiled --ids comment_ids.csv`
    """
    rules = Rules(tuple(lang), hot, min_chars, max_chars, min_likes, not any_context, per_thread, limit)
    if ids and (day or rules != Rules()):
        raise BadInput("--ids takes exactly the comments of the file; leave out --day and the rules of a selection")
    warehouse.create()
    if ids:
        retry(csd.select_ids, project, ids, this_run())
    if day:
        retry(csd.select, project, day, rules)
    folder = out or csd.get_step_project(project, csd.STEPS[0]).folder
    tasks, _ = csd.list_step_tasks(project, csd.STEPS[0])
    csd.export(folder, tasks, None, rater or ())
    console.show(pl.DataFrame({"project": [project], "tasks": [tasks.height], "folder": [str(folder)]}), as_json)


def import_(
    files: Annotated[list[Path], Argument(help="Labels: long or wide, csv, jsonl, xlsx or parquet.")],
    project: Project = "csd",
    as_json: Json = False,
) -> None:
    """Import labels and decide the fields that they settle. One wrong row stops it with file, row and field.

    Example: `undertone label import anna.xlsx ben.xlsx chen.xlsx`
    """
    warehouse.create()
    retry(csd.import_labels, project, files, this_run())
    console.show(csd.count_states(project), as_json)


def status(project: Project = "csd", as_json: Json = False) -> None:
    """Show how far a project has come: fields settled, and those that wait for raters or the adjudicator, by round.

    Example: `undertone label status`
    """
    console.show(csd.count_states(project), as_json)


def adjudicate(
    project: Project = "csd",
    out: Folder = None,
    adjudicator: Annotated[Names, Option(help="Also write a sheet for this adjudicator; repeat it.")] = None,
    rater: Annotated[Names, Option(help="Also write a sheet for this rater of round 2; repeat it.")] = None,
    as_json: Json = False,
) -> None:
    """Write the tasks that wait: for the adjudicator what raters disagree on, for raters what was sent back to them.

    The adjudicator gives a value, `again` (three people label it again, once) or `delete`; import it like labels.

    Example: `undertone label adjudicate --adjudicator dora`
    """
    rows = []
    for step in csd.STEPS[1:]:
        tasks, labels = csd.list_step_tasks(project, step)
        if tasks.height:
            folder = csd.get_step_project(project, step).folder
            folder = out / folder.name if out else folder
            csd.export(folder, tasks, labels, (adjudicator if step[1] == 2 else rater) or ())
            rows.append((*step, tasks.height, int(tasks["fields"].list.len().sum()), str(folder)))
    if not rows:
        console.report("nothing waits for an adjudicator or a second round")
    console.show(pl.DataFrame(rows, schema=["round", "stage", "tasks", "fields", "folder"], orient="row"), as_json)


def collect(project: Project = "csd", tool: Tool = "files", as_json: Json = False) -> None:
    """Do the step that waits: give its tasks to the tool and fetch the labels it has. Run it again to go on.

    Examples: `undertone label collect --tool label_studio`; `undertone label collect --tool simulated`
    """
    warehouse.create()
    if step := csd.find_waiting_step(project):
        studio = projects.find_studio()
        retry(csd.push, project, step, tool, studio)
        retry(csd.collect, project, step, tool, studio, this_run())
    console.show(csd.count_states(project), as_json)


def agreement(
    file: Annotated[Path | None, Argument(help="Labels, long or wide; those of --project by default.")] = None,
    project: Project = "csd",
    mapping: Annotated[str | None, Option("--map", help="task_id, rater_id, field or value=column, by commas.")] = None,
    columns: Annotated[str, Option(help="Columns with labels: one a rater, or with rater_id one a field.")] = "",
    level: Annotated[
        Literal["nominal", "ordinal", "interval"] | None, Option(help="Level of values that are not CSD's.")
    ] = None,
    values: Annotated[str, Option(help="All values in their order, comma-separated; any by default.")] = "",
    missing: Annotated[Names, Option(help="A cell that holds no label; repeat it. Empty, NA, NaN, null.")] = None,
    as_json: Json = False,
) -> None:
    """Measure agreement by field, of a project or of any file by 2 to 20 raters.

    Of the two stages of CSD: Fleiss' kappa of the first and the last round and of all four labels, Cohen, Krippendorff,
    TAE in both readings. Of other files: share of alike pairs, Fleiss, Cohen (mean of pairs), Krippendorff of a level.

    Examples: `undertone label agreement labels.csv`; `undertone label agreement ratings.xlsx --map task_id=item --level
    ordinal`
    """
    names, choices = (tuple(name.strip() for name in text.split(",") if name.strip()) for text in (columns, values))
    options = (parse(mapping, rating_files.ROLES), names, level or "nominal", choices)
    reading = rating_files.Reading(*options, ("", *missing) if missing else rating_files.MISSING)
    is_plain = level is None and reading == rating_files.Reading()
    if not file and not is_plain:
        raise BadInput("--map, --columns, --level, --values and --missing are for a file; name one")
    if file:
        table = csd.measure_file_agreement(file, None if is_plain else reading)
    else:
        decisions = csd.decide(project)
        runs.report_dropped("agreement", decisions.dropped.filter(reason="nothing_to_adjudicate"), project)
        table = csd.measure_agreement(decisions)
    console.show(table if as_json else table.select(~cs.ends_with("_low", "_high", "note")), as_json)
    for line in csd.explain_agreement(table):
        console.report(line)


def release(
    project: Project = "csd",
    name: Annotated[str | None, Option(help="Name of the release; the project's by default.")] = None,
    required: Annotated[Names, Option(help="Fields that a published comment needs; repeat it. subtext.")] = None,
    licence: Annotated[str, Option(help="Licence of the annotations, for the data card.")] = "not stated",
    day: Day = "",
    as_json: Json = False,
) -> None:
    """Publish settled comments: the table `annotated_comments`, and a folder with files and a data card.

    Example: `undertone label release --licence CC-BY-4.0`
    """
    folder = retry(releases.release, project, name, required or releases.REQUIRED, licence, day, this_run())
    count = pl.scan_parquet(folder / "data.parquet").select(pl.len()).collect().item()
    row = pl.DataFrame({"rows": [count], "folder": [str(folder)]})
    console.print_result(row, {"folder": str(folder), "row_count": count}, as_json)


def withdraw(
    row_ids: Annotated[list[str], Argument(help="Random ids that the comments were published under.")],
    as_json: Json = False,
) -> None:
    """Take comments out of labelling and of every release, when their writers ask for it.

    Sheets and the labelling tool keep their copies until they are deleted there.

    Example: `undertone label withdraw 0f3a5c7e91b2d486`
    """
    console.show(retry(releases.withdraw, row_ids, this_run()), as_json)


def page(project: Project = "csd", day: Day = "") -> None:
    """Write the page of a project, agreement and figures, and print its path. Example: `undertone label page`"""
    with console.working("drawing"):
        echo(releases.write_page(project, day))


def guidelines(
    lang: Annotated[str, Option(help="zh or en.")] = "zh",
    out: Annotated[Path | None, Option("--out", "-o", help="The .html file; in the reports by default.")] = None,
) -> None:
    """Write the page that raters read first, and print its path.

    Example: `undertone label guidelines --lang en -o guidelines.html`
    """
    from pipeline.report.labelling import data_card as page

    files.check_folder(out)
    html = page.render_guidelines(lang)
    if out:
        write_text(out, html)
    echo(out or pages.write_page(f"guidelines-{lang}.html", html))
