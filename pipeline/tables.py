"""The data contracts: every table's columns, types, rules, key and partitions, in one place.

A frame is checked against its contract before it is written (`warehouse.overwrite`). The documented DDL in
`sql/tables/` is compared with this module by a test. Times are UTC with microseconds; ids stay text because several
sites' ids exceed 2^53; shares are in [0, 1].
"""

from typing import NamedTuple

import dataframely as dy
import polars as pl

SOURCE = r"^[a-z][a-z0-9_]{0,39}$"


def _source() -> dy.String:
    return dy.String(regex=SOURCE, description="Site or corpus the row comes from")


def _origin() -> dy.String:
    return dy.String(min_length=1, description="What brought the row in: `live`, `sample`, or the imported file's name")


def _time(description: str) -> dy.Datetime:
    return dy.Datetime(nullable=True, time_unit="us", time_zone="UTC", description=description)


class RawPages(dy.Schema):
    """Pages as a site answered them, personal fields taken out. Adapters can be run again on them."""

    source = _source()
    day = dy.Date(description="UTC day of the collection run")
    origin = _origin()
    page_id = dy.String(regex="^[0-9a-f]{64}$", description="SHA-256 of address and body")
    url = dy.String(description="Address the page was fetched from")
    fetched_at = _time("When the page was fetched")
    body = dy.String(description="The JSON answer, personal fields removed")


class Articles(dy.Schema):
    """What comments are about: a post, song, video, answer or news article."""

    source = _source()
    day = dy.Date(description="UTC day of the collection run")
    origin = _origin()
    thread_id = dy.String(min_length=1, description="The site's id of the post, song, video, answer or article")
    title = dy.String(nullable=True, description="Headline, song name, question")
    text = dy.String(description="Body, cleaned; may be empty where the site gives none")
    summary = dy.String(nullable=True, min_length=1, description="A sentence that sums it up, if there is one (REC-03)")
    category = dy.String(nullable=True, description="Field or channel, where the source names one")
    lang = dy.String(description="zh, en, ja, ko or und")


class Comments(dy.Schema):
    """Reader comments, anonymised, cleaned and deduplicated, with their place in the thread (CSD-06)."""

    source = _source()
    day = dy.Date(description="UTC day of the collection run")
    origin = _origin()
    thread_id = dy.String(min_length=1, description="What the comment is about (articles.thread_id)")
    comment_id = dy.String(min_length=1, description="The site's id of the comment")
    parent_id = dy.String(nullable=True, description="Comment this one answers; null for a top-level comment")
    root_id = dy.String(nullable=True, description="Top-level comment of the branch; null for a top-level comment")
    context_id = dy.String(min_length=1, description="parent_id, else thread_id (CSD-06)")
    context = dy.String(nullable=True, description="Text of the parent comment, else title or post")
    text = dy.String(min_length=1, description="Cleaned text; [doge] and the like are kept")
    text_hash = dy.String(regex="^[0-9a-f]{32}$", description="128-bit BLAKE2 of text: the key of tokens")
    like_count = dy.Int64(nullable=True, min=0, description="Likes, where the source tells")
    reply_count = dy.Int64(nullable=True, min=0, description="Replies the site counts")
    duplicate_count = dy.Int64(min=0, description="Dropped comments that said the same in this thread")
    created_at = _time("When the comment was written")
    user_id = dy.String(nullable=True, regex="^[0-9a-f]{32}$", description="Keyed HMAC of the user id, or null")
    is_hot = dy.Bool(description="The site listed it among its hot comments")
    lang = dy.String(description="zh, en, ja, ko or und")
    adapter = dy.String(min_length=1, description="Reader and version that made the row, such as weibo/1")

    @dy.rule()
    def text_is_not_blank(cls) -> pl.Expr:
        return pl.col("text").str.strip_chars().str.len_chars() > 0

    @dy.rule()
    def no_comment_is_its_own_parent(cls) -> pl.Expr:
        return (pl.col("parent_id") != pl.col("comment_id")).fill_null(value=True)


class Tokens(dy.Schema):
    """Words of each distinct text of a day, by what cut them."""

    source = _source()
    day = dy.Date(description="Day of the comments")
    text_hash = dy.String(regex="^[0-9a-f]{32}$", description="comments.text_hash")
    tokens = dy.List(dy.String(), description="Words in order")
    tokenizer = dy.String(min_length=1, description="jieba, rjieba, nltk")
    tokenizer_version = dy.String(min_length=1, description="Version of the tokenizer's package")
    dictionary_hash = dy.String(min_length=1, description="Hash of dictionary and options, or `none`")


