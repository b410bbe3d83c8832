-- Cloze questions with five options, made of summaries (ReCAM, table 1); the passage is articles.text.
-- Key: item_id. Partitioned by subtask.
create table cloze_items (
    item_id varchar not null, -- Hash of subtask, source, thread_id and place of the word
    source varchar not null, -- Site or corpus the row comes from
    subtask varchar not null, -- What makes the word abstract
    thread_id varchar not null, -- articles.thread_id
    question varchar not null, -- The summary with @placeholder in place of the word
    options varchar[] not null, -- Five words, in an order drawn for each item
    label bigint not null, -- Place of the right one, from 0
    start bigint not null, -- Where the word begins in the summary, in characters
    upos varchar not null, -- Universal part of speech of the word
    score double, -- cloze_targets.score
    split varchar not null, -- By article, the same in both subtasks
    is_unanswerable boolean, -- Raters found no answer in the passage; null: too few asked
    is_ambiguous boolean -- Raters found several right options; null: too few asked
);
