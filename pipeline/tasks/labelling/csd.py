"""Labelling as tasks: comments to raters, their labels to annotations in two stages, those to a published data set.

A project goes through four steps, (round, stage) = (1, 1), (1, 2), (2, 1), (2, 2): three raters, the adjudicator, and
for what was sent back the same once more (CSD-15). What a step has to do is always told by the tables, so a step can be
run again after a kill, and by hand as well as by the DAG.
"""

import logging
import re
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import polars as pl

from pipeline import settings, warehouse
from pipeline.errors import BadInput, Missing, Retry
from pipeline.label import exchange, label_studio, schema, selection, simulated, stages, studio_client
from pipeline.label.selection import Rules
from pipeline.slices import parse_day
from pipeline.tables import SOURCE, empty
from pipeline.tasks.record import runs

if TYPE_CHECKING:
    import httpx

_GIVEN = ["task_id", "round", "stage", "rater_id", "field"]
_ROW = pl.concat_str("task_id", "rater_id", "field", "round", "stage", separator="/")
_GONE = {"reason": pl.String(), "row_key": pl.String()}
_TAKEN = {"task_id": pl.String(), "studio_id": pl.String()}
_RATER = re.compile(r"[\w-]{1,40}")
log = logging.getLogger(__name__)

Tool = Literal["files", "label_studio", "simulated"]


class Studio(NamedTuple):
    """A Label Studio: its address and the token of its API."""

    address: str
    token: str

    def __repr__(self) -> str:
        return f"Studio(address={self.address!r}, token='***')"


Step = tuple[int, int]
STEPS: tuple[Step, ...] = ((1, 1), (1, 2), (2, 1), (2, 2))
"""(round, stage) in order."""


def rules(given: Mapping[str, Any]) -> Rules:
    """Rules of plain JSON."""
    return Rules(**{**given, "langs": tuple(given.get("langs", Rules().langs))})


def fields_of(names: Sequence[str]) -> tuple[str, ...]:
    """Fields by their names, told early: a release that asks for one that is not there would fail at its end."""
    if unknown := [name for name in names if name not in schema.FIELDS]:
        raise BadInput(f"no field {unknown[0]!r}; there are {', '.join(schema.FIELDS)}")
    return tuple(names)


def step_of(given: Sequence[int]) -> Step:
    """A step of plain JSON."""
    if (step := tuple(given)) not in STEPS:
        raise BadInput(f"a step is one of {', '.join(map(str, STEPS))}, not {step}")
    return step[0], step[1]


def select(project: str, day: str, rules: Rules, run_id: str = "cli") -> int:
    """Give comments of a day to a project; return its tasks in all. Tasks that are there keep their random ids."""
    from pipeline.examples.impscore.clusters import near_duplicates

    began = runs.start()
    comments = warehouse.scan("comments", pl.col("day") == parse_day(day)).sort("source", "thread_id", "comment_id")
    rows = comments.collect()
    alike = rows.select("context", cluster=pl.Series(near_duplicates(rows["text"])))
    cluster = alike.select(pl.struct("cluster", "context").rank("dense").cast(pl.Int64)).to_series().to_list()
    kept, gone = selection.select(rows, rules, cluster)  # the same words in another context are another task (CSD-01)
    fresh, same = selection.tasks(kept, project)
    is_out = pl.col("task_id").is_in(withdrawn(project).implode())
    out = fresh.filter(is_out).select("source", reason=pl.lit("withdrawn"), row_key=selection.KEY)
    fresh = fresh.filter(~is_out)

    def with_known(present: pl.LazyFrame) -> pl.LazyFrame:
        known = present.collect()
        new = fresh.join(known, on="task_id", how="anti")
        new = new.with_columns(row_id=pl.Series([secrets.token_hex(8) for _ in range(new.height)], dtype=pl.String))
        return pl.concat([known, new.select(known.columns)]).lazy()

    count = warehouse.replace("label_tasks", warehouse.slice_of(project=project), with_known, run_id)
    lost = pl.concat([gone, same, out])
    for source in rows["source"].unique().sort():
        mine = lost.filter(pl.col("source") == source)
        number = fresh.filter(pl.col("source") == source).height
        config = {name: value for name, value in rules._asdict().items() if value is not None}
        runs.tell(source, day, origin(project), "select", number, mine, config, run_id, began)
        began = runs.start()  # what sources share is counted with the first
    return count


