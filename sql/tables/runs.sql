-- Rows that each run read, kept and dropped, and the parameters to repeat the run.
-- Key: source, day, origin, step. Partitioned by day.
create table runs (
    source varchar not null, -- Site or corpus of the row
    day date not null, -- Day of the data
    origin varchar not null, -- Origin of the row: `live`, `sample`, or the name of the imported file
    step varchar not null, -- collect, tokenize, score, …
    read_count bigint not null, -- Rows that the step read
    kept_count bigint not null, -- Rows that the step kept
    dropped_count bigint not null, -- Rows that the step dropped; each is in dropped
    config varchar not null, -- Parameters as JSON
    run_id varchar not null, -- Airflow run, or `cli`: provenance only
    code_version varchar not null, -- Version of undertone
    started_at timestamp with time zone, -- Start of the work; this and all columns below are provenance only
    seconds double, -- Seconds of work, including shards, distributed over sources by rows
    byte_count bigint, -- Bytes written to tables, distributed over sources by rows
    input_tokens bigint, -- Tokens sent to a language model; null without requests
    output_tokens bigint, -- Tokens in the answers of the language model
    cost_usd double -- Cost of these tokens; null if a price is unknown
);
