"""Compressions as people grade them: to raters and back, and their means into `studies` (NDD, appendix F; NDD-36).

What ties a task to a system is never written: it is made again of `compressions` and of what `runs` tells was given.
Grades count for compressions that are as they were when they were graded, and that two raters graded.
"""

import json
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

import polars as pl

from pipeline import warehouse
from pipeline.errors import BadInput, Missing
from pipeline.label import assignment, compression, grading, simulated
from pipeline.label.compression import COUNT, FIELDS, FORM, Graded, Tasks
from pipeline.metrics.ndd import integrity as measures
from pipeline.slices import parse_day
from pipeline.tables import SOURCE
from pipeline.tasks.labelling import projects
from pipeline.tasks.labelling.projects import Project
from pipeline.tasks.record import runs as funnel
from pipeline.tasks.studies.rows import framed, row

log = logging.getLogger(__name__)

STUDY, STEP, SELECT = "compression", "grades", "select"
GOLD = "gold"  # what people left, as a system
HUMAN, MADE_UP = "human", "simulated"
"""Whose grades rows of `studies` are of: the end of their subset. There are never both of one day."""

Tool = Literal["files", "simulated"]


class Selection(TypedDict):
    """What was given at a time."""

    systems: list[str]
    count: int


def project(source: str) -> Project:
    """The labelling project of a data set; answers in files are looked for in its folder."""
    name = f"integrity_{source}"
    if not re.fullmatch(SOURCE, source) or not re.fullmatch(SOURCE, name):
        raise BadInput(f"source: expected up to 30 small letters, digits and _, found {source!r:.60}")
    return Project(name, FORM)


def compressions(source: str, day: str, systems: Sequence[str] = ()) -> pl.DataFrame:
    """Compressions of a data set by some systems or all: item_id, system, lang, words, kept.

    Raises:
        Missing: there are none of the day.
        BadInput: there are none by one of the systems.
    """
    of_source = warehouse.scan("compressions", pl.col("source") == source)
    rows = of_source.filter(pl.col("day") == parse_day(day)).sort("item_id", "system").collect()
    if not rows.height:
        days = of_source.select(pl.col("day").unique().sort()).collect()["day"]
        known = f"there are of {', '.join(map(str, days))}" if len(days) else "there are none of any day"
        raise Missing(f"no compressions of {source!r} on {day}; {known}; make some: `undertone ndd measure`")
    there = rows["system"].unique().sort().to_list()
    if strange := [system for system in systems if system not in there]:
        raise BadInput(f"no compressions of {source!r} by {strange[0]!r} on {day}; there are by {', '.join(there)}")
    kept = pl.col("rounds").list.eval(pl.element() == 0)
    mine = rows.filter(pl.col("system").is_in(systems or there))
    return mine.select("item_id", "system", "lang", "words", kept=kept)


def select(
    source: str, day: str, systems: Sequence[str] = (), count: int = COUNT, run_id: str = "cli"
) -> int:  # fmt: skip
    """Give the compressions of so many sentences by some systems or all to raters; the tasks of the data set in all.

    Tasks that are there stay, with their random ids; what was withdrawn on request does not come back.
    """
    began, name, rows = funnel.start(), project(source).name, compressions(source, day, systems)
    wanted = compression.tasks(compression.sample(rows, count)).tasks
    is_out = projects.is_withdrawn(name)
    fresh = wanted.filter(~is_out).with_columns(
        source=pl.lit(source), day=pl.lit(parse_day(day)), thread_id="item_id", comment_id="item_id"
    )
    given = _given(source)
    total = given.height
    if fresh.join(given, on="task_id", how="anti").height:
        total = projects.add_tasks(name, fresh, run_id)
    before = _selections(source, day)
    chosen = Selection(systems=rows["system"].unique().sort().to_list(), count=count)
    if chosen not in before:
        gone = wanted.filter(is_out).select(source=pl.lit(name), reason=pl.lit("withdrawn"), row_key="task_id")
        told = {"selections": [*before, chosen]}
        funnel.record_step(name, day, projects.format_origin(name), SELECT, fresh.height, gone, told, run_id, began)
    return total


def _selections(source: str, day: str) -> list[Selection]:
    """What was given to raters of a day, in order."""
    name = project(source).name
    mine = (
        (pl.col("origin") == projects.format_origin(name))
        & (pl.col("step") == SELECT)
        & (pl.col("day") == parse_day(day))
    )
    found = warehouse.scan("runs", mine).select("config").collect()["config"]
    return [selection for config in found for selection in json.loads(config)["selections"]]


