"""Simulated raters, for demonstrations and tests of the process: nobody read the comments, and every row says so.

Each task has a hidden truth, drawn with skewed ratios as in the paper's figure 1; raters say it with a set
probability. Every draw comes from a hash of seed, task and rater, so that a task's labels depend neither on the order
of rows nor on which other tasks there are.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.errors import BadInput
from pipeline.label.schema import FIELDS, NOTES, YES
from pipeline.label.stages import AGAIN, DELETE, RATERS

TOOL = "simulated"
RATER_IDS = tuple(f"simulated_{number}" for number in range(1, RATERS + 1))
ADJUDICATOR_ID = "simulated_adjudicator"
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


def _rows(labels: pl.DataFrame, stage: int) -> pl.DataFrame:
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
    ).sort("task_id", "round", "rater_id", pl.col("field").cast(pl.Enum([*FIELDS, *NOTES])))
