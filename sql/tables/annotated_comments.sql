-- The published data set: labelled comments without platform ids, by release (CSD-08).
-- Key: release, row_id. Partitioned by release.
create table annotated_comments (
    release varchar not null, -- Name of the release
    row_id varchar not null, -- Random id; it leads back to no platform
    source varchar not null, -- Site or corpus the row comes from
    lang varchar not null, -- zh, en, …
    context varchar, -- What the comment answers or is about
    text varchar not null, -- The comment
    is_subtext boolean, -- Whether subtext is 1; null where raters were unsure
    subtext varchar, -- 1 contains, -1 does not, 0 unsure
    sarcasm varchar, -- The same of sarcasm
    metaphor varchar, -- The same of metaphor
    exaggeration varchar, -- The same of exaggeration
    homophonic varchar, -- The same of plays on sound
    sentiment varchar, -- 1 positive, 0 neutral, -1 negative
    emotion varchar, -- One of Plutchik's eight, or None
    other varchar, -- Other figures of speech, the rare ones together
    rhetoric varchar, -- Name of the other figure of speech, where it is no rare one
    span_start bigint, -- Where the hidden meaning begins, in characters
    span_end bigint, -- Where it ends; the end is not included
    plain varchar, -- The comment in plain words
    meaning varchar -- What it really means
);
