"""Simulated raters, for demonstrations and tests: every row is marked, every draw is a hash of task and rater."""

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.label import grading, quality, questionnaire
from pipeline.label.schema import AGAIN, CSD, DELETE, FIELDS, VERDICTS, YES, Form
from pipeline.label.stages import RATERS

TOOL = "simulated"
RATER_IDS = tuple(f"simulated_{number}" for number in range(1, RATERS + 1))
GRADERS = tuple(f"simulated_{number}" for number in range(1, grading.RATERS + 1))
ADJUDICATOR_ID = "simulated_adjudicator"
READERS = {"simulated_1": 0.9, "simulated_2": 0.85, "simulated_3": 0.8, "simulated_careless": 0.2}
"""Raters of the questionnaire, with the probability of being right after reading; 0.2 is that of a guess."""
_SHARES = {  # of each field's values in their order; tags are yes, unsure, no, grades go from the lowest
    "subtext": (0.35, 0.05, 0.6),
    "sarcasm": (0.2, 0.05, 0.75),
    "metaphor": (0.2, 0.05, 0.75),
    "exaggeration": (0.08, 0.02, 0.9),
    "homophonic": (0.04, 0.01, 0.95),
    "sentiment": (0.25, 0.45, 0.3),
    "emotion": (0.08, 0.02, 0.06, 0.03, 0.15, 0.06, 0.06, 0.1, 0.44),
    "other": (0.05, 0.02, 0.93),
    quality.FIELD: (0.01, 0.05, 0.37, 0.47, 0.1),  # 3.6 on average, as in the paper (AAC-10)
    "syntax": (0.04, 0.09, 0.17, 0.23, 0.28, 0.19),  # 3.19 of 5, as the systems of table 13 have (NDD-36)
    "semantics": (0.06, 0.14, 0.22, 0.28, 0.21, 0.09),  # 2.71 of 5; they have 2.67
}
_RHETORIC = ("反问", "对比", "rhetorical question", "pun")
_SEED = "0"
_LONG = dict.fromkeys(("task_id", "field", "value", "rater_id"), pl.String)
_Draws = npt.NDArray[np.float64]
_Values = dict[str, npt.NDArray[np.str_]]


def label(tasks: pl.DataFrame, fields: pl.DataFrame | None = None) -> pl.DataFrame:
    """Draw the labels of three simulated raters, stage 1; those of `fields` (task_id, field) are of round 2."""
    in_round = 1
    if fields is not None:
        in_round, tasks = 2, tasks.join(fields, on="task_id", how="semi")
    task_ids = tasks["task_id"]
    true_values = _draw_true_values(task_ids, "truth")
    parts = []
    for rater in RATER_IDS:
        draws = _draw_numbers(task_ids, 2 * len(FIELDS) + 4, rater, str(in_round))
        values = _unpivot_values(task_ids, _distort_values(true_values, draws, 0.9))
        if fields is not None:
            values = values.join(fields, on=["task_id", "field"], how="semi")
        rater_id = pl.lit(rater).alias("rater_id")
        parts += [part.with_columns(rater_id) for part in (values, _draw_notes(tasks, values, draws[:, -4:]))]
    return _format_labels(pl.concat(parts), in_round)


def adjudicate(waiting: pl.DataFrame) -> pl.DataFrame:
    """Draw answers of a simulated adjudicator, stage 2, to rows of `stages.list_to_adjudicate`, 95 % of them true."""
    parts = []
    for in_round in (1, 2):
        part = waiting.filter(round=in_round)
        task_ids = part["task_id"].unique()
        draws = _draw_numbers(task_ids, 3 * len(FIELDS), ADJUDICATOR_ID, str(in_round))
        values = _distort_values(_draw_true_values(task_ids, "truth"), draws, 0.95)
        for name, way in zip(FIELDS, draws[:, 2 * len(FIELDS) :].T, strict=True):
            values[name] = np.select([way < 0.1, way < 0.15], [AGAIN, DELETE], values[name])
        rows = _unpivot_values(task_ids, values).join(part, on=["task_id", "field"], how="inner")
        has_three_values = (pl.col("a") != pl.col("b")) & (pl.col("b") != pl.col("c")) & (pl.col("a") != pl.col("c"))
        is_void = has_three_values & ~pl.col("value").is_in(VERDICTS)
        rows = rows.with_columns(value=pl.when(is_void).then(pl.lit(AGAIN)).otherwise("value"))
        parts.append(_format_labels(rows.with_columns(rater_id=pl.lit(ADJUDICATOR_ID)), in_round, stage=2))
    return pl.concat(parts).sort("task_id", "round", maintain_order=True)


