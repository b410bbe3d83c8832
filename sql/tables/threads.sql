-- Tokenized articles of the commenting corpus, with their split (commenting, section 3).
-- Key: source, thread_id. Partitioned by source.
create table threads (
    source varchar not null, -- Site or corpus of the row
    thread_id varchar not null, -- articles.thread_id
    category varchar, -- Category of the article; the paper has 44
    lang varchar not null, -- zh, en, …
    title_tokens varchar[] not null, -- Words of the title in order
    content_tokens varchar[] not null, -- Words of the body in order
    tokenizer varchar not null, -- Tokenizer of article and comments, with its version
    comment_count bigint not null, -- Number of comments
    like_count bigint not null, -- Upvotes of all comments
    split varchar, -- Split of the article; null if dropped
    reason varchar -- Reason for a dropped article; null if kept
);
