"""Whether a scheduled training or study is due: enough days have passed, and enough rows are new."""

import logging
from datetime import timedelta
from typing import NamedTuple

import polars as pl

from pipeline import settings, warehouse
from pipeline.errors import BadInput, Retry
from pipeline.slices import parse_day

log = logging.getLogger(__name__)


class Rule(NamedTuple):
    """What a DAG works on, and what it made last."""

    source: str  # table whose new rows count
    is_used: pl.Expr  # which of them
    result: str  # table with a day for each earlier run
    is_result: pl.Expr  # which of its rows
    least_rows: int | None = None  # by default UNDERTONE_LEAST_NEW_ROWS
    parents: str | None = None  # table to whose threads the new rows must belong


_ALL = pl.lit(value=True)
_IS_INPUT = pl.col("step").is_in(["sentences", "ask"])
RULES = {
    "recam": Rule("articles", pl.col("summary").is_not_null(), "models", pl.col("kind").str.starts_with("reader_")),
    "commenting": Rule("comments", _ALL, "models", pl.col("kind").str.starts_with("commenter_"), parents="articles"),
    "ndd": Rule("comments", _ALL, "studies", pl.col("study") == "similarity"),
    "studies": Rule("models", pl.col("kind") == "impscore", "studies", pl.col("study") == "ablation", least_rows=1),
    # sentences and answers have no day: their imports and requests are counted
    "impscore": Rule("runs", _IS_INPUT, "models", pl.col("kind") == "impscore", least_rows=1),
    "csd": Rule("comments", _ALL, "label_tasks", _ALL),
}


def is_due(dag_id: str, day: str) -> bool:
    """Return whether a DAG of `RULES` has enough to do on a day; log why not."""
    rule, today = RULES[dag_id], parse_day(day)
    results = warehouse.scan(rule.result, (pl.col("day") <= today) & rule.is_result)
    last = results.select(pl.col("day").max()).collect().item()
    next_day = last and last + timedelta(days=settings.least_days())
    if next_day and today < next_day:
        log.info("not due: the last run is of %s, the next is due on %s (UNDERTONE_LEAST_DAYS)", last, next_day)
        return False
    is_new = pl.col("day") <= today if last is None else pl.col("day").is_between(last, today, closed="right")
    rows = warehouse.scan(rule.source, is_new & rule.is_used)
    if rule.parents:
        rows = rows.join(warehouse.scan(rule.parents), on=["source", "thread_id"], how="semi")
    count = int(rows.select(pl.len()).collect().item())
    least = rule.least_rows or settings.least_new_rows()
    if count < least:
        since = f"since {last}" if last else "so far"
        log.info("not due: %d new rows of %s %s, below %d (UNDERTONE_LEAST_NEW_ROWS)", count, rule.source, since, least)
    return count >= least


def check_gpu() -> None:
    """Log the device that this process uses; raise Retry if a GPU is required (UNDERTONE_GPU) and none is visible."""
    import torch

    if (choice := settings.gpu()) not in ("optional", "required"):
        raise BadInput(f"UNDERTONE_GPU: expected one of optional, required, found {choice[:40]!r}")
    if torch.cuda.is_available():
        log.info("GPU: %s", torch.cuda.get_device_name(0))
    elif choice == "required":
        advice = "free one and clear the task, or set `optional`"
        raise Retry(f"UNDERTONE_GPU is `required`, and this worker sees no GPU; {advice}")
    else:
        log.info("no GPU is visible; the task runs on the CPU (UNDERTONE_GPU=required refuses that)")