class Sentences(dy.Schema):
    """Sentences of data sets about implicitness, as their makers labelled them (ImpScore, table 6)."""

    source = _source()
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
    source = _source()
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
    source = _source()
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


_SUBTASK = "^(imperceptibility|nonspecificity)$"


class ClozeTargets(dy.Schema):
    """Every token of every summary: whether a cloze question may leave it out, and if not why (ReCAM, section 3)."""

    source = _source()
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
    source = _source()
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


class LabelTasks(dy.Schema):
    """Comments given to raters. What ties a task to its comment stays here; raters see text and context alone."""

    project = dy.String(regex=SOURCE, description="Labelling project")
    task_id = dy.String(regex="^[0-9a-f]{32}$", description="Hash of project, context and text")
    row_id = dy.String(regex="^[0-9a-f]{16}$", description="Random id under which the row is published (CSD-08)")
    source = _source()
    day = dy.Date(description="Day of the comment")
    thread_id = dy.String(min_length=1, description="comments.thread_id")
    comment_id = dy.String(min_length=1, description="comments.comment_id")
    lang = dy.String(description="zh, en, …")
    context = dy.String(nullable=True, description="What the comment answers or is about")
    text = dy.String(min_length=1, description="The comment")
    schema_version = dy.String(min_length=1, description="Hash of the fields and values asked for")


class Labels(dy.Schema):
    """What each rater said of each task, one field a row (CSD-09 to CSD-15)."""

    project = dy.String(regex=SOURCE, description="Labelling project")
    task_id = dy.String(regex="^[0-9a-f]{32}$", description="label_tasks.task_id")
    round = dy.Int64(min=1, max=2, description="1, or 2 where the task was labelled anew")
    stage = dy.Int64(min=1, max=2, description="1: one of three raters; 2: the adjudicator")
    rater_id = dy.String(min_length=1, description="Pseudonym of the rater")
    field = dy.String(min_length=1, description="Kind of information, or an optional note")
    value = dy.String(min_length=1, description="One of the field's values; of notes, text")
    labelled_at = _time("When it was given, where the tool tells")
    tool = dy.String(min_length=1, description="What it came through: label_studio, file, simulated, …")


class Annotations(dy.Schema):
    """What became of each field of each task in the two stages (CSD-15): a value, or the reason there is none."""

    project = dy.String(regex=SOURCE, description="Labelling project")
    task_id = dy.String(regex="^[0-9a-f]{32}$", description="label_tasks.task_id")
    field = dy.String(min_length=1, description="Kind of information")
    value = dy.String(nullable=True, description="The value that stands; null while open and where deleted")
    state = dy.String(regex="^(open|adopted|adjudicated|deleted)$", description="How far it has come")
    reason = dy.String(description="Why: unanimous, adjudicator, too_few_raters, all_different, specious_twice, …")
    round = dy.Int64(min=1, max=2, description="The round that decided, or that is going on")
    pattern = dy.String(regex="^(same|partly|different|none)$", description="How the three labels of the round agree")

    @dy.rule()
    def settled_means_a_value(cls) -> pl.Expr:
        return pl.col("value").is_not_null() == pl.col("state").is_in(["adopted", "adjudicated"])


class AnnotatedComments(dy.Schema):
    """The published data set: labelled comments without platform ids, by release (CSD-08)."""

    release = dy.String(regex=SOURCE, description="Name of the release")
    row_id = dy.String(regex="^[0-9a-f]{16}$", description="Random id; it leads back to no platform")
    source = _source()
    lang = dy.String(description="zh, en, …")
    context = dy.String(nullable=True, description="What the comment answers or is about")
    text = dy.String(min_length=1, description="The comment")
    is_subtext = dy.Bool(nullable=True, description="Whether subtext is 1; null where raters were unsure")
    subtext = dy.String(nullable=True, regex="^(1|0|-1)$", description="1 contains, -1 does not, 0 unsure")
    sarcasm = dy.String(nullable=True, regex="^(1|0|-1)$", description="The same of sarcasm")
    metaphor = dy.String(nullable=True, regex="^(1|0|-1)$", description="The same of metaphor")
    exaggeration = dy.String(nullable=True, regex="^(1|0|-1)$", description="The same of exaggeration")
    homophonic = dy.String(nullable=True, regex="^(1|0|-1)$", description="The same of plays on sound")
    sentiment = dy.String(nullable=True, regex="^(1|0|-1)$", description="1 positive, 0 neutral, -1 negative")
    emotion = dy.String(nullable=True, description="One of Plutchik's eight, or None")
    other = dy.String(nullable=True, regex="^(1|0|-1)$", description="Other figures of speech, the rare ones together")
    rhetoric = dy.String(nullable=True, description="Name of the other figure of speech, where it is no rare one")
    span_start = dy.Int64(nullable=True, min=0, description="Where the hidden meaning begins, in characters")
    span_end = dy.Int64(nullable=True, min=0, description="Where it ends; the end is not included")
    plain = dy.String(nullable=True, description="The comment in plain words")
    meaning = dy.String(nullable=True, description="What it really means")