def withdrawn(project: str) -> pl.Series:
    """Ids of tasks that were taken out of a project on request, and do not come back."""
    taken_out = warehouse.scan("dropped", (pl.col("origin") == origin(project)) & (pl.col("step") == "withdraw"))
    return taken_out.select("row_key").collect()["row_key"]


def nothing_selected(project: str, day: str) -> Missing:
    """Why a day gave a project without tasks none: it has no comments, or which rules left out how many."""
    mine = (pl.col("origin") == origin(project)) & (pl.col("step") == "select") & (pl.col("day") == parse_day(day))
    gone = warehouse.scan("dropped", mine).collect()["reason"].value_counts().sort("count", "reason", descending=True)
    if gone.height:
        told = ", ".join(f"{reason} {count}" for reason, count in gone.iter_rows())
        return Missing(f"no comment of {day} fits the rules, which left out: {told}")
    days = warehouse.scan("comments").select(pl.col("day").unique().sort(descending=True)).head(5).collect()["day"]
    known = ", ".join(map(str, days)) or "none"
    return Missing(f"there are no comments of {day}; days with comments, the newest first: {known}")


def origin(project: str) -> str:
    """Where steps of a project say they come from, in `runs` and `dropped`."""
    return f"label:{project}"


def tasks_of(project: str) -> pl.DataFrame:
    """A project's tasks in the order of their ids."""
    rows = warehouse.scan("label_tasks", pl.col("project") == project).sort("task_id").collect()
    if not rows.height:
        raise Missing(f"project {project!r} has no tasks; select some: `undertone label export --day DAY`")
    return rows


def labels_of(project: str) -> pl.DataFrame:
    """All labels of a project, without its name."""
    return warehouse.scan("labels", pl.col("project") == project).select(list(exchange.COLUMNS)).collect()


def decided(project: str) -> stages.Decided:
    """What the labels so far make of each field of each task."""
    return stages.decide(tasks_of(project)["task_id"], labels_of(project))


def asked(project: str, step: Step) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """What a step asks of whom: tasks with `round` and `fields`, and for the adjudicator the labels to decide on."""
    in_round, stage = step
    found = decided(project)
    tasks = tasks_of(project).with_columns(round=pl.lit(in_round, pl.Int64))
    if step == STEPS[0]:
        return tasks.with_columns(fields=pl.lit(list(schema.FIELDS))), None
    waiting = stages.to_adjudicate(found).filter(round=in_round) if stage == 2 else stages.to_relabel(found.annotations)
    fields = waiting.group_by("task_id", maintain_order=True).agg(fields="field")
    rows = tasks.join(fields, on="task_id", how="inner", maintain_order="left")
    return rows, found.kept.filter(stage=1, round=in_round) if stage == 2 else None


def push(project: str, step: Step, tool: Tool, at: Studio | None = None) -> int:
    """Give a step's tasks to raters through a tool; return how many there are. What was given is not given twice.

    `files` puts tasks.jsonl and the guidelines into a folder of the step.
    """
    tasks, labels = asked(project, step)
    if tool == "label_studio" and tasks.height:
        with connected(at) as client:
            here = studio_client.project(client, title(project, step), form(step), step[1])
            rows = exchange.tasks_rows(tasks, labels)
            studio_client.push(client, here, label_studio.to_tasks(rows))
    if tool == "files" and tasks.height:
        export(folder_of(project, step), tasks, labels)
    return tasks.height


def form(step: Step) -> str:
    """Label Studio's form of a step; all but the first ask for what is disputed alone."""
    return label_studio.config_xml(stage=step[1], is_partial=step != STEPS[0])


def title(project: str, step: Step) -> str:
    """How a step's project is called in Label Studio."""
    return f"{project} round {step[0]} {'raters' if step[1] == 1 else 'adjudicator'}"


def studio(address: str | None = None, token: str | None = None) -> Studio | None:
    """A Label Studio: as given, else as the environment says; None if neither says anything.

    The environment's token goes to the environment's address only.
    """
    if not address:
        address, token = settings.studio_uri(), settings.studio_key()
    return Studio(address, token or "") if address else None


@contextmanager
def connected(studio: Studio | None) -> "Iterator[httpx.Client]":
    if studio is None:
        raise Missing(
            "no Label Studio: set UNDERTONE_STUDIO_URL and UNDERTONE_STUDIO_KEY, or the Airflow connection "
            "undertone_label_studio"
        )
    with studio_client.connect(*studio) as client:
        yield client


