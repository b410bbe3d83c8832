-- Comments of two weeks by thread, with the quartiles of the first week: what `report.compare_weeks` compares.
with scored as (
    select source, lang, thread_id, implicitness,
        day > ? as is_now, case when day > ? then day else day + 7 end as weekday
    from comments_scored
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
