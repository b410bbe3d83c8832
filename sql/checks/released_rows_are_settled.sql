-- Each published comment belongs to a task whose fields are all settled.
select r.release, r.row_id
from annotated_comments as r
join label_tasks as t on t.row_id = r.row_id
join annotations as a on a.project = t.project and a.task_id = t.task_id
where a.state = 'open'
group by r.release, r.row_id;
