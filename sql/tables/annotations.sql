-- Result of each field of each task after the two stages (CSD-15): a value, or the reason for its absence.
-- Key: project, task_id, field. Partitioned by project.
create table annotations (
    project varchar not null, -- Labelling project
    task_id varchar not null, -- label_tasks.task_id
    field varchar not null, -- Kind of information
    value varchar, -- Final value; null if open or deleted
    state varchar not null, -- State of the field
    reason varchar not null, -- Reason for the state: unanimous, adjudicator, too_few_raters, all_different, specious_twice, …
    round bigint not null, -- Round of the decision, or the current round
    pattern varchar not null -- Agreement of the three labels of the round
);
