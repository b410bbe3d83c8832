"""Commands of ReCAM: cloze questions on abstract words, their readers and encoders, and the scorer of abstractness."""

from pathlib import Path
from typing import Annotated, Any

import polars as pl
from typer import Argument, Option, echo

from pipeline import left_out, warehouse
from pipeline.commands.label import Folder, Raters, RatingTool, Tool
from pipeline.commands.models import changes_of, end_training, train_registered
from pipeline.commands.terminal import console, files
from pipeline.commands.terminal import options as shared
from pipeline.commands.terminal.options import Day, Json, this_run
from pipeline.errors import BadInput, Missing, format_quantity
from pipeline.examples.recam import items as cloze
from pipeline.examples.recam.building import SUBTASKS
from pipeline.metrics.recam import audit as cloze_audit
from pipeline.progress import track
from pipeline.tasks.labelling import projects
from pipeline.tasks.ndd import masked_lm
from pipeline.tasks.recam import abstractness, options, readers, targets
from pipeline.tasks.recam import ratings as rating_tasks
from pipeline.tasks.record import model_registry, runs
from pipeline.tasks.record.retry import retry

Subtask = Annotated[str | None, Option(help=f"{' or '.join(SUBTASKS)}; both by default.")]
OneSubtask = Annotated[str, Argument(help=" or ".join(SUBTASKS))]
Vectors = Annotated[Path | None, Option(help="Word vectors in GloVe's format; by default the encoder's.")]
_SCORER = "Folder or id of a scorer of abstractness, or a file of ratings to use unchanged."
Scorer = Annotated[str | None, Option("--scorer", "--model", "-m", help=_SCORER)]
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
    rules = targets.parse_rules(values)
    subtasks = [targets.check_subtask(subtask)] if subtask else list(SUBTASKS)
    with track("steps") as on_progress:
        if file and out:
            counts = options.build_file(file, out, subtasks, rules, on_progress, splits)
        else:
            warehouse.create()
            counts = retry(options.build, day, subtasks, rules, this_run(), on_progress)
    console.table(counts)


def stats(
    paths: Annotated[list[Path] | None, Argument(help="Items in the official format; else the tables'.")] = None,
    as_json: Json = False,
) -> None:
    """Count items, their lengths and words; of the tables also what each filter took out.

    Examples: `undertone cloze stats Task_1_dev.jsonl Task_2_dev.jsonl`; `undertone cloze stats`
    """
    if paths:
        tables = [cloze.compute_statistics(_read_items(path)) for path in paths]
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
    console.show(cloze_audit.audit(_read_items(file)), as_json)


def _read_items(path: Path) -> pl.DataFrame:
    items, dropped = cloze.read(path)
    runs.report_dropped("read", dropped, str(path))
    if not items.height:
        raise BadInput(f"{path}: no item is left, as two of the options are the same in each")
    return items


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
    retry(rating_tasks.select, name, day, limit, this_run())
    if tool == "label_studio":
        count = projects.push(rating_tasks.get_project(name), rating_tasks.read_tasks(name), projects.find_studio())
        console.report(f"{format_quantity(count, 'task')} given to Label Studio")
        return
    folder = out or rating_tasks.get_project(name).folder
    console.report(f"{folder}: {format_quantity(rating_tasks.export(name, folder, rater or []), 'task')}")


def import_ratings(
    subtask: OneSubtask,
    paths: Annotated[list[Path] | None, Argument(help="Answers: sheets, or long tables.")] = None,
    tool: Tool = "files",
    as_json: Json = False,
) -> None:
    """Import raters' answers, leave out those that do not count (appendix E), and flag items that are at fault.

    Flagged items are left out of training and tests of readers.

    Examples: `undertone cloze ratings imperceptibility anna.xlsx ben.xlsx`; `undertone cloze ratings imperceptibility
    --tool simulated`
    """
    name = targets.check_subtask(subtask)
    if tool != "files" or paths:
        retry(rating_tasks.collect, name, paths or [], tool, projects.find_studio(), this_run())
    items, selection = retry(rating_tasks.flag, name, this_run())
    if tool == "simulated":
        console.report("these answers are simulated: the flags are no judgement of the items")
    columns = {"unanswerable": "is_unanswerable", "ambiguous": "is_ambiguous", "answers": "n"}
    counts = {"items": items.height, **{count: items[column].sum() for count, column in columns.items()}}
    counts |= dict(selection.dropped.group_by("reason").len().sort("reason").iter_rows())
    console.print_result(selection.raters, {**counts, "raters": selection.raters.to_dicts()}, as_json)
    if not as_json:
        console.report(", ".join(f"{name} {count}" for name, count in counts.items()))


