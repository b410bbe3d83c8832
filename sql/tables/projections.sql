-- Places of the distinct texts of a day on a map. Only places with one day and signature compare.
-- Key: source, day, text_hash. Partitioned by source, day.
create table projections (
    source varchar not null, -- Site or corpus of the row
    day date not null, -- Day of the comments
    text_hash varchar not null, -- comments.text_hash of the placed text
    x double not null, -- Place across, rounded to 4 decimals
    y double not null, -- Place up, rounded to 4 decimals
    signature varchar not null -- Method, encoder and its revision, seed, code version
);
