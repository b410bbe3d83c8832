"""Examples of the papers: sentences, completions and pairs of ImpScore; target words and cloze questions of ReCAM."""

import dataframely as dy
import polars as pl

from pipeline.tables.columns import HASH, SHA256, SPLIT, rule, source_column

_FOLDED_OPTIONS = pl.col("options").list.eval(pl.element().str.strip_chars().str.to_lowercase())
_SUBTASK = "^(imperceptibility|nonspecificity)$"


class Sentences(dy.Schema):
    """Sentences of data sets on implicitness, with the labels of the data sets (ImpScore, table 6)."""

    source = source_column()
    item_id = dy.String(min_length=1, description="File and row, or the id in the data set")
    lang = dy.String(regex="^[a-z]{2,3}$", description="zh, en, …")
    text = dy.String(min_length=1, description="The sentence")
    label = dy.String(regex="^(implicit|explicit|neither)$", description="Label of the data set")
    explicit = dy.String(nullable=True, min_length=1, description="Explicit form, if the data set has one")
    prompt = dy.String(
        nullable=True, min_length=1, description="Prompt that requests an explicit form, if the data set has none"
    )

    explicit_is_another = rule(pl.col("explicit").is_null() | (pl.col("explicit") != pl.col("text")))


class Completions(dy.Schema):
    """Answers of language models, each paid for once."""

    completion_id = dy.String(
        regex=SHA256, description="Hash of model, revision, messages, params, prompt and version, attempt"
    )
    source = source_column()
    model = dy.String(min_length=1, description="Language model; undertone-sample for the shipped cassette")
    prompt = dy.String(min_length=1, description="Prompt file")
    prompt_version = dy.String(min_length=1, description="Hash of the prompt file")
    messages = dy.String(min_length=2, description="Messages as JSON")
    params = dy.String(min_length=2, description="Sampling parameters as JSON")
    attempt = dy.Int64(min=0, description="0 for the first request, then 1 more for each repeated request")
    response = dy.String(description="The raw answer")
    mode = dy.String(regex="^(live|batch|import|sample)$", description="Source of the answer")
    revision = dy.String(nullable=True, description="Revision of the model, if its server names one")
    input_tokens = dy.Int64(nullable=True, min=0, description="Tokens of the messages, as the server counts them")
    output_tokens = dy.Int64(nullable=True, min=0, description="Tokens of the answer, as the server counts them")
    finish_reason = dy.String(nullable=True, description="Reason for the end of the answer: `length` for a limit")


class Pairs(dy.Schema):
    """ImpScore training triples: implicit, explicit, and the explicit sentence of another pair (IMP-02)."""

    pair_id = dy.String(regex=HASH, description="Hash of source, implicit and explicit")
    source = source_column()
    lang = dy.String(description="zh or en")
    implicit = dy.String(min_length=1, description="s1: the implicit sentence")
    explicit = dy.String(min_length=1, description="s2: the explicit form of s1")
    negative = dy.String(min_length=1, description="s3: another pair's explicit sentence of the same source (IMP-19)")
    split = dy.String(regex=SPLIT, description="Split by the profile of the run (IMP-22)")
    completion_id = dy.String(nullable=True, description="Completion with the explicit sentence")
    cluster_id = dy.String(nullable=True, description="Lowest pair_id among the near duplicates of the pair")

    negative_is_foreign = rule(pl.col("negative") != pl.col("explicit"))


class ClozeTargets(dy.Schema):
    """Tokens of summaries: the targets of cloze items, and the reason against each other token (ReCAM, section 3)."""

    source = source_column()
    subtask = dy.String(regex=_SUBTASK, description="Kind of abstractness: imperceptibility or nonspecificity")
    thread_id = dy.String(min_length=1, description="articles.thread_id")
    start = dy.Int64(min=0, description="Start of the word in the summary, in characters")
    end = dy.Int64(min=1, description="End of the word, exclusive")
    word = dy.String(min_length=1, description="The word in the summary")
    lemma = dy.String(description="Base form")
    upos = dy.String(min_length=1, description="Universal part of speech")
    score = dy.Float64(nullable=True, description="Concreteness in [0, 1], or level of the sense from the root")
    sense = dy.String(nullable=True, description="WordNet sense, for nonspecificity")
    reason = dy.String(
        nullable=True, min_length=1, description="Rule or filter that dropped the word; null for a target"
    )

    ends_after_its_start = rule(pl.col("end") > pl.col("start"))


class ClozeItems(dy.Schema):
    """Cloze items with five options, from summaries (ReCAM, table 1). The passage is articles.text."""

    item_id = dy.String(regex=HASH, description="Hash of subtask, source, thread_id and position of the word")
    source = source_column()
    subtask = dy.String(regex=_SUBTASK, description="Kind of abstractness")
    thread_id = dy.String(min_length=1, description="articles.thread_id")
    question = dy.String(min_length=1, description="The summary with @placeholder for the word")
    options = dy.List(dy.String(min_length=1), description="Five words in random order")
    label = dy.Int64(min=0, max=4, description="Position of the right word, from 0")
    start = dy.Int64(min=0, description="Start of the word in the summary, in characters")
    upos = dy.String(min_length=1, description="Universal part of speech of the word")
    score = dy.Float64(nullable=True, description="cloze_targets.score")
    split = dy.String(regex=SPLIT, description="Split of the article, the same in both subtasks")
    is_unanswerable = dy.Bool(
        nullable=True, description="Whether raters found no answer in the passage; null: too few raters"
    )
    is_ambiguous = dy.Bool(
        nullable=True, description="Whether raters found several right options; null: too few raters"
    )

    question_has_a_place = rule(pl.col("question").str.count_matches("@placeholder", literal=True) == 1)
    options_are_five_and_differ = rule((pl.col("options").list.len() == 5) & (_FOLDED_OPTIONS.list.n_unique() == 5))
