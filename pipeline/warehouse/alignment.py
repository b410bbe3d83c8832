"""What Iceberg records of a table beside its rows: documentation, required columns, key and order, by the contract.

Other engines read these. A table of an earlier version, or one that another engine changed, is aligned by `align`.
"""

from collections.abc import Collection
from contextlib import suppress

import polars as pl
import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import Table, Transaction
from pyiceberg.transforms import IdentityTransform

from pipeline.tables import TABLES, empty

Description = dict[str, str]  # by column: type, `null` or `not null`, documentation; and the table's parts in brackets


def describe_contract(name: str) -> Description:
    """Describe a table as its contract has it."""
    table, types = TABLES[name], empty(name).schema
    columns = table.schema.columns()
    return {
        **{c: format_column(types[c], rules.nullable, rules.description) for c, rules in columns.items()},
        "(documentation)": _summarise(name),
        "(key)": ", ".join(sorted(table.key)),
        "(partitions)": ", ".join(table.partitions),
        "(sort order)": ", ".join(_list_sorted(name)),
    }


def describe_table(handle: Table) -> Description:
    """Describe a table as its metadata has it."""
    schema = handle.schema()
    types = pl.Schema(schema_to_pyarrow(schema, include_field_ids=False))
    partitions, sorted_ids = (
        [field.source_id for field in part.fields] for part in (handle.spec(), handle.sort_order())
    )
    return {
        **{field.name: format_column(types[field.name], field.optional, field.doc) for field in schema.fields},
        "(documentation)": handle.properties.get("comment", ""),
        "(key)": ", ".join(sorted(schema.identifier_field_names())),
        "(partitions)": ", ".join(str(schema.find_column_name(source)) for source in partitions),
        "(sort order)": ", ".join(str(schema.find_column_name(source)) for source in sorted_ids),
    }


def format_column(kind: object, is_nullable: bool, description: str | None) -> str:
    """Format a column to be compared."""
    return f"{kind} {'null' if is_nullable else 'not null'} -- {description}"


def _summarise(name: str) -> str:
    return (TABLES[name].schema.__doc__ or "").splitlines()[0]


def _list_sorted(name: str) -> list[str]:
    """Columns by which engines that sort should write a partition. Our writers keep the order of the rows."""
    return [column for column in TABLES[name].key if column not in TABLES[name].partitions]


def align(change: Transaction, name: str, nullable: Collection[str] = ()) -> None:
    """Add what the contract says and the table lacks. Without a difference there is nothing to commit.

    `nullable` are columns that hold nulls, which cannot be required; the key is recorded if all of it is.
    """
    columns, key = TABLES[name].schema.columns(), TABLES[name].key
    current = change.table_metadata.schema().column_names
    with change.update_schema() as schema:
        schema.union_by_name(pa.schema([field for field in empty(name).to_arrow().schema if field.name not in current]))
    with change.update_schema(allow_incompatible_changes=True) as schema:
        for column, rules in columns.items():
            is_required = not rules.nullable and column not in nullable
            schema.update_column(column, required=is_required, doc=rules.description)
        schema.set_identifier_fields(*([] if set(key) & set(nullable) else key))
    metadata = change.table_metadata
    if metadata.properties.get("comment") != _summarise(name):
        change.set_properties(comment=_summarise(name))
    order = next(order for order in metadata.sort_orders if order.order_id == metadata.default_sort_order_id)
    if [metadata.schema().find_column_name(field.source_id) for field in order.fields] != _list_sorted(name):
        with change.update_sort_order() as sorting:
            for column in _list_sorted(name):
                sorting.asc(column, IdentityTransform())


def find_nulls(handle: Table, rows: pl.LazyFrame) -> list[str]:
    """List columns that should be required but hold nulls, or cannot be read: by counts in manifests, then by rows."""
    schema, columns = handle.schema(), TABLES[handle.name()[-1]].schema.columns()
    required = [column for column, rules in columns.items() if not rules.nullable]
    absent = [column for column in required if column not in schema.column_names]
    pending = {column: schema.find_field(column).field_id for column in required if column not in absent}
    pending = {column: source for column, source in pending.items() if schema.find_field(source).optional}
    if not handle.current_snapshot() or not (absent or pending):
        return []
    uncertain = [*pending]
    with suppress(OSError, ValueError, pl.exceptions.ComputeError):  # `undertone check --deep` names the damage
        counts = [task.file.null_value_counts or {} for task in handle.scan().plan_files()]
        uncertain = [column for column, source in pending.items() if any(count.get(source, 1) for count in counts)]
        has_null = rows.select(pl.col(uncertain).is_null().any()).collect(engine="streaming")
        uncertain = [column for column in uncertain if has_null[column].item()]
    return absent + uncertain
