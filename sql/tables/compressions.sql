-- Sentences of data sets with the words that were dropped of them, by people and by systems (NDD, section 4).
-- Key: source, day, item_id, system. Partitioned by source, day.
create table compressions (
    source varchar not null, -- Site or corpus the row comes from
    day date not null, -- Day of the run
    item_id varchar not null, -- Item of the data set
    system varchar not null, -- ndd, fast_ndd_sc, …, unedited, head, tail, random; gold by people
    lang varchar not null, -- zh, en, …
    words varchar[] not null, -- Words in order
    rounds bigint[] not null, -- Round in which each was dropped; 0 if it stays
    ratio double not null, -- Share of the words that stay, rounded to 6 decimals
    signature varchar not null -- System, model, numbers, code version; `gold` for people's
);
