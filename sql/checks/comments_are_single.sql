-- Each comment is in its day only once.
select source, day, thread_id, comment_id, count(*) as row_count
from comments
group by source, day, thread_id, comment_id
having count(*) > 1;
