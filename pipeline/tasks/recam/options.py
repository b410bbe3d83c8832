"""Wrong options as tasks: readers that have not seen an item propose words, four become options (ReCAM, 3.5)."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, TypedDict

import polars as pl

from pipeline import settings, slices, warehouse
from pipeline.errors import BadInput
from pipeline.examples.recam import balance, building, choices
from pipeline.metrics.recam import retrieval
from pipeline.slices import Staged
from pipeline.tables import TABLES
from pipeline.tasks.recam import readers, targets
from pipeline.tasks.recam.targets import RULES, Rules
from pipeline.tasks.record import model_registry, runs

CHOICE_RULES = ("balanced", "paper")
READERS = ("gated", "attentive", "gloss")
STEP = "cloze_items"
DEPTH = 50  # words of each reader that are kept; the paper's rule looks at ten
PROPOSALS = {"item_id": pl.String(), "reader": pl.String(), "word": pl.String(), "rank": pl.Int64()}


class Choosing(NamedTuple):
    """How wrong options are made (section 3.5)."""

    rule: str = "balanced"  # which leaves nothing to be told from the options alone; or paper, the commonest
    vectors: str | None = None  # for the readers, in GloVe's format; None: made of the encoder
    seed: int = choices.SEED
    is_small: bool = False  # readers for a few thousand items and a CPU
    numbers: Mapping[str, Any] = {}  # further changes to the readers' recipes


CHOOSING = Choosing()


class Job(TypedDict):
    """One reader that is trained on all folds but one and answers that."""

    subtask: str
    reader: str
    fold: int
    snapshots: dict[str, int | None]  # of articles and cloze_targets


def parse_choosing(values: Mapping[str, Any]) -> Choosing:
    """How to choose, of a form or a command.

    Raises:
        BadInput: there is no such rule.
    """
    if (rule := values.get("rule") or CHOOSING.rule) not in CHOICE_RULES:
        raise BadInput(f"no rule {rule!r}; there are {' and '.join(CHOICE_RULES)}")
    return Choosing(**{name: value for name, value in values.items() if name in Choosing._fields and value is not None})


def list_jobs(subtasks: Sequence[str] = building.SUBTASKS) -> list[Job]:
    """The readers to be trained, twelve a subtask; none for a subtask with too few articles for the folds."""
    pinned = {name: warehouse.snapshot(name) for name in ("articles", "cloze_targets")}
    return [
        Job(subtask=subtask, reader=reader, fold=fold, snapshots=pinned)
        for subtask in subtasks
        if list_open_items(subtask, pinned)["article"].n_unique() >= choices.FOLDS
        for reader in READERS
        for fold in range(choices.FOLDS)
    ]


def list_open_items(subtask: str, snapshots: Mapping[str, int | None] | None = None) -> pl.DataFrame:
    """Questions of the tables that have no options yet; see `building.items`."""
    pinned = snapshots or {name: warehouse.snapshot(name) for name in ("articles", "cloze_targets")}
    if pinned["cloze_targets"] is None or pinned["articles"] is None:
        return pl.DataFrame(schema=building.OPEN)
    told = warehouse.scan("cloze_targets", pl.col("reason").is_null(), pinned["cloze_targets"]).collect()
    return building.items(targets.scan_articles(snapshot=pinned["articles"]).collect(), told, subtask)


def stage_proposals(job: Job, choosing: Choosing = CHOOSING) -> Staged:
    """Train one reader on the other folds; its best words for each item of this one, into scratch."""
    began, rows = runs.start(), list_open_items(job["subtask"], job["snapshots"])
    return runs.time_shard(began, warehouse.stage("cloze_candidates", propose_words(rows, job, choosing)))


def propose_words(rows: pl.DataFrame, job: Job, choosing: Choosing = CHOOSING) -> pl.DataFrame:
    """The best words of a reader for the items of a fold it has not seen.

    Returns:
        item_id, reader, word, rank from 1.
    """
    from pipeline.training.recam import readers as training

    small = training.SMALL | ({"drawn": 128} if job["reader"] == "gloss" else {}) if choosing.is_small else {}
    recipe = training.recipe_of(job["reader"], over="vocabulary", **{**small, **choosing.numbers})
    fold = choices.folds(rows, seed=choosing.seed)
    rest, mine = rows.filter(fold != job["fold"]).drop("split"), rows.filter(fold == job["fold"])
    answers = rows["answer"].unique().sort().to_list()
    source = readers.load_vectors(readers.list_texts(rows), targets.parse_path(choosing.vectors))
    told = readers.look_up_glosses(answers) if recipe.has_gloss else None
    facts = (readers.hash_items(rows), asdict(recipe), job["fold"], choosing.vectors, settings.encoder())
    state = model_registry.locate_state(*facts)
    done = training.fit(rest, recipe, source, state, glosses=told, candidates=answers, device=readers.choose_device())
    found = training.candidates(training.load(done.tensors, done.config, readers.choose_device()), mine, DEPTH)
    listed = found.select("item_id", word="candidates", reader=pl.lit(job["reader"])).explode("word")
    return listed.with_columns(rank=pl.int_range(1, pl.len() + 1).over("item_id").cast(pl.Int64))


def get_kind(subtask: str) -> str:
    """What the readers that proposed a subtask's options are called in `evaluations`."""
    return f"choosing_{subtask}"


