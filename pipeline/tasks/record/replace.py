"""Put rows in place among those that others made: in a partition of a table, and in a day of tokens or scores."""

from collections.abc import Callable, Sequence

import polars as pl

from pipeline import warehouse
from pipeline.warehouse.write import Slice


def replace_rows(
    table: str, partition: Slice, rows: pl.DataFrame, replaced: pl.Expr | Sequence[str], run_id: str
) -> int:
    """Put rows into a partition in the place of those that they replace; return the partition's count.

    Args:
        table: name of the table.
        partition: see `warehouse.slice_of`.
        rows: all columns of the table.
        replaced: which of the current rows go: a condition, or the columns that these share with `rows`.
        run_id: of Airflow.
    """

    def merge(current: pl.LazyFrame) -> pl.LazyFrame:
        if isinstance(replaced, pl.Expr):
            others = current.filter(~replaced)
        else:
            others = current.join(rows.lazy(), on=replaced, how="anti")
        return pl.concat([others.select(rows.columns), rows.lazy()])

    return warehouse.replace(table, partition, merge, run_id)


def replace_day(
    table: str, day: str, rows: pl.DataFrame, makers: pl.DataFrame, list_items: Callable[[], pl.LazyFrame],
    key: Sequence[str], own_key: Sequence[str], run_id: str,
) -> None:  # fmt: skip
    """Put a run's rows of a day in place; rows by other makers stay as long as their item is in the day.

    The day may have changed since the run read it, and a run that began later may have published: rows of items that
    the day no longer has are left out, and what the later run made of other items stays.

    Args:
        table: name of the table.
        day: ISO date.
        rows: all columns of the table.
        makers: which models or tokenizers made `rows`, by columns of the table.
        list_items: the day's comments or texts as they are when the rows are written.
        key: columns by which another maker's row belongs to an item.
        own_key: columns by which a row of `makers` does.
        run_id: of Airflow.
    """

    def merge(current: pl.LazyFrame) -> pl.LazyFrame:
        items, current = list_items().collect().lazy(), current.select(rows.columns)
        others = current.join(makers.lazy(), on=makers.columns, how="anti").join(items, on=key, how="semi")
        own = pl.concat([rows.lazy(), current.join(makers.lazy(), on=makers.columns, how="semi")])
        own = own.join(items, on=own_key, how="semi").unique(own_key, keep="first", maintain_order=True)
        return pl.concat([others, own])

    warehouse.replace(table, warehouse.slice_of(day=day), merge, run_id)
