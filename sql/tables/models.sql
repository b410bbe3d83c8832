-- Trained models, by content hash.
-- Key: kind, day, model_id. Partitioned by kind.
create table models (
    kind varchar not null, -- impscore, subtext, abstractness, reader_imperceptibility, …
    day date not null, -- Day of the training run; a day is scored with the newest model of this or an earlier day
    model_id varchar not null, -- SHA-256 over weights and configuration
    is_promoted boolean not null, -- Whether later runs score with this model: the last one of its kind and day
    encoder varchar not null, -- Sentence encoder by name
    encoder_revision varchar not null, -- Content hash or pinned revision of the encoder
    config varchar not null, -- Hyperparameters and seeds as JSON
    data_hash varchar not null, -- Hash of the training rows
    completion_models varchar[] not null, -- Models whose completions are in the training rows
    code_version varchar not null -- Version of undertone
);
