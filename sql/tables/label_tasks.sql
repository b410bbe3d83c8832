-- Comments given to raters. What ties a task to its comment stays here; raters see text and context alone.
-- Key: project, task_id. Partitioned by project.
create table label_tasks (
    project varchar not null, -- Labelling project
    task_id varchar not null, -- Hash of project, context and text
    row_id varchar not null, -- Random id under which the row is published (CSD-08)
    source varchar not null, -- Site or corpus the row comes from
    day date not null, -- Day of the comment
    thread_id varchar not null, -- comments.thread_id
    comment_id varchar not null, -- comments.comment_id
    lang varchar not null, -- zh, en, …
    context varchar, -- What the comment answers or is about
    text varchar not null, -- The comment
    schema_version varchar not null -- Hash of the fields and values asked for
);
