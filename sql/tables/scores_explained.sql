-- Words of the most and the least implicit comments of a source and day, and how each changes the score.
-- Key: source, day, thread_id, comment_id, model_id, position. Partitioned by source, day.
create table scores_explained (
    source varchar not null, -- Site or corpus of the row
    day date not null, -- Day of the comments
    thread_id varchar not null, -- comments.thread_id
    comment_id varchar not null, -- comments.comment_id
    text_hash varchar not null, -- comments.text_hash of the explained text
    model_id varchar not null, -- models.model_id
    position bigint not null, -- Place of the word in the text, from 1
    word varchar not null, -- The word; neighbours count as one in a text of more than 64 words
    change double not null, -- Score minus that of the text without the word; above 0 it adds implicitness
    signature varchar not null -- scores.signature of the score
);
