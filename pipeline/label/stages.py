"""The two-stage labelling process: three raters label a task, a fourth person decides where they differ (CSD-15).

Stage 1 is three labels by three people; stage 2 is the adjudicator's answer to each field on which they differ. The
answer is a value, which stands, or `delete`, or `again`: in round 1 three people label the field anew, in round 2 the
field has been specious twice and is deleted. So nothing stays open after two rounds that failed.

Labels are rows of the contract Labels, of one project; notes (span, plain, …) are carried along and never decided.
"""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from pipeline.errors import BadInput
from pipeline.label.schema import FIELDS, NOTES

RATERS = 3
AGAIN = "again"
DELETE = "delete"
ALL = tuple(FIELDS)
"""Every field: the strict reading of what a released comment needs."""
_TO_RELABEL = "to_relabel"
_TO_ADJUDICATE = "to_adjudicate"
_CELL = ["task_id", "field"]
_GIVEN = ["task_id", "round", "stage", "rater_id", "field"]
_DROPPED = ["task_id", "rater_id", "field", "round", "stage", "reason"]
_ANNOTATION = ["task_id", "field", "value", "state", "reason", "round", "pattern"]


class Decisions(NamedTuple):
    """What became of each field, the labels that counted, and those that did not."""

    annotations: pl.DataFrame  # task_id, field, value, state, reason, round, pattern: a row for each task and field
    kept: pl.DataFrame  # labels, in the order of task, round, stage, rater and field
    dropped: pl.DataFrame  # task_id, rater_id, field, round, stage, reason


class Release(NamedTuple):
    """Tasks fit to publish, with their values, and those left out."""

    values: pl.DataFrame  # task_id and a column for each field; null where a field was deleted
    left_out: pl.DataFrame  # task_id, field, reason: the first field that keeps the task back


def decide(task_ids: pl.Series, labels: pl.DataFrame) -> Decisions:
    """What becomes of each field of each task, from all labels given so far, in any order.

    A field sent to round 2 is listed under that round, and is `to_relabel` until three people have labelled it anew.

    Labels that do not count are dropped with a reason: `unknown_task`; `duplicate` (a rater said the same twice) and
    `superseded` (and later something else); `not_asked` (round 2 of a field that was not sent there); `incomplete` (all
    of a rater who left out a field of the task, so that the three are the same people in all fields); `late` (a fourth
    rater: the first three to finish count, then by rater_id; or a second adjudicator of a field);
    `adjudicator_was_rater`; `nothing_to_adjudicate` (the three agree) and `too_few_raters` (there are no three yet).
    Deciding again from the labels kept keeps them all and comes out the same.

    Args:
        task_ids: the tasks of the project.
        labels: task_id, round, stage, rater_id, field, value, labelled_at, tool; other columns are kept.

    Raises:
        BadInput: a field or value that is not in the schema, a third round or stage, or a rater who said two things of
            a field without times that tell which came later.
    """
    _check(labels)
    tasks = task_ids.cast(pl.String).unique().alias("task_id")
    rows, unknown = _split(labels, pl.when(~pl.col("task_id").is_in(tasks.implode())).then(pl.lit("unknown_task")))
    rows, repeats = drop_repeats(rows)
    fields = tasks.to_frame().join(pl.DataFrame({"field": ALL}), how="cross")
    first_round = _decide_round(rows, fields, 1)
    is_sent = pl.col("reason") == _TO_RELABEL
    second_round = _decide_round(rows, first_round.annotations.filter(is_sent).select(_CELL), 2)
    paper_order = pl.col("field").cast(pl.Enum([*FIELDS, *NOTES]))
    return Decisions(
        pl.concat([first_round.annotations.filter(~is_sent), second_round.annotations]).sort("task_id", paper_order),
        pl.concat([first_round.kept, second_round.kept]).sort("task_id", "round", "stage", "rater_id", paper_order),
        pl.concat([unknown, repeats, first_round.dropped, second_round.dropped]).sort(_DROPPED),
    )


