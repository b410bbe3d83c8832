"""Values of a measure by comment: `scorer` or `scorer:MODEL`, `judge` or `judge:NAME`, `people:FIELD`, `grades`."""

from collections.abc import Callable
from datetime import date
from functools import partial

import polars as pl

from pipeline import warehouse
from pipeline.errors import BadInput, Missing

COMMENT = ("source", "thread_id", "comment_id")
_COLUMNS = pl.Schema({name: pl.Float64 if name == "value" else pl.String for name in (*COMMENT, "rater", "value")})


def load_side(name: str) -> pl.DataFrame:
    """Load the ratings of a side: source, thread_id, comment_id, rater (a model, a judge, a person), value.

    Missing if there are none; BadInput for no such side, several judges or models that fit, and values of no numbers.
    """
    advice = get_advice(name)
    kind, _, detail = name.partition(":")
    ratings = _SIDES[kind][0](detail)
    if not ratings.height:
        raise Missing(f"there are no values of {name!r}; {advice}")
    return ratings.select(pl.col(name).cast(kind) for name, kind in _COLUMNS.items())


def get_advice(name: str) -> str:
    """Return the command that makes values of a side; BadInput if there is no such side."""
    if (kind := name.partition(":")[0]) in _SIDES:
        return _SIDES[kind][1]
    raise BadInput(f"{name!r} is no measure; expected {', '.join(_SIDES)}, or columns of --file by -c")


def load_comments(ratings: pl.DataFrame, days: tuple[date, date] | None = None) -> pl.DataFrame:
    """Load the rated comments of some days, or all: day, lang, text, once for each comment."""
    keys = ratings.lazy().select(COMMENT).unique()
    comments = warehouse.scan("comments", pl.col("day").is_between(*days) if days else None)
    rows = comments.join(keys, on=COMMENT, how="semi").select(*COMMENT, "day", "lang", "text")
    return rows.sort(*COMMENT, "day").unique(COMMENT, keep="last", maintain_order=True).collect()


def average(ratings: pl.DataFrame, name: str) -> pl.DataFrame:
    """Average the raters of each comment; `name` is the column of the mean."""
    return ratings.group_by(COMMENT).agg(pl.col("value").mean().alias(name))


def _load_scorer(model: str) -> pl.DataFrame:
    if model:
        return _load_scores("implicitness", model, "scorer")
    sql = "select source, thread_id, comment_id, model_id as rater, implicitness as value from comments_scored"
    return warehouse.query(f"{sql} order by all")


def _load_scores(metric: str, name: str, kind: str) -> pl.DataFrame:
    scores = warehouse.scan("scores", pl.col("metric") == metric)
    rows = scores.filter(pl.col("model_id").str.starts_with(name)).select(*COMMENT, "value", rater="model_id").collect()
    names = rows["rater"].unique().sort().to_list()
    names = [name] if name in names else names
    if len(names) > 1:
        raise BadInput(f"expected one {kind}, found {', '.join(names)}; name it, such as {kind}:{names[0]}")
    return rows.filter(pl.col("rater").is_in(names)).sort(COMMENT)


def _load_labels(field: str) -> pl.DataFrame:
    field = field or "subtext"
    labels = warehouse.scan("labels", (pl.col("field") == field) & (pl.col("stage") == 1))
    labels = labels.sort("round").unique(("project", "task_id", "rater_id"), keep="last")
    tasks = warehouse.scan("label_tasks").select("project", "task_id", *COMMENT)
    rows = labels.join(tasks, on=("project", "task_id"), how="inner").select(*COMMENT, "value", rater="rater_id")
    ratings = rows.with_columns(number=pl.col("value").cast(pl.Float64, strict=False)).collect()
    if words := ratings.filter(pl.col("number").is_null())["value"].unique().sort().to_list():
        raise BadInput(f"labels of {field!r} are no numbers but {', '.join(words[:3])}; name another as people:FIELD")
    return ratings.drop("value").rename({"number": "value"}).sort(*COMMENT, "rater")


def _load_grades(_: str) -> pl.DataFrame:
    rows = warehouse.scan("comment_grades").select(*COMMENT, rater="raters", value="grades").collect()
    return rows.explode("rater", "value").sort(*COMMENT, "rater")


_SIDES: dict[str, tuple[Callable[[str], pl.DataFrame], str]] = {
    "scorer": (_load_scorer, "`undertone score implicitness --day DAY`"),
    "judge": (partial(_load_scores, "implicitness_judged", kind="judge"), "`undertone judge --day DAY --llm MODEL`"),
    "people": (_load_labels, "`undertone label import`"),
    "grades": (_load_grades, "`undertone commenting ratings`"),
}
