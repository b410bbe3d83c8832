-- Each comment has one score per metric and model.
select source, day, thread_id, comment_id, metric, model_id, count(*) as row_count
from scores
group by source, day, thread_id, comment_id, metric, model_id
having count(*) > 1;
