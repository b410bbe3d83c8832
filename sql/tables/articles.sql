-- Subjects of comments: posts, songs, videos, answers and news articles.
-- Key: source, day, thread_id. Partitioned by source, day.
create table articles (
    source varchar not null, -- Site or corpus of the row
    day date not null, -- UTC day of the collection run
    origin varchar not null, -- Origin of the row: `live`, `sample`, or the name of the imported file
    thread_id varchar not null, -- The site's id of the post, song, video, answer or article
    title varchar, -- Headline, song name or question
    text varchar not null, -- Cleaned body; empty if the site has none
    summary varchar, -- Summary in one sentence, if available (REC-03)
    category varchar, -- Field or channel, if the source names one
    lang varchar not null -- zh, en, ja, ko or und
);
