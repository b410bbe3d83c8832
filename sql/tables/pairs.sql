-- ImpScore training triples: implicit, explicit, and the explicit sentence of another pair (IMP-02).
-- Key: pair_id. Partitioned by source.
create table pairs (
    pair_id varchar not null, -- Hash of source, implicit and explicit
    source varchar not null, -- Site or corpus of the row
    lang varchar not null, -- zh or en
    implicit varchar not null, -- s1: the implicit sentence
    explicit varchar not null, -- s2: the explicit form of s1
    negative varchar not null, -- s3: another pair's explicit sentence of the same source (IMP-19)
    split varchar not null, -- Split by the profile of the run (IMP-22)
    completion_id varchar, -- Completion with the explicit sentence
    cluster_id varchar -- Lowest pair_id among the near duplicates of the pair
);