def _check(labels: pl.DataFrame) -> None:
    """Imports check each value where line and file are known; here it keeps `again` out of stage 1."""
    allowed = [(name, stage, value) for name in FIELDS for stage in (1, 2) for value in FIELDS[name].values]
    allowed += [(name, 2, value) for name in FIELDS for value in (AGAIN, DELETE)]
    table = pl.DataFrame(allowed, schema={"field": pl.String, "stage": pl.Int64, "value": pl.String}, orient="row")
    wrong = labels.filter(~pl.col("field").is_in([*NOTES])).join(table, on=["field", "stage", "value"], how="anti")
    if wrong.height:
        row = wrong.sort([*_GIVEN, "value"]).row(0, named=True)
        expected = (
            ", ".join(table.filter(field=row["field"], stage=row["stage"])["value"]) or f"a field of {', '.join(ALL)}"
        )
        raise BadInput(
            f"task {row['task_id']}, rater {row['rater_id']}, {row['field']}, stage {row['stage']}: "
            f"expected {expected}, found {str(row['value'])[:40]!r}"
        )
    for name in ("round", "stage"):
        faulty_rounds = labels.filter(~pl.col(name).is_in([1, 2])).sort(_GIVEN)
        if faulty_rounds.height:
            task, rater, field, number = faulty_rounds.select("task_id", "rater_id", "field", name).row(0)
            raise BadInput(f"task {task}, rater {rater}, {field}: {name} should be 1 or 2, found {number}")


