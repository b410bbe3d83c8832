-- Comments that commenters found or wrote for test articles, each with a real one (AAC-21, AAC-26).
-- Key: source, thread_id, generated_id. Partitioned by source, system.
create table generated_comments (
    source varchar not null, -- Site or corpus the row comes from
    thread_id varchar not null, -- threads.thread_id
    generated_id varchar not null, -- Hash of article, system and text
    system varchar not null, -- ir_t, ir_tc, seq2seq, att, att_tc, pretrained; human for a real one
    model_id varchar, -- models.model_id; null for human
    text varchar not null, -- The comment
    tokens varchar[] not null, -- Its words in order
    score double, -- Log probability, or log relevance among what was retrieved
    found_in varchar, -- Comment that it copies word for word; null if it was generated
    config varchar not null, -- Decoding as JSON
    signature varchar not null -- System, model, decoding, code version
);
