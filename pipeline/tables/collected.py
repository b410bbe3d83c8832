"""What is collected: pages, articles, comments, their words and embeddings."""

import dataframely as dy
import polars as pl

from pipeline.tables.columns import HASH, PERSONAL, SHA256, origin_column, rule, source_column, time_column

BUCKETS = 64  # of embeddings; a power of two, so that a shard of texts is made of whole buckets


class RawPages(dy.Schema):
    """Answers of sites without personal fields. Adapters can read them again."""

    source = source_column()
    day = dy.Date(description="UTC day of the collection run")
    origin = origin_column()
    page_id = dy.String(regex=SHA256, description="SHA-256 of address and body")
    url = dy.String(description="Address of the page")
    fetched_at = time_column("Time of the request")
    body = dy.String(description="The JSON answer without personal fields")


class Articles(dy.Schema):
    """Subjects of comments: posts, songs, videos, answers and news articles."""

    source = source_column()
    day = dy.Date(description="UTC day of the collection run")
    origin = origin_column()
    thread_id = dy.String(min_length=1, description="The site's id of the post, song, video, answer or article")
    title = dy.String(nullable=True, description="Headline, song name or question")
    text = dy.String(description="Cleaned body; empty if the site has none")
    summary = dy.String(nullable=True, min_length=1, description="Summary in one sentence, if available (REC-03)")
    category = dy.String(nullable=True, description="Field or channel, if the source names one")
    lang = dy.String(description="zh, en, ja, ko or und")


class Comments(dy.Schema):
    """Reader comments, anonymised, cleaned and deduplicated, with their place in the thread (CSD-06)."""

    source = source_column()
    day = dy.Date(description="UTC day of the collection run")
    origin = origin_column()
    thread_id = dy.String(min_length=1, description="Article of the comment (articles.thread_id)")
    comment_id = dy.String(min_length=1, description="The site's id of the comment")
    parent_id = dy.String(nullable=True, description="Parent comment; null for a top-level comment")
    root_id = dy.String(nullable=True, description="Top-level comment of the branch; null for a top-level comment")
    context_id = dy.String(min_length=1, description="parent_id if present, otherwise thread_id (CSD-06)")
    context = dy.String(nullable=True, description="Text of the parent comment if present, otherwise title or post")
    text = dy.String(min_length=1, description="Cleaned text, with codes such as [doge]")
    text_hash = dy.String(regex=HASH, description="128-bit BLAKE2 of text, the key of tokens")
    like_count = dy.Int64(nullable=True, min=0, description="Likes, if the source shows them; the most of its copies")
    reply_count = dy.Int64(nullable=True, min=0, description="Replies, as the site counts them")
    duplicate_count = dy.Int64(min=0, description="Number of dropped comments with the same text in this thread")
    created_at = time_column("Time of the comment")
    user_id = dy.String(nullable=True, regex=HASH, description="Keyed HMAC of the user id, or null", metadata=PERSONAL)
    is_hot = dy.Bool(description="The site listed it among its hot comments")
    lang = dy.String(description="zh, en, ja, ko or und")
    adapter = dy.String(min_length=1, description="Adapter and version that created the row, such as weibo/1")

    text_is_not_blank = rule(pl.col("text").str.strip_chars().str.len_chars() > 0)
    no_comment_is_its_own_parent = rule((pl.col("parent_id") != pl.col("comment_id")).fill_null(value=True))


class Tokens(dy.Schema):
    """Words of each distinct text of a day, by tokenizer."""

    source = source_column()
    day = dy.Date(description="Day of the comments")
    text_hash = dy.String(regex=HASH, description="comments.text_hash")
    tokens = dy.List(dy.String(), description="Words in order")
    tokenizer = dy.String(min_length=1, description="jieba, rjieba or nltk")
    tokenizer_version = dy.String(min_length=1, description="Version of the tokenizer's package")
    dictionary_hash = dy.String(min_length=1, description="Hash of dictionary and options, or `none`")


class Embeddings(dy.Schema):
    """Embeddings of texts, kept so that a new model scores known texts without encoding them again."""

    encoder = dy.String(regex="^[A-Za-z0-9.-]+$", description="Encoder, revision, and a hash of all that it depends on")
    bucket = dy.Int64(min=0, max=BUCKETS - 1, description="The first 8 hexadecimal digits of text_hash, modulo 64")
    text_hash = dy.String(regex=HASH, description="comments.text_hash of the text")
    vector = dy.Binary(description="The embedding: half-precision numbers of 2 bytes, little-endian (IEEE 754)")
