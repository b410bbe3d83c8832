-- Real comments on test articles: the references, and one candidate to grade (AAC-07, AAC-26).
-- Key: source, thread_id, comment_id. Partitioned by source.
create table reference_comments (
    source varchar not null, -- Site or corpus of the row
    thread_id varchar not null, -- threads.thread_id
    comment_id varchar not null, -- comments.comment_id
    role varchar not null, -- Role of the comment
    place bigint not null -- Position in the random order of the article
);
