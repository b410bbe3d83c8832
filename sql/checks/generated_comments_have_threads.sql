-- Each generated comment and each of its scores belongs to a test article of the corpus.
select s.source, s.thread_id, s.generated_id
from (
    select source, thread_id, generated_id, true as is_there from generated_comments
    union all
    select m.source, m.thread_id, m.generated_id, g.generated_id is not null as is_there
    from metric_scores as m
    left join generated_comments as g
        on g.source = m.source and g.thread_id = m.thread_id and g.generated_id = m.generated_id
) as s
left join threads as t on t.source = s.source and t.thread_id = s.thread_id and t.split = 'test'
where t.thread_id is null or not s.is_there
group by s.source, s.thread_id, s.generated_id;