def as_name(project: str) -> str:
    """A project's or a release's name, if it is one: it becomes part of a path."""
    if not re.fullmatch(SOURCE, project):
        raise BadInput(f"{project!r:.60} is no name; use small letters, digits and _, a letter first")
    return project


def folder_of(project: str, step: Step) -> Path:
    """Where the files of a step lie; labels are looked for in `labels` below it."""
    return settings.labelling() / as_name(project) / f"round{step[0]}_stage{step[1]}"


def export(folder: Path, tasks: pl.DataFrame, labels: pl.DataFrame | None, sheets: Sequence[str] = ()) -> None:
    """Write tasks.jsonl, the guidelines, a sheet for each rater named, and an empty folder for labels."""
    from pipeline.report.labelling import guidelines

    named(sheets)
    (folder / "labels").mkdir(parents=True, exist_ok=True)
    exchange.write_tasks(folder / "tasks.jsonl", tasks, labels)
    for rater in sheets:
        exchange.write_wide(folder / f"{rater}.xlsx", tasks, rater, labels)
    for lang in ("zh", "en"):
        (folder / f"guidelines_{lang}.html").write_text(guidelines.page(lang), encoding="utf-8")


def named(raters: Sequence[str]) -> None:
    """Refuse a rater's name that cannot be the name of a file."""
    if wrong := [name for name in raters if not _RATER.fullmatch(name)]:
        raise BadInput(f"a rater's name should be letters, digits, _ and -, not {wrong[0]!r}: it names a file")


def collect(
    project: str, step: Step, tool: Tool, at: Studio | None = None, run_id: str = "cli", seed: int = 0
) -> dict[str, int]:
    """Fetch the labels a tool has for a step, decide again, and say how many fields still wait in the step.

    A tool that cannot be reached just now has nothing new: whoever waits for labels waits on. Tasks that wait though
    the tool gives them to nobody any more, as an answer lacks a field or is by the wrong person, are named in the log.

    Returns:
        Counts: tasks, labels (in all), waiting.
    """
    tasks, _ = asked(project, step)
    taken = pl.DataFrame(schema=_TAKEN)
    if tasks.height:
        try:
            found, skipped, taken = _fetched(project, step, tool, tasks, at, seed)
        except Retry as why:
            log.warning("%s: %s", title(project, step), why)
        else:
            add(project, found, run_id, skipped)
    open_ = settle(project, run_id)
    if open_[step] and taken.height:
        _tell_stuck(project, step, taken)
    return {"tasks": tasks.height, "labels": labels_of(project).height, "waiting": open_[step]}


def _tell_stuck(project: str, step: Step, taken: pl.DataFrame) -> None:
    """Name the tasks that wait in a step though the tool gives them to nobody."""
    stuck = taken.join(asked(project, step)[0], on="task_id", how="semi")
    if step == STEPS[0]:  # which asks for all tasks, settled or not
        waits = decided(project).annotations.filter(reason="too_few_raters")
        stuck = stuck.join(waits, on="task_id", how="semi")
    if stuck.height:
        told = ", ".join(f"{number} ({task})" for task, number in stuck.select("task_id", "studio_id").head(10).rows())
        log.warning(
            "%s: %s tasks wait, but Label Studio has all answers it wants and gives them to nobody: an answer lacks a "
            "field that was asked for, or its rater does not count (`dropped` says which); have them mended there: %s",
            title(project, step), stuck.height, told,
        )  # fmt: skip


