"""Models, what they are worth, and what they say of texts."""

import dataframely as dy
import polars as pl

from pipeline.tables.columns import HASH, SHA256, SOURCE, rule, source_column

_REMAINING_RATIO = pl.col("rounds").list.count_matches(0) / pl.col("rounds").list.len()


class Compressions(dy.Schema):
    """Sentences of data sets with the words that people and systems dropped (NDD, section 4)."""

    source = source_column()
    day = dy.Date(description="Day of the run")
    item_id = dy.String(min_length=1, description="Id of the sentence in the data set")
    system = dy.String(regex=SOURCE, description="ndd, fast_ndd_sc, …, unedited, head, tail, random; gold for people")
    lang = dy.String(description="zh, en, …")
    words = dy.List(dy.String(), description="Words in order")
    rounds = dy.List(dy.Int64(min=0), description="Round that dropped each word; 0 for a kept word")
    ratio = dy.Float64(min=0, max=1, description="Share of kept words, rounded to 6 decimals")
    signature = dy.String(min_length=4, description="System, model, parameters, code version; `gold` for people")

    a_round_for_each_word = rule(pl.col("words").list.len() == pl.col("rounds").list.len())
    ratio_is_what_stays = rule((pl.col("ratio") - _REMAINING_RATIO).abs() < 1e-6)


class Models(dy.Schema):
    """Trained models, by content hash."""

    kind = dy.String(min_length=1, description="impscore, subtext, abstractness, reader_imperceptibility, …")
    day = dy.Date(
        description="Day of the training run; a day is scored with the newest model of this or an earlier day"
    )
    model_id = dy.String(regex=SHA256, description="SHA-256 over weights and configuration")
    is_promoted = dy.Bool(description="Whether later runs score with this model: the last one of its kind and day")
    encoder = dy.String(min_length=1, description="Sentence encoder by name")
    encoder_revision = dy.String(min_length=1, description="Content hash or pinned revision of the encoder")
    config = dy.String(min_length=2, description="Hyperparameters and seeds as JSON")
    data_hash = dy.String(min_length=1, description="Hash of the training rows")
    completion_models = dy.List(dy.String(), description="Models whose completions are in the training rows")
    code_version = dy.String(min_length=1, description="Version of undertone")


class Evaluations(dy.Schema):
    """Measures of models, each with its baseline."""

    kind = dy.String(min_length=1, description="Kind of model")
    day = dy.Date(description="Day of the training run")
    model_id = dy.String(regex=SHA256, description="models.model_id")
    metric = dy.String(min_length=1, description="implicitness_accuracy, pragmatics_accuracy, …")
    split = dy.String(min_length=1, description="train, validation or test")
    subset = dy.String(min_length=1, description="`all`, or one source")
    epoch = dy.Int64(min=0, description="Epoch, 0 for the final model")
    value = dy.Float64(description="The number, rounded to 6 decimals")
    baseline = dy.Float64(nullable=True, description="The same metric of the named baseline")
    baseline_name = dy.String(nullable=True, description="Name of the baseline, such as `longer_is_implicit`")
    pair_count = dy.Int64(min=0, description="Number of measured pairs or triples")


class Studies(dy.Schema):
    """Numbers of studies: setting, metric, value, interval and number of rows.

    ImpScore, sections 5.3 and 7; commenting, section 5; NDD, sections 3 to 5.
    """

    study = dy.String(
        regex="^(ablation|sensitivity|data_sets|diversity|detection|correlation|compression|similarity|pruning|"
        "predicates|context_shift|calibration|validation|people)$",
        description="Name of the study",
    )
    day = dy.Date(description="Day of the run")
    model_id = dy.String(nullable=True, regex=SHA256, description="Model of the study; null if the study trains models")
    setting = dy.String(min_length=2, description="Varied parameters, as JSON")
    metric = dy.String(min_length=1, description="implicitness_accuracy, mean, q50, accuracy, …")
    subset = dy.String(min_length=1, description="test; a source, `source:implicit`; a bin such as 0.25-0.50")
    run = dy.Int64(min=0, description="Repetition, from 0")
    value = dy.Float64(nullable=True, description="The number, rounded to 6 decimals; null for an empty bin")
    low = dy.Float64(nullable=True, description="Lower end of the 95% interval")
    high = dy.Float64(nullable=True, description="Upper end of the 95% interval")
    row_count = dy.Int64(min=0, description="Number of measured rows")
    effective_count = dy.Int64(nullable=True, min=0, description="Number of near-duplicate clusters among the rows")


class Scores(dy.Schema):
    """Scores of comments by model and metric. A new model adds rows and overwrites none."""

    source = source_column()
    day = dy.Date(description="Day of the comments")
    thread_id = dy.String(min_length=1, description="comments.thread_id")
    comment_id = dy.String(min_length=1, description="comments.comment_id")
    text_hash = dy.String(regex=HASH, description="comments.text_hash of the scored text")
    metric = dy.String(min_length=1, description="implicitness, …")
    model_id = dy.String(min_length=1, description="models.model_id")
    value = dy.Float64(description="The score, rounded to 6 decimals")
    signature = dy.String(min_length=8, description="Metric, model, encoder and its revision, code version")

    implicitness_in_range = rule((pl.col("metric") != "implicitness") | pl.col("value").is_between(0.0, 2.0))


class Projections(dy.Schema):
    """Places of the distinct texts of a day on a map. Only places with one day and signature compare."""

    source = source_column()
    day = dy.Date(description="Day of the comments")
    text_hash = dy.String(regex=HASH, description="comments.text_hash of the placed text")
    x = dy.Float64(description="Place across, rounded to 4 decimals")
    y = dy.Float64(description="Place up, rounded to 4 decimals")
    signature = dy.String(min_length=8, description="Method, encoder and its revision, seed, code version")


class ScoresExplained(dy.Schema):
    """Words of the most and the least implicit comments of a source and day, and how each changes the score."""

    source = source_column()
    day = dy.Date(description="Day of the comments")
    thread_id = dy.String(min_length=1, description="comments.thread_id")
    comment_id = dy.String(min_length=1, description="comments.comment_id")
    text_hash = dy.String(regex=HASH, description="comments.text_hash of the explained text")
    model_id = dy.String(min_length=1, description="models.model_id")
    position = dy.Int64(min=1, description="Place of the word in the text, from 1")
    word = dy.String(min_length=1, description="The word; neighbours count as one in a text of more than 64 words")
    change = dy.Float64(description="Score minus that of the text without the word; above 0 it adds implicitness")
    signature = dy.String(min_length=8, description="scores.signature of the score")
