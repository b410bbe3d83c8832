-- Receipts: what was erased on request, in which store. They name no person and quote no text.
-- Key: erasure_id, store. Partitioned by day.
create table erasures (
    erasure_id varchar not null, -- Random id of the erasure
    day date not null, -- UTC day it was done
    erased_at timestamp with time zone not null, -- When it was done
    kind varchar not null, -- What the request named: user_id, comment_id, thread_id, origin
    request_count bigint not null, -- How many of these it named
    store varchar not null, -- Table, or folder or database outside the tables
    row_count bigint not null, -- Rows, records and fields that were erased in it
    file_count bigint not null, -- Files of it that were removed or rewritten
    run_id varchar not null, -- Airflow run, or `cli`: provenance only
    code_version varchar not null -- Version of undertone
);
