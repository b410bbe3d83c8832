-- Rows that each step of a day read, kept and dropped, with the reasons.
create or replace view funnel as
with reasons as (
    select source, day, origin, step, reason,
        case when step in ('parse', 'clean', 'deduplicate', 'merge', 'erased') then 'collect' else step end as run_step,
        count(*) as row_count
    from dropped
    group by source, day, origin, step, reason
),

final as (
    select r.day, r.source, r.origin, r.step, r.read_count, r.kept_count, r.dropped_count,
        d.step as dropped_at, d.reason, d.row_count
    from runs as r
    left join reasons as d
        on d.source = r.source and d.day = r.day and d.origin = r.origin and d.run_step = r.step
)

select * from final;
