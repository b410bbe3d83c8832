"""Articles and their comments: what is in, its train, validation and test, and references (commenting, section 3).

In come articles and comments with their word counts. Out go all articles with their split, or why they have none
(AAC-04), references (AAC-07), and statistics beside the paper's (AAC-05, AAC-06, AAC-31). Draws go by a hash of seed
and ids: an article that comes in later takes the place of one other at most.
"""

import math
from typing import NamedTuple

import polars as pl

from pipeline.errors import BadInput
from pipeline.io.hashes import hash_number
from pipeline.papers.commenting import TABLE_2, Part
from pipeline.slices import parse_window

THREADS: dict[str, pl.DataType] = {
    **dict.fromkeys(("source", "thread_id", "category"), pl.String()),
    **dict.fromkeys(("title_words", "content_words", "comment_count", "like_count"), pl.Int64()),
    **dict.fromkeys(("split", "reason"), pl.String()),
}
REFERENCES: dict[str, pl.DataType] = {
    **dict.fromkeys(("source", "thread_id", "comment_id", "role"), pl.String()),
    "place": pl.Int64(),
}
_KEY = ["source", "thread_id"]
_COMMENT = [*_KEY, "comment_id"]


class Rules(NamedTuple):
    """What is in and how it is divided, by default as in the paper; each `least` and `most` is inclusive."""

    least_words: int = 30  # of an article's content (AAC-04)
    least_comments: int = 20  # of an article, of any length (AAC-04)
    comment_words: int = 6  # of a comment that counts for the test: "more than 5" (AAC-07)
    test_comments: int = 30  # such comments of an article in the test
    likes: int = 201  # of all comments of such an article: "over 200"
    references: int = 27  # comments drawn of it
    test: int = 1_610  # articles
    validation: int = 5_000
    share: float = 0.1  # of the articles that are in, the most that test and validation each take
    seed: int = 42
    first_day: str | None = None  # of an article's first comment, or its collection where that is unknown (AAC-02)
    last_day: str | None = None


PAPER = Rules()


class Corpus(NamedTuple):
    """A corpus, and what is left out of it."""

    threads: pl.DataFrame  # `THREADS`: every article; split or reason is null
    references: pl.DataFrame  # `REFERENCES`
    dropped: pl.DataFrame  # source, reason, row_key: the thread_id, of a comment <thread_id>/<comment_id>


def build_corpus(articles: pl.DataFrame, comments: pl.DataFrame, rules: Rules = PAPER) -> Corpus:
    """Select articles, divide them into splits, and draw references (AAC-04, AAC-07).

    An article is left out as `short_content`, `few_comments` or `outside_window`, or several with a plus. For the test
    it takes `test_comments` comments of `comment_words` and `likes` in total. Of such articles `test` are drawn, and of
    all others then `validation`, but neither more than `share` of all. A comment of no article is dropped as
    `no_article`.

    Comments need `written` (a date) if `rules` have a first or last day. Of each article of the test, in the order in
    which they were drawn (`place`, from 0), `references` fit comments are `reference`, and one more, where one is left,
    is `candidate`: the real comment that is graded among generated ones (AAC-26). BadInput: share is not in 0-0.5.
    """
    if not 0 <= rules.share <= 0.5:
        raise BadInput(f"share should be in 0-0.5, as test and validation both take it, found {rules.share}")
    is_fit = pl.col("words") >= rules.comment_words
    totals = {"comment_count": pl.len().cast(pl.Int64), "like_count": pl.col("like_count").sum()}
    if rules.first_day or rules.last_day:
        totals["written"] = pl.col("written").min()
    counts = comments.group_by(_KEY).agg(fit_count=is_fit.sum(), **totals)
    no_comment = pl.col("comment_count", "like_count", "fit_count").fill_null(0)
    counted_articles = articles.join(counts, on=_KEY, how="left").with_columns(no_comment).sort(_KEY)
    threads = _divide(counted_articles.with_columns(reason=_find_reason(rules)), rules)
    strays = comments.join(articles, on=_KEY, how="anti").sort(_COMMENT)
    dropped_articles = threads.filter(pl.col("reason").is_not_null()).select("source", "reason", row_key="thread_id")
    row_key = pl.concat_str("thread_id", "comment_id", separator="/")
    dropped_comments = strays.select("source", reason=pl.lit("no_article"), row_key=row_key)
    fit_comments = comments.filter(is_fit).join(threads.filter(split="test"), on=_KEY, how="semi")
    return Corpus(threads, _draw_references(fit_comments, rules), pl.concat([dropped_articles, dropped_comments]))


