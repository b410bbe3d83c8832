"""Graded groups and choice questions to people, and their answers to numbers (ImpScore, section 6; IMP-34, IMP-38)."""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from pipeline import left_out
from pipeline.errors import BadInput, Missing, check_name
from pipeline.examples.impscore import groups as graded
from pipeline.label import grading, simulated, user_study
from pipeline.label.user_study import CHOICE, KINDS, MEANING
from pipeline.metrics.impscore.studies import average_correlations, count_concordant
from pipeline.metrics.resample import wilson
from pipeline.papers.impscore import RECRUITING, TABLE_5, TABLE_11
from pipeline.progress import OnProgress
from pipeline.tasks.impscore import rank, train
from pipeline.tasks.labelling import projects
from pipeline.tasks.labelling.projects import Project, Studio, Tool
from pipeline.tasks.record import runs

STEP = "user_study"
PER_SET = RECRUITING["people_per_set"]
COUNT = RECRUITING["sets"] * RECRUITING["items_per_set"]  # items that the paper gives to people, of each kind


def read_items(kind: str, path: Path | None = None) -> pl.DataFrame:
    """Read graded groups or choice questions; by default the shipped groups for tests, or questions made of them."""
    is_choice = check_name("task for people", kind, KINDS) == CHOICE
    if path:
        return graded.read_questions(path) if is_choice else graded.read(path)
    groups = train.read_shipped_groups("en").filter(pl.col("split") == "test")
    return graded.build_questions(groups).drop("group") if is_choice else groups


def get_project(kind: str, items: pl.DataFrame) -> Project:
    """Return the labelling project of a kind, for items of this size."""
    form = user_study.build_tasks(kind, items)[2]
    return Project(f"{kind}_{len(next(iter(form.fields.values())).values)}", form, lang="en", rater_count=PER_SET)


def select(kind: str, items: pl.DataFrame, day: str, count: int = COUNT, run_id: str = "cli") -> int:
    """Select the first `count` items for people; return the task count. Earlier tasks stay."""
    timer, tasks = runs.start(), user_study.build_tasks(kind, items)[0]
    tasks = tasks.head(count).with_columns(source=pl.lit("groups"), thread_id="item_id", comment_id="item_id")
    return projects.select(get_project(kind, items).name, day, tasks, {"count": count}, run_id, timer)


def read_tasks(kind: str, items: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, Project]:
    """Read the tasks of these items, in the items' order, with item_id; return also their key and project."""
    tasks, key, _ = user_study.build_tasks(kind, items)
    project = get_project(kind, items)
    missing = f"none of these items was given to people: `undertone groups rate {kind}`"
    selected = projects.read_tasks(project.name, missing)
    if not (tasks := tasks.join(selected, on="task_id", how="semi", maintain_order="left")).height:
        raise Missing(missing)
    return tasks, key.join(tasks, on="task_id", how="semi"), project