class Threads(dy.Schema):
    """Articles cut into words, and which part of the commenting corpus each is in (commenting, section 3)."""

    source = _source()
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

    @dy.rule()
    def in_a_part_or_left_out(cls) -> pl.Expr:
        return pl.col("split").is_null() != pl.col("reason").is_null()


class ReferenceComments(dy.Schema):
    """Real comments of test articles: the references, and one kept apart to be judged (AAC-07, AAC-26)."""

    source = _source()
    thread_id = dy.String(min_length=1, description="threads.thread_id")
    comment_id = dy.String(min_length=1, description="comments.comment_id")
    role = dy.String(regex="^(reference|candidate)$", description="What it serves as")
    place = dy.Int64(min=0, description="Its place in the random order of its article")


class CommentGrades(dy.Schema):
    """What people make of a comment's quality, from 1 to 5 (commenting, appendix A.1; AAC-08)."""

    project = dy.String(regex=SOURCE, description="Labelling project: of references, or of what commenters made")
    source = _source()
    thread_id = dy.String(min_length=1, description="threads.thread_id")
    comment_id = dy.String(min_length=1, description="comments.comment_id, or generated_comments.generated_id")
    grade = dy.Float64(min=1, max=5, description="Mean of the grades")
    grades = dy.List(dy.Float64(min=1, max=5), description="Grades in the order of their raters")
    raters = dy.List(dy.String(), description="Pseudonyms of the raters, in order")
    tool = dy.String(min_length=1, description="What they came through: label_studio, file, simulated, …")


class GeneratedComments(dy.Schema):
    """Comments that commenters found or wrote for test articles, and a real one beside (AAC-21, AAC-26)."""

    source = _source()
    thread_id = dy.String(min_length=1, description="threads.thread_id")
    generated_id = dy.String(regex="^[0-9a-f]{32}$", description="Hash of article, system and text")
    system = dy.String(regex=SOURCE, description="ir_t, ir_tc, seq2seq, att, att_tc, pretrained; human for a real one")
    model_id = dy.String(nullable=True, regex="^[0-9a-f]{64}$", description="models.model_id; null for human")
    text = dy.String(min_length=1, description="The comment")
    tokens = dy.List(dy.String(), description="Its words in order")
    score = dy.Float64(nullable=True, description="Log probability, or log relevance among what was retrieved")
    found_in = dy.String(nullable=True, description="Comment it is word for word, where it was not written anew")
    config = dy.String(min_length=2, description="Decoding as JSON")
    signature = dy.String(min_length=8, description="System, model, decoding, code version")


class MetricScores(dy.Schema):
    """Overlap of a generated comment with the references of its article (commenting, section 4)."""

    source = _source()
    thread_id = dy.String(min_length=1, description="threads.thread_id")
    generated_id = dy.String(regex="^[0-9a-f]{32}$", description="generated_comments.generated_id")
    metric = dy.String(min_length=1, description="bleu_1, …, meteor, rouge_l, cider")
    is_weighted = dy.Bool(description="References count by their quality")
    value = dy.Float64(description="The score, rounded to 6 decimals")
    signature = dy.String(min_length=8, description="Every option of the metric, weights, tokenizer, code version")


