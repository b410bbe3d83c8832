"""Columns of many tables, and rules."""

from typing import Any

import dataframely as dy
import polars as pl

PERSONAL = {"is_personal": True}  # of a column that stands for a person: a plain copy of the tables leaves it out
SOURCE = r"^[a-z][a-z0-9_]{0,39}$"
HASH, SHA256 = "^[0-9a-f]{32}$", "^[0-9a-f]{64}$"
SPLIT = "^(train|validation|test)$"


def source_column() -> dy.String:
    return dy.String(regex=SOURCE, description="Site or corpus of the row")


def origin_column() -> dy.String:
    return dy.String(min_length=1, description="Origin of the row: `live`, `sample`, or the name of the imported file")


def time_column(description: str) -> dy.Datetime:
    return dy.Datetime(nullable=True, time_unit="us", time_zone="UTC", description=description)


def rule(condition: pl.Expr) -> Any:
    """Make a rule of a condition that each row fulfils."""
    return dy.rule()(lambda _: condition)
