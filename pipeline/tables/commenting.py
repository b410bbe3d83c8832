"""Article commenting: threads, references, grades, generated comments and their metrics."""

import dataframely as dy
import polars as pl

from pipeline.tables.columns import SOURCE, rule, source_column


class Threads(dy.Schema):
    """Articles cut into words, and which part of the commenting corpus each is in (commenting, section 3)."""

    source = source_column()
    thread_id = dy.String(min_length=1, description="articles.thread_id")
    category = dy.String(nullable=True, description="Field the article is filed under, one of 44 in the paper")
    lang = dy.String(description="zh, en, …")
    title_tokens = dy.List(dy.String(), description="Words of the title in order")
    content_tokens = dy.List(dy.String(), description="Words of the body in order")
    tokenizer = dy.String(min_length=1, description="Tokenizer and version that cut article and comments")
    comment_count = dy.Int64(min=0, description="Its comments")
    like_count = dy.Int64(min=0, description="Upvotes of all its comments")
    split = dy.String(nullable=True, regex="^(train|validation|test)$", description="Part it is in; null if left out")
    reason = dy.String(nullable=True, min_length=1, description="Why it was left out; null if it was not")

    in_a_part_or_left_out = rule(pl.col("split").is_null() != pl.col("reason").is_null())


class ReferenceComments(dy.Schema):
    """Real comments of test articles: the references, and one kept apart to be judged (AAC-07, AAC-26)."""

    source = source_column()
    thread_id = dy.String(min_length=1, description="threads.thread_id")
    comment_id = dy.String(min_length=1, description="comments.comment_id")
    role = dy.String(regex="^(reference|candidate)$", description="What it serves as")
    place = dy.Int64(min=0, description="Its place in the random order of its article")


class CommentGrades(dy.Schema):
    """What people make of a comment's quality, from 1 to 5 (commenting, appendix A.1; AAC-08)."""

    project = dy.String(regex=SOURCE, description="Labelling project: of references, or of what commenters made")
    source = source_column()
    thread_id = dy.String(min_length=1, description="threads.thread_id")
    comment_id = dy.String(min_length=1, description="comments.comment_id, or generated_comments.generated_id")
    grade = dy.Float64(min=1, max=5, description="Mean of the grades")
    grades = dy.List(dy.Float64(min=1, max=5), description="Grades in the order of their raters")
    raters = dy.List(dy.String(), description="Pseudonyms of the raters, in order")
    tool = dy.String(min_length=1, description="What they came through: label_studio, file, simulated, …")


class GeneratedComments(dy.Schema):
    """Comments that commenters found or wrote for test articles, each with a real one (AAC-21, AAC-26)."""

    source = source_column()
    thread_id = dy.String(min_length=1, description="threads.thread_id")
    generated_id = dy.String(regex="^[0-9a-f]{32}$", description="Hash of article, system and text")
    system = dy.String(regex=SOURCE, description="ir_t, ir_tc, seq2seq, att, att_tc, pretrained; human for a real one")
    model_id = dy.String(nullable=True, regex="^[0-9a-f]{64}$", description="models.model_id; null for human")
    text = dy.String(min_length=1, description="The comment")
    tokens = dy.List(dy.String(), description="Its words in order")
    score = dy.Float64(nullable=True, description="Log probability, or log relevance among what was retrieved")
    found_in = dy.String(nullable=True, description="Comment that it copies word for word; null if it was generated")
    config = dy.String(min_length=2, description="Decoding as JSON")
    signature = dy.String(min_length=8, description="System, model, decoding, code version")


class MetricScores(dy.Schema):
    """Overlap of a generated comment with the references of its article (commenting, section 4)."""

    source = source_column()
    thread_id = dy.String(min_length=1, description="threads.thread_id")
    generated_id = dy.String(regex="^[0-9a-f]{32}$", description="generated_comments.generated_id")
    metric = dy.String(min_length=1, description="bleu_1, …, meteor, rouge_l, cider")
    is_weighted = dy.Bool(description="References count by their quality")
    value = dy.Float64(description="The score, rounded to 6 decimals")
    signature = dy.String(min_length=8, description="Every option of the metric, weights, tokenizer, code version")
