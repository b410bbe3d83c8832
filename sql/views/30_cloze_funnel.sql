-- Of every token of the summaries, what each rule and filter took out and what is left as a target, by subtask.
create or replace view cloze_funnel as
select source, subtask, coalesce(reason, 'target') as reason, count(*) as row_count
from cloze_targets
group by source, subtask, coalesce(reason, 'target');
