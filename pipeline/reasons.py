"""Rows that are left out, each with a reason: the first of the rules that it breaks."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import polars as pl


class Read(NamedTuple):
    """Rows that are kept, and the others with their reason; together they are all that came in."""

    rows: pl.DataFrame
    dropped: pl.DataFrame  # reason, row_key (the id of a row)


def choose_first(conditions: Mapping[str, pl.Expr]) -> pl.Expr:
    """Choose the first name whose condition holds, null if none does."""
    return pl.coalesce(pl.when(condition).then(pl.lit(name)) for name, condition in conditions.items())


def split_off(
    rows: pl.DataFrame, reason: pl.Expr | pl.Series, columns: Iterable[str | pl.Expr]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split off the rows that have a reason to be dropped; of these, `columns`, to which `reason` may belong."""
    marked = rows.with_columns(reason=reason)
    return marked.filter(pl.col("reason").is_null()).drop("reason"), marked.drop_nulls("reason").select(columns)


def find_fault(**faults: bool) -> str | None:
    """Return the name of the first fault that is there."""
    return next((name for name, is_fault in faults.items() if is_fault), None)
