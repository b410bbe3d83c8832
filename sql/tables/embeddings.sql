-- Embeddings of texts, kept so that a new model scores known texts without encoding them again.
-- Key: encoder, bucket, text_hash. Partitioned by encoder, bucket.
create table embeddings (
    encoder varchar not null, -- Encoder, revision, and a hash of all that it depends on
    bucket bigint not null, -- The first 8 hexadecimal digits of text_hash, modulo 64
    text_hash varchar not null, -- comments.text_hash of the text
    vector varbinary not null -- The embedding: half-precision numbers of 2 bytes, little-endian (IEEE 754)
);