class Compressions(dy.Schema):
    """Sentences of data sets with the words that were dropped of them, by people and by systems (NDD, section 4)."""

    source = _source()
    day = dy.Date(description="Day of the run")
    item_id = dy.String(min_length=1, description="Item of the data set")
    system = dy.String(regex=SOURCE, description="ndd, fast_ndd_sc, …, unedited, head, tail, random; gold by people")
    lang = dy.String(description="zh, en, …")
    words = dy.List(dy.String(), description="Words in order")
    rounds = dy.List(dy.Int64(min=0), description="Round in which each was dropped; 0 if it stays")
    ratio = dy.Float64(min=0, max=1, description="Share of the words that stay, rounded to 6 decimals")
    signature = dy.String(min_length=4, description="System, model, numbers, code version; `gold` for people's")

    @dy.rule()
    def a_round_for_each_word(cls) -> pl.Expr:
        return pl.col("words").list.len() == pl.col("rounds").list.len()

    @dy.rule()
    def ratio_is_what_stays(cls) -> pl.Expr:
        stays = pl.col("rounds").list.count_matches(0) / pl.col("rounds").list.len()
        return (pl.col("ratio") - stays).abs() < 1e-6


class Models(dy.Schema):
    """Trained models, by content hash."""

    kind = dy.String(min_length=1, description="impscore, subtext, abstractness, reader_imperceptibility, …")
    day = dy.Date(description="Day of the training run; a day is scored by the newest model not younger than it")
    model_id = dy.String(regex="^[0-9a-f]{64}$", description="SHA-256 over weights and configuration")
    is_promoted = dy.Bool(description="The one of its kind and day that days are scored by: the last trained")
    encoder = dy.String(min_length=1, description="Sentence encoder by name")
    encoder_revision = dy.String(min_length=1, description="Content hash or pinned revision of the encoder")
    config = dy.String(min_length=2, description="Hyperparameters and seeds as JSON")
    data_hash = dy.String(min_length=1, description="Hash of the training rows")
    completion_models = dy.List(dy.String(), description="Models whose completions are in the training rows")
    code_version = dy.String(min_length=1, description="Version of undertone")


class Evaluations(dy.Schema):
    """Numbers measured on models, with the baseline beside them."""

    kind = dy.String(min_length=1, description="Kind of model")
    day = dy.Date(description="Day of the training run")
    model_id = dy.String(regex="^[0-9a-f]{64}$", description="models.model_id")
    metric = dy.String(min_length=1, description="implicitness_accuracy, pragmatics_accuracy, …")
    split = dy.String(min_length=1, description="train, validation or test")
    subset = dy.String(min_length=1, description="`all`, or one source")
    epoch = dy.Int64(min=0, description="Epoch, 0 for the final model")
    value = dy.Float64(description="The number, rounded to 6 decimals")
    baseline = dy.Float64(nullable=True, description="The same metric of the named baseline")
    baseline_name = dy.String(nullable=True, description="Such as `longer_is_implicit`")
    pair_count = dy.Int64(min=0, description="Pairs or triples measured on")


class Studies(dy.Schema):
    """Numbers of studies: what was varied, what was measured, on how many rows, with intervals.

    ImpScore, sections 5.3 and 7; commenting, section 5; NDD, sections 3 to 5.
    """

    study = dy.String(
        regex="^(ablation|sensitivity|data_sets|diversity|detection|correlation|compression|similarity|pruning|"
        "predicates|context_shift)$",
        description="Which study",
    )
    day = dy.Date(description="Day of the run")
    model_id = dy.String(nullable=True, regex="^[0-9a-f]{64}$", description="Model applied; null where models are made")
    setting = dy.String(min_length=2, description="What was varied, as JSON")
    metric = dy.String(min_length=1, description="implicitness_accuracy, mean, q50, accuracy, …")
    subset = dy.String(min_length=1, description="test; a source, `source:implicit`; a bin such as 0.25-0.50")
    run = dy.Int64(min=0, description="Repetition, from 0")
    value = dy.Float64(nullable=True, description="The number, rounded to 6 decimals; null for an empty bin")
    low = dy.Float64(nullable=True, description="Lower end of the 95% interval")
    high = dy.Float64(nullable=True, description="Upper end of the 95% interval")
    row_count = dy.Int64(min=0, description="Rows measured on")
    effective_count = dy.Int64(nullable=True, min=0, description="Near-duplicate clusters among them")


