"""Simulated raters, for demonstrations and tests of the process: nobody read the texts, and every row says so.

Each task has a hidden truth, drawn with skewed ratios as in the paper's figure 1; raters say it with a set
probability. Every draw comes from a hash of seed, task and rater, so that a task's labels depend neither on the order
of rows nor on which other tasks there are. Those who answer the questionnaire on cloze items know the right option with
a probability of their own, one of them hardly ever; those who grade are off by one where they are wrong.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.errors import BadInput
from pipeline.label import assignment, quality, questionnaire
from pipeline.label.schema import CSD, FIELDS, YES, Form
from pipeline.label.stages import AGAIN, DELETE, RATERS

TOOL = "simulated"
RATER_IDS = tuple(f"simulated_{number}" for number in range(1, RATERS + 1))
GRADERS = tuple(f"simulated_{number}" for number in range(1, assignment.RATERS + 1))
ADJUDICATOR_ID = "simulated_adjudicator"
READERS = {"simulated_1": 0.9, "simulated_2": 0.85, "simulated_3": 0.8, "simulated_careless": 0.2}
"""Who answers the questionnaire, with the probability of being right after reading; 0.2 is that of a guess."""
_RATIOS = {  # of each field's values in the schema's order; tags are yes, unsure, no
    "subtext": (0.35, 0.05, 0.6),
    "sarcasm": (0.2, 0.05, 0.75),
    "metaphor": (0.2, 0.05, 0.75),
    "exaggeration": (0.08, 0.02, 0.9),
    "homophonic": (0.04, 0.01, 0.95),
    "sentiment": (0.25, 0.45, 0.3),
    "emotion": (0.08, 0.02, 0.06, 0.03, 0.15, 0.06, 0.06, 0.1, 0.44),
    "other": (0.05, 0.02, 0.93),
}
_GRADES = {  # of each grade of a form's field, from the lowest; of others all are as likely
    quality.FIELD: (0.01, 0.05, 0.37, 0.47, 0.1),  # 3.6 on average, as in the paper (AAC-10)
    "syntax": (0.04, 0.09, 0.17, 0.23, 0.28, 0.19),  # 3.19 of 5, as the systems of table 13 have (NDD-36)
    "semantics": (0.06, 0.14, 0.22, 0.28, 0.21, 0.09),  # 2.71 of 5; they have 2.67
}
_RHETORIC = ("反问", "对比", "rhetorical question", "pun")
_MEANINGS = ("simulated: it means more", "simulated: it means something else")
_Draws = npt.NDArray[np.float64]


def truth(task_ids: pl.Series, seed: int = 0) -> pl.DataFrame:
    """The hidden truth: task_id, field, value, a row for each task and field."""
    return _long(task_ids, _true(task_ids, seed)).sort("task_id", "field")


def label(tasks: pl.DataFrame, asked: pl.DataFrame | None = None, seed: int = 0, accuracy: float = 0.9) -> pl.DataFrame:
    """Labels of three simulated raters, stage 1; those who see a subtext sometimes leave notes.

    Args:
        tasks: task_id, text.
        asked: fields to label anew in round 2 (task_id, field); without it all fields are labelled in round 1.
        seed: of the truth and of the raters; the same as the adjudicator's.
        accuracy: probability of saying the truth; otherwise any other value is as likely.

    Returns:
        The columns of the contract Labels but project, sorted; labelled_at is null.

    Raises:
        BadInput: accuracy is not in [0, 1].
    """
    _check_share("accuracy", accuracy)
    in_round = 1 if asked is None else 2
    if asked is not None:
        tasks = tasks.join(asked, on="task_id", how="semi")
    task_ids = tasks["task_id"]
    true = _true(task_ids, seed)
    parts = []
    for rater in RATER_IDS:
        draws = _draws((f"{seed}\n{rater}\n{in_round}\n{task}" for task in task_ids), 2 * len(FIELDS) + 4)
        said = _long(task_ids, _heard(true, draws, accuracy))
        if asked is not None:
            said = said.join(asked, on=["task_id", "field"], how="semi")
        parts += [part.with_columns(rater_id=pl.lit(rater)) for part in (said, _notes(tasks, said, draws[:, -4:]))]
    return _rows(pl.concat(parts).with_columns(round=pl.lit(in_round, pl.Int64)), stage=1)


def adjudicate(
    waiting: pl.DataFrame, seed: int = 0, accuracy: float = 0.95, again: float = 0.1, delete: float = 0.05
) -> pl.DataFrame:
    """Answers of a simulated adjudicator, stage 2, to all that waits for one.

    Args:
        waiting: task_id, round, field, as `stages.to_adjudicate` gives them.
        seed: as given to `label`.
        accuracy: probability that a value, where the answer is one, is the truth.
        again: share of the answers that want the field labelled anew.
        delete: share of the answers that want it deleted.

    Returns:
        The columns of the contract Labels but project, sorted; labelled_at is null.

    Raises:
        BadInput: a share is not in [0, 1], or again and delete are more than 1 together.
    """
    for name, share in (
        ("accuracy", accuracy),
        ("again", again),
        ("delete", delete),
        ("again + delete", again + delete),
    ):
        _check_share(name, share)
    parts = []
    for in_round in (1, 2):
        part = waiting.filter(round=in_round)
        task_ids = part["task_id"].unique()
        draws = _draws((f"{seed}\n{ADJUDICATOR_ID}\n{in_round}\n{task}" for task in task_ids), 3 * len(FIELDS))
        values = _heard(_true(task_ids, seed), draws, accuracy)
        for number, name in enumerate(FIELDS):
            way = draws[:, 2 * len(FIELDS) + number]
            values[name] = np.where(way < again, AGAIN, np.where(way < again + delete, DELETE, values[name]))
        said = _long(task_ids, values).with_columns(round=pl.lit(in_round, pl.Int64))
        parts.append(said.join(part, on=["task_id", "field"], how="semi"))
    return _rows(pl.concat(parts).with_columns(rater_id=pl.lit(ADJUDICATOR_ID)), stage=2)


def flaws(task_ids: pl.Series, seed: int = 0) -> pl.DataFrame:
    """What is hidden in the cloze items that `answer` is asked of: task_id, flaw (unanswerable, ambiguous or null)."""
    drawn = pl.DataFrame({"task_id": task_ids, "u": _draws((f"{seed}\nflaw\n{task}" for task in task_ids), 2)[:, 0]})
    return drawn.select(
        "task_id", flaw=pl.when(pl.col("u") < 0.1).then(pl.lit("unanswerable"))
        .when(pl.col("u") < 0.2).then(pl.lit("ambiguous")),
    )  # fmt: skip


def answer(
    tasks: pl.DataFrame, items: pl.DataFrame, seed: int = 0, readers: Mapping[str, float] = READERS
) -> pl.DataFrame:
    """Answers of simulated raters to the questionnaire of `questionnaire.FORM`.

    A tenth of the items is unanswerable: raters guess. A tenth is ambiguous: another option is as right, and who knows
    one of the two mostly names the other as the second choice. Before reading a third is right, of the right answers
    most are called easy, and now and then a span is left out.

    Args:
        tasks: rows of `questionnaire.tasks`.
        items: item_id, label: the right options, which raters do not see.
        seed: of what is hidden in the items and of the raters.
        readers: probability of being right after reading by the rater's id.

    Returns:
        The columns of the contract Labels but project, sorted; labelled_at is null.

    Raises:
        BadInput: a probability is not in [0, 1], or a task is of none of the items.
    """
    for name, share in readers.items():
        _check_share(name, share)
    if (strange := tasks.join(items, on="item_id", how="anti")).height:
        raise BadInput(f"task {strange['task_id'][0]}: expected one of the {items.height} items")
    known = tasks.select("task_id", "item_id", length=pl.col("context").str.len_chars().cast(pl.Int64))
    known = known.join(items.select("item_id", right="label"), on="item_id", maintain_order="left")
    known = known.join(flaws(known["task_id"], seed), on="task_id", maintain_order="left")
    rival = _draws((f"{seed}\nflaw\n{task}" for task in known["task_id"]), 2)[:, 1]
    known = known.with_columns(rival=_another("right", pl.lit(pl.Series(rival))))
    parts = [_answers(known, rater, share, seed) for rater, share in readers.items()]
    form = questionnaire.FORM
    empty = pl.DataFrame(schema=dict.fromkeys(("task_id", "field", "value", "rater_id"), pl.String))
    return _rows(pl.concat([empty, *parts]).with_columns(round=pl.lit(1, pl.Int64)), stage=1, form=form)


def grade(
    tasks: pl.DataFrame,
    raters: Sequence[str] = ("r1", "r2", "r3", "r4", "r5"),
    assigned: pl.DataFrame | None = None,
    seed: int = 0,
    accuracy: float = 0.8,
    truth: pl.DataFrame | None = None,
    form: Form = quality.FORM,
) -> pl.DataFrame:
    """Grades of simulated raters: of comments, by `quality.FORM`, or by another form whose fields are all grades.

    Args:
        tasks: task_id: rows of `quality.tasks`, or of the other form's.
        raters: ids of the raters.
        assigned: task_id, rater_id: who grades what, as `assignment.assign` has it; without, everybody grades all.
        seed: of the true grades and of the raters.
        accuracy: probability of the true grade; otherwise it is one more or one less, and inwards from the ends.
        truth: task_id, field, grade: true grades of each task and field, without `field` where the form has one; by
            default they are drawn, with a mean of 3.6 of comments (AAC-10), and as of table 13 of compressions
            (NDD-36).
        form: what is graded: the values of each field are whole numbers without a gap, in their order.

    Returns:
        The columns of the contract Labels but project, sorted; labelled_at is null.

    Raises:
        BadInput: accuracy is not in [0, 1], a task has no true grade of the scale, or a row of `assigned` is of none of
            the tasks or raters.
    """
    _check_share("accuracy", accuracy)
    task_ids, count = tasks["task_id"], len(form.fields)
    true = _graded(tasks.select("task_id"), truth, form, seed)
    parts = [pl.DataFrame(schema=dict.fromkeys(("task_id", "rater_id", "field", "value"), pl.String))]
    for rater in raters:
        draws = _draws((f"{seed}\ngrade\n{rater}\n{task}" for task in task_ids), 2 * count)
        for number, (field, known) in enumerate(true.items()):
            low, high = _scale(form, field)
            off = np.where(draws[:, 2 * number] < accuracy, 0, np.where(draws[:, 2 * number + 1] < 0.5, -1, 1))
            # who would leave the scale turns back
            said = np.where((known + off < low) | (known + off > high), known - off, known + off)
            value = pl.Series(said, dtype=pl.Int64).cast(pl.String)
            parts.append(tasks.select("task_id", rater_id=pl.lit(rater), field=pl.lit(field), value=value))
    every = pl.concat(parts)
    if assigned is not None:
        person = ["task_id", "rater_id"]
        if (strange := assigned.join(every, on=person, how="anti")).height:
            told = f"task {strange['task_id'][0]}, rater {strange['rater_id'][0]}"
            raise BadInput(f"assigned, {told}: expected one of the {tasks.height} tasks and of {', '.join(raters)}")
        every = every.join(assigned, on=person, how="semi")
    return _rows(every.with_columns(round=pl.lit(1, pl.Int64)), stage=1, form=form)


def _graded(
    tasks: pl.DataFrame, truth: pl.DataFrame | None, form: Form, seed: int
) -> dict[str, npt.NDArray[np.int64]]:  # fmt: skip
    """True grades of each task by field: those given, else drawn."""
    if truth is None:
        return _true_grades(tasks["task_id"], seed, form)
    if "field" not in truth.columns and len(form.fields) == 1:
        truth = truth.with_columns(field=pl.lit(next(iter(form.fields))))
    found = {}
    for field in form.fields:
        of_field = truth.filter(pl.col("field") == field).select("task_id", "grade")
        known = tasks.join(of_field, on="task_id", how="left", maintain_order="left")
        low, high = _scale(form, field)
        if (bad := known.filter(~pl.col("grade").is_between(low, high).fill_null(value=False))).height:
            where = f"task {bad['task_id'][0]}" + (f", {field}" if len(form.fields) > 1 else "")
            raise BadInput(f"{where}: expected a true grade from {low} to {high}, found {bad['grade'][0]}")
        found[field] = known["grade"].cast(pl.Int64).to_numpy()
    return found


def _true_grades(task_ids: pl.Series, seed: int, form: Form) -> dict[str, npt.NDArray[np.int64]]:
    draws = _draws((f"{seed}\ngrade\n{task}" for task in task_ids), len(form.fields))
    found = {}
    for number, (field, about) in enumerate(form.fields.items()):
        shares = _GRADES.get(field, (1 / len(about.values),) * len(about.values))
        places = np.searchsorted(np.cumsum(shares)[:-1], draws[:, number], side="right")
        found[field] = places.astype(np.int64) + _scale(form, field)[0]
    return found


def _scale(form: Form, field: str) -> tuple[int, int]:
    """The lowest and the highest grade."""
    values = form.fields[field].values
    return int(values[0]), int(values[-1])


def _answers(known: pl.DataFrame, rater: str, share: float, seed: int) -> pl.DataFrame:
    """What one rater answers: task_id, field, value, rater_id."""
    count = 14
    draws = _draws((f"{seed}\n{rater}\n{task}" for task in known["task_id"]), count)
    u = [pl.col(f"u{n}") for n in range(count)]
    is_ambiguous = (pl.col("flaw") == "ambiguous").fill_null(value=False)
    is_wise = u[2] < pl.when(pl.col("flaw") == "unanswerable").then(1 / questionnaire.OPTIONS).otherwise(share)
    one, other = (
        pl.when(is_ambiguous & (u[3] < 0.5)).then(a).otherwise(b) for a, b in (("rival", "right"), ("right", "rival"))
    )
    rows = known.with_columns(pl.DataFrame(draws, [f"u{n}" for n in range(count)])).with_columns(
        is_wise=is_wise,
        before=pl.when(u[0] < 0.33).then("right").otherwise(_another("right", u[1])),
        after=pl.when(is_wise).then(one).otherwise(_another("right", u[4])),
    )
    is_right = pl.col("after") == pl.col("right")
    second = (
        pl.when(is_ambiguous & pl.col("is_wise") & (u[5] < 0.8)).then(other)
        .when(u[5] > 0.95).then(_another("after", u[6]))
    )  # fmt: skip
    letters = dict(enumerate(questionnaire.LETTERS))
    said = rows.select(
        "task_id",
        before=pl.col("before").replace_strict(letters, return_dtype=pl.String),
        after=pl.col("after").replace_strict(letters, return_dtype=pl.String),
        second=second.replace_strict(letters, default=questionnaire.NO_OTHER, return_dtype=pl.String),
        relation=_drawn(questionnaire.RELATIONS, u[7], (0.45, 0.45, 0.1)),
        difficulty=pl.when(is_right)
        .then(_drawn(questionnaire.DIFFICULTIES, u[8], (0.6, 0.3, 0.1)))
        .otherwise(_drawn(questionnaire.DIFFICULTIES, u[8], (0.1, 0.4, 0.5))),
        span_1=pl.when(u[9] < 0.95).then(_part(u[10], u[11])),
        span_2=pl.when(u[9] > 0.03).then(_part(u[12], u[13])),
    )
    long = said.unpivot(index="task_id", variable_name="field", value_name="value").drop_nulls("value")
    return long.with_columns(rater_id=pl.lit(rater))


def _another(option: str, draw: pl.Expr) -> pl.Expr:
    """An option that is another than that of the column."""
    step = 1 + (draw * (questionnaire.OPTIONS - 1)).cast(pl.Int64)
    return (pl.col(option) + step) % questionnaire.OPTIONS


def _drawn(values: tuple[str, ...], draw: pl.Expr, shares: tuple[float, ...]) -> pl.Expr:
    """One of the values, each with its share."""
    place = pl.sum_horizontal((draw >= bound).cast(pl.Int64) for bound in np.cumsum(shares)[:-1])
    return place.replace_strict(dict(enumerate(values)), return_dtype=pl.String)


def _part(start: pl.Expr, size: pl.Expr) -> pl.Expr:
    """`start-end` of at most 60 characters of the passage; null where there is none."""
    length = pl.col("length")
    begin = (start * length).cast(pl.Int64)
    end = pl.min_horizontal(begin + 1 + (size * 60).cast(pl.Int64), length)
    return pl.when(length > 0).then(pl.format("{}-{}", begin, end))


def _check_share(name: str, share: float) -> None:
    if not 0 <= share <= 1:
        raise BadInput(f"{name} should be in 0-1, found {share}")


def _draws(keys: Iterable[str], count: int) -> _Draws:
    """Numbers in [0, 1), `count` for each key: the bytes of its hash."""
    told = b"".join(hashlib.shake_128(key.encode()).digest(4 * count) for key in keys)
    return np.frombuffer(told, "<u4").reshape(-1, count) / 2**32


def _true(task_ids: pl.Series, seed: int) -> dict[str, npt.NDArray[np.str_]]:
    """The true value of each task, by field."""
    draws = _draws((f"{seed}\ntruth\n{task}" for task in task_ids), len(FIELDS))
    found = {}
    for number, (name, field) in enumerate(FIELDS.items()):
        bounds = np.cumsum(_RATIOS[name])[:-1]
        found[name] = np.array(field.values)[np.searchsorted(bounds, draws[:, number], side="right")]
    return found


def _heard(true: dict[str, npt.NDArray[np.str_]], draws: _Draws, accuracy: float) -> dict[str, npt.NDArray[np.str_]]:
    """What somebody says who knows the truth with a set probability; two draws a field."""
    found = {}
    for number, (name, field) in enumerate(FIELDS.items()):
        is_right, which = draws[:, 2 * number] < accuracy, draws[:, 2 * number + 1]
        values = np.array(field.values)
        place = np.argmax(true[name][:, None] == values, axis=1)
        step = 1 + (which * (len(values) - 1)).astype(np.int64)  # never back to the truth
        found[name] = np.where(is_right, true[name], values[(place + step) % len(values)])
    return found


def _long(task_ids: pl.Series, values: dict[str, npt.NDArray[np.str_]]) -> pl.DataFrame:
    """task_id, field, value."""
    columns = {name: pl.Series(name, found.tolist(), dtype=pl.String) for name, found in values.items()}
    wide = pl.DataFrame({"task_id": task_ids} | columns)
    return wide.unpivot(index="task_id", variable_name="field", value_name="value")


def _notes(tasks: pl.DataFrame, said: pl.DataFrame, draws: _Draws) -> pl.DataFrame:
    """Notes of one rater: half of those who see a subtext say where and what, who sees another figure names it."""
    given = said.filter(value=YES)
    drawn = tasks.select("task_id", "text").with_columns(
        **{f"u{n}": pl.Series(draws[:, n]) for n in range(4)}, length=pl.col("text").str.len_chars().cast(pl.Int64)
    )
    hidden = drawn.join(given.filter(field="subtext"), on="task_id", how="semi").filter(pl.col("u0") < 0.5)
    start = (pl.col("u1") * pl.col("length")).cast(pl.Int64)
    end = start + 1 + (pl.col("u2") * (pl.col("length") - start)).cast(pl.Int64)
    notes = hidden.select(
        "task_id",
        span=pl.format("{}-{}", start, end),
        plain=pl.lit("simulated: said in plain words"),
        meaning=_one_of(_MEANINGS),
    ).unpivot(index="task_id", variable_name="field", value_name="value")
    figures = drawn.join(given.filter(field="other"), on="task_id", how="semi")
    named = figures.select("task_id", field=pl.lit("rhetoric"), value=_one_of(_RHETORIC))
    return pl.concat([notes, named])


def _one_of(texts: tuple[str, ...]) -> pl.Expr:
    """One of the texts, by the draw u3."""
    return (pl.col("u3") * len(texts)).cast(pl.Int64).replace_strict(dict(enumerate(texts)), return_dtype=pl.String)


def _rows(labels: pl.DataFrame, stage: int, form: Form = CSD) -> pl.DataFrame:
    """Rows of the contract Labels, without project."""
    return labels.select(
        "task_id",
        "round",
        pl.lit(stage, pl.Int64).alias("stage"),
        "rater_id",
        "field",
        "value",
        pl.lit(None, pl.Datetime("us", "UTC")).alias("labelled_at"),
        pl.lit(TOOL).alias("tool"),
    ).sort("task_id", "round", "rater_id", pl.col("field").cast(pl.Enum([*form.fields, *form.notes])))
