"""What language models say outright, and the pairs of ImpScore."""

import dataframely as dy
import polars as pl

from pipeline.tables.columns import source_column


class Sentences(dy.Schema):
    """Sentences of data sets about implicitness, as their makers labelled them (ImpScore, table 6)."""

    source = source_column()
    item_id = dy.String(min_length=1, description="File and row, or the data set's own id")
    lang = dy.String(regex="^[a-z]{2,3}$", description="zh, en, …")
    text = dy.String(min_length=1, description="The sentence")
    label = dy.String(regex="^(implicit|explicit|neither)$", description="What its makers call it")
    explicit = dy.String(nullable=True, min_length=1, description="Its explicit form, where the data set gives one")
    prompt = dy.String(nullable=True, min_length=1, description="Prompt that asks for one, where it gives none")

    @dy.rule()
    def explicit_is_another(cls) -> pl.Expr:
        return pl.col("explicit").is_null() | (pl.col("explicit") != pl.col("text"))


class Completions(dy.Schema):
    """Answers of language models, each paid for once."""

    completion_id = dy.String(
        regex="^[0-9a-f]{64}$", description="Hash of model, revision, messages, params, prompt and version, attempt"
    )
    source = source_column()
    model = dy.String(min_length=1, description="Model asked; undertone-sample for the shipped cassette")
    prompt = dy.String(min_length=1, description="Prompt file")
    prompt_version = dy.String(min_length=1, description="Hash of the prompt file")
    messages = dy.String(min_length=2, description="Messages as JSON")
    params = dy.String(min_length=2, description="Sampling parameters as JSON")
    attempt = dy.Int64(min=0, description="0, then 1 more for each re-ask")
    response = dy.String(description="The raw answer")
    mode = dy.String(regex="^(live|batch|import|sample)$", description="How the answer came")
    revision = dy.String(nullable=True, description="Revision of the model, where its server names one")
    input_tokens = dy.Int64(nullable=True, min=0, description="Tokens the server counted in the messages")
    output_tokens = dy.Int64(nullable=True, min=0, description="Tokens the server counted in the answer")
    finish_reason = dy.String(nullable=True, description="Why the answer ended: `length` if a limit cut it off")


class Pairs(dy.Schema):
    """ImpScore training triples: implicit, its explicit rewriting, and a foreign explicit sentence (IMP-02)."""

    pair_id = dy.String(regex="^[0-9a-f]{32}$", description="Hash of source, implicit and explicit")
    source = source_column()
    lang = dy.String(description="zh or en")
    implicit = dy.String(min_length=1, description="s1")
    explicit = dy.String(min_length=1, description="s2: says what s1 means")
    negative = dy.String(min_length=1, description="s3: another pair's explicit sentence of the same source (IMP-19)")
    split = dy.String(regex="^(train|validation|test)$", description="By the split profile of the run (IMP-22)")
    completion_id = dy.String(nullable=True, description="Completion the explicit sentence came from")
    cluster_id = dy.String(nullable=True, description="Least pair_id of the pairs that are near duplicates of it")

    @dy.rule()
    def negative_is_foreign(cls) -> pl.Expr:
        return pl.col("negative") != pl.col("explicit")
