-- Cloze items with five options, from summaries (ReCAM, table 1). The passage is articles.text.
-- Key: item_id. Partitioned by subtask.
create table cloze_items (
    item_id varchar not null, -- Hash of subtask, source, thread_id and position of the word
    source varchar not null, -- Site or corpus of the row
    subtask varchar not null, -- Kind of abstractness
    thread_id varchar not null, -- articles.thread_id
    question varchar not null, -- The summary with @placeholder for the word
    options varchar[] not null, -- Five words in random order
    label bigint not null, -- Position of the right word, from 0
    start bigint not null, -- Start of the word in the summary, in characters
    upos varchar not null, -- Universal part of speech of the word
    score double, -- cloze_targets.score
    split varchar not null, -- Split of the article, the same in both subtasks
    is_unanswerable boolean, -- Whether raters found no answer in the passage; null: too few raters
    is_ambiguous boolean -- Whether raters found several right options; null: too few raters
);
