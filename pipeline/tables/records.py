"""What was done: runs, dropped rows, erasures, and the texts that models learned."""

import dataframely as dy
import polars as pl

from pipeline.tables.columns import HASH, origin_column, rule, source_column, time_column

PROVENANCE = ("run_id", "started_at", "seconds", "byte_count", "input_tokens", "output_tokens", "cost_usd")
"""Columns in which `runs` may differ between two runs of one slice; `run_id` says as little in other tables."""


ERASED = "erased"  # what stands in the place of a hash, key or reason of what was erased


class Dropped(dy.Schema):
    """Rows that a step dropped, each with a reason."""

    source = source_column()
    day = dy.Date(description="Day of the run")
    origin = origin_column()
    step = dy.String(min_length=1, description="parse, clean, deduplicate, …")
    reason = dy.String(min_length=1, description="Reason in one or two words")
    row_key = dy.String(description="Position of the row in its source")


class Runs(dy.Schema):
    """Rows that each run read, kept and dropped, and the parameters to repeat the run."""

    source = source_column()
    day = dy.Date(description="Day of the data")
    origin = origin_column()
    step = dy.String(min_length=1, description="collect, tokenize, score, …")
    read_count = dy.Int64(min=0, description="Rows that the step read")
    kept_count = dy.Int64(min=0, description="Rows that the step kept")
    dropped_count = dy.Int64(min=0, description="Rows that the step dropped; each is in dropped")
    config = dy.String(min_length=2, description="Parameters as JSON")
    run_id = dy.String(description="Airflow run, or `cli`: provenance only")
    code_version = dy.String(min_length=1, description="Version of undertone")
    started_at = time_column("Start of the work; this and all columns below are provenance only")
    seconds = dy.Float64(
        nullable=True, min=0, description="Seconds of work, including shards, distributed over sources by rows"
    )
    byte_count = dy.Int64(nullable=True, min=0, description="Bytes written to tables, distributed over sources by rows")
    input_tokens = dy.Int64(nullable=True, min=0, description="Tokens sent to a language model; null without requests")
    output_tokens = dy.Int64(nullable=True, min=0, description="Tokens in the answers of the language model")
    cost_usd = dy.Float64(nullable=True, min=0, description="Cost of these tokens; null if a price is unknown")

    adds_up = rule(pl.col("read_count") == pl.col("kept_count") + pl.col("dropped_count"))


class TrainingTexts(dy.Schema):
    """Hashes of the training texts of each model, to find the models that learned from erased texts.

    An erased text keeps its count and loses its hash: the row `erased` counts all erased texts of a model.
    """

    kind = dy.String(min_length=1, description="Kind of model")
    model_id = dy.String(min_length=1, description="models.model_id, or the folder of an adapted encoder")
    text_hash = dy.String(regex="^([0-9a-f]{32}|erased)$", description="128-bit BLAKE2 of the text, or `erased`")
    row_count = dy.Int64(min=1, description="Number of training rows with the text")
    is_labelled = dy.Bool(
        nullable=True, description="Whether the model learned from a label of the text; null: not recorded"
    )


class Erasures(dy.Schema):
    """Receipts of erasures by store. They name no person and quote no text."""

    erasure_id = dy.String(regex=HASH, description="Random id of the erasure")
    day = dy.Date(description="UTC day of the erasure")
    erased_at = dy.Datetime(time_unit="us", time_zone="UTC", description="Time of the erasure")
    kind = dy.String(
        min_length=1, description="Kind of the ids in the request: user_id, comment_id, thread_id or origin"
    )
    request_count = dy.Int64(min=0, description="Number of ids in the request")
    store = dy.String(min_length=1, description="Table, or a folder or database outside the tables")
    row_count = dy.Int64(min=0, description="Erased rows, records and fields in the store")
    file_count = dy.Int64(min=0, description="Removed or rewritten files of the store")
    run_id = dy.String(description="Airflow run, or `cli`: provenance only")
    code_version = dy.String(min_length=1, description="Version of undertone")


class ModelErasures(dy.Schema):
    """Models that learned from erased texts: the share of these texts, the action, and the replacement."""

    erasure_id = dy.String(regex=HASH, description="erasures.erasure_id")
    kind = dy.String(min_length=1, description="Kind of model")
    model_id = dy.String(min_length=1, description="training_texts.model_id, or a folder below the home")
    erased_count = dy.Int64(min=0, description="Training rows that this erasure erased")
    training_count = dy.Int64(min=0, description="Training rows at the training of the model; 0: no record")
    erased_ratio = dy.Float64(min=0, max=1, description="erased_count / training_count, rounded to 6 decimals")
    action = dy.String(
        nullable=True,
        regex="^(removed|flagged|absent)$",
        description="removed: its files had words; flagged: its files have only numbers; absent: no files here",
    )
    day = dy.Date(nullable=True, description="Day of the training run; null for a model that is in no table")
    is_promoted = dy.Bool(nullable=True, description="Whether later runs scored with the model")
    recipe = dy.String(nullable=True, description="Profile and hyperparameters for a new training, as JSON")
    replaced_by = dy.String(nullable=True, description="models.model_id of the replacement")
