"""Rows of `runs` and `dropped`: what a step read, kept and left out, and what that took.

A step that writes a table is recorded here last of all: a row of `runs` means that the step came to its end. `start`
at the top of a step gives seconds and bytes; a step that does not call it has none.
"""

import json
import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

import polars as pl

from pipeline import __version__, left_out, logs, settings, warehouse
from pipeline.slices import Staged, parse_day
from pipeline.tables import empty
from pipeline.warehouse.write import Slice

log = logging.getLogger(__name__)

RECENT_ROWS: deque[dict[str, object]] = deque(maxlen=100)
"""Rows of `runs` that this process has written, the last ones last, for lineage: a task is a process of its own."""


class Start(NamedTuple):
    """When a step began."""

    time: datetime
    clock: float  # seconds of the monotonic clock
    seconds: float  # that shards took before
    byte_count: int  # that was written before


class Usage(Protocol):
    """What asking a language model took, such as `llm.asked.Asked`; an unknown cost is None."""

    input_tokens: int
    output_tokens: int
    cost_usd: float | None


def start(staged: Sequence[Staged] = ()) -> Start:
    """Begin to count seconds and bytes of a step; the seconds of its shards are added."""
    before = sum(shard.get("seconds", 0.0) for shard in staged)
    return Start(datetime.now(UTC), time.monotonic(), before, warehouse.bytes_written())


def time_shard(started: Start, staged: Staged) -> Staged:
    """Add to a staged file the seconds that it took."""
    return Staged(**staged, seconds=round(time.monotonic() - started.clock, 3))


def record_step(
    source: str, day: str, origin: str, step: str, kept_count: int, dropped: pl.DataFrame | None,
    config: Mapping[str, object], run_id: str, started: Start | None = None, spent: Usage | None = None,
) -> None:  # fmt: skip
    """Replace the rows of `runs` and `dropped` of a step of a source, day and origin (what the rows came from).

    `dropped` has source, reason and row_key; it is None for a step that never leaves rows out. `record_counts` says
    what the others are.
    """
    if dropped is not None:
        partition = _build_partition(source, day, origin, step)
        stamp = {"day": pl.lit(parse_day(day)), "origin": pl.lit(origin), "step": pl.lit(step)}
        warehouse.overwrite("dropped", partition, dropped.with_columns(**stamp), run_id)
        if step != "withdraw":  # that is what the command was asked for
            report_dropped(step, dropped, source, day, origin)
    dropped_count = 0 if dropped is None else dropped.height
    counts = pl.DataFrame({"source": [source], "kept_count": [kept_count], "dropped_count": [dropped_count]})
    record_counts(counts, day, origin, step, config, run_id, started, spent, source=source)


def _build_partition(source: str | None, day: str, origin: str, step: str) -> Slice:
    return {**warehouse.slice_of(source=source, day=day, origin=origin), "step": step}


def report_dropped(step: str, dropped: pl.DataFrame, *key: str) -> None:
    """Have the command print how many rows a step left out, by reason, when it ends (`left_out`)."""
    left_out.record_rows(step, dict(dropped["reason"].value_counts().iter_rows()), *key)


def record_counts(
    counts: pl.DataFrame, day: str, origin: str, step: str, config: Mapping[str, object], run_id: str,
    started: Start | None = None, spent: Usage | None = None, source: str | None = None,
) -> None:  # fmt: skip
    """Replace the rows of `runs` of a step, without `dropped`.

    Args:
        counts: a row a source: source, kept_count; dropped_count (0 where the column is absent) and read_count (their
            sum where it is).
        day: of the rows.
        origin: what the rows came from.
        step: name of the step.
        config: parameters, as JSON.
        run_id: of Airflow.
        started: see `start`; seconds and bytes are shared out by rows read.
        spent: on a language model, shared out likewise.
        source: of the rows; without one, the rows of all sources are replaced.
    """
    seconds = None if started is None else started.seconds + time.monotonic() - started.clock
    costs = {
        "seconds": seconds, "byte_count": None if started is None else warehouse.bytes_written() - started.byte_count,
        "input_tokens": spent and spent.input_tokens, "output_tokens": spent and spent.output_tokens,
        "cost_usd": spent and spent.cost_usd,
    }  # fmt: skip
    if "dropped_count" not in counts.columns:
        counts = counts.with_columns(dropped_count=pl.lit(0, pl.Int64))
    if "read_count" not in counts.columns:
        counts = counts.with_columns(read_count=pl.col("kept_count") + pl.col("dropped_count"))
    read_count = pl.col("read_count")
    share = pl.when(read_count.sum() > 0).then(read_count / read_count.sum()).otherwise(1 / pl.len())
    rows = counts.with_columns(
        day=pl.lit(parse_day(day)), origin=pl.lit(origin), step=pl.lit(step),
        # sorted: PostgreSQL gives a DAG run's parameters back in an order of its own
        config=pl.lit(json.dumps(config, ensure_ascii=False, sort_keys=True)),
        run_id=pl.lit(run_id), code_version=pl.lit(__version__),
        started_at=pl.lit(started.time if started else None, pl.Datetime("us", "UTC")),
        **{name: share * pl.lit(value, pl.Float64) for name, value in costs.items()},
    )  # fmt: skip
    rows = rows.with_columns(
        pl.col("seconds").round(3), pl.col("cost_usd").round(6),
        pl.col("byte_count", "input_tokens", "output_tokens").round(),
    )  # fmt: skip
    rows = rows.select(pl.col(name).cast(kind) for name, kind in empty("runs").schema.items())
    warehouse.overwrite("runs", _build_partition(source, day, origin, step), rows, run_id)
    for row in rows.drop("config", "run_id", "started_at", "code_version").to_dicts():
        fields = {**row, "day": row["day"].isoformat(), "run": run_id, **settings.airflow_task()}
        RECENT_ROWS.append(fields)
        message = "{step} of {source} {day}: read {read_count}, kept {kept_count}, dropped {dropped_count}"
        logs.event(log, message.format(**fields), **fields)


def record_scores(
    rows: pl.DataFrame, day: str, step: str, metric: str, model_ids: Sequence[str], run_id: str, started: Start
) -> None:
    """Record how many comments of a day got a score by some models: a row a `source` of `rows`."""
    counts = rows.group_by("source").agg(kept_count=pl.len().cast(pl.Int64)).sort("source")
    origin = "model " + ", ".join(model_id[:12] for model_id in model_ids)
    config = {"metric": metric, "model_id": ", ".join(model_ids)}
    record_counts(counts, day, origin, step, config, run_id, started)