def train_reader(
    items: Annotated[list[Path] | None, Option(help="Items in the official format; or the tables'. Repeat it.")] = None,
    out: Annotated[Path | None, Option("--out", "-o", help="Folder of the model, with --items.")] = None,
    without: Annotated[list[Path] | None, Option(help="Without items whose article is in this; repeat it.")] = None,
    subtask: Subtask = None,
    profile: Annotated[str, Option(help="gated, attentive, gloss, official, or a pretrained reader's.")] = "gated",
    start: Annotated[Path | None, Option("--from", help="Word vectors in GloVe's format, or an encoder.")] = None,
    changes: shared.Changes = None,
    promote: shared.Promote = False,
    force: shared.Force = False,
    day: shared.MaybeDay = "",
    as_json: shared.Json = False,
) -> None:
    """Train a reader on items of files into a folder, or on the tables' into the registry.

    Examples: `undertone train reader --items trial.jsonl --without Task_1_dev.jsonl -o reader/`;
    `undertone train reader --subtask imperceptibility --profile attentive`
    """
    recipe: dict[str, Any] = {"profile": profile, "changes": changes_of(changes or []), "path": start}
    shared.check_promote(out, promote)
    if items:
        if out is None or subtask or day:
            raise BadInput("--items needs --out, the folder of the model, and neither --subtask nor --day")
        rows, dropped = readers.gather_items(items, without or [])
        left_out.record_rows("read", dropped, "--items")
        with console.working("training"):
            _, evaluations = model_registry.train_into(out, lambda: readers.fit(rows, **recipe), force=force)
        _show_evaluations(evaluations, {"model": str(out), "item_count": rows.height}, as_json)
        return
    if out or without:
        raise BadInput("--out and --without are about files; give items by --items")
    model_ids = []
    for name in [targets.check_subtask(subtask)] if subtask else SUBTASKS:
        with console.working(f"training on {name}"):
            model_id, evaluations = train_registered(readers.train, day, name, promote=promote, **recipe)
        evaluations = evaluations.filter(kind=readers.get_kind(name))
        _show_evaluations(evaluations, {"model": model_id, "subtask": name}, as_json)
        model_ids.append(model_id)
    end_training(*model_ids)


def _show_evaluations(evaluations: pl.DataFrame, facts: dict[str, object], as_json: bool) -> None:
    is_tested = (evaluations["split"] == "test").any()
    epochs = evaluations.select("epoch", "baseline", n="pair_count", accuracy="value", by="baseline_name")
    console.print_result(readers.summarize(evaluations) if is_tested else epochs, facts, as_json)


def evaluate_reader(
    items: Annotated[Path | None, Option(help="Items in the official format; else the tables' test part.")] = None,
    model: Annotated[str | None, Option("--model", "-m", help="Folder or id; by default that in force.")] = None,
    against: Annotated[str | None, Option(help="Folder or id of another reader, compared on the same items.")] = None,
    subtask: Subtask = None,
    submissions: Annotated[bool, Option("--submissions", help="Rank it among the submissions (tables 6, 7).")] = False,
    as_json: shared.Json = False,
) -> None:
    """Measure a reader: accuracy with its interval, by part of speech and length, and answering without reading.

    Examples: `undertone evaluate reader --model reader/ --items Task_1_dev.jsonl`;
    `undertone evaluate reader --subtask nonspecificity` (the one in force, on its own kind of items);
    `undertone evaluate reader --model ID --subtask nonspecificity` (of one kind on the other: subtask 3)
    """
    marks = {**dict(zip(("task_1", "task_2"), SUBTASKS, strict=True)), **dict(zip(SUBTASKS, SUBTASKS, strict=True))}
    file_name = items.name.lower() if items else ""  # such as Task_2_dev.jsonl or nonspecificity_test.jsonl
    subtask_name = subtask or next((name for mark, name in marks.items() if mark in file_name), None)
    if submissions and items and not subtask_name:
        raise BadInput(f"--submissions needs --subtask ({' or '.join(SUBTASKS)}): {items.name} names neither")
    name = targets.check_subtask(subtask_name) if subtask_name else SUBTASKS[0]
    reader = readers.load_model(model, name)
    rows = _read_items(items) if items else readers.read_items(name, "test")
    evaluations = readers.measure(rows, reader)
    facts: dict[str, object] = {"model_id": reader.model_id, "numbers": evaluations.to_dicts()}
    if against:
        facts["compared"] = readers.compare(rows, reader, readers.load_model(against, name))
    if submissions:
        ranked = readers.rank_among_submissions(evaluations["value"][0], name, reader.model_id)
        facts["submissions"] = ranked.to_dicts()
    console.print_result(readers.summarize(evaluations), facts, as_json)
    if against and not as_json:
        console.table(pl.DataFrame([facts["compared"]]), f"\nHow much more often right than {against}")
    if submissions and not as_json:
        console.table(ranked, f"\nAmong the submissions on the paper's test items of {name}, which are not public")


