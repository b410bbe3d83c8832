-- Answers of each rater to each task, one field a row (CSD-09 to CSD-15).
-- Key: project, task_id, round, stage, rater_id, field. Partitioned by project.
create table labels (
    project varchar not null, -- Labelling project
    task_id varchar not null, -- label_tasks.task_id
    round bigint not null, -- 1, or 2 where the task was labelled again
    stage bigint not null, -- 1: one of three raters; 2: the adjudicator
    rater_id varchar not null, -- Pseudonym of the rater
    field varchar not null, -- Kind of information, or an optional note
    value varchar not null, -- One of the field's values; of notes, text
    labelled_at timestamp with time zone, -- When the rater answered, if the tool records it
    tool varchar not null -- What it came through: label_studio, file, simulated, …
);
