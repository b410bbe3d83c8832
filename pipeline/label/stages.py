"""The two-stage labelling process: three raters label a task, a fourth person decides where they differ (CSD-15).

A field that is `again` in round 2, or has three different values there, is specious twice and deleted.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import polars as pl

from pipeline.errors import BadInput
from pipeline.io.hashes import hash_text
from pipeline.label.schema import AGAIN, DELETE, FIELDS, NOTES, VERDICTS, check_fields
from pipeline.reasons import Read, choose_first, split_off

LEAST_NAMED = 50  # CSD, section 3.2: `other` is what appears less than 50 times
OTHER = "other"
RATERS = 3
ALL = tuple(FIELDS)  # every field: the strict reading of what a released comment needs
_TO_RELABEL = "to_relabel"
_TO_ADJUDICATE = "to_adjudicate"
_STATES = {"unanimous": "adopted", "adjudicator": "adjudicated"} | dict.fromkeys(
    ("too_few_raters", _TO_RELABEL, _TO_ADJUDICATE), "open"
)  # by reason; fields with any other reason are deleted
_CELL = ["task_id", "field"]
_PERSON = ["task_id", "rater_id"]
KEY = ["task_id", "round", "stage", "rater_id", "field"]  # key of a label within a project
_DROPPED = ["task_id", "rater_id", "field", "round", "stage", "reason"]
_split = partial(split_off, columns=_DROPPED)
_ANNOTATION = ["task_id", "field", "value", "state", "reason", "round", "pattern"]
_IS_NOTE = pl.col("field").is_in([*NOTES])
IS_DISPUTED = pl.col("reason").is_in([_TO_ADJUDICATE, _TO_RELABEL])
"""Whether a field of `Decisions.annotations` waits for the rater who decides, or for the labels to decide on again."""


class Decisions(NamedTuple):
    """What became of each field, the labels that counted, and those that did not."""

    annotations: pl.DataFrame  # task_id, field, value, state, reason, round, pattern: a row for each task and field
    labels: pl.DataFrame  # those that counted, in the order of task, round, stage, rater and field
    dropped: pl.DataFrame  # task_id, rater_id, field, round, stage, reason


def decide(
    task_ids: pl.Series, labels: pl.DataFrame, names: Sequence[str] = ALL, *, takes_values: bool = False
) -> Decisions:
    """Decide each field (`names`) of each task from all labels given so far, in any order; other columns stay.

    A field sent to round 2 is listed under that round, and is `to_relabel` until three people have labelled it again.

    Labels that do not count are dropped with a reason: `unknown_task`; `duplicate` (a rater said the same twice) and
    `superseded` (and later something else); `not_asked` (round 2 of a field that was not sent there); `incomplete` (all
    of a rater who left out a field of the task, so that the three are the same people in all fields); `late` (a fourth
    rater: the first three to finish count, then by rater_id; or a second adjudicator of a field; see `find_late`);
    `adjudicator_was_rater`; `nothing_to_adjudicate` (the three agree, or differ in round 2), `three_values` (the three
    differ, and the answer is a value) and `too_few_raters`. With `takes_values` these two reasons are not for values:
    what is measured is the second label, whatever the first ones are (CSD-18 to CSD-20). Deciding again from the labels
    that counted changes nothing. BadInput: a rater who said two things of a field, without times that show which came
    later.
    """
    tasks = task_ids.cast(pl.String).unique().alias("task_id")
    rows, unknown = _split(labels, pl.when(~pl.col("task_id").is_in(tasks.implode())).then(pl.lit("unknown_task")))
    rows, repeats = drop_repeats(rows)
    fields = tasks.to_frame().join(pl.DataFrame({"field": list(names)}, schema={"field": pl.String}), how="cross")
    first_round = _decide_round(rows, fields, 1, takes_values=takes_values)
    is_sent = pl.col("reason") == _TO_RELABEL
    sent = first_round.annotations.filter(is_sent).select(_CELL)
    second_round = _decide_round(rows, sent, 2, takes_values=takes_values)
    paper_order = pl.col("field").cast(pl.Enum([*FIELDS, *NOTES]))
    annotations = pl.concat([first_round.annotations.filter(~is_sent), second_round.annotations])
    counted = pl.concat([first_round.labels, second_round.labels]).sort(*KEY[:-1], paper_order)
    dropped = pl.concat([unknown, repeats, first_round.dropped, second_round.dropped]).sort(_DROPPED)
    return Decisions(annotations.sort("task_id", paper_order), counted, dropped)


def fold_rare(rhetoric: pl.Series, least: int = LEAST_NAMED) -> pl.Series:
    """Strip and lower names of figures of speech, blank ones to null; those rarer than `least` are `other` (CSD-12)."""
    stripped = rhetoric.cast(pl.String).str.strip_chars().str.to_lowercase().to_frame("name")
    names = stripped.select(pl.when(pl.col("name") != "").then("name"))
    is_rare = pl.col("name").is_not_null() & (pl.len().over("name") < least)
    return names.select(pl.when(is_rare).then(pl.lit(OTHER)).otherwise("name").alias(rhetoric.name)).to_series()


def drop_repeats(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Keep one row for what a rater said of a field, and return the dropped rows too; what was said last counts.

    Of rows that say the same the first is kept, so that saving again takes no rater's place among the three.
    """
    is_repeated = pl.len().over(KEY) > 1
    repeats = rows.filter(is_repeated).sort("labelled_at", "tool", "value", nulls_last=True)
    value, labelled_at = pl.col("value"), pl.col("labelled_at")
    has_changed = value.n_unique().over(KEY) > 1
    is_last_value = value == value.last().over(KEY)
    is_untimed = labelled_at.is_null() | ((labelled_at == labelled_at.max().over(KEY)) & ~is_last_value)
    conflicts = repeats.filter(has_changed & is_untimed.any().over(KEY)).sort(*KEY, "value")
    if conflicts.height:
        row = conflicts.row(0, named=True)
        values = conflicts.filter(**{name: row[name] for name in KEY})["value"].unique().sort()
        location = f"task {row['task_id']}, rater {row['rater_id']}, {row['field']}, round {row['round']}"
        values_text = " and ".join(repr(value[:40]) for value in values)
        raise BadInput(f"{location}: has the values {values_text}, and labelled_at does not show which is later")
    place = pl.int_range(pl.len()).over(KEY)
    is_counted = place == pl.when(has_changed).then(pl.len().over(KEY) - 1).otherwise(0)
    repeat_reason = pl.when(is_last_value).then(pl.lit("duplicate")).otherwise(pl.lit("superseded"))
    counted_rows, dropped = _split(repeats, pl.when(~is_counted).then(repeat_reason))
    return pl.concat([rows.filter(~is_repeated), counted_rows]), dropped


