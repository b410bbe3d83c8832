"""What a comment stands under: its context, and the tree of answers (CSD-05, CSD-06)."""

import polars as pl

from pipeline.errors import BadInput

_ROUNDS = 64  # ways of 2**64 answers


def add_context(comments: pl.DataFrame, articles: pl.DataFrame, parents: pl.DataFrame | None = None) -> pl.DataFrame:
    """Add context_id and context: the parent comment's text, else what the site gave, else title and text.

    `parents` are the comments that others may answer, by default the same ones.
    """
    answered = comments if parents is None else parents.unique(["thread_id", "comment_id"], keep="first")
    parents = answered.select("thread_id", parent_id="comment_id", _parent="text")
    article = pl.concat_str("title", "text", separator=" ", ignore_nulls=True).str.strip_chars()
    at_top = pl.when(pl.col("parent_id").is_null()).then("_article")
    titles = articles.select("thread_id", _article=article)
    rows = comments.join(parents, on=["thread_id", "parent_id"], how="left", maintain_order="left")
    rows = rows.join(titles, on="thread_id", how="left", maintain_order="left")
    contexts = {
        "context_id": pl.coalesce("parent_id", "thread_id"),
        "context": pl.coalesce("_parent", "context", at_top),
    }
    return rows.with_columns(**contexts).drop("_parent", "_article")


def add_roots(comments: pl.DataFrame) -> pl.DataFrame:
    """Replace root_id by the comment at the top of the branch, as far as it is among the comments.

    A file without root_id has the parent there. Each round doubles the length of the ways that are followed.
    """
    for _ in range(_ROUNDS):
        above = comments.select("thread_id", root_id="comment_id", _root="root_id")
        joined = comments.join(above, on=["thread_id", "root_id"], how="left", maintain_order="left")
        roots = joined.select(root_id=pl.coalesce("_root", "root_id")).to_series()
        if roots.equals(comments["root_id"]):
            break
        comments = comments.with_columns(roots)
    return comments


def refuse_circles(comments: pl.DataFrame) -> None:
    """Raise BadInput, with the file and the rows, if a comment is, through its parents, its own ancestor.

    Only answers to answers can be in a circle; each is walked up once.
    """
    ids = comments.select("thread_id", "comment_id", "parent_id", "row_key").iter_rows()
    up = {(thread, comment): ((thread, parent), row_key) for thread, comment, parent, row_key in ids if parent}
    checked: set[tuple[str, str]] = set()
    for start in up:
        path: dict[tuple[str, str], None] = {}
        comment = start
        while comment in up and comment not in checked:
            if comment in path:
                circle = list(path)[list(path).index(comment) :]
                keys = [up[answer][1] for answer in circle[:5]]
                parts = [key.rpartition("-") for key in keys]
                names = [
                    f"{file}, row {number}" if file and number[:1].isdigit() else key
                    for key, (file, _, number) in zip(keys, parts, strict=True)
                ]
                places = [f"{answer!r} ({name})" for (_, answer), name in zip(circle, names, strict=False)]
                more = f" and {len(circle) - 5} more" if len(circle) > 5 else ""
                expected = "each parent_id to lead to a comment that answers none; correct parent_id in these rows"
                problem = f"{', '.join(places)}{more} answer each other in a circle"
                raise BadInput(f"thread {comment[0]!r}: {problem}; expected {expected}")
            path[comment] = None
            comment = up[comment][0]
        checked.update(path)
