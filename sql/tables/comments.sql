-- Reader comments, anonymised, cleaned and deduplicated, with their place in the thread (CSD-06).
-- Key: source, day, thread_id, comment_id. Partitioned by source, day.
create table comments (
    source varchar not null, -- Site or corpus the row comes from
    day date not null, -- UTC day of the collection run
    origin varchar not null, -- Origin of the row: `live`, `sample`, or the imported file's name
    thread_id varchar not null, -- What the comment is about (articles.thread_id)
    comment_id varchar not null, -- The site's id of the comment
    parent_id varchar, -- Comment this one answers; null for a top-level comment
    root_id varchar, -- Top-level comment of the branch; null for a top-level comment
    context_id varchar not null, -- parent_id, else thread_id (CSD-06)
    context varchar, -- Text of the parent comment, else title or post
    text varchar not null, -- Cleaned text; [doge] and the like are kept
    text_hash varchar not null, -- 128-bit BLAKE2 of text: the key of tokens
    like_count bigint, -- Likes, if the source shows them
    reply_count bigint, -- Replies the site counts
    duplicate_count bigint not null, -- Dropped comments with the same text in this thread
    created_at timestamp with time zone, -- When the comment was written
    user_id varchar, -- Keyed HMAC of the user id, or null
    is_hot boolean not null, -- The site listed it among its hot comments
    lang varchar not null, -- zh, en, ja, ko or und
    adapter varchar not null -- Reader and version that made the row, such as weibo/1
);
