-- Comments for raters. Raters see only text and context; this table links the task to its comment.
-- Key: project, task_id. Partitioned by project.
create table label_tasks (
    project varchar not null, -- Labelling project
    task_id varchar not null, -- Hash of project, context and text
    row_id varchar not null, -- Random id under which the row is published (CSD-08)
    source varchar not null, -- Site or corpus of the row
    day date not null, -- Day of the comment
    thread_id varchar not null, -- comments.thread_id
    comment_id varchar not null, -- comments.comment_id
    lang varchar not null, -- zh, en, …
    context varchar, -- Text or subject that the comment answers
    text varchar not null, -- The comment
    schema_version varchar not null -- Hash of the fields and values of the form
);
