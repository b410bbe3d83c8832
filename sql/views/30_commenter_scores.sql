-- Mean of each metric and of the human grades (metric `human`) by commenter, as in table 7 of the paper.
create or replace view commenter_scores as
with graded as (
    select source, system, thread_id, generated_id, avg(grade) as grade
    from graded_generated
    group by source, system, thread_id, generated_id
)

select g.source, g.system, s.metric, s.is_weighted, avg(s.value) as value, count(*) as row_count
from metric_scores as s
inner join generated_comments as g
    on g.source = s.source and g.thread_id = s.thread_id and g.generated_id = s.generated_id
group by g.source, g.system, s.metric, s.is_weighted
union all
select source, system, 'human' as metric, false as is_weighted, avg(grade) as value, count(*) as row_count
from graded
group by source, system;
