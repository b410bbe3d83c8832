-- A comment has one score by one model.
select source, day, thread_id, comment_id, metric, model_id, count(*) as row_count
from scores
group by all
having count(*) > 1;
