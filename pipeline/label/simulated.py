"""Simulated raters, for demonstrations and tests of the process; every row is marked as simulated.

Each task has a hidden truth, drawn with skewed ratios as in the paper's figure 1; raters give it with a set
probability. Every draw is a hash of seed, task and rater: a task's labels depend neither on the order of rows nor on
other tasks. Raters of cloze items know the right option with their own probability, one of them hardly ever; graders
are off by one where they are wrong.
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
"""Raters of the questionnaire, with the probability of being right after reading; 0.2 is that of a guess."""
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


def draw_truth(task_ids: pl.Series, seed: int = 0) -> pl.DataFrame:
    """Draw the hidden truth: task_id, field, value, a row for each task and field."""
    return _unpivot_values(task_ids, _draw_true_values(task_ids, seed)).sort("task_id", "field")


def label(
    tasks: pl.DataFrame, fields: pl.DataFrame | None = None, seed: int = 0, accuracy: float = 0.9
) -> pl.DataFrame:
    """Draw the labels of three simulated raters, stage 1; raters who see a subtext sometimes leave notes.

    Args:
        tasks: task_id, text.
        fields: fields to label again in round 2 (task_id, field); without it all fields are labelled in round 1.
        seed: of the truth and of the raters; the same as the adjudicator's.
        accuracy: probability of the true value; otherwise all other values are equally likely.

    Returns:
        The columns of the contract Labels but project, sorted; labelled_at is null.

    Raises:
        BadInput: accuracy is not in [0, 1].
    """
    _check_share("accuracy", accuracy)
    in_round = 1 if fields is None else 2
    if fields is not None:
        tasks = tasks.join(fields, on="task_id", how="semi")
    task_ids = tasks["task_id"]
    true_values = _draw_true_values(task_ids, seed)
    parts = []
    for rater in RATER_IDS:
        draws = _draw_numbers((f"{seed}\n{rater}\n{in_round}\n{task}" for task in task_ids), 2 * len(FIELDS) + 4)
        values = _unpivot_values(task_ids, _distort_values(true_values, draws, accuracy))
        if fields is not None:
            values = values.join(fields, on=["task_id", "field"], how="semi")
        parts += [
            part.with_columns(rater_id=pl.lit(rater)) for part in (values, _draw_notes(tasks, values, draws[:, -4:]))
        ]
    return _format_labels(pl.concat(parts).with_columns(round=pl.lit(in_round, pl.Int64)), stage=1)


def adjudicate(
    waiting: pl.DataFrame, seed: int = 0, accuracy: float = 0.95, again: float = 0.1, delete: float = 0.05
) -> pl.DataFrame:
    """Draw the answers of a simulated adjudicator, stage 2, to all fields that wait for one.

    Args:
        waiting: task_id, round, field, as `stages.list_to_adjudicate` gives them.
        seed: as given to `label`.
        accuracy: probability that a value, where the answer is one, is the truth.
        again: share of the answers that ask to label the field again.
        delete: share of the answers that delete it.

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
        draws = _draw_numbers((f"{seed}\n{ADJUDICATOR_ID}\n{in_round}\n{task}" for task in task_ids), 3 * len(FIELDS))
        values = _distort_values(_draw_true_values(task_ids, seed), draws, accuracy)
        for number, name in enumerate(FIELDS):
            way = draws[:, 2 * len(FIELDS) + number]
            values[name] = np.where(way < again, AGAIN, np.where(way < again + delete, DELETE, values[name]))
        rows = _unpivot_values(task_ids, values).with_columns(round=pl.lit(in_round, pl.Int64))
        parts.append(rows.join(part, on=["task_id", "field"], how="semi"))
    return _format_labels(pl.concat(parts).with_columns(rater_id=pl.lit(ADJUDICATOR_ID)), stage=2)


def draw_flaws(task_ids: pl.Series, seed: int = 0) -> pl.DataFrame:
    """Draw the hidden flaws of the cloze items of `answer`: task_id, flaw (unanswerable, ambiguous or null)."""
    draws = pl.DataFrame(
        {"task_id": task_ids, "u": _draw_numbers((f"{seed}\nflaw\n{task}" for task in task_ids), 2)[:, 0]}
    )
    return draws.select(
        "task_id", flaw=pl.when(pl.col("u") < 0.1).then(pl.lit("unanswerable"))
        .when(pl.col("u") < 0.2).then(pl.lit("ambiguous")),
    )  # fmt: skip


