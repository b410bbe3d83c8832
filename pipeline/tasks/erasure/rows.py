"""Erase from tables: select the rows that a rule is about, and update their partition."""

from collections.abc import Callable
from functools import partial, reduce
from operator import methodcaller, or_

import polars as pl

from pipeline import warehouse
from pipeline.collect.importers import hash_page
from pipeline.tables import ERASED, TABLES, empty
from pipeline.tasks.erasure.pages import clean_page
from pipeline.tasks.erasure.rules import RULES, Targets, is_among
from pipeline.tasks.record.retry import retry

Update = Callable[[pl.LazyFrame], pl.LazyFrame]


def select_rows(targets: Targets, name: str) -> tuple[pl.Expr | None, Update]:
    """Build the condition of the rows that a rule changes, and the function that updates all rows of a partition."""
    rule = RULES[name]
    if not rule.conditions:
        return None, lambda rows: rows
    is_erased = rule.is_erased(targets)
    if name == "raw_pages":
        return _update_pages(targets, is_erased)
    if name == "training_texts":
        return is_erased, partial(_count_erased, is_erased)
    fields = rule.updates(targets) if rule.updates else {}
    changes = {
        column: (condition & pl.col(column).ne_missing(value), value) for column, (condition, value) in fields.items()
    }
    values = {
        column: pl.when(condition).then(value).otherwise(column) for column, (condition, value) in changes.items()
    }
    is_changed = reduce(or_, (condition for condition, _ in changes.values()), is_erased)
    return is_changed, lambda rows: rows.filter(~is_erased).with_columns(**values)


def _update_pages(targets: Targets, is_erased: pl.Expr) -> tuple[pl.Expr, Update]:
    patterns = sorted({*targets.marks, *targets.comment_keys["comment_id"]})
    if not patterns:
        return is_erased, lambda rows: rows.filter(~is_erased)
    is_candidate = pl.col("body").str.contains_any(patterns)
    cleaned = pl.struct("source", "url", body=pl.when(is_candidate).then("body")).map_elements(
        lambda page: page["body"] and clean_page(page["body"], page["source"], page["url"], targets),
        return_dtype=pl.String,
    )
    body = pl.when(is_candidate).then(cleaned).otherwise("body")
    new_id = pl.struct("url", "body").map_elements(hash_page, return_dtype=pl.String)

    def update(rows: pl.LazyFrame) -> pl.LazyFrame:
        pages = rows.filter(~is_erased).with_columns(_body=body).drop_nulls("_body")
        pages = pages.with_columns(_is_changed=pl.col("_body") != pl.col("body"), body="_body").drop("_body")
        pages = pages.with_columns(page_id=pl.when("_is_changed").then(new_id).otherwise("page_id"))
        return pages.drop("_is_changed").unique(["source", "day", "origin", "page_id"], maintain_order=True)

    return is_erased | body.ne_missing(pl.col("body")), update


def _count_erased(is_erased: pl.Expr, rows: pl.LazyFrame) -> pl.LazyFrame:
    hashes = pl.when(is_erased).then(pl.lit(ERASED)).otherwise("text_hash")
    counts = rows.with_columns(text_hash=hashes).group_by("kind", "model_id", "text_hash")
    sums = counts.agg(pl.col("row_count").sum(), pl.col("is_labelled").max())
    return sums.select(TABLES["training_texts"].schema.column_names())


def recount(targets: Targets, run_id: str) -> None:
    """Count the erased comments as dropped, with the reason `erased`, so that the funnel adds up.

    The counts are those after the erasure, and so the same whether the comments are erased already or not.
    """
    key = ["source", "day", "origin"]
    is_erased = is_among(targets.comments)
    erased_counts = warehouse.scan("comments").group_by(key).agg(erased=is_erased.sum(), kept=(~is_erased).sum())
    runs = warehouse.scan("runs").filter((pl.col("step") == "collect") & ~is_among(targets.origins))
    rows = runs.join(erased_counts.filter(pl.col("erased") > 0), on=key)
    for *values, read_count, kept_count in rows.select(*key, "read_count", "kept").collect().iter_rows():
        partition = warehouse.make_slice(**dict(zip(key, values, strict=True)))
        other_steps = warehouse.scan("dropped").filter(~pl.col("step").is_in(["pairs", ERASED]), **partition)
        other_count = int(other_steps.select(pl.len()).collect().item())
        erased_row = {**partition, "step": ERASED, "reason": ERASED, "row_key": ERASED}
        erased_rows = [erased_row] * max(0, read_count - kept_count - other_count)
        erased = pl.DataFrame(erased_rows, schema=empty("dropped").schema)
        dropped_count = other_count + erased.height
        retry(partial(warehouse.overwrite, "dropped", {**partition, "step": ERASED}, erased, run_id))
        counts = {"kept_count": kept_count, "dropped_count": dropped_count, "read_count": kept_count + dropped_count}
        update = methodcaller("with_columns", **{name: pl.lit(count, pl.Int64) for name, count in counts.items()})
        retry(partial(warehouse.replace, "runs", {**partition, "step": "collect"}, update, run_id))
