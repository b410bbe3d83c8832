"""What a step kept and left out, as rows of `runs` and `dropped`."""

import json
from collections.abc import Mapping

import polars as pl

from pipeline import __version__, warehouse
from pipeline.slices import parse_day


def tell(
    source: str, day: str, origin: str, step: str, kept: int, gone: pl.DataFrame, config: Mapping[str, object],
    run_id: str,
) -> None:  # fmt: skip
    """Put in place what is told of a step.

    Args:
        source: of the rows.
        day: the run is about.
        origin: what the rows came from; with source, day and step it is the slice that is put in place.
        step: name of the step.
        kept: rows that it kept.
        gone: rows that it left out: source, reason, row_key.
        config: parameters, as JSON.
        run_id: of Airflow.
    """
    where = warehouse.slice_of(source=source, day=day, origin=origin)
    stamp = {"day": pl.lit(parse_day(day)), "origin": pl.lit(origin), "step": pl.lit(step)}
    warehouse.overwrite("dropped", {**where, "step": step}, gone.with_columns(**stamp), run_id)
    run = pl.DataFrame(
        {"source": [source], "read_count": [kept + gone.height], "kept_count": [kept], "dropped_count": [gone.height],
         "config": [json.dumps(config)], "run_id": [run_id], "code_version": [__version__]}
    ).with_columns(**stamp)  # fmt: skip
    warehouse.overwrite("runs", {**where, "step": step}, run, run_id)
