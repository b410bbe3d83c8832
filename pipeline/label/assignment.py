"""Assignment of tasks to raters, random and even (commenting, section 3; AAC-08).

Task counts of raters differ by at most one, and all pairs of raters share about as many tasks.
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
RATERS = 5  # raters of a comment, and raters there are, in the paper (AAC-08)
_TRIES = 50  # to assign the remaining tasks
_WORK = 5_000_000  # groups compared in all tries
_Ints = npt.NDArray[np.int64]


def assign(
    task_ids: Iterable[str],
    raters: Sequence[str],
    per_task: int = PER_TASK,
    seed: int = SEED,
    assigned: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Give each task to `per_task` different raters; return task_id, rater_id, sorted, with those of `assigned`.

    The task counts of raters differ by at most one. So do the counts of tasks that two raters share, if two of up to
    nine raters rate a task and all tasks are assigned at once; else they differ by little more. A rater who joins later
    gets more until all have as many. The same tasks, raters and seed give the same rows, in any order of tasks.
    BadInput: a rater is there twice, or there are too few.
    """
    if len(set(raters)) < len(raters):
        raise BadInput(f"raters: {max(raters, key=list(raters).count)!r} is repeated, expected once")
    if not 1 <= per_task <= len(raters):
        raise BadInput(f"per_task should be in 1-{len(raters)}, the number of raters, found {per_task}")
    names = np.array(sorted(raters))
    existing_rows = pl.DataFrame(schema=ASSIGNED) if assigned is None else assigned.select(list(ASSIGNED))
    new_tasks = sorted(set(task_ids) - set(existing_rows["task_id"]))
    rng = np.random.default_rng([seed, existing_rows["task_id"].n_unique()])
    rows = existing_rows.filter(pl.col("rater_id").is_in(names))
    places = rows.select("task_id", place=pl.Series(np.searchsorted(names, rows["rater_id"].to_numpy())))
    pairs = places.join(places, on="task_id").select("place", "place_right").to_numpy()
    meetings = np.zeros((len(names), len(names)), np.int64)
    np.add.at(meetings, tuple(pairs.T), 1)
    groups = _choose_groups(len(new_tasks), per_task, meetings, rng)
    columns = {"task_id": np.repeat(new_tasks, per_task).tolist(), "rater_id": names[groups.ravel()].tolist()}
    return pl.concat([existing_rows, pl.DataFrame(columns, schema=ASSIGNED)]).sort("task_id", "rater_id")


def _choose_groups(count: int, per_task: int, meetings: _Ints, rng: np.random.Generator) -> _Ints:
    groups = np.array([*combinations(range(len(meetings)), per_task)])
    parts = [groups[:0]]
    while count and np.ptp(np.diag(meetings)) > 1:  # a rater has to catch up first
        parts.append(_deal_groups(1, groups, meetings, rng))
        count -= 1
    parts.append(np.tile(groups, (count // len(groups), 1)))
    count %= len(groups)
    attempts = []
    for _ in range(max(1, min(_TRIES, _WORK // (1 + count * len(groups))))):
        attempt_meetings = meetings.copy()
        dealt_groups = _deal_groups(count, groups, attempt_meetings, rng)
        pairs = attempt_meetings[np.triu_indices(len(meetings), 1)]
        spread = int(np.ptp(pairs)) if len(pairs) else 0
        attempts.append(((spread, int((pairs**2).sum())), dealt_groups))
        if spread <= 1:
            break
    parts.append(min(attempts, key=lambda attempt: attempt[0])[1])
    return rng.permutation(np.concatenate(parts))


def _deal_groups(count: int, groups: _Ints, meetings: _Ints, rng: np.random.Generator) -> _Ints:
    """Choose groups one by one, with least work first, then fewest meetings; `meetings` is updated in place."""
    first, second = np.triu_indices(groups.shape[1], 1)
    indices = np.empty(count, np.int64)
    for position in range(count):
        load = np.diag(meetings)[groups].sum(axis=1)
        shared = meetings[groups[:, first], groups[:, second]]
        indices[position] = np.lexsort((rng.random(len(groups)), (shared**2).sum(axis=1), load))[0]
        group = groups[indices[position]]
        meetings[np.ix_(group, group)] += 1
    return groups[indices]