def _split(rows: pl.DataFrame, reason: pl.Expr) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows without a reason to drop them, and the others with theirs."""
    marked = rows.with_columns(reason=reason)
    without = pl.col("reason").is_null()
    return marked.filter(without).drop("reason"), marked.filter(~without).select(_DROPPED)


def drop_repeats(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """One row for what a rater said of a field; what was said last counts.

    Of rows that say the same the first is kept, so that saving again takes no rater's place among the three.
    """
    repeats = rows.group_by(_GIVEN).len().filter(pl.col("len") > 1).drop("len")
    if not repeats.height:
        return _split(rows, pl.lit(None, pl.String))
    repeated_rows = rows.join(repeats, on=_GIVEN, how="semi").sort("labelled_at", "tool", "value", nulls_last=True)
    has_changed = pl.col("value").n_unique().over(_GIVEN) > 1
    last_time = pl.col("labelled_at").max().over(_GIVEN)
    is_untimed = pl.col("labelled_at").is_null().any().over(_GIVEN)
    is_tied = (pl.col("labelled_at") == last_time) & (pl.col("value") != pl.col("value").last().over(_GIVEN))
    conflicts = repeated_rows.filter(has_changed & (is_untimed | is_tied.any().over(_GIVEN))).sort([*_GIVEN, "value"])
    if conflicts.height:
        row = conflicts.row(0, named=True)
        values = conflicts.filter(**{name: row[name] for name in _GIVEN})["value"].unique().sort().to_list()
        raise BadInput(
            f"task {row['task_id']}, rater {row['rater_id']}, {row['field']}, round {row['round']}: said "
            f"{' and '.join(repr(value[:40]) for value in values)}, and labelled_at does not tell which is later"
        )
    place = pl.int_range(pl.len()).over(_GIVEN)
    is_kept = place == pl.when(has_changed).then(pl.len().over(_GIVEN) - 1).otherwise(0)
    is_same = pl.col("value") == pl.col("value").last().over(_GIVEN)
    reason = pl.when(is_kept).then(None).when(is_same).then(pl.lit("duplicate")).otherwise(pl.lit("superseded"))
    last_rows, repeated = _split(repeated_rows, reason)
    return pl.concat([rows.join(repeats, on=_GIVEN, how="anti"), last_rows]), repeated


def _decide_round(rows: pl.DataFrame, field_rows: pl.DataFrame, in_round: int) -> Decisions:
    """The labels that count of a round, and what they make of the fields asked for in it (task_id, field)."""
    rows = rows.filter(pl.col("round") == in_round)
    is_note = pl.col("field").is_in([*NOTES])
    fields = field_rows.with_columns(asked=pl.lit(value=True))
    is_expected = (
        pl.when(is_note).then(pl.col("task_id").is_in(field_rows["task_id"].unique().implode())).otherwise("asked")
    )
    rows = rows.join(fields, on=_CELL, how="left")
    rows, unexpected = _split(rows, pl.when(~is_expected.fill_null(value=False)).then(pl.lit("not_asked")))
    rows = rows.drop("asked")

    rater_labels, other_labels = _pick_raters(rows.filter(pl.col("stage") == 1), field_rows)
    triples = rater_labels.group_by(_CELL).agg(
        said=pl.len(), kinds=pl.col("value").n_unique(), first=pl.col("value").first()
    )
    kinds = pl.when(pl.col("said") == RATERS).then("kinds")
    patterns = field_rows.join(triples, on=_CELL, how="left").with_columns(
        pattern=kinds.replace_strict({1: "same", 2: "partly", 3: "different"}, default="none", return_dtype=pl.String)
    )

    answers, void_answers = _pick_answers(rows.filter(pl.col("stage") == 2), rater_labels, patterns)
    answered_fields = patterns.join(answers.select(*_CELL, answer="value"), on=_CELL, how="left")
    annotations = answered_fields.with_columns(_find_reason(in_round), round=pl.lit(in_round, pl.Int64))
    annotations = annotations.with_columns(
        state=pl.col("reason").replace_strict(
            {"unanimous": "adopted", "adjudicator": "adjudicated"},
            default=pl.when(pl.col("reason").is_in(["too_few_raters", _TO_RELABEL, _TO_ADJUDICATE]))
            .then(pl.lit("open"))
            .otherwise(pl.lit("deleted")),
        ),
        value=pl.when(reason="unanimous").then("first").when(reason="adjudicator").then("answer"),
    )
    return Decisions(
        annotations.select(_ANNOTATION),
        pl.concat([rater_labels, answers]),
        pl.concat([unexpected, other_labels, void_answers]),
    )


def _find_reason(in_round: int) -> pl.Expr:
    """What a field waits for, or what settled it (CSD-15), from the columns pattern and answer."""
    pattern, answer = pl.col("pattern"), pl.col("answer")
    return (
        pl.when(pattern == "none")
        .then(pl.lit("too_few_raters" if in_round == 1 else _TO_RELABEL))
        .when(pattern == "same")
        .then(pl.lit("unanimous"))
        .when(answer.is_null())
        .then(pl.lit(_TO_ADJUDICATE))
        .when(answer == DELETE)
        .then(pl.when(pattern == "partly").then(pl.lit("adjudicator_deleted")).otherwise(pl.lit("all_different")))
        .when(answer == AGAIN)
        .then(pl.lit(_TO_RELABEL if in_round == 1 else "specious_twice"))
        .otherwise(pl.lit("adjudicator"))
        .alias("reason")
    )


def _pick_raters(rows: pl.DataFrame, fields: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Labels of the first three raters who finished each task.

    They are placed by when they finished, not by when they began: one who began early and finishes after the
    adjudicator's answer takes no place of those whom the adjudicator saw.
    """
    person = ["task_id", "rater_id"]
    labelled_at = pl.col("labelled_at")
    finished = (
        rows.filter(~pl.col("field").is_in([*NOTES]))
        .group_by(person)
        .agg(said=pl.len(), at=labelled_at.max(), untold=labelled_at.is_null().any())
        .join(fields.group_by("task_id").agg(asked=pl.len()), on="task_id")
        .filter(pl.col("said") == pl.col("asked"))
        .sort("task_id", pl.when(~pl.col("untold")).then("at"), "rater_id", nulls_last=True)
        .select(*person, place=pl.int_range(pl.len()).over("task_id"))
    )
    reason = (
        pl.when(pl.col("place").is_null())
        .then(pl.lit("incomplete"))
        .when(pl.col("place") >= RATERS)
        .then(pl.lit("late"))
    )
    counted_labels, dropped = _split(rows.join(finished, on=person, how="left"), reason)
    return counted_labels.drop("place"), dropped


