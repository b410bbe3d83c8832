-- Articles cut into words, and which part of the commenting corpus each is in (commenting, section 3).
-- Key: source, thread_id. Partitioned by source.
create table threads (
    source varchar not null, -- Site or corpus the row comes from
    thread_id varchar not null, -- articles.thread_id
    category varchar, -- Field the article is filed under, one of 44 in the paper
    lang varchar not null, -- zh, en, …
    title_tokens varchar[] not null, -- Words of the title in order
    content_tokens varchar[] not null, -- Words of the body in order
    tokenizer varchar not null, -- Tokenizer and version that cut article and comments
    comment_count bigint not null, -- Its comments
    like_count bigint not null, -- Upvotes of all its comments
    split varchar, -- Part it is in; null if left out
    reason varchar -- Why it was left out; null if it was not
);
