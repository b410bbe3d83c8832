"""Commands about cloze questions on abstract words."""

from pathlib import Path
from typing import Annotated

import polars as pl
from typer import Argument, Option, echo

from pipeline import warehouse
from pipeline.commands.label import Folder, Raters, RatingTool, Tool
from pipeline.commands.models import changes_of
from pipeline.commands.recam import OneSubtask, Scorer, Subtask, Vectors
from pipeline.commands.terminal import console
from pipeline.commands.terminal.options import Day, Json, this_run
from pipeline.errors import BadInput, Missing, format_quantity
from pipeline.examples.recam import items as cloze
from pipeline.examples.recam.building import SUBTASKS
from pipeline.metrics.recam import audit as cloze_audit
from pipeline.progress import track
from pipeline.tasks.labelling import projects
from pipeline.tasks.recam import options, ratings, readers, targets
from pipeline.tasks.record import runs
from pipeline.tasks.record.retry import retry

NO_ITEMS = "the tables hold no cloze items; make some: `undertone cloze build`"
Items = Annotated[Path, Argument(help="Items, a JSON object a line: article, question, option_0 …, label.")]


def build_items(
    file: Annotated[Path | None, Argument(help="Articles with summaries, as XSum's; by default the tables'.")] = None,
    out: Annotated[Path | None, Option("--out", "-o", help="Folder of the items, with a file.")] = None,
    splits: Annotated[Path | None, Option(help="XSum's split, JSON with ids of train, validation, test.")] = None,
    subtask: Subtask = None,
    rule: Annotated[str | None, Option(help="Wrong options: paper, the commonest; balanced give nothing away.")] = None,
    scorer: Scorer = None,
    vectors: Vectors = None,
    conllu: Annotated[Path | None, Option(help="A treebank to learn tagging from, without stanza.")] = None,
    in_context: Annotated[bool, Option("--in-context/--no-context", help="Filter by an encoder's states.")] = True,
    senses: Annotated[str | None, Option(help="What chooses senses: signatures, glosses, glosses_normalised.")] = None,
    small: Annotated[bool, Option("--small", help="Readers that a CPU can train, by some thousand items.")] = False,
    changes: Annotated[
        list[str] | None,
        Option("--set", help="NAME=VALUE: concrete_from, specific_from, similar, or of the readers; repeat it."),
    ] = None,
    day: Day = "",
) -> None:
    """Build items out of articles with summaries: targets, filters, wrong options by readers that have not seen them.

    Examples: `undertone cloze build xsum.jsonl -o items/ --small`; `undertone cloze build` (of the tables, as
    the DAG `recam` does)
    """
    if (file is None) != (out is None):
        raise BadInput("a file of articles and --out, the folder of the items, go together")
    if splits and not file:
        raise BadInput("--splits is about a file of articles; the items of the tables have a random split")
    paths = {name: path and str(path) for name, path in (("vectors", vectors), ("conllu", conllu))}
    values: dict[str, object] = {"scorer": scorer, **paths, "in_context": in_context, "senses": senses, "rule": rule}
    values |= {"is_small": small, "numbers": changes_of(changes or [])}
    rules, choosing = targets.parse_rules(values), options.parse_choosing(values)
    subtasks = [targets.check_subtask(subtask)] if subtask else list(SUBTASKS)
    with track("steps") as on_progress:
        if file and out:
            counts = options.build_file(file, out, subtasks, rules, choosing, on_progress, splits)
        else:
            warehouse.create()
            counts = retry(options.build, day, subtasks, rules, choosing, this_run(), on_progress)
    console.table(counts)


