-- Tokens of the summaries by subtask: how many each rule or filter dropped, and how many remain as targets.
create or replace view cloze_funnel as
select source, subtask, coalesce(reason, 'target') as reason, count(*) as row_count
from cloze_targets
group by source, subtask, coalesce(reason, 'target');
