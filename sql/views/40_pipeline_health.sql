-- Status of each step of each day, compared with the median of the seven days before: ok, backfill, late, missing or
-- unusual. The family is the DAG whose work the step is.
-- missing: comments of the day lack the step's rows (view holes), or nothing was collected on a day while days within a
-- week of it have comments. unusual: fewer than half or more than twice the rows, a dropped share that differs by 0.2, or
-- more than three times the seconds (and a minute more); this needs three earlier days. late: a step of the daily chain
-- that started over 24 hours after the day ended; backfill: the same, by a backfill, by hand or by a command. Steps after
-- a late collection are held against its start instead of the end of the day.
create or replace view pipeline_health as
with named as (
    select *,
        case
            when step in ('collect', 'tokenize', 'score') then step
            when step = 'score_implicitness_judged' or origin like '%: judge%' then 'judge'
            when step like 'cloze%' or step = 'test' or source like 'reader%' or source = 'abstractness' then 'recam'
            when step in ('threads', 'generate', 'measure') or source like 'commenter%' or origin like 'label:quality%'
                or source in ('quality', 'upvotes', 'correlation') then 'commenting'
            when step in ('compress', 'score_context_shift') or source like 'masked_lm%'
                or origin like 'label:integrity%' then 'ndd'
            when step = 'study' then 'studies'
            when step = 'score_subtext' or source = 'subtext' or origin like 'label:%' or origin like 'release %' then 'csd'
            else 'impscore'
        end as family
    from runs
),

done as (
    select day, family, step,
        cast(sum(read_count) as bigint) as read_count, cast(sum(kept_count) as bigint) as kept_count,
        cast(sum(dropped_count) as bigint) as dropped_count,
        cast(sum(dropped_count) as double) / nullif(sum(read_count), 0) as dropped_ratio,
        round(sum(seconds), 3) as seconds, cast(sum(byte_count) as bigint) as byte_count,
        cast(sum(input_tokens) as bigint) as input_tokens, cast(sum(output_tokens) as bigint) as output_tokens,
        round(sum(cost_usd), 6) as cost_usd, cast(max(started_at) at time zone 'UTC' as timestamp) as started_at,
        not coalesce(regexp_matches(arg_max(run_id, started_at), '^(backfill|manual|cli)'), false) as is_scheduled
    from named
    group by day, family, step
),

collected as (
    select day, started_at, lead(day) over (order by day) as following
    from done
    where step = 'collect'
),

skipped as (
    select cast(c.day + interval 1 day * n.days as date) as day
    from collected as c
    cross join (values (1), (2), (3), (4), (5), (6)) as n (days)
    where c.day + interval 1 day * n.days < c.following and c.following <= c.day + interval 7 day
),

lacking as (
    select day, case when missing = 'tokens' then 'tokenize' else 'score' end as step, row_count as waiting_count
    from holes
    union all
    select day, 'collect' as step, 0 as waiting_count
    from skipped
),

whole as (
    select coalesce(d.day, l.day) as day, coalesce(d.family, l.step) as family, coalesce(d.step, l.step) as step,
        l.step is not null as is_missing, d.is_scheduled,
        coalesce(l.waiting_count, 0) as waiting_count, d.read_count, d.kept_count, d.dropped_count, d.dropped_ratio,
        d.seconds, d.byte_count, d.input_tokens, d.output_tokens, d.cost_usd, d.started_at,
        date_diff('minute', case
            when d.step <> 'collect' and c.started_at between c.day + interval 2 day and d.started_at then c.started_at
            else cast(coalesce(d.day, l.day) as timestamp) + interval 1 day
        end, d.started_at) / 60.0 as age_hours
    from done as d
    full join lacking as l on l.day = d.day and l.step = d.step
    left join collected as c on c.day = d.day
),

usual as (
    select w.day, w.family, w.step, count(*) as usual_days, median(p.read_count) as usual_read_count,
        median(p.dropped_ratio) as usual_dropped_ratio, median(p.seconds) as usual_seconds
    from whole as w
    inner join done as p on p.step = w.step and p.family = w.family and p.day < w.day and p.day >= w.day - interval 7 day
    group by w.day, w.family, w.step
),

judged as (
    select w.*, coalesce(u.usual_days, 0) as usual_days, u.usual_read_count, u.usual_dropped_ratio, u.usual_seconds,
        case
            when w.is_missing and w.step = 'collect' then 'nothing collected'
            when w.is_missing then 'rows wait'
            when u.usual_days >= 3 and w.read_count < 0.5 * u.usual_read_count then 'few rows'
            when u.usual_days >= 3 and w.read_count > 2 * u.usual_read_count then 'many rows'
            when u.usual_days >= 3 and abs(w.dropped_ratio - u.usual_dropped_ratio) > 0.2 then 'share dropped'
            when u.usual_days >= 3 and w.seconds > 3 * u.usual_seconds + 60 then 'slow'
            when w.step in ('collect', 'tokenize', 'score') and w.age_hours > 24
                then if(w.is_scheduled, 'began late', 'by a backfill or by hand')
        end as why
    from whole as w
    left join usual as u on u.day = w.day and u.family = w.family and u.step = w.step
)

select
    day, family, step,
    case
        when why is null then 'ok'
        when is_missing then 'missing'
        when why = 'began late' then 'late'
        when why = 'by a backfill or by hand' then 'backfill'
        else 'unusual'
    end as status,
    why, read_count, kept_count, dropped_count, dropped_ratio, waiting_count, usual_days, usual_read_count,
    usual_dropped_ratio, seconds, usual_seconds, byte_count, input_tokens, output_tokens, cost_usd, started_at, age_hours
from judged;
