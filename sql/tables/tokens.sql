-- Words of each distinct text of a day, by tokenizer.
-- Key: source, day, text_hash, tokenizer, tokenizer_version, dictionary_hash. Partitioned by source, day.
create table tokens (
    source varchar not null, -- Site or corpus of the row
    day date not null, -- Day of the comments
    text_hash varchar not null, -- comments.text_hash
    tokens varchar[] not null, -- Words in order
    tokenizer varchar not null, -- jieba, rjieba or nltk
    tokenizer_version varchar not null, -- Version of the tokenizer's package
    dictionary_hash varchar not null -- Hash of dictionary and options, or `none`
);
