"""Wrong options as tasks: readers that have not seen an item propose words, four become options (ReCAM, 3.5)."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import polars as pl

from pipeline import __version__, left_out, slices, warehouse
from pipeline.errors import BadInput
from pipeline.examples.recam import balance, building, items, summaries
from pipeline.io.atomic import check_empty, create_folder
from pipeline.metrics.recam import reading
from pipeline.models.devices import choose_device
from pipeline.progress import OnProgress
from pipeline.tables import TABLES
from pipeline.tasks.recam import readers, targets
from pipeline.tasks.recam.targets import RULES, Rules
from pipeline.tasks.record import model_registry, runs

READERS = ("gated", "attentive", "gloss")
STEP = "cloze_items"
DEPTH = 50  # words of each reader that are kept; the paper's rule looks at ten
PROPOSALS = {"item_id": pl.String(), "reader": pl.String(), "word": pl.String(), "rank": pl.Int64()}
SOURCE = "file"  # of articles that are in no table


class Job(TypedDict):
    """One reader that is trained on all folds but one and proposes words for that fold."""

    subtask: str
    reader: str
    fold: int
    snapshots: dict[str, int | None]  # of articles and cloze_targets


class ChosenItems(NamedTuple):
    """Items with five options, those that have too few, and how well the readers found the words left out."""

    items: pl.DataFrame  # the columns of `building.OPEN`, and options, label
    dropped: pl.DataFrame  # reason, row_key
    retrieval: pl.DataFrame  # reader, mrr, recall_1, recall_5, recall_10, row_count (Tables 3 and 4)


def check_params(params: Mapping[str, Any]) -> None:
    """Raise BadInput for numbers and files of a run that its readers could not use."""
    from pipeline.training.recam import readers as training

    numbers = targets.parse_rules(params).numbers
    for reader in READERS:
        training.make_recipe(reader, over="vocabulary", **numbers)
    module = readers.get_module(params["profile"])
    module.make_recipe(params["profile"], epochs=params["epochs"], seed=params["seed"])
    names = ["ratings", "vectors", "conllu"]
    if module is training or "@" not in (params["start"] or ""):  # a hub name has a revision
        names.append("start")
    for name in names:
        path = targets.parse_path(params[name])
        if path and not path.exists():
            raise BadInput(f"{name}: {path}: there is no such file")


def get_kind(subtask: str) -> str:
    """Return the kind under which `evaluations` has the readers that propose options of a subtask."""
    return f"choosing_{subtask}"


def list_jobs(subtasks: Sequence[str] = building.SUBTASKS) -> list[Job]:
    """List the readers to train, twelve for a subtask; none for a subtask with fewer articles than folds."""
    snapshots = _read_snapshots()
    articles = {subtask: list_open_items(subtask, snapshots)["article"].n_unique() for subtask in subtasks}
    fit_subtasks = [subtask for subtask, count in articles.items() if count >= building.FOLDS]
    return [job for subtask in fit_subtasks for job in make_jobs(subtask, snapshots)]


def make_jobs(subtask: str, snapshots: dict[str, int | None]) -> list[Job]:
    """Make the jobs of a subtask."""
    parts = product(READERS, range(building.FOLDS))
    return [Job(subtask=subtask, reader=reader, fold=fold, snapshots=snapshots) for reader, fold in parts]


def _read_snapshots() -> dict[str, int | None]:
    return {name: warehouse.get_snapshot_id(name) for name in ("articles", "cloze_targets")}


def list_open_items(subtask: str, snapshots: Mapping[str, int | None] | None = None) -> pl.DataFrame:
    """List the questions of the tables that have no options yet; see `building.build_items`."""
    snapshots = snapshots or _read_snapshots()
    if snapshots["cloze_targets"] is None or snapshots["articles"] is None:
        return pl.DataFrame(schema=building.OPEN)
    rows = warehouse.scan("cloze_targets", pl.col("reason").is_null(), snapshots["cloze_targets"]).collect()
    return building.build_items(targets.scan_articles(snapshot=snapshots["articles"]).collect(), rows, subtask)


def stage_proposals(job: Job, rules: Rules) -> slices.Staged:
    """Train one reader on the other folds and stage its best words for each item of this fold."""
    timer = runs.start()
    proposals = propose_words(list_open_items(job["subtask"], job["snapshots"]), job, rules)
    return runs.time_shard(timer, warehouse.stage("cloze_candidates", proposals))


def propose_words(open_items: pl.DataFrame, job: Job, rules: Rules) -> pl.DataFrame:
    """Propose a reader's best words for items of a fold it has not seen: item_id, reader, word, rank from 1."""
    from pipeline.training.recam import readers as training

    small = training.SMALL if rules.is_small else {}
    gloss_changes = {"drawn": 128} if rules.is_small and job["reader"] == "gloss" else {}
    recipe = training.make_recipe(job["reader"], over="vocabulary", **{**small, **gloss_changes, **rules.numbers})
    is_in_fold = building.assign_folds(open_items, seed=rules.seed) == job["fold"]
    train_items, fold_items = open_items.filter(~is_in_fold).drop("split"), open_items.filter(is_in_fold)
    answers = open_items["answer"].unique().sort().to_list()
    vectors = readers.load_vectors(readers.list_texts(open_items), targets.parse_path(rules.vectors))
    glosses = readers.look_up_glosses(answers) if recipe.has_gloss else None
    facts = (readers.hash_items(open_items), asdict(recipe), job["fold"], vectors.revision)
    state = model_registry.locate_state(*facts)
    device = choose_device()
    model = training.fit(train_items, recipe, vectors, state, glosses=glosses, candidates=answers, device=device)
    candidates = training.rank_candidates(training.load(model.tensors, model.config, device), fold_items, DEPTH)
    proposals = candidates.select("item_id", word="candidates", reader=pl.lit(job["reader"])).explode("word")
    return proposals.with_columns(rank=pl.int_range(1, pl.len() + 1).over("item_id").cast(pl.Int64))


