-- Progress of each labelling project: settled and waiting fields, by reason.
create or replace view label_progress as
select
    project, state, reason, round,
    count(*) as field_count,
    count(distinct task_id) as task_count
from annotations
group by project, state, reason, round;
