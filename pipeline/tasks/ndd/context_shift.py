"""Measure how much a comment's context changes what its words lead to expect, as a score beside the others.

CSD, section 1: a comment has subtext where its meaning alone, f(s), differs from that in its context, f(c + s).
"""

from typing import Any

import polars as pl

from pipeline import __version__, warehouse
from pipeline.metrics.ndd.distance import Divergence, Weights
from pipeline.progress import OnProgress
from pipeline.score import context_shift
from pipeline.slices import parse_day
from pipeline.tables import TABLES, empty
from pipeline.tasks.ndd import masked_lm, systems
from pipeline.tasks.record import day_texts, runs
from pipeline.tasks.record.replace import replace_rows
from pipeline.tasks.studies.rows import build_frame, build_rows
from pipeline.text import sentences
from pipeline.text.language import detect_language

METRIC = context_shift.SHIFT
COMPARED_METRICS = ("implicitness", "subtext")  # of `scores`
CACHE = 0.1  # of counts: without it a repeated word would see only the last word of the context
DECIMALS = 6
_BATCH_SIZE = 2000  # comments
_KEY = ["source", "day", "thread_id", "comment_id"]


def add_context_shift(
    rows: pl.DataFrame,
    ref: str | None = None,
    day: str | None = None,
    on_progress: OnProgress = lambda _: None,
    *,
    divergence: Divergence = "hellinger",
    weights: Weights = "mean",
) -> pl.DataFrame:
    """Add `context_shift` and `signature`, null without a text; the shift is 0 without a context."""
    texts = rows.select(pl.col("text").fill_null(""), pl.col("context").fill_null(""), lang=detect_language())
    schema = {METRIC: pl.Float64, "signature": pl.String}
    scores: list[tuple[float | None, str | None]] = [(None, None)] * len(rows)
    for lang, part in systems.split_languages(texts.with_row_index("row")):
        lm = masked_lm.load_model(ref, systems.choose_model_lang(lang), day, CACHE)
        options = f"divergence:{divergence}|weights:{weights}"
        signature = f"{METRIC}|{lm.model.signature}|{options}|undertone:{__version__}"
        for batch in part.iter_slices(_BATCH_SIZE):
            comments, contexts = ([_split_words(text, lang) for text in batch[name]] for name in ("text", "context"))
            shifts = context_shift.context_shift(lm.model, comments, contexts, divergence=divergence, weights=weights)
            for row, words, shift in zip(batch["row"], comments, shifts.round(DECIMALS).tolist(), strict=True):
                if words:
                    scores[row] = shift, signature
            on_progress(len(batch))
    return rows.drop(schema, strict=False).hstack(pl.DataFrame(scores, schema, orient="row"))


def _split_words(text: str, lang: str) -> list[str]:
    return [word for sentence in sentences.split_sentences(text, lang) for word in sentence.words]


def score_day(
    day: str, ref: str | None = None, run_id: str = "cli", on_progress: OnProgress = lambda _: None, **options: Any
) -> int:
    """Score a day's comments in their contexts into `scores`, each language by its model; return the row count."""
    started = runs.start()
    columns = [*_KEY, "text_hash", "text", "context", "lang"]
    comments = day_texts.scan_comments(day, warehouse.get_snapshot_id("comments"), *columns).collect()
    comments = comments.sort("source", "thread_id", "comment_id")
    models = {lang: masked_lm.load_model(ref, lang, day, CACHE).model_id for lang in masked_lm.LANGS}
    model_ids = sorted(set(models.values()))
    model_by_lang = {lang: models[systems.choose_model_lang(lang)] for lang in comments["lang"].unique()}
    scores = add_context_shift(comments, ref, day, on_progress, **options).filter(pl.col(METRIC).is_not_null())
    model_id = pl.col("lang").replace_strict(model_by_lang, return_dtype=pl.String)
    scores = scores.with_columns(metric=pl.lit(METRIC), model_id=model_id, value=METRIC)
    scores = scores.select(TABLES["scores"].schema.column_names())
    replaced = (pl.col("metric") == METRIC) & pl.col("model_id").is_in(model_ids)
    replace_rows("scores", warehouse.make_slice(day=day), scores, replaced, run_id)
    runs.record_scores(scores, day, "score_context_shift", METRIC, model_ids, run_id, started)
    return scores.height


def correlate_day(day: str, ref: str | None = None) -> pl.DataFrame:
    """Correlate the shift with implicitness, subtext and length over a day's comments; return rows of `studies`."""
    model_ids = {masked_lm.load_model(ref, lang, day, CACHE).model_id for lang in masked_lm.LANGS}
    comments = join_scores(day, sorted(model_ids))
    is_shift = (pl.col("day") == parse_day(day)) & (pl.col("metric") == METRIC) & pl.col("model_id").is_in(model_ids)
    signatures = warehouse.scan("scores", is_shift).select(pl.col("signature").unique().sort()).collect()["signature"]
    setting = {"signature": "; ".join(signatures)}
    rows: list[dict[str, Any]] = []
    by_source = {str(source): part for (source,), part in comments.group_by("source")}
    for subset, part in [("all", comments), *by_source.items()]:
        if part.height < 3:
            continue
        correlations = context_shift.correlate_shift(part, [*COMPARED_METRICS, context_shift.LENGTH])
        for number in correlations.to_dicts():
            numbers = [
                {**number, "metric": kind, "value": number[kind], "low": number[low], "high": number[high]}
                for kind, low, high in (("spearman", "low", "high"), ("partial", "partial_low", "partial_high"))
                if number[kind] is not None  # null: nothing to compare, or the length with itself
            ]
            rows += build_rows(METRIC, day, subset, {**setting, "other": number["metric"]}, numbers)
        shares = {f"q{percent:03d}": part[METRIC].quantile(percent / 100, "linear") for percent in range(0, 101, 5)}
        quantiles = [{"metric": name, "value": value, "n": part.height} for name, value in shares.items()]
        rows += build_rows(METRIC, day, subset, setting, quantiles)
    return build_frame(rows)


def join_scores(day: str, model_ids: list[str]) -> pl.DataFrame:
    """Join a day's comments in a context with their shift and other scores, of several models the last by id."""
    partition = pl.col("day") == parse_day(day)
    scores = warehouse.scan("scores", partition).collect() if warehouse.get_snapshot_id("scores") else empty("scores")
    shifts = scores.filter((pl.col("metric") == METRIC) & pl.col("model_id").is_in(model_ids))
    rows = warehouse.scan("comments", partition).filter(pl.col("context").fill_null("") != "").collect()
    rows = rows.join(shifts.select(*_KEY, pl.col("value").alias(METRIC)), on=_KEY)
    for metric in COMPARED_METRICS:
        other = scores.filter(pl.col("metric") == metric).sort("model_id").unique(_KEY, keep="last")
        rows = rows.join(other.select(*_KEY, pl.col("value").alias(metric)), on=_KEY, how="left")
    word_counts = [len(_split_words(text, lang)) for text, lang in rows.select("text", "lang").iter_rows()]
    rows = rows.with_columns(word_count=pl.Series(word_counts, dtype=pl.Int64))
    return rows.select("source", "thread_id", METRIC, *COMPARED_METRICS, "word_count").sort(pl.all())
