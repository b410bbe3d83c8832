-- Every explained text is that of a comment.
select distinct e.source, e.day, e.comment_id, e.model_id
from scores_explained as e
anti join comments as c
    on c.source = e.source and c.day = e.day and c.thread_id = e.thread_id and c.comment_id = e.comment_id
        and c.text_hash = e.text_hash;
