-- Hashes of the training texts of each model, to find the models that learned from erased texts.
-- Key: kind, model_id, text_hash. Partitioned by kind.
create table training_texts (
    kind varchar not null, -- Kind of model
    model_id varchar not null, -- models.model_id, or the folder of an adapted encoder
    text_hash varchar not null, -- 128-bit BLAKE2 of the text, or `erased`
    row_count bigint not null, -- Number of training rows with the text
    is_labelled boolean -- Whether the model learned from a label of the text; null: not recorded
);
