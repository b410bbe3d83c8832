-- Reader comments, anonymised, cleaned and deduplicated, with their place in the thread (CSD-06).
-- Key: source, day, thread_id, comment_id. Partitioned by source, day.
create table comments (
    source varchar not null, -- Site or corpus of the row
    day date not null, -- UTC day of the collection run
    origin varchar not null, -- Origin of the row: `live`, `sample`, or the name of the imported file
    thread_id varchar not null, -- Article of the comment (articles.thread_id)
    comment_id varchar not null, -- The site's id of the comment
    parent_id varchar, -- Parent comment; null for a top-level comment
    root_id varchar, -- Top-level comment of the branch; null for a top-level comment
    context_id varchar not null, -- parent_id if present, otherwise thread_id (CSD-06)
    context varchar, -- Text of the parent comment if present, otherwise title or post
    text varchar not null, -- Cleaned text, with codes such as [doge]
    text_hash varchar not null, -- 128-bit BLAKE2 of text, the key of tokens
    like_count bigint, -- Likes, if the source shows them; the most of its copies
    reply_count bigint, -- Replies, as the site counts them
    duplicate_count bigint not null, -- Number of dropped comments with the same text in this thread
    created_at timestamp with time zone, -- Time of the comment
    user_id varchar, -- Keyed HMAC of the user id, or null
    is_hot boolean not null, -- The site listed it among its hot comments
    lang varchar not null, -- zh, en, ja, ko or und
    adapter varchar not null -- Adapter and version that created the row, such as weibo/1
);