def train_masked_lm(
    file: Annotated[Path, Argument(help="Texts: csv, tsv, txt, jsonl, parquet, xlsx.")],
    out: Annotated[Path, Option("--out", "-o", help="Folder of the encoder, in Hugging Face's layout.")],
    column: Annotated[str | None, Option("--text-column", "-c", help="Column of the texts.")] = None,
    start: Annotated[str | None, Option("--from", help="Encoder: a folder or a name; the usual by default.")] = None,
    profile: Annotated[str, Option(help="embedded or large.")] = "embedded",
    changes: shared.Changes = None,
    encoding: shared.Encoding = "utf-8-sig",
    as_json: shared.Json = False,
) -> None:
    """Adapt an encoder to texts by masking words in them (task-adaptive pre-training).

    Example: `undertone train masked-lm xsum.jsonl -c document -o adapted/`, then
    `undertone train reader --profile masked --from adapted/ …`
    """
    texts = [text for frame, name in files.texts(file, column, encoding) for text in frame[name].drop_nulls()]
    with console.working("training"):
        epochs = masked_lm.train(texts, out, profile, changes_of(changes or []), start)
    console.print_result(epochs, {"model": str(out)}, as_json)


def train_scorer(
    out: Annotated[Path | None, Option("--out", "-o", help="Folder of the model; by default the registry.")] = None,
    ratings: Annotated[Path | None, Option(help="Rated words, as MRC's csv; else ours, by a language model.")] = None,
    vectors: Vectors = None,
    splits: Annotated[int, Option(min=0, help="Measure it first on so many random splits of the list.")] = 0,
    profile: Annotated[str, Option(help="undertone or paper.")] = "undertone",
    changes: shared.Changes = None,
    promote: shared.Promote = False,
    force: shared.Force = False,
    day: shared.Day = "",
    as_json: shared.Json = False,
) -> None:
    """Train the scorer of abstractness on rated words (ReCAM, section 3.2).

    Examples: `undertone train abstractness --ratings mrc.csv --splits 10 -o concreteness/`;
    `undertone train abstractness --ratings mrc.csv` (ten splits are measured, and a tenth is held out)
    """
    if out is None and (changes or splits or profile != abstractness.PROFILE):
        raise BadInput("--splits, --profile and --set need --out: a scorer of the tables has the default numbers")
    shared.check_promote(out, promote)
    words = abstractness.read_ratings(ratings)
    if out is None:
        with console.working("training"):
            model_id, _ = train_registered(abstractness.train, day, words, vectors, promote=promote)
        console.report(f"model {model_id}: {format_quantity(words.rows.height, 'word')}, {words.signature}")
        end_training(model_id)
        return
    with console.working("training"):
        rows = abstractness.train_file(out, words, vectors, profile, changes_of(changes or []), splits, force=force)
    facts = {"model": str(out), "ratings": words.signature, "word_count": words.rows.height}
    if rows.height:
        console.print_result(abstractness.summarize(rows), {**facts, "splits": rows.to_dicts()}, as_json)
    elif as_json:
        console.print_result(rows, facts, as_json)
    else:
        console.report(f"{out}: {format_quantity(words.rows.height, 'word')}, {words.signature}")


def score_words(
    words: Annotated[list[str], Argument(help="Words.")],
    scorer: Scorer = None,
    vectors: Vectors = None,
    unknown: Annotated[str, Option(help="Unknown words: keep them, score them empty, or drop them.")] = "keep",
    as_json: shared.Json = False,
) -> None:
    """Score words for concreteness, 0 highly abstract to 1 highly concrete; `reason` marks those that are unknown.

    Examples: `undertone score abstractness hope bridge --scorer concreteness/`;
    `undertone score abstractness hope bridge --scorer brysbaert.csv --unknown drop`
    """
    with console.working("scoring"):
        scores = abstractness.score_words(scorer, words, vectors, unknown)
    console.show(scores, as_json)
