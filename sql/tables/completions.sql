-- Answers of language models, each paid for once.
-- Key: source, completion_id. Partitioned by source.
create table completions (
    completion_id varchar not null, -- Hash of model, revision, messages, params, prompt and version, attempt
    source varchar not null, -- Site or corpus of the row
    model varchar not null, -- Language model; undertone-sample for the shipped cassette
    prompt varchar not null, -- Prompt file
    prompt_version varchar not null, -- Hash of the prompt file
    messages varchar not null, -- Messages as JSON
    params varchar not null, -- Sampling parameters as JSON
    attempt bigint not null, -- 0 for the first request, then 1 more for each repeated request
    response varchar not null, -- The raw answer
    mode varchar not null, -- Source of the answer
    revision varchar, -- Revision of the model, if its server names one
    input_tokens bigint, -- Tokens of the messages, as the server counts them
    output_tokens bigint, -- Tokens of the answer, as the server counts them
    finish_reason varchar -- Reason for the end of the answer: `length` for a limit
);
