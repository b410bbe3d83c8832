-- Each grade belongs to a comment of `comments` or of `generated_comments`.
select p.project, p.source, p.thread_id, p.comment_id
from comment_grades as p
left join (
    select distinct source, thread_id, comment_id from comments
    union all
    select source, thread_id, generated_id as comment_id from generated_comments
) as c
    on c.source = p.source and c.thread_id = p.thread_id and c.comment_id = p.comment_id
where c.comment_id is null;
