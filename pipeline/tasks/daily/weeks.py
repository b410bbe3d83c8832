"""What changed since the same days of last week: the seven days until a day, and the seven days before these."""

from datetime import timedelta

import polars as pl

from pipeline import warehouse
from pipeline.metrics import weeks
from pipeline.slices import parse_day

EXAMPLES = 5
MOST = 3  # sources with examples
_DAYS = "day > ? as is_now, case when day > ? then day else day + 7 end as weekday"
_THREADS = f"""
with scored as (
    select source, lang, thread_id, implicitness, {_DAYS} from comments_scored
    where day > ? and day <= ? and model_id = ?
),
matched as (  -- a day of a source that both weeks have
    select * from scored
    qualify bool_or(is_now) over (partition by source, lang, weekday)
        and bool_or(not is_now) over (partition by source, lang, weekday)
),
quarters as (
    select source, lang, count(distinct weekday) as day_count,
        quantile_cont(implicitness, 0.25) as first_quarter, quantile_cont(implicitness, 0.75) as last_quarter
    from matched where not is_now group by source, lang
)

select source, lang, thread_id, is_now, day_count, first_quarter, last_quarter, count(*) as comment_count,
    sum(implicitness) as total, count(*) filter (implicitness < first_quarter) as low_count,
    count(*) filter (implicitness > last_quarter) as high_count
from matched join quarters using (source, lang) group by all order by all
"""  # noqa: S608
_CORRECTED = f"""
select source, lang, {_DAYS}, comment_count, corrected_mean, corrected_low, corrected_high,
    regexp_replace(correction, ', \\d+ judged comments$', '') as judge
from implicitness_by_source_day
where day > ? and day <= ? and (source, lang, day) in (select source, lang, day from comments_scored where model_id = ?)
"""  # noqa: S608
_EXAMPLES = """
select ? as way, source, lang, implicitness, percentile, text, title, like_count from comments_scored
where source = ? and lang = ? and day = ? and model_id = ? and ? * (implicitness - ?) > 0
order by like_count desc nulls last, thread_id, comment_id limit ?
"""


def compare_weeks(day: str, model_id: str) -> dict[str, pl.DataFrame]:
    """Compare the week until a day with the week before, by the scores of a model; empty without a day that both have.

    Returns:
        changes: of `metrics.weeks`, with day_count and what a judge corrected, the clearest and largest first.
        examples: comments of the day that show them, with most likes: more implicit than three quarters of the week
            before where a mean rose (way is 1), more explicit where it fell (-1). There are none of other days, since
            an erasure removes the pages of the day of a comment.
    """
    last = parse_day(day)
    middle = last - timedelta(days=7)
    values = [middle, middle, last - timedelta(days=14), last, model_id]
    threads = warehouse.query(_THREADS, values)
    if not threads.height:
        return {}
    quarters = threads.select(*weeks.GROUP, "day_count", "first_quarter", "last_quarter").unique()
    days = warehouse.query(_CORRECTED, values).filter(pl.col("is_now").n_unique().over(*weeks.GROUP, "weekday") == 2)
    is_clear = ((pl.col("low") > 0) | (pl.col("high") < 0)) & pl.col("low").is_not_nan()
    changes = weeks.measure_changes(threads).join(quarters, on=weeks.GROUP).with_columns(is_clear=is_clear)
    changes = changes.join(weeks.combine_corrected(days), on=weeks.GROUP, how="left")
    changes = changes.sort(~pl.col("is_clear"), -pl.col("change").abs(), *weeks.GROUP)
    examples = []  # of the sources that changed clearly, or of the one with the largest change, in turns
    for row in changes.head(max(1, min(MOST, changes.filter("is_clear").height))).to_dicts():
        way, edge = (1, row["last_quarter"]) if row["change"] > 0 else (-1, row["first_quarter"])
        rows = warehouse.query(_EXAMPLES, [way, row["source"], row["lang"], last, model_id, way, edge, EXAMPLES])
        examples.append(rows.with_row_index("turn"))
    return {"changes": changes, "examples": pl.concat(examples).sort("turn", maintain_order=True).head(EXAMPLES)}
