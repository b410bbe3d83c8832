"""What other engines read in Iceberg's metadata: documentation, required columns, key and order, by the contracts."""

from collections.abc import Collection
from contextlib import suppress

import polars as pl
import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import Table, Transaction
from pyiceberg.transforms import IdentityTransform

from pipeline.tables import TABLES, empty


def compare(handle: Table) -> list[dict[str, str]]:
    """List where a table's metadata is not as its contract: a row for each column or other part."""
    name, schema, flags = handle.name()[-1], handle.schema(), {True: "optional", False: "required"}
    table, types = TABLES[name], empty(name).schema
    columns = {c: f"{types[c]} {flags[r.nullable]}: {r.description}" for c, r in table.schema.columns().items()}
    types = pl.Schema(schema_to_pyarrow(schema, include_field_ids=False))
    fields = {field.name: f"{types[field.name]} {flags[field.optional]}: {field.doc}" for field in schema.fields}
    spec, order = (
        [schema.find_column_name(f.source_id) for f in p.fields] for p in (handle.spec(), handle.sort_order())
    )
    parts: dict[str, tuple[object, object]]
    parts = {column: (columns.get(column, "absent"), fields.get(column, "absent")) for column in columns | fields}
    parts["(documentation)"] = _summarize(name), handle.properties.get("comment")
    parts["(key)"] = sorted(table.key), sorted(schema.identifier_field_names())
    parts |= {"(partitions)": ([*table.partitions], spec), "(sort order)": (_list_sorted(name), order)}
    return [
        {"table": name, "part": part, "contract": str(contract), "iceberg": str(iceberg)}
        for part, (contract, iceberg) in parts.items()
        if contract != iceberg
    ]


def _summarize(name: str) -> str:
    return (TABLES[name].schema.__doc__ or "").splitlines()[0]


def _list_sorted(name: str) -> list[str]:
    """Columns by which engines that sort should write a partition. Our writers keep the order of the rows."""
    return [column for column in TABLES[name].key if column not in TABLES[name].partitions]


def align(change: Transaction, name: str, nullable: Collection[str] = ()) -> None:
    """Add what the contract says and the table lacks; `nullable` columns hold nulls: not required, nor their key."""
    key, fields, current = TABLES[name].key, empty(name).to_arrow().schema, change.table_metadata.schema().column_names
    with change.update_schema() as schema:
        schema.union_by_name(pa.schema([field for field in fields if field.name not in current]))
    with change.update_schema(allow_incompatible_changes=True) as schema:
        for column, rules in TABLES[name].schema.columns().items():
            is_required = not rules.nullable and column not in nullable
            schema.update_column(column, required=is_required, doc=rules.description)
        schema.set_identifier_fields(*([] if set(key) & set(nullable) else key))
    if change.table_metadata.properties.get("comment") != _summarize(name):
        change.set_properties(comment=_summarize(name))
    order = change.table_metadata.sort_order_by_id(change.table_metadata.default_sort_order_id)
    ids = [change.table_metadata.schema().find_field(column).field_id for column in _list_sorted(name)]
    if order is None or [field.source_id for field in order.fields] != ids:
        with change.update_sort_order() as sorting:
            for column in _list_sorted(name):
                sorting.asc(column, IdentityTransform())


def find_nulls(handle: Table, rows: pl.LazyFrame) -> list[str]:
    """List columns that should be required and are not, as a row has no value in them or none can be read."""
    required = {c for c, rules in TABLES[handle.name()[-1]].schema.columns().items() if not rules.nullable}
    uncertain = [field.name for field in handle.schema().fields if field.name in required and field.optional]
    if not handle.current_snapshot():
        return []
    with suppress(OSError, pl.exceptions.ComputeError):  # `undertone check --deep` names the damage
        has_null = rows.select(pl.col(uncertain).is_null().any()).collect(engine="streaming")
        uncertain = [column for column in uncertain if has_null[column].item()]
    return [*uncertain, *sorted(required.difference(handle.schema().column_names))]
