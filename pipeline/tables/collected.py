"""What is collected: pages, articles, comments and their words."""

import dataframely as dy
import polars as pl

from pipeline.tables.columns import origin_column, rule, source_column, time_column


class RawPages(dy.Schema):
    """Pages as a site answered them, personal fields taken out. Adapters can be run again on them."""

    source = source_column()
    day = dy.Date(description="UTC day of the collection run")
    origin = origin_column()
    page_id = dy.String(regex="^[0-9a-f]{64}$", description="SHA-256 of address and body")
    url = dy.String(description="Address the page was fetched from")
    fetched_at = time_column("When the page was fetched")
    body = dy.String(description="The JSON answer, personal fields removed")


class Articles(dy.Schema):
    """What comments are about: a post, song, video, answer or news article."""

    source = source_column()
    day = dy.Date(description="UTC day of the collection run")
    origin = origin_column()
    thread_id = dy.String(min_length=1, description="The site's id of the post, song, video, answer or article")
    title = dy.String(nullable=True, description="Headline, song name, question")
    text = dy.String(description="Body, cleaned; may be empty where the site gives none")
    summary = dy.String(nullable=True, min_length=1, description="A sentence that sums it up, if there is one (REC-03)")
    category = dy.String(nullable=True, description="Field or channel, where the source names one")
    lang = dy.String(description="zh, en, ja, ko or und")


class Comments(dy.Schema):
    """Reader comments, anonymised, cleaned and deduplicated, with their place in the thread (CSD-06)."""

    source = source_column()
    day = dy.Date(description="UTC day of the collection run")
    origin = origin_column()
    thread_id = dy.String(min_length=1, description="What the comment is about (articles.thread_id)")
    comment_id = dy.String(min_length=1, description="The site's id of the comment")
    parent_id = dy.String(nullable=True, description="Comment this one answers; null for a top-level comment")
    root_id = dy.String(nullable=True, description="Top-level comment of the branch; null for a top-level comment")
    context_id = dy.String(min_length=1, description="parent_id, else thread_id (CSD-06)")
    context = dy.String(nullable=True, description="Text of the parent comment, else title or post")
    text = dy.String(min_length=1, description="Cleaned text; [doge] and the like are kept")
    text_hash = dy.String(regex="^[0-9a-f]{32}$", description="128-bit BLAKE2 of text: the key of tokens")
    like_count = dy.Int64(nullable=True, min=0, description="Likes, if the source shows them")
    reply_count = dy.Int64(nullable=True, min=0, description="Replies the site counts")
    duplicate_count = dy.Int64(min=0, description="Dropped comments with the same text in this thread")
    created_at = time_column("When the comment was written")
    user_id = dy.String(nullable=True, regex="^[0-9a-f]{32}$", description="Keyed HMAC of the user id, or null")
    is_hot = dy.Bool(description="The site listed it among its hot comments")
    lang = dy.String(description="zh, en, ja, ko or und")
    adapter = dy.String(min_length=1, description="Reader and version that made the row, such as weibo/1")

    text_is_not_blank = rule(pl.col("text").str.strip_chars().str.len_chars() > 0)
    no_comment_is_its_own_parent = rule((pl.col("parent_id") != pl.col("comment_id")).fill_null(value=True))


class Tokens(dy.Schema):
    """Words of each distinct text of a day, by what cut them."""

    source = source_column()
    day = dy.Date(description="Day of the comments")
    text_hash = dy.String(regex="^[0-9a-f]{32}$", description="comments.text_hash")
    tokens = dy.List(dy.String(), description="Words in order")
    tokenizer = dy.String(min_length=1, description="jieba, rjieba, nltk")
    tokenizer_version = dy.String(min_length=1, description="Version of the tokenizer's package")
    dictionary_hash = dy.String(min_length=1, description="Hash of dictionary and options, or `none`")
