-- Overlap of a generated comment with the references of its article (commenting, section 4).
-- Key: source, thread_id, generated_id, metric, is_weighted. Partitioned by source.
create table metric_scores (
    source varchar not null, -- Site or corpus of the row
    thread_id varchar not null, -- threads.thread_id
    generated_id varchar not null, -- generated_comments.generated_id
    metric varchar not null, -- bleu_1, …, meteor, rouge_l, cider
    is_weighted boolean not null, -- Whether references are weighted by their quality
    value double not null, -- The score, rounded to 6 decimals
    signature varchar not null -- Every option of the metric, weights, tokenizer, code version
);
