"""Erasing from tables: which rows a rule is about, and what becomes of all rows of their partition."""

from collections.abc import Callable
from functools import reduce
from operator import or_

import polars as pl

from pipeline import warehouse
from pipeline.tables import ERASED, TABLES
from pipeline.tasks.erasure.pages import cut_page, page_id
from pipeline.tasks.erasure.rules import RULES, Targets, is_among, is_one_of
from pipeline.tasks.record.retry import retry


def select_rows(gone: Targets, name: str) -> tuple[pl.Expr | None, Callable[[pl.LazyFrame], pl.LazyFrame]]:
    """Which rows a rule is about, and what becomes of all rows of their partition."""
    rule = RULES[name]
    if name == "raw_pages":
        return _update_pages(gone)
    if name == "training_texts":
        return _update_hashes(gone)
    if rule.is_erased is None:
        return None, lambda rows: rows
    goes = rule.is_erased(gone)
    fields = rule.updates(gone) if rule.updates else {}
    changed = {c: (where & pl.col(c).ne_missing(value), value) for c, (where, value) in fields.items()}
    is_meant = reduce(or_, (where for where, _ in changed.values()), goes)

    def mended(rows: pl.LazyFrame) -> pl.LazyFrame:
        made = {c: pl.when(where).then(value).otherwise(c).alias(c) for c, (where, value) in changed.items()}
        return rows.filter(~goes).with_columns(**made)

    return is_meant, mended


def _update_pages(gone: Targets) -> tuple[pl.Expr, Callable[[pl.LazyFrame], pl.LazyFrame]]:
    goes = is_among(gone.origins)
    hints = sorted({*gone.marks, *gone.commented["comment_id"]})
    if not hints:
        return goes, lambda rows: rows.filter(~goes)
    may = pl.col("body").str.contains_any(hints)
    cut = pl.struct("source", "url", body=pl.when(may).then("body")).map_elements(
        lambda page: page["body"] and cut_page(page["body"], page["source"], page["url"], gone),
        return_dtype=pl.String,
    )
    body = pl.when(may).then(cut).otherwise("body")
    is_meant = goes | body.ne_missing(pl.col("body"))
    new_id = pl.struct("url", "body").map_elements(
        lambda page: page_id(page["url"], page["body"]), return_dtype=pl.String
    )

    def mended(rows: pl.LazyFrame) -> pl.LazyFrame:
        kept = rows.filter(~goes).with_columns(_body=body).drop_nulls("_body")
        is_cut = pl.col("_body") != pl.col("body")
        kept = kept.with_columns(_is_cut=is_cut, body="_body").drop("_body")
        kept = kept.with_columns(page_id=pl.when("_is_cut").then(new_id).otherwise("page_id")).drop("_is_cut")
        return kept.unique(["source", "day", "origin", "page_id"], maintain_order=True)

    return is_meant, mended


def _update_hashes(gone: Targets) -> tuple[pl.Expr, Callable[[pl.LazyFrame], pl.LazyFrame]]:
    is_meant = is_one_of("text_hash", gone.hashes)
    columns = TABLES["training_texts"].schema.column_names()

    def mended(rows: pl.LazyFrame) -> pl.LazyFrame:
        bare = rows.with_columns(text_hash=pl.when(is_meant).then(pl.lit(ERASED)).otherwise("text_hash"))
        return bare.group_by("kind", "model_id", "text_hash").agg(pl.col("row_count").sum()).select(columns)

    return is_meant, mended


def recount(gone: Targets, run_id: str) -> None:
    """Count the comments that go among the dropped, under the reason `erased`, so that the funnel adds up.

    It is told as it will be, and so the same whether the comments are gone already or not.
    """
    at = ["source", "day", "origin"]
    is_meant = is_among(gone.comments)
    there = warehouse.scan("comments").group_by(at).agg(n=is_meant.sum(), kept=(~is_meant).sum())
    runs = warehouse.scan("runs").filter((pl.col("step") == "collect") & ~is_among(gone.origins))
    found = runs.join(there.filter(pl.col("n") > 0), on=at).select(*at, "read_count", "kept").collect()
    for source, day, origin, read, kept in found.iter_rows():
        where = warehouse.slice_of(source=source, day=day.isoformat(), origin=origin)
        is_here = (pl.col("source") == source) & (pl.col("day") == day) & (pl.col("origin") == origin)
        of_others = is_here & ~pl.col("step").is_in(["pairs", ERASED])
        dropped = int(warehouse.scan("dropped").filter(of_others).select(pl.len()).collect().item())
        erased = max(0, read - kept - dropped)
        told = pl.DataFrame({"source": [source] * erased}, schema={"source": pl.String}).with_columns(
            day=pl.lit(day), origin=pl.lit(origin), step=pl.lit(ERASED), reason=pl.lit(ERASED), row_key=pl.lit(ERASED)
        )  # fmt: skip
        put = {"kept_count": pl.lit(kept, pl.Int64), "dropped_count": pl.lit(dropped + erased, pl.Int64),
               "read_count": pl.lit(kept + dropped + erased, pl.Int64)}  # fmt: skip
        slice_, step = {**where, "step": ERASED}, {**where, "step": "collect"}
        retry(lambda slice_=slice_, told=told: warehouse.overwrite("dropped", slice_, told, run_id))  # type: ignore[misc]
        retry(lambda step=step, put=put: warehouse.replace(  # type: ignore[misc]
            "runs", step, lambda rows: rows.with_columns(**put), run_id
        ))  # fmt: skip