def stats(
    paths: Annotated[
        list[Path] | None,
        Argument(help="Items in the official format; by default the tables'; several have a row each."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Count items, their lengths and words; of the tables also what each filter took out.

    Examples: `undertone cloze stats Task_1_dev.jsonl Task_2_dev.jsonl`; `undertone cloze stats`
    """
    if paths:
        tables = [cloze.compute_statistics(cloze.read(path).items) for path in paths]
        rows = [{"file": str(path), **dict(table.iter_rows())} for path, table in zip(paths, tables, strict=True)]
        console.show(pl.DataFrame(rows) if len(paths) > 1 else tables[0], as_json)
        return
    counts = options.count_items()
    funnel = warehouse.query(
        "select subtask, reason, sum(row_count)::bigint as row_count from cloze_funnel "
        "group by subtask, reason order by subtask, reason = 'target', row_count desc"
    )
    if not counts.height and not funnel.height:
        raise Missing(f"{NO_ITEMS}, or give a file of items")
    console.print_result(counts, {"items": counts.to_dicts(), "funnel": funnel.to_dicts()}, as_json)
    if not as_json and funnel.height:
        console.table(funnel.pivot("subtask", index="reason", values="row_count"), "\nTokens of summaries, by reason")


def export(
    subtask: OneSubtask,
    out: Annotated[Path, Option("--out", "-o", help="File to write, in the official format.")],
    split: Annotated[str | None, Option(help="train, validation or test; all by default.")] = None,
) -> None:
    """Write items of the tables in the official format.

    Example: `undertone cloze export nonspecificity --split test -o Task_2_test.jsonl`
    """
    rows = readers.read_items(targets.check_subtask(subtask), *([split] if split else []))
    cloze.write(out, rows)
    console.report(f"{out}: {format_quantity(rows.height, 'item')}")


def audit(file: Items, as_json: Json = False) -> None:
    """Measure what a set of items gives away without reading: by how often options are right elsewhere, and more.

    Example: `undertone cloze audit Task_1_dev.jsonl`
    """
    items, dropped = cloze.read(file)
    runs.report_dropped("read", dropped, str(file))
    console.show(cloze_audit.audit(items), as_json)


def page(day: Day = "") -> None:
    """Test the readers of a day on both kinds of abstractness, and write the page about items and readers.

    Without a reader the page is about the items alone.

    Example: `undertone cloze page --day 2026-11-19`
    """
    from pipeline.tasks.recam import page

    if not options.count_items().height:
        raise Missing(NO_ITEMS)
    for trained_on in SUBTASKS:
        try:
            model_id = readers.load_model(None, trained_on, day).model_id
        except Missing as error:
            console.report(f"the page has no accuracy of a reader of {trained_on}: {error}")
            continue
        for tested_on in SUBTASKS:
            retry(readers.evaluate_crossed, day, trained_on, tested_on, model_id, this_run())
    echo(page.write(day))


def rate(
    subtask: OneSubtask,
    limit: Annotated[int | None, Option(min=1, help="Items to rate at most; all by default.")] = None,
    out: Folder = None,
    rater: Raters = None,
    tool: RatingTool = "files",
    day: Day = "",
) -> None:
    """Give items to raters: the questionnaire of ReCAM's quality control (section 3.6, appendix A).

    Writes sheets, guidelines and hiring.md: whom the paper recruited (country, approval rate).

    Examples: `undertone cloze rate imperceptibility --limit 200 --rater anna --rater ben`;
    `undertone cloze rate imperceptibility --tool label_studio`
    """
    name = targets.check_subtask(subtask)
    retry(ratings.select, name, day, limit, this_run())
    if tool == "label_studio":
        count = projects.push(ratings.get_project(name), ratings.read_tasks(name), projects.find_studio())
        console.report(f"{format_quantity(count, 'task')} given to Label Studio")
        return
    folder = out or ratings.get_project(name).folder
    console.report(f"{folder}: {format_quantity(ratings.export(name, folder, rater or []), 'task')}")


def import_ratings(
    subtask: OneSubtask,
    files: Annotated[list[Path] | None, Argument(help="Answers: sheets, or long tables.")] = None,
    tool: Tool = "files",
    as_json: Json = False,
) -> None:
    """Import raters' answers, leave out those that do not count (appendix E), and flag items that are at fault.

    Flagged items are left out of training and tests of readers.

    Examples: `undertone cloze ratings imperceptibility anna.xlsx ben.xlsx`; `undertone cloze ratings imperceptibility
    --tool simulated`
    """
    name = targets.check_subtask(subtask)
    if tool != "files" or files:
        retry(ratings.collect, name, files or [], tool, projects.find_studio(), this_run())
    items, selection = retry(ratings.flag, name, this_run())
    if tool == "simulated":
        console.report("these answers are simulated: the flags are no judgement of the items")
    columns = {"unanswerable": "is_unanswerable", "ambiguous": "is_ambiguous", "answers": "n"}
    counts = {"items": items.height, **{count: items[column].sum() for count, column in columns.items()}}
    counts |= dict(selection.dropped.group_by("reason").len().sort("reason").iter_rows())
    console.print_result(selection.raters, {**counts, "raters": selection.raters.to_dicts()}, as_json)
    if not as_json:
        console.report(", ".join(f"{name} {count}" for name, count in counts.items()))
