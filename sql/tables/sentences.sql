-- Sentences of data sets on implicitness, with the labels of the data sets (ImpScore, table 6).
-- Key: source, item_id. Partitioned by source.
create table sentences (
    source varchar not null, -- Site or corpus of the row
    item_id varchar not null, -- File and row, or the id in the data set
    lang varchar not null, -- zh, en, …
    text varchar not null, -- The sentence
    label varchar not null, -- Label of the data set
    explicit varchar, -- Explicit form, if the data set has one
    prompt varchar -- Prompt that requests an explicit form, if the data set has none
);
