"""Commands about models of ReCAM: readers, the encoders they stand on, and the scorer of abstractness."""

from pathlib import Path
from typing import Annotated, Any

import polars as pl
from typer import Argument, Option

from pipeline import left_out
from pipeline.commands.models import changes_of, end_training, train_registered
from pipeline.commands.recam import Changes, Scorer, Subtask, Vectors
from pipeline.commands.terminal import console, files
from pipeline.commands.terminal import options as shared
from pipeline.errors import BadInput, format_quantity
from pipeline.examples.recam import items as cloze
from pipeline.examples.recam.building import SUBTASKS
from pipeline.tasks.ndd import masked_lm
from pipeline.tasks.recam import abstractness, readers, targets


def train_reader(
    items: Annotated[list[Path] | None, Option(help="Items in the official format; or the tables'. Repeat it.")] = None,
    out: Annotated[Path | None, Option("--out", "-o", help="Folder of the model, with --items.")] = None,
    without: Annotated[list[Path] | None, Option(help="Without items whose article is in this; repeat it.")] = None,
    subtask: Subtask = None,
    profile: Annotated[str, Option(help="gated, attentive, gloss, official, or a pretrained reader's.")] = "gated",
    start: Annotated[Path | None, Option("--from", help="Word vectors in GloVe's format, or an encoder.")] = None,
    changes: Changes = None,
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
            evaluations = readers.train_file(rows, out, force=force, **recipe)
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
    summary = readers.summarize(evaluations) if is_tested else epochs
    console.print_result(summary, facts, as_json)


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
    named = subtask or next((name for mark, name in marks.items() if mark in file_name), None)
    if submissions and items and not named:
        raise BadInput(f"--submissions needs --subtask ({' or '.join(SUBTASKS)}): {items.name} names neither")
    name = targets.check_subtask(named) if named else SUBTASKS[0]
    reader = readers.load_model(model, name)
    rows = cloze.read(items).items if items else readers.read_items(name, "test")
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
    changes: Changes = None,
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
    changes: Changes = None,
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
