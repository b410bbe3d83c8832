-- What comments are about: a post, song, video, answer or news article.
-- Key: source, day, thread_id. Partitioned by source, day.
create table articles (
    source varchar not null, -- Site or corpus the row comes from
    day date not null, -- UTC day of the collection run
    origin varchar not null, -- Origin of the row: `live`, `sample`, or the imported file's name
    thread_id varchar not null, -- The site's id of the post, song, video, answer or article
    title varchar, -- Headline, song name, question
    text varchar not null, -- Body, cleaned; may be empty where the site gives none
    summary varchar, -- A sentence that sums it up, if there is one (REC-03)
    category varchar, -- Field or channel, where the source names one
    lang varchar not null -- zh, en, ja, ko or und
);