class Scores(dy.Schema):
    """One number for one comment by one model or metric. A new model adds rows and rewrites none."""

    source = _source()
    day = dy.Date(description="Day of the comments")
    thread_id = dy.String(min_length=1, description="comments.thread_id")
    comment_id = dy.String(min_length=1, description="comments.comment_id")
    text_hash = dy.String(regex="^[0-9a-f]{32}$", description="comments.text_hash of what was scored")
    metric = dy.String(min_length=1, description="implicitness, …")
    model_id = dy.String(min_length=1, description="models.model_id")
    value = dy.Float64(description="The score, rounded to 6 decimals")
    signature = dy.String(min_length=8, description="Metric, model, encoder and its revision, code version")

    @dy.rule()
    def implicitness_in_range(cls) -> pl.Expr:
        return (pl.col("metric") != "implicitness") | pl.col("value").is_between(0.0, 2.0)


class Dropped(dy.Schema):
    """Rows that a step left out, each with its reason."""

    source = _source()
    day = dy.Date(description="Day of the run")
    origin = _origin()
    step = dy.String(min_length=1, description="parse, clean, deduplicate, …")
    reason = dy.String(min_length=1, description="Why, as one word or two")
    row_key = dy.String(description="Where to find the row in its source")


class Runs(dy.Schema):
    """What each run read, kept and dropped: the funnel, and how to repeat the run."""

    source = _source()
    day = dy.Date(description="Day the run was about")
    origin = _origin()
    step = dy.String(min_length=1, description="collect, tokenize, score, …")
    read_count = dy.Int64(min=0, description="Rows in")
    kept_count = dy.Int64(min=0, description="Rows out")
    dropped_count = dy.Int64(min=0, description="Rows left out; each is in dropped")
    config = dy.String(min_length=2, description="Parameters as JSON")
    run_id = dy.String(description="Airflow run, or `cli`: provenance only")
    code_version = dy.String(min_length=1, description="Version of undertone")
    started_at = _time("When the work began: provenance only, as are all columns below")
    seconds = dy.Float64(nullable=True, min=0, description="Of work, shards and all; shared out by rows among sources")
    byte_count = dy.Int64(nullable=True, min=0, description="Bytes written into tables, shared out likewise")
    input_tokens = dy.Int64(nullable=True, min=0, description="Sent to a language model; null where none was asked")
    output_tokens = dy.Int64(nullable=True, min=0, description="That a language model answered")
    cost_usd = dy.Float64(nullable=True, min=0, description="Of these; null where a price is unknown")

    @dy.rule()
    def adds_up(cls) -> pl.Expr:
        return pl.col("read_count") == pl.col("kept_count") + pl.col("dropped_count")


PROVENANCE = ("run_id", "started_at", "seconds", "byte_count", "input_tokens", "output_tokens", "cost_usd")
"""Columns in which `runs` may differ between two runs of one slice; `run_id` says as little in other tables."""


ERASED = "erased"  # what stands in the place of a hash, key or reason of what was erased


class TrainingTexts(dy.Schema):
    """Hashes of the texts each model was trained on, so that it can be told which models learned from erased ones.

    What was erased keeps its count and loses its hash: the row `erased` counts all that was erased of a model.
    """

    kind = dy.String(min_length=1, description="Kind of model")
    model_id = dy.String(min_length=1, description="models.model_id, or the folder of an adapted encoder")
    text_hash = dy.String(regex="^([0-9a-f]{32}|erased)$", description="128-bit BLAKE2 of the text, or `erased`")
    row_count = dy.Int64(min=1, description="Training rows that have the text")


class Erasures(dy.Schema):
    """Receipts: what was erased on request, of which store. Nothing here tells of whom, or what it said."""

    erasure_id = dy.String(regex="^[0-9a-f]{32}$", description="Random id of the erasure")
    day = dy.Date(description="UTC day it was done")
    erased_at = dy.Datetime(time_unit="us", time_zone="UTC", description="When it was done")
    kind = dy.String(min_length=1, description="What the request named: user_id, comment_id, thread_id, origin")
    request_count = dy.Int64(min=0, description="How many of these it named")
    store = dy.String(min_length=1, description="Table, or folder or database beside the tables")
    row_count = dy.Int64(min=0, description="Rows, records and fields that were erased in it")
    file_count = dy.Int64(min=0, description="Files of it that were removed or written anew")
    run_id = dy.String(description="Airflow run, or `cli`: provenance only")
    code_version = dy.String(min_length=1, description="Version of undertone")


