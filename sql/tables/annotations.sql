-- What became of each field of each task in the two stages (CSD-15): a value, or the reason there is none.
-- Key: project, task_id, field. Partitioned by project.
create table annotations (
    project varchar not null, -- Labelling project
    task_id varchar not null, -- label_tasks.task_id
    field varchar not null, -- Kind of information
    value varchar, -- The value that stands; null while open and where deleted
    state varchar not null, -- How far it has come
    reason varchar not null, -- Why: unanimous, adjudicator, too_few_raters, all_different, specious_twice, …
    round bigint not null, -- The round that decided, or that is going on
    pattern varchar not null -- How the three labels of the round agree
);