def choose_options(open_items: pl.DataFrame, proposals: pl.DataFrame, rules: Rules) -> ChosenItems:
    """Choose wrong options for open items from what the readers proposed (section 3.5)."""
    is_paper = rules.rule == "paper"
    choose = building.choose_options if is_paper else balance.choose_balanced
    candidates = proposals.filter(pl.col("rank") <= building.TOP) if is_paper else proposals
    vectors = targets.load_static_vectors(rules.vectors)
    choices = choose(open_items, candidates, vectors, threshold=rules.similar, seed=rules.seed)
    chosen_items = open_items.join(choices.rows.select("item_id", "options", "label"), on="item_id", how="inner")
    reports = []
    answers = open_items["answer"].str.to_lowercase().to_list()
    for (reader,), part in proposals.partition_by("reader", as_dict=True, maintain_order=True).items():
        words = part.sort("rank").group_by("item_id").agg("word")
        lists = open_items.join(words, on="item_id", how="left", maintain_order="left")["word"].fill_null([])
        reports.append({"reader": reader, **reading.report(lists.to_list(), answers)._asdict()})
    return ChosenItems(chosen_items, choices.dropped, pl.DataFrame(reports))


def publish_items(subtask: str, staged: Sequence[slices.Staged], day: str, rules: Rules, run_id: str = "cli") -> int:
    """Replace the items of a subtask by those that get five options; equal ones keep their flags. Return the count."""
    timer = runs.start(staged)
    open_items = list_open_items(subtask)
    proposals = warehouse.scan_staged("cloze_candidates", staged) if staged else pl.LazyFrame(schema=PROPOSALS)
    choices = choose_options(open_items, proposals.collect(), rules)
    key = ["item_id", "options", "label"]

    def join_flags(current_items: pl.LazyFrame) -> pl.LazyFrame:
        flags = current_items.select(*key, "is_unanswerable", "is_ambiguous")
        rows = choices.items.with_columns(subtask=pl.lit(subtask)).lazy()
        return rows.join(flags, on=key, how="left").select(TABLES["cloze_items"].schema.column_names())

    count = warehouse.replace("cloze_items", warehouse.make_slice(subtask=subtask), join_flags, run_id)
    sources = open_items.select("source", row_key="item_id")
    dropped = choices.dropped.join(sources, on="row_key", how="left").select("source", "reason", "row_key")
    config = rules._asdict()
    for source in open_items["source"].unique().sort():
        kept_count = choices.items.filter(source=source).height
        runs.record_step(source, day, subtask, STEP, kept_count, dropped.filter(source=source), config, run_id, timer)
    facts = json.dumps([readers.hash_items(open_items), config], sort_keys=True)
    # how well readers found the words left out (Tables 3 and 4); the subset is the reader
    report = choices.retrieval.rename({"reader": "subset", "row_count": "pair_count"})
    evaluations = report.unpivot(index=["subset", "pair_count"], variable_name="metric")
    partition = warehouse.make_slice(kind=get_kind(subtask), day=day)
    keys = {**partition, "model_id": hashlib.sha256(facts.encode()).hexdigest()}
    constants = {name: pl.lit(value) for name, value in keys.items()}
    evaluations = model_registry.complete_evaluations(evaluations).with_columns(**constants)
    warehouse.overwrite("evaluations", partition, evaluations, run_id)
    return count


