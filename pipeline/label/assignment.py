"""Who rates what: each task to so many of the raters, at random and evenly (commenting, section 3; AAC-08).

The paper gives each comment to two of five raters. Here every rater has as many tasks as any other, give or take one,
and meets every other rater as often, as agreement is measured between those who rated the same. Whole rounds, in which
every group of raters comes once, are even by themselves; what is left over is dealt one by one to those who have least.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.errors import BadInput

ASSIGNED: dict[str, pl.DataType] = {"task_id": pl.String(), "rater_id": pl.String()}
SEED = 42
PER_TASK = 2
RATERS = 5
"""Raters of a comment, and raters there are, in the paper (AAC-08)."""
_TRIES = 50  # of dealing what is left over
_WORK = 5_000_000  # groups looked at in all tries

_Ints = npt.NDArray[np.int64]


def assign(
    task_ids: Iterable[str],
    raters: Sequence[str],
    per_task: int = PER_TASK,
    seed: int = SEED,
    given: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Give each task to `per_task` different raters.

    Numbers of tasks differ by one at most from rater to rater; numbers of tasks that two share do, too, where two of up
    to nine rate a task and all is given at once, and else by little more. What was given before counts: who joins later
    is given more until all have as many.

    Args:
        task_ids: the tasks; their order does not matter.
        raters: ids of the raters.
        per_task: how many raters a task has.
        seed: the same tasks, raters and seed give the same rows.
        given: task_id, rater_id as an earlier call returned it; its tasks stay as they are.

    Returns:
        task_id, rater_id: `given` and `per_task` rows for each task that is not in it, in order of task and rater.

    Raises:
        BadInput: a rater is there twice, or there are fewer than `per_task`, or that is less than one.
    """
    if len(set(raters)) < len(raters):
        raise BadInput(f"raters: {max(raters, key=list(raters).count)!r} is there twice, expected once")
    if not 1 <= per_task <= len(raters):
        raise BadInput(f"per_task should be in 1-{len(raters)}, the number of raters, found {per_task}")
    names = sorted(raters)
    known = pl.DataFrame(schema=ASSIGNED) if given is None else given.select(list(ASSIGNED))
    new = sorted(set(task_ids) - set(known["task_id"]))
    rng = np.random.default_rng([seed, known["task_id"].n_unique()])
    chosen = _chosen(len(new), per_task, _met(known, names), rng)
    rows = [(task, names[place]) for task, places in zip(new, chosen.tolist(), strict=True) for place in places]
    return pl.concat([known, pl.DataFrame(rows, schema=ASSIGNED, orient="row")]).sort("task_id", "rater_id")


def _met(given: pl.DataFrame, names: Sequence[str]) -> _Ints:
    """[raters, raters]: tasks that two have in common; on the diagonal, tasks of one."""
    places = {name: place for place, name in enumerate(names)}
    rows = given.select("task_id", place=pl.col("rater_id").replace_strict(places, default=None, return_dtype=pl.Int64))
    pairs = rows.drop_nulls().join(rows.drop_nulls(), on="task_id").select("place", "place_right").to_numpy()
    met = np.zeros((len(names), len(names)), np.int64)
    np.add.at(met, tuple(pairs.T), 1)
    return met


def _chosen(count: int, per_task: int, met: _Ints, rng: np.random.Generator) -> _Ints:
    """[count, per_task]: places of the raters of each new task."""
    groups = np.array([*combinations(range(len(met)), per_task)])
    parts = [groups[:0]]
    while count and np.ptp(np.diag(met)) > 1:  # somebody has to catch up first
        parts.append(_dealt(1, groups, met, rng))
        count -= 1
    parts.append(np.tile(groups, (count // len(groups), 1)))
    count %= len(groups)
    tries = []
    for _ in range(max(1, min(_TRIES, _WORK // (1 + count * len(groups))))):
        dealt_met = met.copy()
        tries.append((_dealt(count, groups, dealt_met, rng), dealt_met))
        if _uneven(dealt_met)[0] <= 1:
            break
    parts.append(min(tries, key=lambda each: _uneven(each[1]))[0])
    return rng.permutation(np.concatenate(parts))


def _dealt(count: int, groups: _Ints, met: _Ints, rng: np.random.Generator) -> _Ints:
    """So many groups, one after the other: of those with least, those who met least; `met` is brought up to date."""
    first, second = np.triu_indices(groups.shape[1], 1)
    dealt = np.empty(count, np.int64)
    for at in range(count):
        load = np.diag(met)[groups].sum(axis=1)
        shared = met[groups[:, first], groups[:, second]]
        order = np.lexsort((rng.random(len(groups)), (shared**2).sum(axis=1), load))
        dealt[at] = order[0]
        one = groups[dealt[at]]
        met[np.ix_(one, one)] += 1
    return groups[dealt]


def _uneven(met: _Ints) -> tuple[int, int]:
    """How far pairs are apart, and the sum of their squares."""
    pairs = met[np.triu_indices(len(met), 1)]
    return int(np.ptp(pairs)) if len(pairs) else 0, int((pairs**2).sum())
