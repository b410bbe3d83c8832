-- Measures of models, each with its baseline.
-- Key: kind, day, model_id, metric, split, subset, epoch. Partitioned by kind, day.
create table evaluations (
    kind varchar not null, -- Kind of model
    day date not null, -- Day of the training run
    model_id varchar not null, -- models.model_id
    metric varchar not null, -- implicitness_accuracy, pragmatics_accuracy, …
    split varchar not null, -- train, validation or test
    subset varchar not null, -- `all`, or one source
    epoch bigint not null, -- Epoch, 0 for the final model
    value double not null, -- The number, rounded to 6 decimals
    baseline double, -- The same metric of the named baseline
    baseline_name varchar, -- Name of the baseline, such as `longer_is_implicit`
    pair_count bigint not null -- Number of measured pairs or triples
);