class ModelErasures(dy.Schema):
    """Models that learnt from what an erasure took: on what share of it, what became of them, what replaced them."""

    erasure_id = dy.String(regex="^[0-9a-f]{32}$", description="erasures.erasure_id")
    kind = dy.String(min_length=1, description="Kind of model")
    model_id = dy.String(min_length=1, description="training_texts.model_id, or a folder below the home")
    erased_count = dy.Int64(min=0, description="Training rows that this erasure took")
    training_count = dy.Int64(min=0, description="Training rows when the model was trained; 0: there is no record")
    erased_ratio = dy.Float64(min=0, max=1, description="erased_count / training_count, rounded to 6 decimals")
    action = dy.String(
        nullable=True,
        regex="^(removed|flagged|absent)$",
        description="removed: its files held words; flagged: they hold numbers alone; absent: they are not here",
    )
    day = dy.Date(nullable=True, description="Day it was trained for; null for a model that is in no table")
    is_promoted = dy.Bool(nullable=True, description="Days were scored by it")
    recipe = dy.String(nullable=True, description="Profile and numbers to train it again by, as JSON")
    replaced_by = dy.String(nullable=True, description="models.model_id that was trained in its place")


class Table(NamedTuple):
    """A contract, the columns that identify a row, and the identity partitions."""

    schema: type[dy.Schema]
    key: tuple[str, ...]
    partitions: tuple[str, ...]


_COMMENT = ("source", "day", "thread_id", "comment_id")

TABLES: dict[str, Table] = {
    "raw_pages": Table(RawPages, ("source", "day", "origin", "page_id"), ("source", "day")),
    "articles": Table(Articles, ("source", "day", "thread_id"), ("source", "day")),
    "comments": Table(Comments, _COMMENT, ("source", "day")),
    "tokens": Table(
        Tokens,
        ("source", "day", "text_hash", "tokenizer", "tokenizer_version", "dictionary_hash"),
        ("source", "day"),
    ),
    "sentences": Table(Sentences, ("source", "item_id"), ("source",)),
    "completions": Table(Completions, ("source", "completion_id"), ("source",)),
    "pairs": Table(Pairs, ("pair_id",), ("source",)),
    "cloze_targets": Table(ClozeTargets, ("source", "subtask", "thread_id", "start"), ("source",)),
    "cloze_items": Table(ClozeItems, ("item_id",), ("subtask",)),
    "label_tasks": Table(LabelTasks, ("project", "task_id"), ("project",)),
    "labels": Table(Labels, ("project", "task_id", "round", "stage", "rater_id", "field"), ("project",)),
    "annotations": Table(Annotations, ("project", "task_id", "field"), ("project",)),
    "annotated_comments": Table(AnnotatedComments, ("release", "row_id"), ("release",)),
    "threads": Table(Threads, ("source", "thread_id"), ("source",)),
    "reference_comments": Table(ReferenceComments, ("source", "thread_id", "comment_id"), ("source",)),
    "comment_grades": Table(CommentGrades, ("project", "source", "thread_id", "comment_id"), ("project",)),
    "generated_comments": Table(GeneratedComments, ("source", "thread_id", "generated_id"), ("source", "system")),
    "metric_scores": Table(MetricScores, ("source", "thread_id", "generated_id", "metric", "is_weighted"), ("source",)),
    "compressions": Table(Compressions, ("source", "day", "item_id", "system"), ("source", "day")),
    "models": Table(Models, ("kind", "day", "model_id"), ("kind",)),
    "evaluations": Table(
        Evaluations, ("kind", "day", "model_id", "metric", "split", "subset", "epoch"), ("kind", "day")
    ),
    "studies": Table(Studies, ("study", "day", "setting", "metric", "subset", "run"), ("study", "day")),
    "training_texts": Table(TrainingTexts, ("kind", "model_id", "text_hash"), ("kind",)),
    "erasures": Table(Erasures, ("erasure_id", "store"), ("day",)),
    "model_erasures": Table(ModelErasures, ("erasure_id", "kind", "model_id"), ("kind",)),
    "scores": Table(Scores, (*_COMMENT, "metric", "model_id"), ("source", "day")),
    "dropped": Table(Dropped, (), ("source", "day")),
    "runs": Table(Runs, ("source", "day", "origin", "step"), ("day",)),
}
"""Every table by name. `dropped` has no key: a file may hold the same bad row twice."""


def empty(name: str) -> pl.DataFrame:
    """A frame of the table's columns and no rows."""
    return TABLES[name].schema.create_empty()