def answer(tasks: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """Draw the answers of simulated raters to `questionnaire.FORM`.

    A tenth of the items is unanswerable: raters guess. A tenth is ambiguous: another option is as right, and raters who
    know one of the two mostly name the other as second choice. Before reading a third is right; most right answers are
    called easy; sometimes a span is missing.
    """
    flaw_draw, rival_draw = (pl.lit(pl.Series(draws)) for draws in _draw_numbers(tasks["task_id"], 2, "flaw").T)
    flaw = pl.when(flaw_draw < 0.1).then(pl.lit("unanswerable")).when(flaw_draw < 0.2).then(pl.lit("ambiguous"))
    with_truth = (
        tasks.select("task_id", "item_id", length=pl.col("context").str.len_chars().cast(pl.Int64))
        .join(items.select("item_id", right="label"), on="item_id", maintain_order="left")
        .with_columns(flaw=flaw, rival=_pick_other_option("right", rival_draw))
    )
    parts = [_draw_answers(with_truth, rater, share) for rater, share in READERS.items()]
    return _format_labels(pl.concat(parts), form=questionnaire.FORM)


def grade(
    tasks: pl.DataFrame,
    raters: Sequence[str] = GRADERS,
    assigned: pl.DataFrame | None = None,
    truth: pl.DataFrame | None = None,
    form: Form = quality.FORM,
) -> pl.DataFrame:
    """Draw the grades of simulated raters by `quality.FORM`, or by another form whose fields are all grades.

    `assigned` (task_id, rater_id) says who grades what; without, all grade all. 80 % of the grades are the true one,
    the others one more or one less, and inwards from the ends. `truth` has the grade of each task and field; by default
    it is drawn, with a mean of 3.6 of comments (AAC-10), and as of table 13 of compressions (NDD-36).
    """
    if truth is None:
        true_values = _draw_true_values(tasks["task_id"], "grade", form)
        true_grades = {name: grades.astype(int) for name, grades in true_values.items()}
    else:
        truth_by_task = tasks.select("task_id").join(truth, on="task_id", maintain_order="left")
        true_grades = {field: truth_by_task.filter(field=field)["grade"].to_numpy() for field in form.fields}
    parts = [pl.DataFrame(schema=_LONG)]
    for rater in raters:
        draws = _draw_numbers(tasks["task_id"], 2 * len(form.fields), "grade", rater)
        for number, (field, grades) in enumerate(true_grades.items()):
            low, high = (int(form.fields[field].values[end]) for end in (0, -1))
            offset = np.where(draws[:, 2 * number] < 0.8, 0, np.where(draws[:, 2 * number + 1] < 0.5, -1, 1))
            # an offset beyond the scale goes the other way
            is_beyond = (grades + offset < low) | (grades + offset > high)
            value = pl.Series(np.where(is_beyond, grades - offset, grades + offset), dtype=pl.Int64).cast(pl.String)
            parts.append(tasks.select("task_id", field=pl.lit(field), value=value, rater_id=pl.lit(rater)))
    labels = pl.concat(parts)
    if assigned is not None:
        labels = labels.join(assigned, on=["task_id", "rater_id"], how="semi")
    return _format_labels(labels, form=form)


def _draw_answers(tasks: pl.DataFrame, rater: str, share: float) -> pl.DataFrame:
    draws = pl.DataFrame(_draw_numbers(tasks["task_id"], 14, rater))
    u = [pl.col(name) for name in draws.columns]
    is_ambiguous = (pl.col("flaw") == "ambiguous").fill_null(value=False)
    knows_answer = u[2] < pl.when(flaw="unanswerable").then(1 / questionnaire.OPTIONS).otherwise(share)
    names_rival = is_ambiguous & (u[3] < 0.5)
    first_choice, rival = (
        pl.when(names_rival).then(a).otherwise(b) for a, b in (("rival", "right"), ("right", "rival"))
    )
    rows = tasks.with_columns(draws).with_columns(
        before=pl.when(u[0] < 0.33).then("right").otherwise(_pick_other_option("right", u[1])),
        after=pl.when(knows_answer).then(first_choice).otherwise(_pick_other_option("right", u[4])),
        is_wise=knows_answer,
    )
    names_second = is_ambiguous & pl.col("is_wise") & (u[5] < 0.8)
    second = pl.when(names_second).then(rival).when(u[5] > 0.95).then(_pick_other_option("after", u[6]))
    letters = dict(enumerate(questionnaire.LETTERS))
    right_difficulty, wrong_difficulty = (
        _pick_value(questionnaire.DIFFICULTIES, u[8], shares) for shares in ((0.6, 0.3, 0.1), (0.1, 0.4, 0.5))
    )
    answers = rows.select(
        "task_id",
        pl.col("before", "after").replace_strict(letters, return_dtype=pl.String),
        second=second.replace_strict(letters, default=questionnaire.NO_OTHER, return_dtype=pl.String),
        relation=_pick_value(questionnaire.RELATIONS, u[7], (0.45, 0.45, 0.1)),
        difficulty=pl.when(pl.col("after") == pl.col("right")).then(right_difficulty).otherwise(wrong_difficulty),
        span_1=pl.when(u[9] < 0.95).then(_pick_span(u[10], u[11])),
        span_2=pl.when(u[9] > 0.03).then(_pick_span(u[12], u[13])),
    )
    return _unpivot(answers).drop_nulls("value").with_columns(rater_id=pl.lit(rater))


def _pick_other_option(option: str, draw: pl.Expr) -> pl.Expr:
    return (pl.col(option) + 1 + (draw * (questionnaire.OPTIONS - 1)).cast(pl.Int64)) % questionnaire.OPTIONS


def _pick_value(values: tuple[str, ...], draw: pl.Expr, shares: tuple[float, ...]) -> pl.Expr:
    index = pl.sum_horizontal((draw >= bound).cast(pl.Int64) for bound in np.cumsum(shares)[:-1])
    return index.replace_strict(dict(enumerate(values)), return_dtype=pl.String)


def _pick_span(start: pl.Expr, size: pl.Expr) -> pl.Expr:
    """Pick `start-end` of at most 60 characters of the passage; null for an empty passage."""
    length = pl.col("length")
    begin = (start * length).cast(pl.Int64)
    end = pl.min_horizontal(begin + 1 + (size * 60).cast(pl.Int64), length)
    return pl.when(length > 0).then(pl.format("{}-{}", begin, end))


def _draw_numbers(task_ids: Iterable[str], count: int, *names: str) -> _Draws:
    keys = ("\n".join((_SEED, *names, task)).encode() for task in task_ids)
    digests = b"".join(hashlib.shake_128(key).digest(4 * count) for key in keys)
    return np.frombuffer(digests, "<u4").reshape(-1, count) / 2**32


def _draw_true_values(task_ids: pl.Series, key: str, form: Form = CSD) -> _Values:
    values = {}
    for (name, field), draws in zip(form.fields.items(), _draw_numbers(task_ids, len(form.fields), key).T, strict=True):
        values[name] = np.array(field.values)[np.searchsorted(np.cumsum(_SHARES[name])[:-1], draws, side="right")]
    return values


def _distort_values(true_values: _Values, draws: _Draws, accuracy: float) -> _Values:
    rater_values = {}
    for number, (name, field) in enumerate(FIELDS.items()):
        is_right, step_draws = draws[:, 2 * number] < accuracy, draws[:, 2 * number + 1]
        values = np.array(field.values)
        index = np.argmax(true_values[name][:, None] == values, axis=1)
        step = 1 + (step_draws * (len(values) - 1)).astype(np.int64)  # never back to the truth
        rater_values[name] = np.where(is_right, true_values[name], values[(index + step) % len(values)])
    return rater_values


def _unpivot_values(task_ids: pl.Series, values: _Values) -> pl.DataFrame:
    columns = {name: pl.Series(column.tolist(), dtype=pl.String) for name, column in values.items()}
    return _unpivot(pl.DataFrame({"task_id": task_ids} | columns))


def _unpivot(wide: pl.DataFrame) -> pl.DataFrame:
    return wide.unpivot(index="task_id", variable_name="field", value_name="value")


def _draw_notes(tasks: pl.DataFrame, values: pl.DataFrame, draws: _Draws) -> pl.DataFrame:
    texts = tasks.select("task_id", length=pl.col("text").str.len_chars().cast(pl.Int64))
    texts = texts.with_columns(pl.DataFrame(draws, [f"u{n}" for n in range(4)]))
    subtexts, figures = (
        texts.join(values.filter(value=YES, field=field), on="task_id", how="semi") for field in ("subtext", "other")
    )
    start = (pl.col("u1") * pl.col("length")).cast(pl.Int64)
    end = start + 1 + (pl.col("u2") * (pl.col("length") - start)).cast(pl.Int64)
    notes = subtexts.filter(pl.col("u0") < 0.5).select(
        "task_id",
        span=pl.format("{}-{}", start, end),
        plain=pl.lit("simulated: said in plain words"),
        meaning=_pick_text(("simulated: it means more", "simulated: it means something else")),
    )
    return pl.concat([_unpivot(notes), _unpivot(figures.select("task_id", rhetoric=_pick_text(_RHETORIC)))])


def _pick_text(texts: tuple[str, ...]) -> pl.Expr:
    return (pl.col("u3") * len(texts)).cast(pl.Int64).replace_strict(dict(enumerate(texts)), return_dtype=pl.String)


def _format_labels(labels: pl.DataFrame, in_round: int = 1, stage: int = 1, form: Form = CSD) -> pl.DataFrame:
    return labels.select(
        "task_id",
        pl.lit(in_round, pl.Int64).alias("round"),
        pl.lit(stage, pl.Int64).alias("stage"),
        "rater_id",
        "field",
        "value",
        pl.lit(None, pl.Datetime("us", "UTC")).alias("labelled_at"),
        pl.lit(TOOL).alias("tool"),
    ).sort("task_id", "rater_id", pl.col("field").cast(pl.Enum([*form.fields, *form.notes])))
