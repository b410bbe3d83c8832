-- Implicitness of the comments by source and day. The mean of the scores is biased as the model is. corrected_mean is
-- the mean that a judge would give, with its interval of 95 %, from the comments that were judged on a scale, which
-- `undertone judge --day` draws at random; its values 0 to 4 are halved, so that both means lie between 0 and 2. It is
-- the regression estimate of tests/support/oracles/estimates.py. Of several judges the one with most comments
-- counts. correction names the judge and the number of its comments, or the reason why the mean is uncorrected. A day that
-- grew since is uncorrected, as its sample is not one of all comments: signatures end with their number at that time.
-- percentile_mean and percentile_median are of the comments' percentiles; weakness says where the model is weak.
create or replace view implicitness_by_source_day as
with judged as (
    select c.source, c.day, c.lang, j.model_id as judge, c.implicitness as x, j.value / 2 as y,
        cast(nullif(regexp_extract(j.signature, '\|day:(\d+)$', 1), '') as bigint) as size
    from comments_scored as c
    join scores as j
        on j.source = c.source and j.day = c.day and j.thread_id = c.thread_id and j.comment_id = c.comment_id
    where j.metric = 'implicitness_judged' and j.model_id like '%:scale'
),

samples as (
    select
        source, day, lang, judge, count(*) as n, avg(x) as mean_x, avg(y) as mean_y, regr_sxx(y, x) as sxx,
        coalesce(case when regr_sxx(y, x) > 1e-12 then regr_slope(y, x) end, 0) as slope,
        var_pop(y) * count(*) as syy,
        min(size) as judged_size, count(*) - list_max(map_values(histogram(round(2 * y)))) as varied
    from judged
    group by source, day, lang, judge
    qualify row_number() over (partition by source, day, lang order by count(*) desc, judge) = 1
),

sizes as (
    select source, day, count(*) as size
    from comments
    group by source, day
),

totals as (
    select
        source, day, lang, count(*) as comment_count, avg(implicitness) as mean_all,
        stddev_samp(implicitness) as sd, median(implicitness) as middle, avg(percentile) as percentile_mean,
        median(percentile) as percentile_median, max(weakness) as weakness
    from comments_scored
    group by source, day, lang
),

estimates as (
    select
        t.*, d.size, s.judged_size, coalesce(d.size > s.judged_size, false) as is_grown, s.judge, coalesce(s.n, 0) as n, s.varied, s.mean_y + s.slope * (t.mean_all - s.mean_x) as corrected,
        s.n - case when s.sxx > 1e-12 then 2 else 1 end as degrees,
        greatest(s.syy - s.slope * s.slope * s.sxx, 0)
            * (1.0 / s.n - 1.0 / t.comment_count + case when s.sxx > 1e-12 then (t.mean_all - s.mean_x) ** 2 / s.sxx else 0 end)
            as square
    from totals as t
    join sizes as d on d.source = t.source and d.day = t.day
    left join samples as s on s.source = t.source and s.day = t.day and s.lang = t.lang
),

final as (
    select
        *, n >= 20 and varied >= 10 and not is_grown as is_corrected,
        -- Student's t at 0.975, by the first terms of its expansion in 1 / degrees
        (1.959964 + 2.372276 / degrees + 2.822501 / degrees ** 2) * sqrt(greatest(square, 0) / degrees) as half
    from estimates
)

select
    source, day, lang,
    comment_count,
    round(mean_all, 6) as implicitness_mean,
    round(percentile_mean, 1) as percentile_mean,
    round(sd, 6) as implicitness_sd,
    round(middle, 6) as implicitness_median,
    round(percentile_median, 1) as percentile_median,
    case when is_corrected then round(corrected, 6) end as corrected_mean,
    case when is_corrected then round(corrected - half, 6) end as corrected_low,
    case when is_corrected then round(corrected + half, 6) end as corrected_high,
    n as judged_count,
    case
        when n = 0 then 'uncorrected: no judged sample'
        when n < 20 then 'uncorrected: ' || n || ' judged comments, 20 are needed'
        when varied < 10 then 'uncorrected: only ' || varied || ' of ' || n || ' judgements differ from the most frequent'
        when is_grown
            then 'uncorrected: the day grew from ' || judged_size || ' to ' || size || ' comments since it was judged'
        else judge || ', ' || n || ' judged comments'
    end as correction,
    weakness
from final;
