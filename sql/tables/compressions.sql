-- Sentences of data sets with the words that people and systems dropped (NDD, section 4).
-- Key: source, day, item_id, system. Partitioned by source, day.
create table compressions (
    source varchar not null, -- Site or corpus of the row
    day date not null, -- Day of the run
    item_id varchar not null, -- Id of the sentence in the data set
    system varchar not null, -- ndd, fast_ndd_sc, …, unedited, head, tail, random; gold for people
    lang varchar not null, -- zh, en, …
    words varchar[] not null, -- Words in order
    rounds bigint[] not null, -- Round that dropped each word; 0 for a kept word
    ratio double not null, -- Share of kept words, rounded to 6 decimals
    signature varchar not null -- System, model, parameters, code version; `gold` for people
);
