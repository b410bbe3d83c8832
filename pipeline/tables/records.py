"""What was done: runs, dropped rows, erasures, and the texts that models learned."""

import dataframely as dy
import polars as pl

from pipeline.tables.columns import origin_column, rule, source_column, time_column

PROVENANCE = ("run_id", "started_at", "seconds", "byte_count", "input_tokens", "output_tokens", "cost_usd")
"""Columns in which `runs` may differ between two runs of one slice; `run_id` says as little in other tables."""


ERASED = "erased"  # what stands in the place of a hash, key or reason of what was erased


class Dropped(dy.Schema):
    """Rows that a step left out, each with its reason."""

    source = source_column()
    day = dy.Date(description="Day of the run")
    origin = origin_column()
    step = dy.String(min_length=1, description="parse, clean, deduplicate, …")
    reason = dy.String(min_length=1, description="Why, as one word or two")
    row_key = dy.String(description="Where to find the row in its source")


class Runs(dy.Schema):
    """What each run read, kept and dropped: the funnel, and how to repeat the run."""

    source = source_column()
    day = dy.Date(description="Day the run was about")
    origin = origin_column()
    step = dy.String(min_length=1, description="collect, tokenize, score, …")
    read_count = dy.Int64(min=0, description="Rows in")
    kept_count = dy.Int64(min=0, description="Rows out")
    dropped_count = dy.Int64(min=0, description="Rows left out; each is in dropped")
    config = dy.String(min_length=2, description="Parameters as JSON")
    run_id = dy.String(description="Airflow run, or `cli`: provenance only")
    code_version = dy.String(min_length=1, description="Version of undertone")
    started_at = time_column("When the work began: provenance only, as are all columns below")
    seconds = dy.Float64(nullable=True, min=0, description="Of work, shards and all; shared out by rows among sources")
    byte_count = dy.Int64(nullable=True, min=0, description="Bytes written into tables, shared out likewise")
    input_tokens = dy.Int64(nullable=True, min=0, description="Sent to a language model; null where none was asked")
    output_tokens = dy.Int64(nullable=True, min=0, description="That a language model answered")
    cost_usd = dy.Float64(nullable=True, min=0, description="Of these; null where a price is unknown")

    adds_up = rule(pl.col("read_count") == pl.col("kept_count") + pl.col("dropped_count"))


class TrainingTexts(dy.Schema):
    """Hashes of the texts each model was trained on, so that models that learned from erased texts can be found.

    What was erased keeps its count and loses its hash: the row `erased` counts all that was erased of a model.
    """

    kind = dy.String(min_length=1, description="Kind of model")
    model_id = dy.String(min_length=1, description="models.model_id, or the folder of an adapted encoder")
    text_hash = dy.String(regex="^([0-9a-f]{32}|erased)$", description="128-bit BLAKE2 of the text, or `erased`")
    row_count = dy.Int64(min=1, description="Training rows that have the text")


class Erasures(dy.Schema):
    """Receipts: what was erased on request, in which store. They name no person and quote no text."""

    erasure_id = dy.String(regex="^[0-9a-f]{32}$", description="Random id of the erasure")
    day = dy.Date(description="UTC day it was done")
    erased_at = dy.Datetime(time_unit="us", time_zone="UTC", description="When it was done")
    kind = dy.String(min_length=1, description="What the request named: user_id, comment_id, thread_id, origin")
    request_count = dy.Int64(min=0, description="How many of these it named")
    store = dy.String(min_length=1, description="Table, or folder or database outside the tables")
    row_count = dy.Int64(min=0, description="Rows, records and fields that were erased in it")
    file_count = dy.Int64(min=0, description="Files of it that were removed or rewritten")
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
