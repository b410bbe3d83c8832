-- Rows that a step left out, each with its reason.
-- Key: none. Partitioned by source, day.
create table dropped (
    source varchar not null, -- Site or corpus the row comes from
    day date not null, -- Day of the run
    origin varchar not null, -- Origin of the row: `live`, `sample`, or the imported file's name
    step varchar not null, -- parse, clean, deduplicate, …
    reason varchar not null, -- Why, as one word or two
    row_key varchar not null -- Where to find the row in its source
);
