"""Rows of the table `studies`, as tests read them."""

import json

import polars as pl

from pipeline.tables import TABLES

KEY = list(TABLES["studies"].key)


def select(rows: pl.DataFrame, **setting: object) -> pl.DataFrame:
    """Select the rows of a study that have these values in their setting."""
    is_match = [setting.items() <= json.loads(text).items() for text in rows["setting"]]
    return rows.filter(pl.Series(is_match, dtype=pl.Boolean))
