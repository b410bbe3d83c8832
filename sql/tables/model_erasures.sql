-- Models that learned from erased texts: the share of these texts, the action, and the replacement.
-- Key: erasure_id, kind, model_id. Partitioned by kind.
create table model_erasures (
    erasure_id varchar not null, -- erasures.erasure_id
    kind varchar not null, -- Kind of model
    model_id varchar not null, -- training_texts.model_id, or a folder below the home
    erased_count bigint not null, -- Training rows that this erasure erased
    training_count bigint not null, -- Training rows at the training of the model; 0: no record
    erased_ratio double not null, -- erased_count / training_count, rounded to 6 decimals
    action varchar, -- removed: its files had words; flagged: its files have only numbers; absent: no files here
    day date, -- Day of the training run; null for a model that is in no table
    is_promoted boolean, -- Whether later runs scored with the model
    recipe varchar, -- Profile and hyperparameters for a new training, as JSON
    replaced_by varchar -- models.model_id of the replacement
);
