"""Place the texts of a day on the map of `undertone browse`, and replace the day's rows of `projections`."""

import polars as pl

from pipeline import warehouse
from pipeline.left_out import record_note
from pipeline.models.encoder import limit_rows
from pipeline.progress import OnProgress
from pipeline.score import projection, signature
from pipeline.slices import parse_day
from pipeline.tables import empty
from pipeline.tasks.impscore import scoring
from pipeline.tasks.record import day_texts, runs
from pipeline.tasks.record.encoders import load_encoder


def run(day: str, run_id: str = "cli", on_progress: OnProgress = lambda _: None) -> int:
    """Place the distinct texts of a day, each by the encoder that the model in force has for its language.

    Of more texts than an encoder may hold in memory, those with the lowest hashes are placed: a sample, the same again.
    Return the count of rows.
    """
    started = runs.start()
    snapshot = warehouse.get_snapshot_id("comments")
    comments = day_texts.scan_comments(day, snapshot, "text_hash", "text", "lang")
    texts = comments.unique("text_hash", keep="any").sort("text_hash").collect()
    heads = scoring.load_model(None, day).config["heads"]
    head_of = {lang: signature.choose_head(lang, list(heads)) for lang in texts["lang"].unique()}
    revision_of = {lang: heads[head]["encoder_revision"] for lang, head in head_of.items()}
    groups = texts.with_columns(revision=pl.col("lang").replace_strict(revision_of, return_dtype=pl.String))
    parts = [empty("projections").select("text_hash", "x", "y", "signature")]
    for group in groups.partition_by("revision", maintain_order=True):
        encoder = load_encoder(heads[head_of[group["lang"][0]]])
        if group.height > (limit := limit_rows(encoder.dim)):
            record_note(f"{encoder.name}: {limit:,} of {group.height:,} texts of {day} are placed, a sample")
        group = group.head(limit)  # noqa: PLW2901
        x, y = map(pl.Series, projection.place(group["text"].to_list(), encoder, on_progress).T)
        parts.append(group.select("text_hash", x=x, y=y, signature=pl.lit(projection.sign(encoder))))
    places = pl.concat(parts)

    def list_rows(_: pl.LazyFrame) -> pl.LazyFrame:
        """List the places of texts that the day has when they are written."""
        snapshot = warehouse.get_snapshot_id("comments")
        items = day_texts.scan_comments(day, snapshot, "source", "day", "text_hash").unique()
        return items.join(places.lazy(), on="text_hash").sort("source", "text_hash")

    count = warehouse.replace("projections", warehouse.make_slice(day=day), list_rows, run_id)
    counts = runs.count_sources(warehouse.scan("projections", pl.col("day") == parse_day(day)))
    config = {"signature": sorted(places["signature"].unique())}
    runs.record_counts(counts, day, "comments", "project", config, run_id, started)
    return count