class ChosenItems(NamedTuple):
    """Items with five options, those that have too few, and how well the readers knew the words left out."""

    items: pl.DataFrame  # the columns of `building.OPEN`, and options, label
    dropped: pl.DataFrame  # reason, row_key
    retrieval: pl.DataFrame  # reader, mrr, recall_1, recall_5, recall_10, row_count (Tables 3 and 4)


def choose_options(
    rows: pl.DataFrame, proposals: pl.DataFrame, choosing: Choosing = CHOOSING, rules: Rules = RULES
) -> ChosenItems:
    """Wrong options for open items out of what the readers proposed (section 3.5)."""
    near = targets.load_static_vectors(targets.parse_path(rules.vectors))
    if choosing.rule == "paper":
        best = proposals.filter(pl.col("rank") <= choices.TOP)
        chosen = choices.choose(rows, best, near, most=rules.similar, seed=choosing.seed)
    else:
        chosen = balance.choose_balanced(rows, proposals, near, most=rules.similar, seed=choosing.seed)
    told = rows.join(chosen.items.select("item_id", "options", "label"), on="item_id", how="inner")
    return ChosenItems(told, chosen.dropped, _measure_retrieval(rows, proposals))


def _measure_retrieval(rows: pl.DataFrame, proposals: pl.DataFrame) -> pl.DataFrame:
    found = []
    for (reader,), part in proposals.partition_by("reader", as_dict=True, maintain_order=True).items():
        best = part.sort("rank").group_by("item_id").agg("word")
        listed = rows.join(best, on="item_id", how="left", maintain_order="left").with_columns(
            pl.col("word").fill_null([])
        )
        right = listed["answer"].str.to_lowercase().to_list()
        found.append({"reader": reader, **retrieval.report(listed["word"].to_list(), right)._asdict()})
    return pl.DataFrame(found)


def publish_items(
    subtask: str, staged: Sequence[Staged], day: str, choosing: Choosing = CHOOSING, rules: Rules = RULES,
    run_id: str = "cli",
) -> int:  # fmt: skip
    """Make the items of a subtask exactly those that get five options; how many there are.

    What raters said of an item that is made again with the same options stays.
    """
    slices.parse_day(day)
    began, rows = runs.start(staged), list_open_items(subtask)
    proposals = (
        warehouse.staged_rows("cloze_candidates", staged).collect() if staged else pl.DataFrame(schema=PROPOSALS)
    )
    done = choose_options(rows, proposals, choosing, rules)
    columns = TABLES["cloze_items"].schema.column_names()
    told = ["is_unanswerable", "is_ambiguous"]

    def with_flags(present: pl.LazyFrame) -> pl.LazyFrame:
        said = present.select("item_id", "options", "label", *told)
        fresh = done.items.with_columns(subtask=pl.lit(subtask)).lazy()
        return fresh.join(said, on=["item_id", "options", "label"], how="left").select(columns)

    kept = warehouse.replace("cloze_items", warehouse.slice_of(subtask=subtask), with_flags, run_id)
    gone = done.dropped.join(rows.select("item_id", "source"), left_on="row_key", right_on="item_id", how="left")
    for source in rows["source"].unique().sort():
        mine = gone.filter(pl.col("source") == source).select("source", "reason", "row_key")
        count = done.items.filter(pl.col("source") == source).height
        runs.record_step(
            source, day, subtask, STEP, count, mine, {**choosing._asdict(), **rules._asdict()}, run_id, began
        )
        began = runs.start()  # what sources share is counted with the first
    _write_retrieval(subtask, day, done.retrieval, [readers.hash_items(rows), choosing._asdict()], run_id)
    return kept


def _write_retrieval(subtask: str, day: str, found: pl.DataFrame, made_of: Sequence[Any], run_id: str) -> None:
    """Put what readers knew of the words left out (Tables 3 and 4) into `evaluations`; their subset is the reader."""
    named = found.rename({"reader": "subset", "row_count": "pair_count"})
    rows = named.unpivot(index=["subset", "pair_count"], variable_name="metric")
    rows = model_registry.complete_evaluations(rows.with_columns(split=pl.lit("test"), epoch=pl.lit(0, pl.Int64)))
    where = warehouse.slice_of(kind=get_kind(subtask), day=day)
    model_id = hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()
    stamp = {"kind": pl.lit(where["kind"]), "day": pl.lit(where["day"]), "model_id": pl.lit(model_id)}
    warehouse.overwrite("evaluations", where, rows.with_columns(**stamp), run_id)


def count_items() -> pl.DataFrame:
    """Items of the tables by subtask and split: counts of items and articles, and what raters flagged.

    Returns:
        subtask, split, item_count, article_count, unanswerable_count, ambiguous_count.
    """
    rows = warehouse.scan("cloze_items").group_by("subtask", "split").agg(
        item_count=pl.len(), article_count=pl.struct("source", "thread_id").n_unique(),
        unanswerable_count=pl.col("is_unanswerable").sum(), ambiguous_count=pl.col("is_ambiguous").sum(),
    )  # fmt: skip
    return rows.collect().sort("subtask", pl.col("split").replace_strict(_ORDER, return_dtype=pl.Int64))


_ORDER = {"train": 0, "validation": 1, "test": 2}
