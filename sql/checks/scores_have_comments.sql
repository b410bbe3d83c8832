-- Every score belongs to a comment.
select s.source, s.day, s.comment_id, s.metric
from scores as s
anti join comments as c
    on c.source = s.source and c.day = s.day and c.thread_id = s.thread_id and c.comment_id = s.comment_id;