def count_items() -> pl.DataFrame:
    """Count items, their articles and flags by subtask and split."""
    rows = warehouse.scan("cloze_items").group_by("subtask", "split")
    counts = rows.agg(
        item_count=pl.len(),
        article_count=pl.struct("source", "thread_id").n_unique(),
        unanswerable_count=pl.col("is_unanswerable").sum(),
        ambiguous_count=pl.col("is_ambiguous").sum(),
    )
    order = pl.Enum(("train", "validation", "test"))
    return counts.collect().sort("subtask", pl.col("split").cast(order))


def build(
    day: str,
    subtasks: Sequence[str] = building.SUBTASKS,
    rules: Rules = RULES,
    run_id: str = "cli",
    on_progress: OnProgress = lambda _: None,
) -> pl.DataFrame:
    """Build the items of the tables in the steps of the DAG `recam`; return `count_items`."""
    rules = targets.parse_rules(targets.resolve_rules(day, rules._asdict(), None, run_id))
    staged = _run(targets.plan(), partial(targets.stage_targets, rules=rules), on_progress)
    targets.publish_targets(staged, day, rules, run_id)
    for subtask in subtasks:
        proposals = _run(list_jobs([subtask]), partial(stage_proposals, rules=rules), on_progress)
        publish_items(subtask, proposals, day, rules, run_id)
    return count_items()


def _run(parts: Iterable[Any], work: Callable[[Any], Any], on_progress: OnProgress) -> list[Any]:
    results = []
    for part in parts:
        results.append(work(part))
        on_progress(1)
    return results


def build_file(
    path: Path,
    out: Path,
    subtasks: Sequence[str],
    rules: Rules,
    on_progress: OnProgress = lambda _: None,
    splits: Path | None = None,
) -> pl.DataFrame:
    """Build items from a file of articles with summaries into a folder, completely or not at all.

    It holds `<subtask>_<split>.jsonl` in the official format, targets.parquet (every token of the summaries with its
    reason), dropped.csv and card.json. `splits` is XSum's official file, a JSON object of ids by split; articles that
    it lacks get a random split. Return subtask, split, item_count.
    BadInput if the folder is not empty, the file is broken, or too few of its articles have a target.
    """
    check_empty(out)
    summarised = summaries.read(path, splits)
    articles = summarised.rows.select("text", "summary", "split", source=pl.lit(SOURCE), thread_id="article_id")
    shards = articles.iter_slices(targets.ROWS_PER_SHARD)
    frames = _run(shards, lambda shard: pl.concat(targets.find_targets(shard, rules)), on_progress)
    tokens = pl.concat(frames).with_columns(source=pl.lit(SOURCE))
    open_items = {subtask: building.build_items(articles, tokens, subtask) for subtask in subtasks}
    choices_by_subtask = {}
    for subtask, rows in open_items.items():
        if (count := rows["article"].n_unique()) < building.FOLDS:
            raise BadInput(
                f"{path}: {count} articles have a target of {subtask}; expected at least {building.FOLDS}, as wrong "
                "options are made in folds"
            )
        proposals = _run(make_jobs(subtask, {}), partial(propose_words, rows, rules=rules), on_progress)
        choices_by_subtask[subtask] = choose_options(rows, pl.concat(proposals), rules)
    untargeted = building.list_untargeted(articles, tokens, subtasks)
    dropped = pl.concat([summarised.dropped, untargeted, *(choice.dropped for choice in choices_by_subtask.values())])
    left_out.record_rows("build", dict(dropped["reason"].value_counts().iter_rows()), str(path))
    with create_folder(out) as draft:
        counts = []
        for subtask, choice in choices_by_subtask.items():
            for (split,), rows in sorted(choice.items.partition_by("split", as_dict=True).items()):
                items.write(draft / f"{subtask}_{split}.jsonl", rows)
                counts.append((subtask, split, rows.height))
        tokens.drop("source").write_parquet(draft / "targets.parquet")
        dropped.write_csv(draft / "dropped.csv")
        card: dict[str, Any] = {"file": path.name, "rules": rules._asdict()}
        card["readers"] = {subtask: choice.retrieval.to_dicts() for subtask, choice in choices_by_subtask.items()}
        card |= {"splits": splits and splits.name, **targets.describe_resources(rules), "undertone": __version__}
        (draft / "card.json").write_text(json.dumps(card, indent=1, ensure_ascii=False), encoding="utf-8")
    return pl.DataFrame(counts, schema=["subtask", "split", "item_count"], orient="row")
