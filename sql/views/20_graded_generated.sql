-- Grades of generated comments; a generated comment that equals a real one also has the grades of the real one.
-- Grades of simulated raters are used only where people gave none.
create or replace view graded_generated as
with every as (
    select g.source, g.thread_id, g.generated_id, g.system, p.project, p.grade,
        case when p.tool like '%simulated%' then 1 else 0 end as made_up
    from generated_comments as g
    inner join comment_grades as p
        on p.source = g.source and p.thread_id = g.thread_id and (
            p.comment_id = g.generated_id
            or (g.system = 'human' and g.found_in = p.source || '/' || p.thread_id || '/' || p.comment_id)
        )
),

ranked as (
    select *, min(made_up) over (partition by source, thread_id, generated_id) as least
    from every
)

select source, thread_id, generated_id, system, project, grade, made_up = 1 as is_made_up
from ranked
where made_up = least;