def _decide_round(rows: pl.DataFrame, fields: pl.DataFrame, in_round: int, *, takes_values: bool) -> Decisions:
    notes = fields.select("task_id").unique().join(pl.DataFrame({"field": [*NOTES]}), how="cross")
    cells = pl.concat([fields, notes]).with_columns(is_expected=pl.lit(value=True))
    rows = rows.filter(round=in_round).join(cells, on=_CELL, how="left")
    rows, unexpected = _split(rows, pl.when(pl.col("is_expected").is_null()).then(pl.lit("not_asked")))
    rows = rows.drop("is_expected")
    rater_labels, other_labels = _pick_raters(rows.filter(stage=1), fields)
    value = pl.col("value")
    triples = rater_labels.group_by(_CELL).agg(label_count=pl.len(), kinds=value.n_unique(), first=value.first())
    kinds = pl.when(label_count=RATERS).then("kinds")
    pattern = kinds.replace_strict({1: "same", 2: "partly", 3: "different"}, default="none", return_dtype=pl.String)
    patterns = fields.join(triples, on=_CELL, how="left").with_columns(pattern=pattern)
    is_open = takes_values & ~pl.col("value").is_in(VERDICTS)
    answers, void_answers = _pick_answers(rows.filter(stage=2), rater_labels, patterns, in_round, is_open)
    annotations = patterns.join(answers.select(*_CELL, answer="value"), on=_CELL, how="left")
    annotations = annotations.with_columns(_find_reason(in_round), round=pl.lit(in_round, pl.Int64)).with_columns(
        state=pl.col("reason").replace_strict(_STATES, default="deleted"),
        value=pl.when(reason="unanimous").then("first").when(reason="adjudicator").then("answer"),
    )
    dropped = pl.concat([unexpected, other_labels, void_answers])
    return Decisions(annotations.select(_ANNOTATION), pl.concat([rater_labels, answers]), dropped)


