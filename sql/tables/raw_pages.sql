-- Answers of sites without personal fields. Adapters can read them again.
-- Key: source, day, origin, page_id. Partitioned by source, day.
create table raw_pages (
    source varchar not null, -- Site or corpus of the row
    day date not null, -- UTC day of the collection run
    origin varchar not null, -- Origin of the row: `live`, `sample`, or the name of the imported file
    page_id varchar not null, -- SHA-256 of address and body
    url varchar not null, -- Address of the page
    fetched_at timestamp with time zone, -- Time of the request
    body varchar not null -- The JSON answer without personal fields
);
