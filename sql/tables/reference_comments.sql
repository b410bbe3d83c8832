-- Real comments of test articles: the references, and one kept apart to be judged (AAC-07, AAC-26).
-- Key: source, thread_id, comment_id. Partitioned by source.
create table reference_comments (
    source varchar not null, -- Site or corpus the row comes from
    thread_id varchar not null, -- threads.thread_id
    comment_id varchar not null, -- comments.comment_id
    role varchar not null, -- What it serves as
    place bigint not null -- Its place in the random order of its article
);
