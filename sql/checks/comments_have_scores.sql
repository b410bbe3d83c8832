-- On a day that has been scored, every comment has a score.
select c.source, c.day, c.comment_id
from comments as c
anti join scores as s
    on s.source = c.source and s.day = c.day and s.thread_id = c.thread_id and s.comment_id = c.comment_id
        and s.metric = 'implicitness'
where c.day in (select distinct day from scores where metric = 'implicitness');