def _find_reason(rules: Rules) -> pl.Expr:
    broken = {
        "short_content": pl.col("content_words") < rules.least_words,
        "few_comments": pl.col("comment_count") < rules.least_comments,
    }
    if rules.first_day or rules.last_day:
        broken["outside_window"] = ~pl.col("written").is_between(*parse_window(rules.first_day, rules.last_day))
    names = [pl.when(rule).then(pl.lit(name)) for name, rule in broken.items()]
    reason = pl.concat_str(names, separator="+", ignore_nulls=True)
    return pl.when(reason != "").then(reason)


def _divide(articles: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    accepted = articles.filter(pl.col("reason").is_null())
    max_count = math.floor(rules.share * accepted.height + 1e-9)
    may_test = (pl.col("fit_count") >= rules.test_comments) & (pl.col("like_count") >= rules.likes)
    test = _draw(accepted.filter(may_test), f"{rules.seed}\ntest").head(min(rules.test, max_count))
    # by another hash: those that the test did not take would come last
    rest = accepted.join(test, on=_KEY, how="anti")
    validation = _draw(rest, f"{rules.seed}\nvalidation").head(min(rules.validation, max_count))
    parts = [part.select(*_KEY, split=pl.lit(name)) for part, name in ((test, "test"), (validation, "validation"))]
    divided = articles.join(pl.concat(parts), on=_KEY, how="left", maintain_order="left")
    split = pl.when(pl.col("reason").is_null()).then(pl.col("split").fill_null("train"))
    return divided.with_columns(split=split).select(*THREADS).cast(pl.Schema(THREADS))


def _draw(rows: pl.DataFrame, salt: str, ids: list[str] = _KEY) -> pl.DataFrame:
    """Select ids in the order of a hash of the salt and the ids alone."""
    keys = rows.select(ids)
    numbers = pl.Series([hash_number("\n".join((salt, *row))) for row in keys.iter_rows()], dtype=pl.UInt64)
    return keys.with_columns(draw=numbers).sort("draw", *ids).drop("draw")


def _draw_references(fit: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    ordered = _draw(fit, f"{rules.seed}\nreference", _COMMENT).sort(_KEY, maintain_order=True)
    placed = ordered.with_columns(place=pl.int_range(pl.len(), dtype=pl.Int64).over(_KEY))
    is_reference = pl.col("place") < rules.references
    role = pl.when(is_reference).then(pl.lit("reference")).otherwise(pl.lit("candidate"))
    return placed.filter(pl.col("place") <= rules.references).with_columns(role=role).select(list(REFERENCES))


def compute_statistics(threads: pl.DataFrame, comments: pl.DataFrame) -> pl.DataFrame:
    """Compute table 2 of a corpus, beside the paper's (AAC-05, AAC-06, errata E12): train, validation, test and all.

    Threads that are left out do not count; of the test give its references alone to count as the paper does.
    likes_per_comment is of those whose likes are known; what is undefined is null; the paper's values are paper_*.
    """
    split_threads = threads.filter(pl.col("split").is_not_null())
    split_comments = comments.join(split_threads.select(*_KEY, "split"), on=_KEY)
    frames = (pl.concat([rows, rows.with_columns(split=pl.lit("all"))]) for rows in (split_threads, split_comments))
    article_groups, comment_groups = (rows.group_by("split") for rows in frames)
    articles = article_groups.agg(pl.col("title_words", "content_words").mean(), articles=pl.len().cast(pl.Int64))
    means = {"comment_words": pl.col("words").mean(), "likes_per_comment": pl.col("like_count").mean()}
    comment_means = comment_groups.agg(comments=pl.len().cast(pl.Int64), **means)
    schema = {name: pl.Int64 if name == "articles" else pl.Float64 for name in Part._fields}
    paper = pl.DataFrame([*TABLE_2.values()], schema, orient="row").select(pl.all().name.prefix("paper_"))
    rows = paper.with_columns(split=pl.Series([*TABLE_2]))
    for part in (articles, comment_means):
        rows = rows.join(part, on="split", how="left", maintain_order="left")
    rows = rows.with_columns(pl.col("articles", "comments").fill_null(0))
    per_article = pl.when(pl.col("articles") > 0).then(pl.col("comments") / pl.col("articles"))
    rows = rows.with_columns(comments_per_article=per_article)
    return rows.select("split", "articles", "comments", *Part._fields[1:], *paper.columns)


def count_categories(threads: pl.DataFrame) -> pl.DataFrame:
    """Count the articles of each category, also of none, the largest first, then by name (Figure 2; AAC-31)."""
    split_threads = threads.filter(pl.col("split").is_not_null())
    counts = split_threads.group_by("category").agg(count=pl.len().cast(pl.Int64))
    counts = counts.with_columns(share=pl.col("count") / split_threads.height)
    return counts.sort("count", "category", descending=[True, False])