def _fetched(
    project: str, step: Step, tool: Tool, tasks: pl.DataFrame, at: Studio | None, seed: int
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Labels that a tool has, what it has besides with a reason (reason, row_key), and tasks it gives to nobody."""
    none = pl.DataFrame(schema=_GONE), pl.DataFrame(schema=_TAKEN)
    if tool == "simulated":
        if step[1] == 2:
            return simulated.adjudicate(stages.to_adjudicate(decided(project)).filter(round=step[0]), seed), *none
        fields = tasks.select("task_id", field="fields").explode("field") if step[0] == 2 else None
        return simulated.label(tasks.select("task_id", "text"), fields, seed), *none
    if tool == "label_studio":
        with connected(at) as client, tempfile.TemporaryDirectory() as scratch:
            here = studio_client.project(client, title(project, step), form(step), step[1])
            path = Path(scratch) / "export.json"  # it has the raters' addresses, and is not kept
            studio_client.export(client, here, path)
            told = label_studio.from_export(label_studio.read_export(path), tasks_of(project))
        where = pl.concat_str("task_id", "annotation_id", "field", separator="/", ignore_nulls=True)
        return told.labels, told.skipped.select("reason", row_key=where), told.taken.select("task_id", "studio_id")
    paths = sorted(p for p in (folder_of(project, step) / "labels").glob("*") if p.is_file() and p.name[0] not in ".~")
    every = [exchange.read(path, tasks_of(project)) for path in paths]
    return pl.concat([pl.DataFrame(schema=exchange.COLUMNS), *every]), *none


def bring(project: str, paths: Sequence[Path], run_id: str = "cli") -> dict[str, int]:
    """Add labels of files to a project, each checked against the schema and its task; counts as `collect`."""
    tasks = tasks_of(project)
    add(project, pl.concat([exchange.read(path, tasks) for path in paths]), run_id)
    open_ = settle(project, run_id)
    return {"tasks": tasks.height, "labels": labels_of(project).height, "waiting": sum(open_.values())}


def add(project: str, rows: pl.DataFrame, run_id: str = "cli", skipped: pl.DataFrame | None = None) -> int:
    """Add labels to those there are; return how many there are.

    Of two by one rater about one thing the later counts, and where times do not tell, the one that came now. Once an
    adjudicator has answered a task, its three labels stand: what raters then say of it in that round would change what
    was decided on. Both are told in `dropped`, as `superseded` and `after_adjudication`, with what the tool left out
    (`skipped`: reason, row_key).
    """
    told: dict[str, Any] = {}

    def with_known(present: pl.LazyFrame) -> pl.DataFrame:
        known = present.select(list(exchange.COLUMNS)).collect()
        fresh = rows.select(known.columns).join(known, on=known.columns, how="anti", nulls_equal=True)
        counted = stages.decide(known["task_id"], known).kept.filter(stage=2)
        answered = counted.select("task_id", "round").unique().with_columns(stage=pl.lit(1, pl.Int64))
        late = fresh.join(answered, on=["task_id", "round", "stage"], how="semi")
        fresh = fresh.join(answered, on=["task_id", "round", "stage"], how="anti")
        replaced = _replaced(known, fresh)
        once, repeated = stages.without_repeats(pl.concat([known.join(replaced, on=_GIVEN, how="anti"), fresh]))
        reasons = (
            (late, "after_adjudication"), (known.join(replaced, on=_GIVEN, how="semi"), "superseded"),
            (repeated.filter(pl.col("reason") == "superseded"), "superseded"),
        )  # fmt: skip
        told["gone"] = pl.concat([frame.select(reason=pl.lit(reason), row_key=_ROW) for frame, reason in reasons])
        told["is_same"] = not fresh.height and not replaced.height
        return once.with_columns(project=pl.lit(project)).select(empty("labels").columns)

    where = warehouse.slice_of(project=project)
    count = with_known(warehouse.scan("labels", pl.col("project") == project)).height
    mine = (pl.col("origin") == origin(project)) & (pl.col("step") == "labels_in")
    before = warehouse.scan("dropped", mine).select(list(_GONE)).collect()
    gone = pl.concat([before, told["gone"], pl.DataFrame(schema=_GONE) if skipped is None else skipped]).unique()
    # told before the labels are written, as nobody could tell afterwards; `runs`, told last, says whether all was
    if gone.height > warehouse.scan("runs", mine).select(pl.col("dropped_count").sum()).collect().item():
        _tell(project, "labels_in", count, gone.sort(pl.all()), run_id)
    if not told["is_same"]:  # a look that finds no news writes none
        count = warehouse.replace("labels", where, with_known, run_id)
    return count


def _replaced(known: pl.DataFrame, fresh: pl.DataFrame) -> pl.DataFrame:
    """Which of the labels there are say something else now, and times do not tell that they are later."""
    other = known.join(fresh.select(*_GIVEN, now="value", at="labelled_at"), on=_GIVEN, how="inner")
    untimed = pl.col("labelled_at").is_null() | pl.col("at").is_null()
    return other.filter(untimed & (pl.col("now") != pl.col("value"))).select(_GIVEN).unique()


def keep(project: str, rows: pl.DataFrame, run_id: str = "cli") -> int:
    """Add labels of a project that has one stage to those there are; how many there are.

    Of two by one rater about one thing the later counts, and where times do not tell, the one that came now. What is
    there already writes nothing.
    """

    def with_known(present: pl.LazyFrame) -> pl.DataFrame:
        known = present.select(list(exchange.COLUMNS)).collect()
        fresh = rows.select(known.columns)
        known = known.join(_replaced(known, fresh), on=_GIVEN, how="anti")
        once, _ = stages.without_repeats(pl.concat([known, fresh]).unique(maintain_order=True))
        return once.with_columns(project=pl.lit(project)).select(empty("labels").columns)

    there = warehouse.scan("labels", pl.col("project") == project)
    if with_known(there).sort(_GIVEN).equals(there.collect().sort(_GIVEN)):
        return int(there.select(pl.len()).collect().item())
    return warehouse.replace("labels", warehouse.slice_of(project=project), with_known, run_id)


def _tell(project: str, step: str, kept: int, gone: pl.DataFrame, run_id: str) -> None:
    day = min(tasks_of(project)["day"]).isoformat()
    runs.tell(project, day, origin(project), step, kept, gone.with_columns(source=pl.lit(project)), {}, run_id)


def settle(project: str, run_id: str = "cli") -> dict[Step, int]:
    """Decide by the labels there are, put `annotations` in place; return how many fields wait in each step."""
    found = decided(project)
    rows = found.annotations.with_columns(project=pl.lit(project)).select(empty("annotations").columns)
    there = warehouse.scan("annotations", pl.col("project") == project).collect()
    if not there.sort("task_id", "field").equals(rows.sort("task_id", "field")):
        _tell(project, "labels", found.kept.height, found.dropped.select("reason", row_key=_ROW), run_id)
        warehouse.overwrite("annotations", warehouse.slice_of(project=project), rows, run_id)  # last: it is looked at
    else:
        runs.record("labels", found.dropped, project)
    return waiting(found)


def waiting(found: stages.Decided) -> dict[Step, int]:
    """How many fields wait in each step."""
    is_stage_2 = pl.col("reason") == "to_adjudicate"
    is_open = found.annotations.filter(state="open").with_columns(stage=pl.when(is_stage_2).then(2).otherwise(1))
    counts = {(r, s): n for r, s, n in is_open.group_by("round", "stage").len().iter_rows()}
    return {step: counts.get(step, 0) for step in STEPS}


def waiting_step(project: str) -> Step | None:
    """The first step that something waits in; None when all is settled."""
    open_ = waiting(decided(project))
    return next((step for step in STEPS if open_[step]), None)


def status(project: str) -> pl.DataFrame:
    """How many fields are settled, and how many wait for whom: state, reason, round, fields, tasks."""
    rows = decided(project).annotations
    return (
        rows.group_by("state", "reason", "round")
        .agg(fields=pl.len().cast(pl.Int64), tasks=pl.col("task_id").n_unique().cast(pl.Int64))
        .sort("state", "reason", "round", descending=[True, False, False])
    )


def agreement_of_file(path: Path) -> pl.DataFrame:
    """Agreement of labels in a file, whatever tasks they are of."""
    rows = exchange.read(path, None)
    return agreement(stages.decide(rows["task_id"], rows))


def short(table: pl.DataFrame) -> pl.DataFrame:
    """The measures without their intervals, as they fit a terminal."""
    return table.select(name for name in table.columns if not name.endswith(("_low", "_high")))


def agreement(found: stages.Decided) -> pl.DataFrame:
    """Every measure of agreement by field, over what is settled and the three labels that led there."""
    from pipeline.metrics.labelling import agreement

    return agreement.table(by_rater(found))


def by_rater(found: stages.Decided) -> pl.DataFrame:
    """The three labels of the round that decided as a, b, c, in the order of the raters' ids, and what stands.

    Where nobody was asked because the three agreed, the fourth label is theirs (CSD-15, CSD-16).
    """
    cell = ["task_id", "field", "round"]
    said = found.kept.filter(stage=1).sort("rater_id")
    three = said.group_by(cell).agg(pl.col("value").get(n, null_on_oob=True).alias("abc"[n]) for n in range(3))
    rows = found.annotations.select(*cell, fourth="value").join(three, on=cell, how="inner")
    return rows.drop("round").sort("task_id", "field")
