-- What share of a model's training texts an erasure took: the model was trained on them all the same.
-- Key: erasure_id, kind, model_id. Partitioned by kind.
create table model_erasures (
    erasure_id varchar not null, -- erasures.erasure_id
    kind varchar not null, -- Kind of model
    model_id varchar not null, -- training_texts.model_id
    erased_count bigint not null, -- Training rows that this erasure took
    training_count bigint not null, -- Training rows when the model was trained
    erased_ratio double not null -- erased_count / training_count, rounded to 6 decimals
);