def answer(
    tasks: pl.DataFrame, items: pl.DataFrame, seed: int = 0, readers: Mapping[str, float] = READERS
) -> pl.DataFrame:
    """Draw the answers of simulated raters to `questionnaire.FORM`.

    A tenth of the items is unanswerable: raters guess. A tenth is ambiguous: another option is as right, and raters who
    know one of the two mostly name the other as second choice. Before reading a third is right; most right answers are
    called easy; sometimes a span is missing.

    Args:
        tasks: rows of `questionnaire.build_tasks`.
        items: item_id, label: the right options, which raters do not see.
        seed: of the hidden flaws and of the raters.
        readers: probability of being right after reading by the rater's id.

    Returns:
        The columns of the contract Labels but project, sorted; labelled_at is null.

    Raises:
        BadInput: a probability is not in [0, 1], or a task is of none of the items.
    """
    for name, share in readers.items():
        _check_share(name, share)
    if (unknown_tasks := tasks.join(items, on="item_id", how="anti")).height:
        raise BadInput(f"task {unknown_tasks['task_id'][0]}: expected one of the {items.height} items")
    tasks_with_truth = tasks.select("task_id", "item_id", length=pl.col("context").str.len_chars().cast(pl.Int64))
    tasks_with_truth = tasks_with_truth.join(
        items.select("item_id", right="label"), on="item_id", maintain_order="left"
    )
    tasks_with_truth = tasks_with_truth.join(
        draw_flaws(tasks_with_truth["task_id"], seed), on="task_id", maintain_order="left"
    )
    rival_draws = _draw_numbers((f"{seed}\nflaw\n{task}" for task in tasks_with_truth["task_id"]), 2)[:, 1]
    tasks_with_truth = tasks_with_truth.with_columns(rival=_pick_other_option("right", pl.lit(pl.Series(rival_draws))))
    parts = [_draw_answers(tasks_with_truth, rater, share, seed) for rater, share in readers.items()]
    form = questionnaire.FORM
    empty = pl.DataFrame(schema=dict.fromkeys(("task_id", "field", "value", "rater_id"), pl.String))
    return _format_labels(pl.concat([empty, *parts]).with_columns(round=pl.lit(1, pl.Int64)), stage=1, form=form)


