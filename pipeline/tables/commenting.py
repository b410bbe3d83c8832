"""Article commenting: threads, references, grades, generated comments and their metrics."""

import dataframely as dy
import polars as pl

from pipeline.tables.columns import HASH, PERSONAL, SHA256, SOURCE, SPLIT, rule, source_column


class Threads(dy.Schema):
    """Tokenized articles of the commenting corpus, with their split (commenting, section 3)."""

    source = source_column()
    thread_id = dy.String(min_length=1, description="articles.thread_id")
    category = dy.String(nullable=True, description="Category of the article; the paper has 44")
    lang = dy.String(description="zh, en, …")
    title_tokens = dy.List(dy.String(), description="Words of the title in order")
    content_tokens = dy.List(dy.String(), description="Words of the body in order")
    tokenizer = dy.String(min_length=1, description="Tokenizer of article and comments, with its version")
    comment_count = dy.Int64(min=0, description="Number of comments")
    like_count = dy.Int64(min=0, description="Upvotes of all comments")
    split = dy.String(nullable=True, regex=SPLIT, description="Split of the article; null if dropped")
    reason = dy.String(nullable=True, min_length=1, description="Reason for a dropped article; null if kept")

    in_a_part_or_left_out = rule(pl.col("split").is_null() != pl.col("reason").is_null())


class ReferenceComments(dy.Schema):
    """Real comments on test articles: the references, and one candidate to grade (AAC-07, AAC-26)."""

    source = source_column()
    thread_id = dy.String(min_length=1, description="threads.thread_id")
    comment_id = dy.String(min_length=1, description="comments.comment_id")
    role = dy.String(regex="^(reference|candidate)$", description="Role of the comment")
    place = dy.Int64(min=0, description="Position in the random order of the article")


class CommentGrades(dy.Schema):
    """Human grades of the quality of comments, from 1 to 5 (commenting, appendix A.1; AAC-08)."""

    project = dy.String(regex=SOURCE, description="Labelling project: references or generated comments")
    source = source_column()
    thread_id = dy.String(min_length=1, description="threads.thread_id")
    comment_id = dy.String(min_length=1, description="comments.comment_id, or generated_comments.generated_id")
    grade = dy.Float64(min=1, max=5, description="Mean of the grades")
    grades = dy.List(dy.Float64(min=1, max=5), description="Grades in the order of raters")
    raters = dy.List(dy.String(), description="Pseudonyms of the raters, in order", metadata=PERSONAL)
    tool = dy.String(min_length=1, description="Tool of the grades: label_studio, file, simulated, …")


class GeneratedComments(dy.Schema):
    """Comments that commenters retrieved or wrote for test articles, and a real one for each (AAC-21, AAC-26)."""

    source = source_column()
    thread_id = dy.String(min_length=1, description="threads.thread_id")
    generated_id = dy.String(regex=HASH, description="Hash of article, system and text")
    system = dy.String(
        regex=SOURCE, description="ir_t, ir_tc, seq2seq, att, att_tc, pretrained; human for a real comment"
    )
    model_id = dy.String(nullable=True, regex=SHA256, description="models.model_id; null for human")
    text = dy.String(min_length=1, description="The comment")
    tokens = dy.List(dy.String(), description="Words in order")
    score = dy.Float64(nullable=True, description="Log probability, or log relevance of a retrieved comment")
    found_in = dy.String(nullable=True, description="Comment with the same words; null if generated")
    config = dy.String(min_length=2, description="Decoding parameters as JSON")
    signature = dy.String(min_length=8, description="System, model, decoding, code version")


class MetricScores(dy.Schema):
    """Overlap of a generated comment with the references of its article (commenting, section 4)."""

    source = source_column()
    thread_id = dy.String(min_length=1, description="threads.thread_id")
    generated_id = dy.String(regex=HASH, description="generated_comments.generated_id")
    metric = dy.String(min_length=1, description="bleu_1, …, meteor, rouge_l, cider")
    is_weighted = dy.Bool(description="Whether references are weighted by their quality")
    value = dy.Float64(description="The score, rounded to 6 decimals")
    signature = dy.String(min_length=8, description="Every option of the metric, weights, tokenizer, code version")
