-- Each reference is a comment of `comments` on an article of the test split.
select r.source, r.thread_id, r.comment_id
from reference_comments as r
left join (select distinct source, thread_id, comment_id from comments) as c
    on c.source = r.source and c.thread_id = r.thread_id and c.comment_id = r.comment_id
left join threads as t on t.source = r.source and t.thread_id = r.thread_id and t.split = 'test'
where c.comment_id is null or t.thread_id is null;
