-- Comments that commenters retrieved or wrote for test articles, and a real one for each (AAC-21, AAC-26).
-- Key: source, thread_id, generated_id. Partitioned by source, system.
create table generated_comments (
    source varchar not null, -- Site or corpus of the row
    thread_id varchar not null, -- threads.thread_id
    generated_id varchar not null, -- Hash of article, system and text
    system varchar not null, -- ir_t, ir_tc, seq2seq, att, att_tc, pretrained; human for a real comment
    model_id varchar, -- models.model_id; null for human
    text varchar not null, -- The comment
    tokens varchar[] not null, -- Words in order
    score double, -- Log probability, or log relevance of a retrieved comment
    found_in varchar, -- Comment with the same words; null if generated
    config varchar not null, -- Decoding parameters as JSON
    signature varchar not null -- System, model, decoding, code version
);