def grade(
    tasks: pl.DataFrame,
    raters: Sequence[str] = ("r1", "r2", "r3", "r4", "r5"),
    assigned: pl.DataFrame | None = None,
    seed: int = 0,
    accuracy: float = 0.8,
    truth: pl.DataFrame | None = None,
    form: Form = quality.FORM,
) -> pl.DataFrame:
    """Draw the grades of simulated raters by `quality.FORM`, or by another form whose fields are all grades.

    Args:
        tasks: task_id: rows of `quality.build_tasks`, or of the other form's.
        raters: ids of the raters.
        assigned: task_id, rater_id: who grades what, of `assignment.assign`; without, all raters grade all tasks.
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
    true_grades = _get_true_grades(tasks.select("task_id"), truth, form, seed)
    parts = [pl.DataFrame(schema=dict.fromkeys(("task_id", "rater_id", "field", "value"), pl.String))]
    for rater in raters:
        draws = _draw_numbers((f"{seed}\ngrade\n{rater}\n{task}" for task in task_ids), 2 * count)
        for number, (field, grades) in enumerate(true_grades.items()):
            low, high = _get_scale(form, field)
            offset = np.where(draws[:, 2 * number] < accuracy, 0, np.where(draws[:, 2 * number + 1] < 0.5, -1, 1))
            # an offset beyond the scale goes the other way
            rater_grades = np.where(
                (grades + offset < low) | (grades + offset > high), grades - offset, grades + offset
            )
            value = pl.Series(rater_grades, dtype=pl.Int64).cast(pl.String)
            parts.append(tasks.select("task_id", rater_id=pl.lit(rater), field=pl.lit(field), value=value))
    labels = pl.concat(parts)
    if assigned is not None:
        person = ["task_id", "rater_id"]
        if (unknown_pairs := assigned.join(labels, on=person, how="anti")).height:
            pair = f"task {unknown_pairs['task_id'][0]}, rater {unknown_pairs['rater_id'][0]}"
            raise BadInput(f"assigned, {pair}: expected one of the {tasks.height} tasks and of {', '.join(raters)}")
        labels = labels.join(assigned, on=person, how="semi")
    return _format_labels(labels.with_columns(round=pl.lit(1, pl.Int64)), stage=1, form=form)


def _get_true_grades(
    tasks: pl.DataFrame, truth: pl.DataFrame | None, form: Form, seed: int
) -> dict[str, npt.NDArray[np.int64]]:  # fmt: skip
    """Return true grades of each task by field: given ones, else drawn ones."""
    if truth is None:
        return _draw_true_grades(tasks["task_id"], seed, form)
    if "field" not in truth.columns and len(form.fields) == 1:
        truth = truth.with_columns(field=pl.lit(next(iter(form.fields))))
    grades = {}
    for field in form.fields:
        of_field = truth.filter(pl.col("field") == field).select("task_id", "grade")
        task_grades = tasks.join(of_field, on="task_id", how="left", maintain_order="left")
        low, high = _get_scale(form, field)
        if (faulty := task_grades.filter(~pl.col("grade").is_between(low, high).fill_null(value=False))).height:
            location = f"task {faulty['task_id'][0]}" + (f", {field}" if len(form.fields) > 1 else "")
            raise BadInput(f"{location}: expected a true grade from {low} to {high}, found {faulty['grade'][0]}")
        grades[field] = task_grades["grade"].cast(pl.Int64).to_numpy()
    return grades


def _draw_true_grades(task_ids: pl.Series, seed: int, form: Form) -> dict[str, npt.NDArray[np.int64]]:
    draws = _draw_numbers((f"{seed}\ngrade\n{task}" for task in task_ids), len(form.fields))
    grades = {}
    for number, (field, field_schema) in enumerate(form.fields.items()):
        shares = _GRADES.get(field, (1 / len(field_schema.values),) * len(field_schema.values))
        indices = np.searchsorted(np.cumsum(shares)[:-1], draws[:, number], side="right")
        grades[field] = indices.astype(np.int64) + _get_scale(form, field)[0]
    return grades


def _get_scale(form: Form, field: str) -> tuple[int, int]:
    """Return the lowest and the highest grade."""
    values = form.fields[field].values
    return int(values[0]), int(values[-1])


def _draw_answers(tasks: pl.DataFrame, rater: str, share: float, seed: int) -> pl.DataFrame:
    """Draw the answers of one rater: task_id, field, value, rater_id."""
    count = 14
    draws = _draw_numbers((f"{seed}\n{rater}\n{task}" for task in tasks["task_id"]), count)
    u = [pl.col(f"u{n}") for n in range(count)]
    is_ambiguous = (pl.col("flaw") == "ambiguous").fill_null(value=False)
    knows_answer = u[2] < pl.when(pl.col("flaw") == "unanswerable").then(1 / questionnaire.OPTIONS).otherwise(share)
    first_choice, rival = (
        pl.when(is_ambiguous & (u[3] < 0.5)).then(a).otherwise(b) for a, b in (("rival", "right"), ("right", "rival"))
    )
    rows = tasks.with_columns(pl.DataFrame(draws, [f"u{n}" for n in range(count)])).with_columns(
        is_wise=knows_answer,
        before=pl.when(u[0] < 0.33).then("right").otherwise(_pick_other_option("right", u[1])),
        after=pl.when(knows_answer).then(first_choice).otherwise(_pick_other_option("right", u[4])),
    )
    is_right = pl.col("after") == pl.col("right")
    second = (
        pl.when(is_ambiguous & pl.col("is_wise") & (u[5] < 0.8)).then(rival)
        .when(u[5] > 0.95).then(_pick_other_option("after", u[6]))
    )  # fmt: skip
    letters = dict(enumerate(questionnaire.LETTERS))
    answers = rows.select(
        "task_id",
        before=pl.col("before").replace_strict(letters, return_dtype=pl.String),
        after=pl.col("after").replace_strict(letters, return_dtype=pl.String),
        second=second.replace_strict(letters, default=questionnaire.NO_OTHER, return_dtype=pl.String),
        relation=_pick_value(questionnaire.RELATIONS, u[7], (0.45, 0.45, 0.1)),
        difficulty=pl.when(is_right)
        .then(_pick_value(questionnaire.DIFFICULTIES, u[8], (0.6, 0.3, 0.1)))
        .otherwise(_pick_value(questionnaire.DIFFICULTIES, u[8], (0.1, 0.4, 0.5))),
        span_1=pl.when(u[9] < 0.95).then(_pick_span(u[10], u[11])),
        span_2=pl.when(u[9] > 0.03).then(_pick_span(u[12], u[13])),
    )
    long = answers.unpivot(index="task_id", variable_name="field", value_name="value").drop_nulls("value")
    return long.with_columns(rater_id=pl.lit(rater))


def _pick_other_option(option: str, draw: pl.Expr) -> pl.Expr:
    """Pick another option than that of the column."""
    step = 1 + (draw * (questionnaire.OPTIONS - 1)).cast(pl.Int64)
    return (pl.col(option) + step) % questionnaire.OPTIONS


def _pick_value(values: tuple[str, ...], draw: pl.Expr, shares: tuple[float, ...]) -> pl.Expr:
    """Pick one of the values, each with its share."""
    index = pl.sum_horizontal((draw >= bound).cast(pl.Int64) for bound in np.cumsum(shares)[:-1])
    return index.replace_strict(dict(enumerate(values)), return_dtype=pl.String)


def _pick_span(start: pl.Expr, size: pl.Expr) -> pl.Expr:
    """Pick `start-end` of at most 60 characters of the passage; null for an empty passage."""
    length = pl.col("length")
    begin = (start * length).cast(pl.Int64)
    end = pl.min_horizontal(begin + 1 + (size * 60).cast(pl.Int64), length)
    return pl.when(length > 0).then(pl.format("{}-{}", begin, end))


def _check_share(name: str, share: float) -> None:
    if not 0 <= share <= 1:
        raise BadInput(f"{name} should be in 0-1, found {share}")


def _draw_numbers(keys: Iterable[str], count: int) -> _Draws:
    """Draw `count` numbers in [0, 1) for each key from its hash."""
    digests = b"".join(hashlib.shake_128(key.encode()).digest(4 * count) for key in keys)
    return np.frombuffer(digests, "<u4").reshape(-1, count) / 2**32


def _draw_true_values(task_ids: pl.Series, seed: int) -> dict[str, npt.NDArray[np.str_]]:
    """Draw the true value of each task, by field."""
    draws = _draw_numbers((f"{seed}\ntruth\n{task}" for task in task_ids), len(FIELDS))
    values = {}
    for number, (name, field) in enumerate(FIELDS.items()):
        bounds = np.cumsum(_RATIOS[name])[:-1]
        values[name] = np.array(field.values)[np.searchsorted(bounds, draws[:, number], side="right")]
    return values


def _distort_values(
    true_values: dict[str, npt.NDArray[np.str_]], draws: _Draws, accuracy: float
) -> dict[str, npt.NDArray[np.str_]]:
    """Draw the values of a rater who knows the truth with a set probability; two draws a field."""
    rater_values = {}
    for number, (name, field) in enumerate(FIELDS.items()):
        is_right, step_draws = draws[:, 2 * number] < accuracy, draws[:, 2 * number + 1]
        values = np.array(field.values)
        index = np.argmax(true_values[name][:, None] == values, axis=1)
        step = 1 + (step_draws * (len(values) - 1)).astype(np.int64)  # never back to the truth
        rater_values[name] = np.where(is_right, true_values[name], values[(index + step) % len(values)])
    return rater_values


def _unpivot_values(task_ids: pl.Series, values: dict[str, npt.NDArray[np.str_]]) -> pl.DataFrame:
    """Return rows of task_id, field, value."""
    columns = {name: pl.Series(name, column.tolist(), dtype=pl.String) for name, column in values.items()}
    wide = pl.DataFrame({"task_id": task_ids} | columns)
    return wide.unpivot(index="task_id", variable_name="field", value_name="value")


def _draw_notes(tasks: pl.DataFrame, values: pl.DataFrame, draws: _Draws) -> pl.DataFrame:
    """Draw the notes of one rater: on half of the subtexts seen, and a name for each other figure seen."""
    figures_found = values.filter(value=YES)
    texts = tasks.select("task_id", "text").with_columns(
        **{f"u{n}": pl.Series(draws[:, n]) for n in range(4)}, length=pl.col("text").str.len_chars().cast(pl.Int64)
    )
    hidden = texts.join(figures_found.filter(field="subtext"), on="task_id", how="semi").filter(pl.col("u0") < 0.5)
    start = (pl.col("u1") * pl.col("length")).cast(pl.Int64)
    end = start + 1 + (pl.col("u2") * (pl.col("length") - start)).cast(pl.Int64)
    notes = hidden.select(
        "task_id",
        span=pl.format("{}-{}", start, end),
        plain=pl.lit("simulated: said in plain words"),
        meaning=_pick_text(_MEANINGS),
    ).unpivot(index="task_id", variable_name="field", value_name="value")
    figures = texts.join(figures_found.filter(field="other"), on="task_id", how="semi")
    rhetoric = figures.select("task_id", field=pl.lit("rhetoric"), value=_pick_text(_RHETORIC))
    return pl.concat([notes, rhetoric])


def _pick_text(texts: tuple[str, ...]) -> pl.Expr:
    """Pick one of the texts by the draw u3."""
    return (pl.col("u3") * len(texts)).cast(pl.Int64).replace_strict(dict(enumerate(texts)), return_dtype=pl.String)


def _format_labels(labels: pl.DataFrame, stage: int, form: Form = CSD) -> pl.DataFrame:
    """Format rows of the contract Labels, without project."""
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
