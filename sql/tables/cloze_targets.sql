-- Every token of every summary: whether a cloze question may leave it out, and if not why (ReCAM, section 3).
-- Key: source, subtask, thread_id, start. Partitioned by source.
create table cloze_targets (
    source varchar not null, -- Site or corpus the row comes from
    subtask varchar not null, -- What makes a word abstract: imperceptibility or nonspecificity
    thread_id varchar not null, -- articles.thread_id
    start bigint not null, -- Where the word begins in the summary, in characters
    end bigint not null, -- Where it ends; the end is not included
    word varchar not null, -- As it stands there
    lemma varchar not null, -- Its base form
    upos varchar not null, -- Universal part of speech
    score double, -- Concreteness in [0, 1], or level of the sense from the root
    sense varchar, -- Its WordNet sense, of nonspecificity
    reason varchar -- Rule or filter that took it out; null for a target
);
