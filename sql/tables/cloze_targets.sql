-- Tokens of summaries: the targets of cloze items, and the reason against each other token (ReCAM, section 3).
-- Key: source, subtask, thread_id, start. Partitioned by source.
create table cloze_targets (
    source varchar not null, -- Site or corpus of the row
    subtask varchar not null, -- Kind of abstractness: imperceptibility or nonspecificity
    thread_id varchar not null, -- articles.thread_id
    start bigint not null, -- Start of the word in the summary, in characters
    "end" bigint not null, -- End of the word, exclusive
    word varchar not null, -- The word in the summary
    lemma varchar not null, -- Base form
    upos varchar not null, -- Universal part of speech
    score double, -- Concreteness in [0, 1], or level of the sense from the root
    sense varchar, -- WordNet sense, for nonspecificity
    reason varchar -- Rule or filter that dropped the word; null for a target
);
