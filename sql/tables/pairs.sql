-- ImpScore training triples: implicit, its explicit rewriting, and a foreign explicit sentence (IMP-02).
-- Key: pair_id. Partitioned by source.
create table pairs (
    pair_id varchar not null, -- Hash of source, implicit and explicit
    source varchar not null, -- Site or corpus the row comes from
    lang varchar not null, -- zh or en
    implicit varchar not null, -- s1
    explicit varchar not null, -- s2: states what s1 means
    negative varchar not null, -- s3: another pair's explicit sentence of the same source (IMP-19)
    split varchar not null, -- By the split profile of the run (IMP-22)
    completion_id varchar, -- Completion the explicit sentence came from
    cluster_id varchar -- Least pair_id of the pairs that are near duplicates of it
);