def tasks_of(source: str, day: str) -> Tasks:
    """What raters were given of a day's compressions as they are now, and whose they are.

    A compression by a system that was not given is no task of that system, though another may have left the same words:
    such ones alone would tell nothing of how it does.

    Returns:
        Rows of `label_tasks` with item_id in the order of their ids; and the key of `compression.tasks`.

    Raises:
        Missing: none were given out.
    """
    given, chosen = _given(source), _selections(source, day)
    if not chosen:
        how = f"`undertone ndd rate --source {source} --day {day}`"
        raise Missing(f"no compressions of {source!r} on {day} were given to raters: {how}")
    rows = compressions(source, day)
    drawn = [
        compression.tasks(compression.sample(rows.filter(pl.col("system").is_in(each["systems"])), each["count"]))
        for each in chosen
    ]
    key = pl.concat([each.key for each in drawn]).unique().sort("item_id", "system")
    new = key.join(given, on="task_id", how="anti").filter(~projects.is_withdrawn(project(source).name))
    if new.height:
        log.warning(
            "%s: %d compressions of %s have changed since; give them anew", project(source).name, new.height, day
        )
    return Tasks(given.join(key, on="task_id", how="semi"), key.join(given, on="task_id", how="semi"))


def _given(source: str) -> pl.DataFrame:
    """All tasks that were given out, also of what has changed since: answers to them may still come."""
    return projects.read_tasks(project(source).name).with_columns(item_id="thread_id")


def export(
    source: str, day: str, folder: Path, raters: Sequence[str] = (), lang: str = "zh", count: int | None = None,
    systems: Sequence[str] = (),
) -> int:  # fmt: skip
    """Write tasks.jsonl, the guidelines, and for each rater named a sheet of the tasks that are theirs; how many tasks.

    Two raters get each sentence with all its compressions; `assigned.csv` in the data set's own folder keeps who got
    which, and what it tells stays so.

    Args:
        source: the data set.
        day: of its compressions.
        folder: where to; it is made.
        raters: their names, which are those of the sheets.
        lang: of guidelines and sheets, zh or en.
        count: of sentences; all that were given by default.
        systems: whose compressions; those of all that were given by default.

    Raises:
        BadInput: a sheet is there already, which may hold grades; or there is one rater alone.
    """
    tasks = tasks_of(source, day).tasks
    if count is not None or systems:
        some = compression.sample(compressions(source, day, systems), COUNT if count is None else count)
        tasks = tasks.join(compression.tasks(some).tasks, on="task_id", how="semi", maintain_order="left")
    check(folder, raters)
    assigned = (
        projects.update_assignment(project(source), lambda before: _assign(source, tasks, raters, before))
        if raters
        else None
    )
    sheets = {rater: compression.for_rater(tasks, rater, assigned) for rater in raters}
    guidelines = {"guidelines.md": grading.guidelines("compression", lang)}
    (folder / "labels").mkdir(parents=True, exist_ok=True)
    return projects.export(folder, tasks, FORM, guidelines, sheets, lang)


def check(folder: Path, raters: Sequence[str]) -> None:
    """BadInput where sheets cannot be written: one rater alone, a name that is none, or a sheet that is there."""
    projects.check_sheets(folder, raters, "sentence")


def _assign(source: str, tasks: pl.DataFrame, raters: Sequence[str], before: pl.DataFrame | None) -> pl.DataFrame:
    """Who gets which tasks; what was dealt before stays, and new compressions of a sentence go to its raters."""
    before = pl.DataFrame(schema=assignment.ASSIGNED) if before is None else before
    pool = _given(source).filter(pl.col("task_id").is_in([*tasks["task_id"], *before["task_id"]]))
    assigned = compression.assign(pool, raters, given=before)
    absent = assigned.join(before, on="task_id", how="anti").filter(~pl.col("rater_id").is_in(list(raters)))
    if absent.height:
        log.warning(
            "%s: %d tasks are of sentences that were dealt to %s, whose sheets were not asked for",
            project(source).name, absent["task_id"].n_unique(), ", ".join(absent["rater_id"].unique().sort()),
        )  # fmt: skip
    return assigned


def collect(
    source: str, day: str, paths: Sequence[Path] = (), tool: Tool = "files", run_id: str = "cli"
) -> dict[str, int]:
    """Add grades of files or of simulated raters to the table `labels`, and put what they come to into `studies`.

    Without paths those that lie in `labels` in the data set's folder are read. Of two by one rater of one compression
    the later counts.

    Returns:
        Counts: tasks, graded (tasks with two grades of each field), waiting.

    Raises:
        BadInput: naming file, row and field; or people have graded already what simulated raters should.
    """
    now = tasks_of(source, day)
    target = project(source)
    fetched = projects.fetch(target, _given(source), tool, lambda: _simulate(source, day, now), paths)
    projects.add_labels(target.name, fetched.labels, run_id)
    graded = _publish(source, day, now, run_id)
    return {"tasks": now.tasks.height, "graded": graded, "waiting": now.tasks.height - graded}


