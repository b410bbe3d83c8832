-- Pages as a site answered them, personal fields taken out. Adapters can be run again on them.
-- Key: source, day, origin, page_id. Partitioned by source, day.
create table raw_pages (
    source varchar not null, -- Site or corpus the row comes from
    day date not null, -- UTC day of the collection run
    origin varchar not null, -- Origin of the row: `live`, `sample`, or the imported file's name
    page_id varchar not null, -- SHA-256 of address and body
    url varchar not null, -- Address the page was fetched from
    fetched_at timestamp with time zone, -- When the page was fetched
    body varchar not null -- The JSON answer, personal fields removed
);
