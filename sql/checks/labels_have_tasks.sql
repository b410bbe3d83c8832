-- Each label belongs to a label task.
select l.project, l.task_id, count(*) as row_count
from labels as l
left join label_tasks as t on t.project = l.project and t.task_id = l.task_id
where t.task_id is null
group by l.project, l.task_id;
