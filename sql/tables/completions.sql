-- Answers of language models, each paid for once.
-- Key: source, completion_id. Partitioned by source.
create table completions (
    completion_id varchar not null, -- Hash of model, revision, messages, params, prompt and version, attempt
    source varchar not null, -- Site or corpus the row comes from
    model varchar not null, -- Model asked; undertone-sample for the shipped cassette
    prompt varchar not null, -- Prompt file
    prompt_version varchar not null, -- Hash of the prompt file
    messages varchar not null, -- Messages as JSON
    params varchar not null, -- Sampling parameters as JSON
    attempt bigint not null, -- 0, then 1 more for each re-ask
    response varchar not null, -- The raw answer
    mode varchar not null, -- How the answer came
    revision varchar, -- Revision of the model, where its server names one
    input_tokens bigint, -- Tokens the server counted in the messages
    output_tokens bigint, -- Tokens the server counted in the answer
    finish_reason varchar -- Why the answer ended: `length` if a limit cut it off
);
