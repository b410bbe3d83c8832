"""Cloze questions of ReCAM: target words and items."""

import dataframely as dy
import polars as pl

from pipeline.tables.columns import source_column

_SUBTASK = "^(imperceptibility|nonspecificity)$"


class ClozeTargets(dy.Schema):
    """Every token of every summary: whether a cloze question may leave it out, and if not why (ReCAM, section 3)."""

    source = source_column()
    subtask = dy.String(regex=_SUBTASK, description="What makes a word abstract: imperceptibility or nonspecificity")
    thread_id = dy.String(min_length=1, description="articles.thread_id")
    start = dy.Int64(min=0, description="Where the word begins in the summary, in characters")
    end = dy.Int64(min=1, description="Where it ends; the end is not included")
    word = dy.String(min_length=1, description="As it stands there")
    lemma = dy.String(description="Its base form")
    upos = dy.String(min_length=1, description="Universal part of speech")
    score = dy.Float64(nullable=True, description="Concreteness in [0, 1], or level of the sense from the root")
    sense = dy.String(nullable=True, description="Its WordNet sense, of nonspecificity")
    reason = dy.String(nullable=True, min_length=1, description="Rule or filter that took it out; null for a target")

    @dy.rule()
    def ends_after_its_start(cls) -> pl.Expr:
        return pl.col("end") > pl.col("start")


class ClozeItems(dy.Schema):
    """Cloze questions with five options, made of summaries (ReCAM, table 1); the passage is articles.text."""

    item_id = dy.String(regex="^[0-9a-f]{32}$", description="Hash of subtask, source, thread_id and place of the word")
    source = source_column()
    subtask = dy.String(regex=_SUBTASK, description="What makes the word abstract")
    thread_id = dy.String(min_length=1, description="articles.thread_id")
    question = dy.String(min_length=1, description="The summary with @placeholder in place of the word")
    options = dy.List(dy.String(min_length=1), description="Five words, in an order drawn for each item")
    label = dy.Int64(min=0, max=4, description="Place of the right one, from 0")
    start = dy.Int64(min=0, description="Where the word begins in the summary, in characters")
    upos = dy.String(min_length=1, description="Universal part of speech of the word")
    score = dy.Float64(nullable=True, description="cloze_targets.score")
    split = dy.String(regex="^(train|validation|test)$", description="By article, the same in both subtasks")
    is_unanswerable = dy.Bool(nullable=True, description="Raters found no answer in the passage; null: too few asked")
    is_ambiguous = dy.Bool(nullable=True, description="Raters found several right options; null: too few asked")

    @dy.rule()
    def question_has_a_place(cls) -> pl.Expr:
        return pl.col("question").str.count_matches("@placeholder", literal=True) == 1

    @dy.rule()
    def options_are_five_and_differ(cls) -> pl.Expr:
        folded = pl.col("options").list.eval(pl.element().str.strip_chars().str.to_lowercase())
        return (pl.col("options").list.len() == 5) & (folded.list.n_unique() == 5)
