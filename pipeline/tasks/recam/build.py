"""All steps of building cloze items in one process: from the tables, or from a file without them (ReCAM, section 3)."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from pipeline import __version__, left_out
from pipeline.errors import BadInput
from pipeline.examples.recam import building, choices, items, summaries
from pipeline.io.atomic import check_empty, create_folder
from pipeline.progress import OnProgress
from pipeline.tasks.recam import options, targets
from pipeline.tasks.recam.options import CHOOSING, Choosing
from pipeline.tasks.recam.targets import RULES, Rules

SOURCE = "file"  # of articles that are in no table


def build(
    day: str,
    subtasks: Sequence[str] = building.SUBTASKS,
    rules: Rules = RULES,
    choosing: Choosing = CHOOSING,
    run_id: str = "cli",
    on_progress: OnProgress = lambda _: None,
) -> pl.DataFrame:
    """Build the items of the tables in the steps of the DAG `recam`; return `options.count_items`."""
    rules = targets.parse_rules(targets.resolve_rules(day, rules._asdict(), None, run_id))
    staged = _run(targets.plan(), partial(targets.stage_targets, rules=rules), on_progress)
    targets.publish_targets(staged, day, rules, run_id)
    for subtask in subtasks:
        propose = partial(options.stage_proposals, choosing=choosing)
        proposals = _run(options.list_jobs([subtask]), propose, on_progress)
        options.publish_items(subtask, proposals, day, choosing, rules, run_id)
    return options.count_items()


def _run(parts: Sequence[Any], work: Callable[[Any], Any], on_progress: OnProgress) -> list[Any]:
    results = []
    for part in parts:
        results.append(work(part))
        on_progress(1)
    return results


def build_file(
    path: Path,
    out: Path,
    subtasks: Sequence[str] = building.SUBTASKS,
    rules: Rules = RULES,
    choosing: Choosing = CHOOSING,
    on_progress: OnProgress = lambda _: None,
    splits: Path | None = None,
) -> pl.DataFrame:
    """Build items from a file of articles with summaries into a folder, completely or not at all.

    It holds `<subtask>_<split>.jsonl` in the official format, targets.parquet (every token of the summaries with its
    reason), dropped.csv, and card.json with the rules, WordNet's version and deepest levels, and the encoder. `splits`
    is XSum's official file, a JSON object of ids by split; articles that it lacks get a random split. Return subtask,
    split, item_count.

    BadInput if the folder is not empty, the file is broken, or too few of its articles have a target.
    """
    check_empty(out)
    summarised = summaries.read(path, splits)
    articles = summarised.rows.select("text", "summary", "split", source=pl.lit(SOURCE), thread_id="article_id")
    parts = [*articles.iter_slices(targets.ROWS_PER_SHARD)]
    frames = _run(parts, lambda part: pl.concat(targets.find_targets(part, rules)), on_progress)
    tokens = pl.concat(frames).with_columns(source=pl.lit(SOURCE))
    open_items = {subtask: building.build_items(articles, tokens, subtask) for subtask in subtasks}
    chosen = {}
    for subtask, rows in open_items.items():
        if (count := rows["article"].n_unique()) < choices.FOLDS:
            raise BadInput(
                f"{path}: {count} articles have a target of {subtask}; expected at least {choices.FOLDS}, as wrong "
                "options are made in folds"
            )
        propose = partial(options.propose_words, rows, choosing=choosing)
        proposals = _run(options.make_jobs(subtask, {}), propose, on_progress)
        chosen[subtask] = options.choose_options(rows, pl.concat(proposals), choosing, rules)
    untargeted = building.list_untargeted(articles, tokens, subtasks)
    dropped = pl.concat([summarised.dropped, untargeted, *(choice.dropped for choice in chosen.values())])
    left_out.record_rows("build", dict(dropped["reason"].value_counts().iter_rows()), str(path))
    with create_folder(out) as draft:
        counts = []
        for subtask, choice in chosen.items():
            for (split,), rows in sorted(choice.items.partition_by("split", as_dict=True).items()):
                items.write(draft / f"{subtask}_{split}.jsonl", rows)
                counts.append((subtask, split, rows.height))
        tokens.drop("source").write_parquet(draft / "targets.parquet")
        dropped.write_csv(draft / "dropped.csv")
        card: dict[str, Any] = {"file": path.name, "rules": rules._asdict(), "choosing": choosing._asdict()}
        card["readers"] = {subtask: choice.retrieval.to_dicts() for subtask, choice in chosen.items()}
        card |= {"splits": splits and splits.name, **targets.describe_resources(rules), "undertone": __version__}
        (draft / "card.json").write_text(json.dumps(card, indent=1, ensure_ascii=False), encoding="utf-8")
    return pl.DataFrame(counts, schema=["subtask", "split", "item_count"], orient="row")
