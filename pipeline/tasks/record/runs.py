"""Write `runs` and `dropped`: the rows that a step read, kept and dropped, and, after `start`, its time and cost."""

import json
import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import polars as pl

from pipeline import __version__, left_out, logs, settings, warehouse
from pipeline.slices import Staged, parse_day
from pipeline.tables import empty

if TYPE_CHECKING:
    from pipeline.llm.ledger.answers import Spending

log = logging.getLogger(__name__)
RECENT_ROWS: deque[dict[str, object]] = deque(maxlen=100)
"""Rows of `runs` that this process has written, newest last, for lineage: each task is a process of its own."""


@dataclass(slots=True)
class Start:
    """The start of a step; what several sources share counts for the first of them that is recorded."""

    time: datetime
    clock: float  # seconds of the monotonic clock, where the last source was recorded
    seconds: float  # of its shards
    byte_count: int  # written before


def start(staged: Sequence[Staged] = ()) -> Start:
    """Start to count seconds and bytes of a step; the seconds of its shards are added."""
    before = sum(shard.get("seconds", 0.0) for shard in staged)
    return Start(datetime.now(UTC), time.monotonic(), before, warehouse.count_bytes_written())


def time_shard(started: Start, staged: Staged) -> Staged:
    """Add the elapsed seconds to a staged file."""
    return Staged(**staged, seconds=round(time.monotonic() - started.clock, 3))


def record_step(
    source: str, day: str, origin: str, step: str, kept_count: int, dropped: pl.DataFrame | None,
    config: Mapping[str, object], run_id: str, started: Start | None = None, spent: "Spending | None" = None,
) -> None:  # fmt: skip
    """Do as `record_counts` for a source, and replace its rows of `dropped`, if the step may drop any (not None)."""
    if dropped is not None:
        partition = warehouse.make_slice(source=source, day=day, origin=origin, step=step)
        stamp = {name: pl.lit(partition[name]) for name in ("day", "origin", "step")}
        warehouse.overwrite("dropped", partition, dropped.with_columns(**stamp), run_id)
        if step != "withdraw":  # the user asked for it
            report_dropped(step, dropped, source, day, origin)
    dropped_count = 0 if dropped is None else dropped.height
    counts = pl.DataFrame({"source": [source], "kept_count": [kept_count], "dropped_count": [dropped_count]})
    record_counts(counts, day, origin, step, config, run_id, started, spent, source=source)


def report_dropped(step: str, dropped: pl.DataFrame, *key: str) -> None:
    """Count the rows that a step dropped, by reason, for the lines at the end of a command (`left_out`)."""
    left_out.record_rows(step, dict(dropped["reason"].value_counts().iter_rows()), *key)


def record_counts(
    counts: pl.DataFrame, day: str, origin: str, step: str, config: Mapping[str, object], run_id: str,
    started: Start | None = None, spent: "Spending | None" = None, source: str | None = None,
) -> None:  # fmt: skip
    """Replace the rows of `runs` of a step, without `dropped`; without a source, those of all sources.

    `counts` has a row for each source: source, kept_count, and optionally dropped_count (default 0) and read_count
    (default: the sum of both). The origin is the input of the rows, such as a file or a model. Seconds and bytes since
    `start`, and the cost of a language model, are divided among the sources by rows read.
    """
    costs: dict[str, float | None] = dict.fromkeys(("seconds", "byte_count"))
    if started:
        clock, byte_count = time.monotonic(), warehouse.count_bytes_written()
        costs["seconds"] = started.seconds + clock - started.clock
        costs["byte_count"] = byte_count - started.byte_count
        started.clock, started.seconds, started.byte_count = clock, 0.0, byte_count
    for name in ("input_tokens", "output_tokens", "cost_usd"):
        costs[name] = None if spent is None else getattr(spent, name)
    if "dropped_count" not in counts.columns:
        counts = counts.with_columns(dropped_count=pl.lit(0, pl.Int64))
    if "read_count" not in counts.columns:
        counts = counts.with_columns(read_count=pl.col("kept_count") + pl.col("dropped_count"))
    read_count = pl.col("read_count")
    share = pl.when(read_count.sum() > 0).then(read_count / read_count.sum()).otherwise(1 / pl.len())
    # sorted: PostgreSQL returns the parameters of a DAG run in another order
    config_text = json.dumps(config, ensure_ascii=False, sort_keys=True)
    constants = {"day": parse_day(day), "origin": origin, "step": step, "config": config_text, "run_id": run_id}
    decimals = {"seconds": 3, "cost_usd": 6}
    rows = counts.with_columns(
        code_version=pl.lit(__version__),
        started_at=pl.lit(started.time if started else None, pl.Datetime("us", "UTC")),
        **{name: pl.lit(value) for name, value in constants.items()},
        **{name: (share * pl.lit(cost, pl.Float64)).round(decimals.get(name, 0)) for name, cost in costs.items()},
    )
    rows = rows.select(pl.col(name).cast(kind) for name, kind in empty("runs").schema.items())
    warehouse.overwrite("runs", warehouse.make_slice(source=source, day=day, origin=origin, step=step), rows, run_id)
    for row in rows.drop("config", "run_id", "started_at", "code_version").to_dicts():
        fields = {**row, "day": row["day"].isoformat(), "run": run_id, **settings.airflow_task()}
        RECENT_ROWS.append(fields)
        message = "{step} of {source} {day}: read {read_count}, kept {kept_count}, dropped {dropped_count}"
        logs.log_event(log, message.format(**fields), **fields)


def record_scores(
    rows: pl.DataFrame | pl.LazyFrame, day: str, step: str, metric: str, model_ids: Sequence[str], run_id: str,
    started: Start,
) -> None:  # fmt: skip
    """Record how many comments of a day have a score by some models: a row for each `source` of `rows`."""
    origin = "model " + ", ".join(model_id[:12] for model_id in model_ids)
    config = {"metric": metric, "model_id": ", ".join(model_ids)}
    record_counts(count_sources(rows), day, origin, step, config, run_id, started)


def count_sources(rows: pl.DataFrame | pl.LazyFrame) -> pl.DataFrame:
    """Count the rows of each source: source, kept_count."""
    counts = rows.lazy().group_by("source").agg(kept_count=pl.len().cast(pl.Int64))
    return counts.sort("source").collect(engine="streaming")
