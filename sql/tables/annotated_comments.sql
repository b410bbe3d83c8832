-- The published data set: labelled comments without platform ids, by release (CSD-08).
-- Key: release, row_id. Partitioned by release.
create table annotated_comments (
    release varchar not null, -- Name of the release
    row_id varchar not null, -- Random id without a link to the platform
    source varchar not null, -- Site or corpus of the row
    lang varchar not null, -- zh, en, …
    context varchar, -- Text or subject that the comment answers
    text varchar not null, -- The comment
    is_subtext boolean, -- Whether subtext is 1; null if raters were unsure
    subtext varchar, -- Subtext: 1 yes, -1 no, 0 unsure
    sarcasm varchar, -- Sarcasm: 1 yes, -1 no, 0 unsure
    metaphor varchar, -- Metaphor: 1 yes, -1 no, 0 unsure
    exaggeration varchar, -- Exaggeration: 1 yes, -1 no, 0 unsure
    homophonic varchar, -- Play on sound: 1 yes, -1 no, 0 unsure
    sentiment varchar, -- 1 positive, 0 neutral, -1 negative
    emotion varchar, -- One of Plutchik's eight, or None
    other varchar, -- Other figures of speech: 1 yes, -1 no, 0 unsure
    rhetoric varchar, -- Name of the other figure of speech, if it is not rare
    span_start bigint, -- Start of the hidden meaning, in characters
    span_end bigint, -- End of the hidden meaning, exclusive
    plain varchar, -- The comment in plain words
    meaning varchar -- The real meaning of the comment
);
