-- Answers of each rater to each task, with one row for each field (CSD-09 to CSD-15).
-- Key: project, task_id, round, stage, rater_id, field. Partitioned by project.
create table labels (
    project varchar not null, -- Labelling project
    task_id varchar not null, -- label_tasks.task_id
    round bigint not null, -- 1, or 2 for a task that is labelled again
    stage bigint not null, -- 1: one of three raters; 2: the adjudicator
    rater_id varchar not null, -- Pseudonym of the rater
    field varchar not null, -- Kind of information, or an optional note
    value varchar not null, -- One of the values of the field; text for a note
    labelled_at timestamp with time zone, -- Time of the answer, if the tool records it
    tool varchar not null -- Tool of the label: label_studio, file, simulated, …
);
