"""Examples of the papers: sentences, completions and pairs of ImpScore; target words and cloze questions of ReCAM."""

import dataframely as dy
import polars as pl

from pipeline.tables.columns import rule, source_column

_FOLDED_OPTIONS = pl.col("options").list.eval(pl.element().str.strip_chars().str.to_lowercase())
_SUBTASK = "^(imperceptibility|nonspecificity)$"


class Sentences(dy.Schema):
    """Sentences of data sets about implicitness, as their makers labelled them (ImpScore, table 6)."""

    source = source_column()
    item_id = dy.String(min_length=1, description="File and row, or the data set's own id")
    lang = dy.String(regex="^[a-z]{2,3}$", description="zh, en, …")
    text = dy.String(min_length=1, description="The sentence")
    label = dy.String(regex="^(implicit|explicit|neither)$", description="What its makers call it")
    explicit = dy.String(nullable=True, min_length=1, description="Its explicit form, where the data set gives one")
    prompt = dy.String(nullable=True, min_length=1, description="Prompt that asks for one, where it gives none")

    explicit_is_another = rule(pl.col("explicit").is_null() | (pl.col("explicit") != pl.col("text")))


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
    explicit = dy.String(min_length=1, description="s2: states what s1 means")
    negative = dy.String(min_length=1, description="s3: another pair's explicit sentence of the same source (IMP-19)")
    split = dy.String(regex="^(train|validation|test)$", description="By the split profile of the run (IMP-22)")
    completion_id = dy.String(nullable=True, description="Completion the explicit sentence came from")
    cluster_id = dy.String(nullable=True, description="Least pair_id of the pairs that are near duplicates of it")

    negative_is_foreign = rule(pl.col("negative") != pl.col("explicit"))


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

    ends_after_its_start = rule(pl.col("end") > pl.col("start"))


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

    question_has_a_place = rule(pl.col("question").str.count_matches("@placeholder", literal=True) == 1)
    options_are_five_and_differ = rule((pl.col("options").list.len() == 5) & (_FOLDED_OPTIONS.list.n_unique() == 5))
