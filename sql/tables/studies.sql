-- Numbers of studies: setting, metric, value, interval and number of rows.
-- Key: study, day, setting, metric, subset, run. Partitioned by study, day.
create table studies (
    study varchar not null, -- Name of the study
    day date not null, -- Day of the run
    model_id varchar, -- Model of the study; null if the study trains models
    setting varchar not null, -- Varied parameters, as JSON
    metric varchar not null, -- implicitness_accuracy, mean, q50, accuracy, …
    subset varchar not null, -- test; a source, `source:implicit`; a bin such as 0.25-0.50
    run bigint not null, -- Repetition, from 0
    value double, -- The number, rounded to 6 decimals; null for an empty bin
    low double, -- Lower end of the 95% interval
    high double, -- Upper end of the 95% interval
    row_count bigint not null, -- Number of measured rows
    effective_count bigint -- Number of near-duplicate clusters among the rows
);
