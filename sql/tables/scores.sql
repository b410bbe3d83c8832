-- Scores of comments by model and metric. A new model adds rows and overwrites none.
-- Key: source, day, thread_id, comment_id, metric, model_id. Partitioned by source, day.
create table scores (
    source varchar not null, -- Site or corpus of the row
    day date not null, -- Day of the comments
    thread_id varchar not null, -- comments.thread_id
    comment_id varchar not null, -- comments.comment_id
    text_hash varchar not null, -- comments.text_hash of the scored text
    metric varchar not null, -- implicitness, …
    model_id varchar not null, -- models.model_id
    value double not null, -- The score, rounded to 6 decimals
    signature varchar not null -- Metric, model, encoder and its revision, code version
);
