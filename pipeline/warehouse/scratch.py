"""Scratch Parquet: what a shard writes before the reducer commits it.

Files lie below the warehouse, so that every worker sees them, under a name no other attempt can have: an attempt
whose worker was lost may still be writing while its retry runs. Nobody deletes them but the sweeper, by age, since
a commit that is retried needs them again.
"""

import uuid
from pathlib import Path

import polars as pl

from pipeline import settings
from pipeline.private import make_folder
from pipeline.slices import Staged
from pipeline.warehouse.catalog import STORE


def locate_scratch() -> str:
    """Folder (or object prefix) of all scratch files."""
    return f"{settings.warehouse()}/_scratch"


def create_attempt(name: str) -> str:
    """A fresh scratch folder that belongs to this attempt alone."""
    path = f"{locate_scratch()}/{name}/{uuid.uuid4().hex}"
    if "://" not in path:
        make_folder(Path(path))
    return path


def stage(name: str, frame: pl.DataFrame | pl.LazyFrame) -> Staged:
    """Write rows meant for table `name` to a scratch file; lazy frames stream."""
    path = f"{create_attempt(name)}/rows.parquet"
    frame.lazy().sink_parquet(path, storage_options=STORE)
    return Staged(path=path, rows=pl.scan_parquet(path, storage_options=STORE).select(pl.len()).collect().item())
