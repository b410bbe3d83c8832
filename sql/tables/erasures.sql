-- Receipts of erasures by store. They name no person and quote no text.
-- Key: erasure_id, store. Partitioned by day.
create table erasures (
    erasure_id varchar not null, -- Random id of the erasure
    day date not null, -- UTC day of the erasure
    erased_at timestamp with time zone not null, -- Time of the erasure
    kind varchar not null, -- Kind of the ids in the request: user_id, comment_id, thread_id or origin
    request_count bigint not null, -- Number of ids in the request
    store varchar not null, -- Table, or a folder or database outside the tables
    row_count bigint not null, -- Erased rows, records and fields in the store
    file_count bigint not null, -- Removed or rewritten files of the store
    run_id varchar not null, -- Airflow run, or `cli`: provenance only
    code_version varchar not null -- Version of undertone
);
