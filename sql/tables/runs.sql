-- What each run read, kept and dropped: the funnel, and how to repeat the run.
-- Key: source, day, origin, step. Partitioned by day.
create table runs (
    source varchar not null, -- Site or corpus the row comes from
    day date not null, -- Day the run was about
    origin varchar not null, -- Origin of the row: `live`, `sample`, or the imported file's name
    step varchar not null, -- collect, tokenize, score, …
    read_count bigint not null, -- Rows in
    kept_count bigint not null, -- Rows out
    dropped_count bigint not null, -- Rows left out; each is in dropped
    config varchar not null, -- Parameters as JSON
    run_id varchar not null, -- Airflow run, or `cli`: provenance only
    code_version varchar not null, -- Version of undertone
    started_at timestamp with time zone, -- When the work began: provenance only, as are all columns below
    seconds double, -- Of work, shards and all; shared out by rows among sources
    byte_count bigint, -- Bytes written into tables, shared out likewise
    input_tokens bigint, -- Sent to a language model; null where none was asked
    output_tokens bigint, -- That a language model answered
    cost_usd double -- Of these; null where a price is unknown
);
