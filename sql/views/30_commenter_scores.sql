-- Mean of each metric by commenter, and of people's grades (metric `human`): the paper's table 7.
create or replace view commenter_scores as
with graded as (
    select source, thread_id, comment_id, avg(grade) as grade
    from comment_grades
    group by source, thread_id, comment_id
)

select g.source, g.system, s.metric, s.is_weighted, avg(s.value) as value, count(*) as row_count
from metric_scores as s
inner join generated_comments as g
    on g.source = s.source and g.thread_id = s.thread_id and g.generated_id = s.generated_id
group by g.source, g.system, s.metric, s.is_weighted
union all
select g.source, g.system, 'human' as metric, false as is_weighted, avg(p.grade) as value, count(*) as row_count
from graded as p
inner join generated_comments as g
    on g.source = p.source and g.thread_id = p.thread_id and g.generated_id = p.comment_id
group by g.source, g.system;