def _simulate(source: str, day: str, now: Tasks) -> pl.DataFrame:
    """Grades of simulated raters; where people's compressions are at hand, what is more like them is graded higher."""
    before = projects.read_simulated_assignment(project(source).name, now.tasks, f"compressions of {source!r}")
    assigned = compression.assign(now.tasks, simulated.GRADERS, given=before)
    truth = _likeness(compressions(source, day), now.key)
    return simulated.grade(now.tasks, simulated.GRADERS, assigned, truth=truth, form=FORM)


def _likeness(rows: pl.DataFrame, key: pl.DataFrame) -> pl.DataFrame | None:
    """Grades to make up from: of syntax the F1 of the words that stay, of semantics their recall, by people's.

    None where a sentence has no compression by people.
    """
    gold = rows.filter(pl.col("system") == GOLD).select("item_id", meant="kept")
    both = key.join(rows, on=["item_id", "system"]).join(gold, on="item_id", how="left").unique("task_id")
    if both["meant"].null_count():
        return None
    found = []
    for task_id, kept, meant in both.select("task_id", "kept", "meant").iter_rows():
        shared = sum(one and other for one, other in zip(kept, meant, strict=True))
        shares = 2 * shared / max(1, sum(kept) + sum(meant)), shared / max(1, sum(meant))
        found += [(task_id, field, round(5 * share)) for field, share in zip(FIELDS, shares, strict=True)]
    return pl.DataFrame(found, {"task_id": pl.String, "field": pl.String, "grade": pl.Int64}, orient="row")


def publish(source: str, day: str, run_id: str = "cli") -> int:
    """Put the means of each system and the raters' agreement into `studies`; how many tasks have two grades.

    Rows are of the study `compression`, with the subset `SOURCE:human`, or `SOURCE:simulated` where nobody but
    simulated raters graded, whose rows go once people do. Means are of syntax and semantics with the system as the
    setting; measures of agreement have the field. Where nothing was given to raters there is nothing to do.
    """
    return _publish(source, day, tasks_of(source, day), run_id) if _selections(source, day) else 0


def _publish(source: str, day: str, now: Tasks, run_id: str) -> int:
    name = project(source).name
    found, made_up, said = _graded(source, day, now)
    enough = found.grades.filter(pl.col("n") >= assignment.PER_TASK)
    rows, order = _rows(source, day, enough, said), ["subset", "setting", "metric"]
    is_mine = pl.col("subset").is_in(_subsets(source))

    def with_others(present: pl.LazyFrame) -> pl.LazyFrame:
        return pl.concat([present.filter(~is_mine).select(rows.columns), rows.lazy()])

    there = _of_day(day).filter(is_mine).select(rows.columns).sort(order).collect()
    if not there.equals(rows.sort(order)):
        warehouse.replace("studies", warehouse.slice_of(study=STUDY, day=day), with_others, run_id)
    _tell(name, day, said.height - found.dropped.height, found.dropped, made_up, run_id)
    both = enough.select("task_id", "field").unique().group_by("task_id").len()
    return both.filter(pl.col("len") == len(FIELDS)).height


def _of_day(day: str) -> pl.LazyFrame:
    return warehouse.scan("studies", (pl.col("study") == STUDY) & (pl.col("day") == parse_day(day)))


def _subsets(source: str) -> list[str]:
    return [f"{source}:{by}" for by in (HUMAN, MADE_UP)]


def _graded(source: str, day: str, now: Tasks) -> tuple[Graded, pl.DataFrame, pl.DataFrame]:
    """Grades of the systems, labels of simulated raters that do not count beside people's, and those that may count.

    Labels of tasks of other days alone are left aside.
    """
    of_day = _given(source).filter(pl.col("day") == parse_day(day))
    task_ids = pl.concat([now.tasks, of_day]).select("task_id").unique()
    parts = projects.prefer_people(projects.read_labels(project(source).name))
    counted, made_up = (labels.join(task_ids, on="task_id", how="semi") for labels in parts)
    return compression.grades(counted, now.key), made_up, counted