def _pick_answers(
    rows: pl.DataFrame, raters: pl.DataFrame, patterns: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The first answer to each field that has something to adjudicate, by a person who did not label the task."""
    person = ["task_id", "rater_id"]
    raters_of_task = raters.select(person).unique().with_columns(was_rater=pl.lit(value=True))
    rows = rows.join(raters_of_task, on=person, how="left").join(
        patterns.select(*_CELL, "pattern"), on=_CELL, how="left"
    )
    reason = (
        pl.when("was_rater")
        .then(pl.lit("adjudicator_was_rater"))
        .when(pattern="same")
        .then(pl.lit("nothing_to_adjudicate"))
        .when(pattern="none")
        .then(pl.lit("too_few_raters"))
    )
    rows, void = _split(rows, reason)
    rows = rows.drop("was_rater", "pattern").sort("labelled_at", "rater_id", nulls_last=True)
    rows, late = _split(rows, pl.when(pl.int_range(pl.len()).over(_CELL) > 0).then(pl.lit("late")))
    return rows, pl.concat([void, late])


def list_to_adjudicate(decided: Decisions) -> pl.DataFrame:
    """Fields that wait for an adjudicator: task_id, round, field, and the three values as a, b and c.

    Raters are not named, and their letters go by a hash: the same within a task, unrelated between tasks.
    """
    waiting = decided.annotations.filter(reason=_TO_ADJUDICATE).select("task_id", "round", "field")
    labels = waiting.join(decided.kept.filter(stage=1), on=["task_id", "round", "field"])
    people = labels.select("task_id", "rater_id").unique()
    digests = [hashlib.blake2b("\n".join(row).encode(), digest_size=16).hexdigest() for row in people.iter_rows()]
    hashed_labels = labels.join(
        people.with_columns(place=pl.Series(digests, dtype=pl.String)), on=["task_id", "rater_id"]
    )
    value = pl.col("value").sort_by("place")
    return (
        hashed_labels.group_by("task_id", "round", "field")
        .agg(a=value.get(0), b=value.get(1), c=value.get(2))
        .sort("task_id", pl.col("field").cast(pl.Enum(ALL)))
    )


def list_to_relabel(annotations: pl.DataFrame) -> pl.DataFrame:
    """Fields to be labelled anew by three people: task_id, field.

    A task is given out once the adjudicator is through with it: the three of round 2 answer all its fields together.
    """
    with_adjudicator = annotations.filter(reason=_TO_ADJUDICATE, round=1).select("task_id").unique()
    return annotations.filter(reason=_TO_RELABEL).join(with_adjudicator, on="task_id", how="anti").select(_CELL)


def is_finished(annotations: pl.DataFrame) -> bool:
    """Whether nothing is open."""
    return not (annotations["state"] == "open").any()


def release(annotations: pl.DataFrame, required: Sequence[str] = ("subtext",)) -> Release:
    """Tasks to publish: a task is left out if a required field of it was deleted, or while any field is open.

    The paper deletes the comment and does not say what a deleted field does to the others: `required=ALL` leaves out
    a comment with any deleted field. Fields that are deleted and not required become null.

    Raises:
        BadInput: a required field that there is not.
    """
    if unknown_fields := [name for name in required if name not in FIELDS]:
        raise BadInput(f"no field {unknown_fields[0]!r}; there are {', '.join(ALL)}")
    deleted = (pl.col("state") == "deleted") & pl.col("field").is_in(list(required))
    held_back = annotations.filter(deleted | (pl.col("state") == "open"))
    is_open = pl.col("state") == "open"
    left_out = (
        held_back.sort(is_open, pl.col("field").cast(pl.Enum(ALL)))
        .unique("task_id", keep="first", maintain_order=True)
        .select("task_id", "field", reason=pl.when(is_open).then(pl.lit("unfinished")).otherwise("reason"))
        .sort("task_id")
    )
    values = [pl.col("value").filter(field=name).first().alias(name) for name in ALL]
    fit = annotations.join(left_out, on="task_id", how="anti")
    return Release(fit.group_by("task_id").agg(values).sort("task_id"), left_out)


def choose_notes(labels: pl.DataFrame) -> pl.DataFrame:
    """One note of each kind for a task: task_id, span, plain, meaning, rhetoric; null where nobody gave any.

    An adjudicator's comes first, of round 2 before round 1; else what most raters said; else the longest (of spans
    the one that covers most), and of equally long ones the first in order of text.

    Args:
        labels: those that count (`Decided.kept`).
    """
    start, end = (pl.col("value").str.extract(r"^(\d{1,9})-(\d{1,9})$", n).cast(pl.Int64) for n in (1, 2))
    size = pl.when(field="span").then(end - start).otherwise(pl.col("value").str.len_chars().cast(pl.Int64))
    rows = labels.filter(pl.col("field").is_in([*NOTES])).with_columns(
        authority=pl.when(stage=2).then("round").otherwise(0), size=size.fill_null(0)
    )
    best = (
        rows.group_by(*_CELL, "value", "authority", "size")
        .agg(raters=pl.col("rater_id").n_unique())
        .sort("authority", "raters", "size", "value", descending=[True, True, True, False])
    )
    values = [pl.col("value").filter(field=name).first().alias(name) for name in NOTES]
    return best.group_by("task_id", maintain_order=True).agg(values).sort("task_id")
