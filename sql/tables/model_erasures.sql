-- Models that learnt from what an erasure took: on what share of it, what became of them, what replaced them.
-- Key: erasure_id, kind, model_id. Partitioned by kind.
create table model_erasures (
    erasure_id varchar not null, -- erasures.erasure_id
    kind varchar not null, -- Kind of model
    model_id varchar not null, -- training_texts.model_id, or a folder below the home
    erased_count bigint not null, -- Training rows that this erasure took
    training_count bigint not null, -- Training rows when the model was trained; 0: there is no record
    erased_ratio double not null, -- erased_count / training_count, rounded to 6 decimals
    action varchar, -- removed: its files held words; flagged: they hold numbers alone; absent: they are not here
    day date, -- Day it was trained for; null for a model that is in no table
    is_promoted boolean, -- Days were scored by it
    recipe varchar, -- Profile and numbers to train it again by, as JSON
    replaced_by varchar -- models.model_id that was trained in its place
);
