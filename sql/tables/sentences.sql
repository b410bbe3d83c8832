-- Sentences of data sets about implicitness, as their makers labelled them (ImpScore, table 6).
-- Key: source, item_id. Partitioned by source.
create table sentences (
    source varchar not null, -- Site or corpus the row comes from
    item_id varchar not null, -- File and row, or the data set's own id
    lang varchar not null, -- zh, en, …
    text varchar not null, -- The sentence
    label varchar not null, -- What its makers call it
    explicit varchar, -- Its explicit form, where the data set gives one
    prompt varchar -- Prompt that asks for one, where it gives none
);
