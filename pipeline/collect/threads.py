"""What a comment stands under: its context, and the tree of answers (CSD-05, CSD-06)."""

import polars as pl

from pipeline.errors import BadInput


def with_context(comments: pl.DataFrame, articles: pl.DataFrame) -> pl.DataFrame:
    """Add context_id and context: the parent comment's text, else what the site gave, else title and text."""
    parents = comments.select("thread_id", parent_id="comment_id", _parent="text")
    about = articles.select(
        "thread_id", _article=pl.concat_str("title", "text", separator=" ", ignore_nulls=True).str.strip_chars()
    )
    at_top = pl.when(pl.col("parent_id").is_null()).then(pl.col("_article"))
    return (
        comments.join(parents, on=["thread_id", "parent_id"], how="left", maintain_order="left")
        .join(about, on="thread_id", how="left", maintain_order="left")
        .with_columns(
            context_id=pl.coalesce("parent_id", "thread_id"), context=pl.coalesce("_parent", "context", at_top)
        )
        .drop("_parent", "_article")
    )


def refuse_circles(comments: pl.DataFrame) -> None:
    """Raise BadInput if a comment is, through its parents, its own ancestor.

    Only answers to answers can be in a circle; each is walked up once.
    """
    up = {(t, c): (t, p) for t, c, p in comments.select("thread_id", "comment_id", "parent_id").iter_rows() if p}
    fine: set[tuple[str, str]] = set()
    for start in up:
        path: list[tuple[str, str]] = []
        at, met = start, set[tuple[str, str]]()
        while at in up and at not in fine:
            if at in met:
                raise BadInput(
                    f"comment {at[1]} of thread {at[0]} is its own ancestor; expected parents to form a tree"
                )
            met.add(at)
            path.append(at)
            at = up[at]
        fine.update(path)