def _rows(source: str, day: str, enough: pl.DataFrame, said: pl.DataFrame) -> pl.DataFrame:
    """Rows of `studies`; measures of agreement that are not defined, as of grades that are all the same, are null."""
    subset = f"{source}:{MADE_UP if (said['tool'] == simulated.TOOL).any() else HUMAN}"
    numbers: list[dict[str, Any]] = [
        {**each, "metric": each["field"], "setting": {"system": each["system"]}}
        for each in measures.summarize(enough).to_dicts()
    ]
    agreed = measures.measure_agreement(enough).filter(pl.col("n") > 0)
    numbers += [{**each, "setting": {"field": each["field"]}} for each in agreed.to_dicts()]
    return framed([
        row(STUDY, day, each["metric"], subset, each["value"], each["n"], setting=each["setting"], low=each["low"],
            high=each["high"])
        for each in numbers
    ])  # fmt: skip


def _tell(name: str, day: str, kept: int, dropped: pl.DataFrame, made_up: pl.DataFrame, run_id: str) -> None:
    """Tell which grades count and which do not, unless that is told."""
    columns = ["task_id", "rater_id", "field", "reason"]
    gone = pl.concat([dropped.select(columns), made_up.with_columns(reason=pl.lit(MADE_UP)).select(columns)])
    where = pl.concat_str("task_id", "rater_id", "field", separator="/")
    gone = gone.select("reason", source=pl.lit(name), row_key=where).sort("row_key", "reason")
    mine = (
        (pl.col("origin") == projects.format_origin(name))
        & (pl.col("step") == STEP)
        & (pl.col("day") == parse_day(day))
    )
    there = warehouse.scan("dropped", mine).select(gone.columns).collect().sort("row_key", "reason")
    runs = warehouse.scan("runs", mine).select("kept_count").collect()["kept_count"].to_list()
    if runs != [kept] or not there.equals(gone):
        funnel.record_step(name, day, projects.format_origin(name), STEP, kept, gone, {}, run_id)
    else:
        funnel.report_dropped(STEP, gone, name)


def results(source: str, day: str) -> pl.DataFrame:
    """Means of a day's compressions as `studies` has them: by (human or simulated), system, metric, mean, low, high, n.

    In order of system, syntax first; without rows where nothing is graded.
    """
    rows = _told(source, day, "system").rename({"value": "mean", "row_count": "n"})
    return rows.select("by", "system", "metric", "mean", "low", "high", "n").sort("system", _in_order("metric", FIELDS))


def agreement(source: str, day: str) -> pl.DataFrame:
    """How far its raters agree: by, field, metric, value, low, high, n (compressions with two grades or more)."""
    rows = _told(source, day, "field").select("by", "field", "metric", "value", "low", "high", n="row_count")
    return rows.sort(_in_order("field", FIELDS), _in_order("metric", measures.AGREEMENT))


def _told(source: str, day: str, about: str) -> pl.DataFrame:
    """Rows of `studies` whose setting has a value of this name, with it and whose grades they are of."""
    value = pl.col("setting").str.json_path_match(f"$.{about}").alias(about)
    by = pl.col("subset").str.split(":").list.last().alias("by")
    rows = _of_day(day).filter(pl.col("subset").is_in(_subsets(source))).collect()
    return rows.with_columns(value, by).filter(pl.col(about).is_not_null())


def _in_order(column: str, names: Sequence[str]) -> pl.Expr:
    return pl.col(column).cast(pl.Enum(names))


def shown(source: str, day: str) -> pl.DataFrame:
    """The means as people read them, a row a system, with intervals, and the numbers of table 13 beside.

    The paper's are of 100 sentences of Google's test set by its own systems, whatever ours are of.

    Returns:
        system, raters (human or simulated), n (sentences), syntax, syntax_paper, semantics, semantics_paper.
    """
    from pipeline.papers.ndd import PAPER_HUMAN

    lines: dict[str, dict[str, Any]] = {}
    for each in results(source, day).to_dicts():
        system, field = each["system"], each["metric"]
        line = lines.setdefault(system, {"system": system, "raters": each["by"], "n": each["n"]})
        line["n"] = min(line["n"], each["n"])
        line[field] = "{mean:.2f} ({low:.2f}–{high:.2f})".format(**each)
        line[f"{field}_paper"] = PAPER_HUMAN.get(system, {}).get(field)
    numbers = {
        name: kind for field in FIELDS for name, kind in ((field, pl.String()), (f"{field}_paper", pl.Float64()))
    }
    schema = {"system": pl.String(), "raters": pl.String(), "n": pl.Int64(), **numbers}
    return pl.DataFrame(list(lines.values()), schema=schema)