def export(kind: str, items: pl.DataFrame, folder: Path, raters: Sequence[str] = ()) -> int:
    """Write tasks.jsonl, guidelines, and sheets: ten raters get two sets, all five of a set the same one (IMP-38)."""
    tasks, _, project = read_tasks(kind, items)
    _check_raters(raters)
    projects.check_sheets(folder, raters, "item")
    set_count = max(1, len(raters) // PER_SET)
    edges = [tasks.height * number // set_count for number in range(set_count + 1)]
    sets = [tasks[low:high] for low, high in pairwise(edges)]
    sheets = {rater: sets[number % set_count] for number, rater in enumerate(raters)}
    names = {"guidelines.md": kind, "hiring.md": "groups_hiring"}
    guidelines = {file: grading.read_guidelines(name, "en") for file, name in names.items()}
    return projects.export(folder, tasks, project.form, guidelines, sheets, "en")


def collect(
    kind: str, items: pl.DataFrame, paths: Sequence[Path], tool: Tool, studio: Studio | None, run_id: str
) -> int:
    """Add people's answers from files or from a tool to the table `labels`; return the label count."""
    tasks, key, project = read_tasks(kind, items)
    simulate = partial(simulated.grade, tasks, truth=key, form=project.form)
    fetched = projects.fetch(project, tasks, tool, simulate, paths, studio)
    _check_raters(fetched.labels["rater_id"])
    return projects.add_labels(project.name, fetched.labels, run_id)


def _check_raters(raters: Sequence[str] | pl.Series) -> None:
    if "model" in raters:
        raise BadInput("rater 'model': the model has this name in the results; rename the rater")


def load_answers(kind: str, items: pl.DataFrame, run_id: str | None = None) -> pl.DataFrame:
    """Load the answers that count, with their set from 1; with a run the others are recorded in `dropped`."""
    tasks, key, project = read_tasks(kind, items)
    labels = projects.read_labels(project.name).join(tasks, on="task_id", how="semi")
    labels, simulated_labels = projects.prefer_people(labels)
    answers, dropped = user_study.collect_answers(labels, key, project.form)
    if not answers.height:
        raise Missing(f"no whole answer yet: `undertone groups ratings {kind} FILES`")
    if run_id is not None:
        dropped = projects.list_dropped(dropped, simulated_labels, "task_id", "rater_id", "field")
        projects.record_step(project.name, STEP, answers.height, dropped, run_id)
    numbers = _number_sets(answers.group_by("rater").agg("item_id")["item_id"].to_list())
    answers = answers.with_columns(set=pl.col("item_id").replace_strict(numbers, return_dtype=pl.Int64))
    return answers.sort("set", "rater", "item_id", "grade")


def _number_sets(rater_items: Iterable[list[str]]) -> dict[str, int]:
    """Number the sets of items from 1, in the order of their first items; raters who share an item are of one set."""
    sets: list[set[str]] = []
    for item_ids in rater_items:
        overlapping = [ids for ids in sets if not ids.isdisjoint(item_ids)]
        sets = [ids for ids in sets if ids not in overlapping] + [{*item_ids}.union(*overlapping)]
    return {item_id: number for number, ids in enumerate(sorted(sets, key=min), 1) for item_id in ids}


def load_orders(items: pl.DataFrame) -> pl.DataFrame:
    """Load people's orders of graded groups, as `groups.read_ratings` reads them from a file; several sets by `set`."""
    orders = load_answers("ranking", items).rename({"item_id": "group", "grade": "level", "value": "rank"})
    rater_count = pl.col("rater").n_unique()
    is_whole = rater_count.over("set", "group") == rater_count.over("set")
    if partial_count := orders.filter(~is_whole)["group"].n_unique():
        note = "left out of the agreement, as not all raters of the set ranked them, groups"
        left_out.record_note(note, partial_count)
    if not (orders := orders.filter(is_whole)).height:
        raise Missing("no group was ranked by all raters of its set: their agreement needs one")
    return orders if orders["set"].n_unique() > 1 else orders.drop("set")


def measure(
    kind: str, items: pl.DataFrame, model: str | None, run_id: str, on_progress: OnProgress = lambda _: None
) -> pl.DataFrame:
    """Measure each person and the model against the given order or the right option, by set (table 5).

    Returns set, by, n and kendall_tau with spearman_rho and implicitness_rating, the mean number of pairs in the given
    order; or accuracy with its interval of Wilson; or, of people alone, pragmatics_rating, the mean number of sentences
    of a group that mean the same, 0 if no two do (table 11; IMP-37).
    """
    answers = load_answers(kind, items, run_id)
    key = answers.select("set", "item_id", "grade").unique(maintain_order=True)
    if kind == MEANING:
        by_model = answers.clear().drop("rater")
    elif kind == CHOICE:
        numbered = items.with_columns(item_id=pl.format("question_{}", pl.int_range(1, pl.len() + 1)))
        answered = numbered.join(key, on="item_id", how="semi", maintain_order="left")
        choices = rank.choose(answered, model, on_progress).select("item_id", value=pl.col("chosen") + 1.0)
        by_model = key.join(choices, on="item_id")
    else:
        answered = items.join(key, left_on="group", right_on="item_id", how="semi")
        scored = rank.score_groups(answered, model, on_progress).rename({"group": "item_id", "level": "grade"})
        by_model = key.join(scored, on=["item_id", "grade"]).with_columns(value=pl.col("implicitness").cast(pl.Float64))
    by_model = by_model.with_columns(rater=pl.lit("model")).select(answers.columns)
    parts = pl.concat([answers, by_model]).partition_by("set", "rater", as_dict=True, maintain_order=True)
    measure_part = {CHOICE: _measure_choices, MEANING: _measure_meanings}.get(kind, _measure_orders)
    rows = [{"set": number, "by": rater, **measure_part(part)} for (number, rater), part in parts.items()]
    return pl.DataFrame(rows).sort("set", maintain_order=True)


def _measure_orders(answers: pl.DataFrame) -> dict[str, float]:
    correlations = average_correlations(answers.rename({"item_id": "group", "grade": "level"}))._asdict()
    groups = answers.sort("item_id", "grade").group_by("item_id").agg("grade", "value")
    rating = sum(count_concordant(*pair) for pair in groups.select("grade", "value").iter_rows()) / groups.height
    return {"n": correlations.pop("group_count"), **correlations, "implicitness_rating": rating}


def _measure_meanings(answers: pl.DataFrame) -> dict[str, float]:
    sizes = answers.group_by("item_id", "value").len().group_by("item_id").agg(pl.col("len").max())["len"]
    return {"n": len(sizes), "pragmatics_rating": float(sizes.replace(1, 0).mean())}  # type: ignore[arg-type]


def _measure_choices(answers: pl.DataFrame) -> dict[str, float]:
    share = (answers["value"] == answers["grade"]).cast(pl.Float64).to_numpy().mean()
    (low,), (high,) = wilson(np.array([share]), np.array([answers.height]))
    numbers = {"accuracy": share, "low": low, "high": high}
    return {"n": answers.height, **{name: round(float(number), 6) for name, number in numbers.items()}}


def tabulate_paper(kind: str) -> pl.DataFrame:
    """Tabulate the paper's table 5 for a kind: by set, five people and ImpScore (IMP-34); of meanings table 11."""
    if kind == MEANING:
        numbers = {"n": TABLE_11["groups"], "pragmatics_rating": TABLE_11["pragmatics"]}
        return pl.DataFrame([{"by": "linguist", **numbers}])
    metrics = ("accuracy",) if kind == CHOICE else ("kendall_tau", "spearman_rho")
    names = [*(f"human {number}" for number in range(1, 6)), "ImpScore"]
    columns = {number: {metric: numbers[metric] for metric in metrics} for number, numbers in TABLE_5.items()}
    return pl.concat([pl.DataFrame({"set": [number] * 6, "by": names, **columns[number]}) for number in columns])
