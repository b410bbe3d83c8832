-- Rows that a step dropped, each with a reason.
-- Key: none. Partitioned by source, day.
create table dropped (
    source varchar not null, -- Site or corpus of the row
    day date not null, -- Day of the run
    origin varchar not null, -- Origin of the row: `live`, `sample`, or the name of the imported file
    step varchar not null, -- parse, clean, deduplicate, …
    reason varchar not null, -- Reason in one or two words
    row_key varchar not null -- Position of the row in its source
);
