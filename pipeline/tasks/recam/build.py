"""All steps of building cloze items in one process: of the tables, or of a file without them (ReCAM, section 3)."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from pipeline import __version__, left_out
from pipeline.errors import BadInput
from pipeline.examples.recam import building, choices
from pipeline.examples.recam import items as examples
from pipeline.io.atomic import create_folder
from pipeline.tasks.recam import options, targets
from pipeline.tasks.recam.options import CHOOSING, Choosing, Job
from pipeline.tasks.recam.targets import RULES, Rules

T = TypeVar("T")
R = TypeVar("R")
Done = Callable[[int], None]

SOURCE = "file"  # what articles that are in no table are filed under


def build(
    day: str, subtasks: Sequence[str] = building.SUBTASKS, rules: Rules = RULES, choosing: Choosing = CHOOSING,
    run_id: str = "cli", on_progress: Done = lambda _: None,
) -> pl.DataFrame:  # fmt: skip
    """All steps of the tables, as the DAG takes them; what there is then of items."""
    rules = targets.parse_rules(targets.resolve_rules(day, rules._asdict(), None, run_id))
    staged = [*_told(targets.plan(), partial(targets.stage_targets, rules=rules), on_progress)]
    targets.publish_targets(staged, day, rules, run_id)
    for subtask in subtasks:
        proposals = [
            *_told(options.list_jobs([subtask]), partial(options.stage_proposals, choosing=choosing), on_progress)
        ]
        options.publish_items(subtask, proposals, day, choosing, rules, run_id)
    return options.count_items()


def _told(what: Sequence[T], work: Callable[[T], R], done: Done) -> Iterator[R]:
    for one in what:
        yield work(one)
        done(1)


def build_file(
    path: Path, out: Path, subtasks: Sequence[str] = building.SUBTASKS, rules: Rules = RULES,
    choosing: Choosing = CHOOSING, on_progress: Done = lambda _: None,
) -> pl.DataFrame:  # fmt: skip
    """Items of a file of articles with summaries, into a folder that is complete or not there.

    It holds `<subtask>_<split>.jsonl` in the official format, targets.parquet (every token of the summaries with its
    reason), dropped.csv, and card.json, which says how they were made.

    Returns:
        subtask, split, item_count.

    Raises:
        BadInput: the folder holds something, the file is broken, or too few of its articles have a target.
    """
    from pipeline.examples.recam import summaries

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{out}: is there already; choose another folder")
    read = summaries.read(path)
    articles = read.rows.select("text", "summary", source=pl.lit(SOURCE), thread_id="article_id")
    parts = [*articles.iter_slices(targets.ROWS_PER_SHARD)]
    told = pl.concat([frame for each in _told(parts, partial(_found, rules), on_progress) for frame in each])
    told = told.with_columns(source=pl.lit(SOURCE))
    made = {
        subtask: _made(path, building.items(articles, told, subtask), subtask, rules, choosing, on_progress)
        for subtask in subtasks
    }
    dropped = [
        read.dropped,
        building.without_targets(articles, told, subtasks),
        *(one.dropped for one in made.values()),
    ]
    gone = pl.concat([frame.select("reason", "row_key") for frame in dropped])
    left_out.record_rows("build", dict(gone["reason"].value_counts().iter_rows()), str(path))
    with create_folder(out) as draft:
        counts = [count for subtask, one in made.items() for count in _written(draft, subtask, one.items)]
        told.drop("source").write_parquet(draft / "targets.parquet")
        gone.write_csv(draft / "dropped.csv")
        card: dict[str, Any] = {"file": path.name, "rules": rules._asdict(), "choosing": choosing._asdict()}
        card |= {"readers": {subtask: one.retrieval.to_dicts() for subtask, one in made.items()}}
        text = json.dumps({**card, "undertone": __version__}, indent=1, ensure_ascii=False)
        (draft / "card.json").write_text(text, encoding="utf-8")
    return pl.DataFrame(counts, schema=["subtask", "split", "item_count"], orient="row")


def _found(by: Rules, articles: pl.DataFrame) -> list[pl.DataFrame]:
    return [*targets.find_targets(articles, by)]


def _made(path: Path, asked: pl.DataFrame, subtask: str, by: Rules, how: Choosing, done: Done) -> options.ChosenItems:
    if (count := asked["article"].n_unique()) < choices.FOLDS:
        raise BadInput(f"{path}: {count} articles have a target of {subtask}; expected {choices.FOLDS} at least, as "
                       "wrong options are made in folds")  # fmt: skip
    jobs = [
        Job(subtask=subtask, reader=reader, fold=fold, snapshots={})
        for reader in options.READERS
        for fold in range(choices.FOLDS)
    ]
    proposals = pl.concat([*_told(jobs, partial(options.propose_words, asked, choosing=how), done)])
    return options.choose_options(asked, proposals, how, by)


def _written(folder: Path, subtask: str, items: pl.DataFrame) -> Iterator[tuple[str, str, int]]:
    for (split,), mine in sorted(items.partition_by("split", as_dict=True).items(), key=lambda one: str(one[0])):
        examples.write(folder / f"{subtask}_{split}.jsonl", mine.select(list(examples.SCHEMA)))
        yield subtask, str(split), mine.height
