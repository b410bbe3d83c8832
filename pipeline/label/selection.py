"""Which comments are given to raters, by rules, as the paper does not say how (CSD, 3.1 and 3.2; CSD-05 to CSD-07)."""

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from pipeline.errors import BadInput
from pipeline.io.hashes import hash_text
from pipeline.label import schema
from pipeline.reasons import choose_first

KEY = pl.concat_str("thread_id", "comment_id", separator="/")


class Rules(NamedTuple):
    """What a comment must be to be labelled; each number is inclusive."""

    langs: tuple[str, ...] = ("zh",)
    is_hot: bool = False  # only those that the site listed among its hot comments
    least_chars: int = 4
    most_chars: int = 200
    least_likes: int = 0
    has_context: bool = True  # the definition of subtext needs one (CSD-01)
    per_thread: int | None = None  # most liked first
    limit: int | None = None  # of a source, most liked first


def make_task_id(project: str, context: str | None, text: str) -> str:
    """Hash project, context and text to 128 bits: the id reveals nothing but what the task shows."""
    return hash_text("\n".join((project, context or "", text)))


def select(
    comments: pl.DataFrame, rules: Rules, cluster: Sequence[int] | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Select the comments to be labelled, and give the others the first rule that they break as a reason.

    `cluster` has the number of the near-duplicate cluster of each comment; of a cluster the most liked one is kept.
    """
    if rules.least_chars > rules.most_chars:
        raise BadInput(f"least_chars {rules.least_chars} is above most_chars {rules.most_chars}")
    size, likes = pl.col("text").str.len_chars(), pl.col("like_count").fill_null(0)
    no_context = pl.col("context").fill_null("").str.strip_chars() == ""
    faults = {
        "language": ~pl.col("lang").is_in(list(rules.langs)),
        "no_context": no_context & pl.lit(rules.has_context),
        "too_short": size < rules.least_chars,
        "too_long": size > rules.most_chars,
        "few_likes": likes < rules.least_likes,
        "not_hot": ~pl.col("is_hot") & pl.lit(rules.is_hot),
    }
    rows = comments.with_columns(
        _reason=choose_first(faults),
        _cluster=pl.Series(range(comments.height) if cluster is None else cluster, dtype=pl.Int64),
    ).sort(likes, "source", "thread_id", "comment_id", descending=[True, False, False, False])
    for reason, group_columns, limit in (
        ("near_duplicate", ["_cluster"], 1),
        ("over_thread", ["source", "thread_id"], rules.per_thread),
        ("over_limit", ["source"], rules.limit),
    ):
        if limit is not None:
            place = pl.col("_reason").is_null().cum_sum().over(group_columns)
            rows = rows.with_columns(_reason=pl.coalesce("_reason", pl.when(place > limit).then(pl.lit(reason))))
    rows = rows.sort("source", "thread_id", "comment_id")
    dropped = rows.drop_nulls("_reason").select("source", reason="_reason", row_key=KEY)
    return rows.filter(pl.col("_reason").is_null()).select(comments.columns), dropped


def build_tasks(comments: pl.DataFrame, project: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Build tasks of a project: rows of `label_tasks` without row_id; and those that show the same as another."""
    ids = [make_task_id(project, context, text) for context, text in comments.select("context", "text").iter_rows()]
    rows = comments.select("source", "day", "thread_id", "comment_id", "lang", "context", "text").with_columns(
        project=pl.lit(project), task_id=pl.Series(ids, dtype=pl.String), schema_version=pl.lit(schema.hash_schema())
    )
    is_first = rows["task_id"].is_first_distinct()
    repeated = rows.filter(~is_first).select("source", "day", reason=pl.lit("same_task"), row_key=KEY)
    return rows.filter(is_first), repeated
