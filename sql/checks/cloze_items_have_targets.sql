-- Each cloze item has a target of its subtask and an article.
select i.subtask, i.item_id
from cloze_items as i
left join cloze_targets as t
    on t.source = i.source and t.subtask = i.subtask and t.thread_id = i.thread_id and t.start = i.start
        and t.reason is null
left join (select distinct source, thread_id from articles where summary is not null) as a
    on a.source = i.source and a.thread_id = i.thread_id
where t.word is null or a.thread_id is null;
