"""What changed since the same days of last week: the seven days until a day, and the seven days before these."""

from datetime import timedelta
from typing import Any

import polars as pl

from pipeline import warehouse
from pipeline.metrics import weeks
from pipeline.metrics.weeks import GROUP
from pipeline.slices import parse_day

WEEK = timedelta(days=7)
EXAMPLES = 5
MOST = 3  # sources with examples
_THREADS = """
with scored as (
    select source, lang, thread_id, implicitness, day > ? as is_now, case when day > ? then day else day + 7 end as day
    from comments_scored
    where day > ? and day <= ? and model_id = ?
),

matched as (  -- a day of a source that both weeks have
    select *
    from scored
    qualify bool_or(is_now) over (partition by source, lang, day)
        and bool_or(not is_now) over (partition by source, lang, day)
),

quarters as (
    select
        source, lang, count(distinct day) as day_count,
        quantile_cont(implicitness, 0.25) as first_quarter, quantile_cont(implicitness, 0.75) as last_quarter
    from matched
    where not is_now
    group by source, lang
)

select
    source, lang, thread_id, is_now, day_count, first_quarter, last_quarter, count(*) as comment_count,
    sum(implicitness) as total, count(*) filter (implicitness < first_quarter) as low_count,
    count(*) filter (implicitness > last_quarter) as high_count
from matched
join quarters using (source, lang)
group by all
order by all
"""
_CORRECTED = """
select
    source, lang, day > ? as is_now, case when day > ? then day else day + 7 end as weekday, comment_count,
    corrected_mean, corrected_low, corrected_high, regexp_replace(correction, ', \\d+ judged comments$', '') as judge
from implicitness_by_source_day
where day > ? and day <= ? and (source, lang, day) in (select source, lang, day from comments_scored where model_id = ?)
order by all
"""
_EXAMPLES = """
with edges as (
    select
        unnest(?::varchar[]) as source, unnest(?::varchar[]) as lang, unnest(?::double[]) as edge,
        unnest(?::int[]) as way, unnest(range(?)) as place
)

select c.source, c.lang, e.way, c.implicitness, c.percentile, c.band, c.text, c.title, c.like_count
from comments_scored as c
join edges as e on e.source = c.source and e.lang = c.lang
where c.day = ? and c.model_id = ? and e.way * (c.implicitness - e.edge) > 0
order by
    row_number() over (partition by e.place order by c.like_count desc nulls last, c.thread_id, c.comment_id), e.place
limit ?
"""


def compare_weeks(day: str, model_id: str) -> dict[str, pl.DataFrame]:
    """Compare the week until a day with the week before, by the scores of a model; empty without a day that both have.

    Returns:
        changes: of `metrics.weeks`, with day_count and what a judge corrected, the clearest and largest first.
        examples: comments of the day that show them: of those more implicit than three quarters of the week before
            where a mean rose, more explicit where it fell, the ones with most likes; way is 1 or -1.
    """
    last = parse_day(day)
    middle, first = last - WEEK, last - 2 * WEEK
    threads = warehouse.query(_THREADS, [middle, middle, first, last, model_id])
    if not threads.height:
        return {}
    marks = threads.select(*GROUP, "day_count", "first_quarter", "last_quarter").unique()
    days = warehouse.query(_CORRECTED, [middle, middle, first, last, model_id])
    days = days.filter(pl.col("is_now").n_unique().over(*GROUP, "weekday") == 2)
    is_clear = (pl.col("low") > 0) | (pl.col("high") < 0)
    changes = (
        weeks.measure_changes(threads)
        .join(marks, on=GROUP)
        .join(weeks.combine_corrected(days), on=GROUP, how="left")
        .with_columns(is_clear=is_clear & pl.col("low").is_not_nan())
        .sort(~pl.col("is_clear"), -pl.col("change").abs(), *GROUP)
    )
    return {"changes": changes, "examples": _select_examples(changes, [last, model_id])}


def _select_examples(changes: pl.DataFrame, values: list[Any]) -> pl.DataFrame:
    shown = changes.filter("is_clear").head(MOST) if changes["is_clear"].any() else changes.head(1)
    is_up = pl.col("change") > 0
    edges = shown.select(
        *GROUP,
        edge=pl.when(is_up).then("last_quarter").otherwise("first_quarter"),
        way=pl.when(is_up).then(1).otherwise(-1),
    )
    return warehouse.query(_EXAMPLES, [*edges.to_dict(as_series=False).values(), edges.height, *values, EXAMPLES])