def _find_reason(in_round: int) -> pl.Expr:
    pattern, answer, is_first = pl.col("pattern"), pl.col("answer"), pl.lit(in_round == 1)
    reasons = {
        "too_few_raters": (pattern == "none") & is_first,
        _TO_RELABEL: (pattern == "none") | ((answer == AGAIN) & is_first),
        "adjudicator": ~answer.is_in(VERDICTS),
        "unanimous": pattern == "same",
        "specious_twice": ((pattern == "different") & ~is_first) | (answer == AGAIN),
        _TO_ADJUDICATE: answer.is_null(),
        "all_different": (answer == DELETE) & (pattern == "different"),
        "adjudicator_deleted": answer == DELETE,
    }
    return choose_first(reasons).alias("reason")


def _pick_raters(rows: pl.DataFrame, fields: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    labelled_at = pl.col("labelled_at")
    finished = (
        rows.filter(~_IS_NOTE)
        .group_by(_PERSON)
        .agg(pl.len(), finished_at=pl.when(labelled_at.is_not_null().all()).then(labelled_at.max()))
        .join(fields.group_by("task_id").len(), on=["task_id", "len"])
        .sort("task_id", "finished_at", "rater_id", nulls_last=True)
        .select(*_PERSON, place=pl.int_range(pl.len()).over("task_id"))
    )
    place = pl.col("place")
    reason = pl.when(place.is_null()).then(pl.lit("incomplete")).when(place >= RATERS).then(pl.lit("late"))
    counted_labels, dropped = _split(rows.join(finished, on=_PERSON, how="left"), reason)
    return counted_labels.drop("place"), dropped


def _pick_answers(
    rows: pl.DataFrame, raters: pl.DataFrame, patterns: pl.DataFrame, in_round: int, is_open: pl.Expr
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Pick the first answer by a person who did not label the task to each field with something to adjudicate."""
    rows = rows.join(raters.select(_PERSON).unique().with_columns(was_rater=pl.lit(value=True)), on=_PERSON, how="left")
    rows = rows.join(patterns.select(*_CELL, "pattern"), on=_CELL, how="left")
    pattern = pl.col("pattern")
    faults = {
        "adjudicator_was_rater": pl.col("was_rater"),
        "nothing_to_adjudicate": ~is_open & ((pattern == "same") | ((pattern == "different") & (in_round == 2))),
        "three_values": ~is_open & (pattern == "different") & ~pl.col("value").is_in(VERDICTS),
        "too_few_raters": pattern == "none",
    }
    rows, void = _split(rows, choose_first(faults))
    rows = rows.drop("was_rater", "pattern").sort("labelled_at", "rater_id", nulls_last=True)
    rows, late = _split(rows, pl.when(pl.int_range(pl.len()).over(_CELL) > 0).then(pl.lit("late")))
    return rows, pl.concat([void, late])


def find_late(counted: pl.DataFrame, fresh: pl.DataFrame) -> pl.DataFrame:
    """Find new labels of tasks with three raters, and of fields with an adjudicator's answer, by other people.

    `counted` are the labels of `Decisions`. Where old and new labels have times, these decide who was first.
    """
    task, cell, is_timed = ["task_id", "round", "stage"], ["task_id", "round", "stage", "field"], pl.col("is_timed")
    counted = counted.with_columns(is_timed=pl.col("labelled_at").is_not_null())
    labels = counted.filter(~_IS_NOTE, stage=1)  # what else a rater gives in round 2 is not asked, rather than late
    raters = labels.group_by(task).agg(pl.col("rater_id").n_unique(), is_timed.all()).filter(rater_id=RATERS)
    notes = raters.select(task).join(pl.DataFrame({"field": [*NOTES]}), how="cross")
    fields = pl.concat([labels.select(cell).unique(), notes]).join(raters, on=task)
    parts = []
    for key, closed in ((task, fields), (cell, counted.filter(stage=2))):
        others = fresh.join(counted, on=[*key, "rater_id"], how="anti").join(closed.select(*cell, is_timed), on=cell)
        parts.append(others.filter(pl.col("labelled_at").is_null() | ~is_timed).select(fresh.columns))
    return pl.concat(parts)


def list_to_adjudicate(decisions: Decisions) -> pl.DataFrame:
    """List the fields that wait for an adjudicator: task_id, round, field, and the three values as a, b and c.

    Raters are not named, and their letters go by a hash: the same within a task, unrelated between tasks.
    """
    cell = ["task_id", "round", "field"]
    labels = decisions.labels.filter(stage=1)
    labels = labels.join(decisions.annotations.filter(reason=_TO_ADJUDICATE), on=cell, how="semi")
    digests = [hash_text("\n".join(person)) for person in labels.select(_PERSON).iter_rows()]
    value, rows = pl.col("value").sort_by("digest"), labels.with_columns(digest=pl.Series(digests, dtype=pl.String))
    values = rows.group_by(cell).agg(a=value.get(0), b=value.get(1), c=value.get(2))
    return values.sort("task_id", pl.col("field").cast(pl.Enum(ALL)))


def list_three_values(decisions: Decisions) -> dict[tuple[str, str], list[str]]:
    """List the values of the fields to which three raters gave three in round 1, by task and field."""
    values = decisions.labels.filter(~_IS_NOTE, stage=1, round=1).group_by(_CELL).agg(pl.col("value").unique().sort())
    return {(task_id, field): row for task_id, field, row in values.iter_rows() if len(row) == RATERS}


def list_to_relabel(annotations: pl.DataFrame) -> pl.DataFrame:
    """List the fields to be labelled again (task_id, field), of a task once the adjudicator is through with it."""
    with_adjudicator = annotations.filter(reason=_TO_ADJUDICATE, round=1)
    return annotations.filter(reason=_TO_RELABEL).join(with_adjudicator, on="task_id", how="anti").select(_CELL)


def release(annotations: pl.DataFrame, required: Sequence[str] = ("subtext",)) -> Read:
    """Choose the tasks to publish: a task is left out if a required field was deleted, or while any field is open.

    The paper deletes the comment and does not say what a deleted field does to the others: `required=ALL` leaves out a
    comment with any deleted field. Fields that are deleted and not required become null. Rows have task_id and a column
    for each field, dropped ones task_id, field (the first that keeps the task back) and reason. BadInput: a required
    field that there is not.
    """
    is_open = pl.col("state") == "open"
    dropped = (
        annotations.filter(is_open | ((pl.col("state") == "deleted") & pl.col("field").is_in(check_fields(required))))
        .sort(is_open, pl.col("field").cast(pl.Enum(ALL)))
        .unique("task_id", keep="first", maintain_order=True)
        .select("task_id", "field", reason=pl.when(is_open).then(pl.lit("unfinished")).otherwise("reason"))
        .sort("task_id")
    )
    values = [pl.col("value").filter(field=name).first().alias(name) for name in ALL]
    fit = annotations.join(dropped, on="task_id", how="anti")
    return Read(fit.group_by("task_id").agg(values).sort("task_id"), dropped)


def choose_notes(labels: pl.DataFrame) -> pl.DataFrame:
    """Choose one note of each kind for a task: task_id, span, plain, meaning, rhetoric; null where there is none.

    An adjudicator's comes first, of round 2 before round 1; else what most raters said; else the longest (of spans
    the one that covers most), and of equally long ones the first in order of text. `labels` are those that count.
    """
    start, end = (pl.col("value").str.extract(r"^(\d{1,9})-(\d{1,9})$", n).cast(pl.Int64) for n in (1, 2))
    size = pl.when(field="span").then(end - start).otherwise(pl.col("value").str.len_chars().cast(pl.Int64))
    authority = pl.when(stage=2).then("round").otherwise(0)
    rows = labels.filter(_IS_NOTE).with_columns(authority=authority, size=size.fill_null(0))
    best = rows.group_by(*_CELL, "value", "authority", "size").agg(raters=pl.col("rater_id").n_unique())
    best = best.sort("authority", "raters", "size", "value", descending=[True, True, True, False])
    values = [pl.col("value").filter(field=name).first().alias(name) for name in NOTES]
    return best.group_by("task_id", maintain_order=True).agg(values).sort("task_id")
