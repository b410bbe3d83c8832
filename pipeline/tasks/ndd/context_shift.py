"""Measure how much a comment's context changes what its words lead to expect, as a score beside the others.

CSD, section 1: a comment has subtext where its meaning alone, f(s), differs from that in its context, f(c + s). NDD
measures the difference without labels. With a model of counts it shows only that the mechanics work.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline import __version__, warehouse
from pipeline.slices import parse_day
from pipeline.tables import TABLES, empty
from pipeline.tasks.ndd import masked_lm, systems
from pipeline.tasks.ndd.masked_lm import LoadedModel
from pipeline.tasks.record import day_texts, runs
from pipeline.tasks.record.replace import replace_rows
from pipeline.tasks.studies.rows import build_frame, build_row
from pipeline.text import sentences
from pipeline.text.language import detect_language

OnProgress = Callable[[int], None]

METRIC = "context_shift"
COMPARED_METRICS = ("implicitness", "subtext")  # of `scores`
CACHE = 0.1  # of counts: without it a repeated word would see only the last word of the context
DECIMALS = 6
_BATCH_SIZE = 2000  # comments
_KEY = ["source", "day", "thread_id", "comment_id"]


def add_context_shift(
    rows: pl.DataFrame, ref: str | None = None, day: str | None = None, on_progress: OnProgress = lambda _: None
) -> pl.DataFrame:
    """Add `context_shift`, the mean of Hellinger's distances in [0, 1], and `signature` to rows of text and context.

    Both are null where there is no text; the shift is 0 where there is no context.
    """
    texts = rows.select(pl.col("text").fill_null(""), pl.col("context").fill_null(""), lang=detect_language())
    shifts, signatures = np.full(len(rows), np.nan), np.full(len(rows), None, object)
    by_lang = texts.with_row_index("row").partition_by("lang", as_dict=True, maintain_order=True)
    for (lang,), part in by_lang.items():
        lm = masked_lm.load_model(ref, systems.choose_model_lang(str(lang)), day, CACHE)
        for batch in part.iter_slices(_BATCH_SIZE):
            shifts[batch["row"].to_numpy()] = _measure_shifts(batch, str(lang), lm)
            on_progress(len(batch))
        signatures[part["row"].to_numpy()] = format_signature(lm)
    shift = pl.Series(METRIC, shifts.round(DECIMALS)).fill_nan(None)
    scores = pl.DataFrame({METRIC: shift, "signature": pl.Series(signatures.tolist(), dtype=pl.String)})
    scores = scores.with_columns(signature=pl.when(pl.col(METRIC).is_not_null()).then("signature"))
    return rows.drop(scores.columns, strict=False).hstack(scores)


def _measure_shifts(rows: pl.DataFrame, lang: str, lm: LoadedModel) -> npt.NDArray[np.float64]:
    from pipeline.score import context_shift

    comments, contexts = (
        [[word for sentence in sentences.split_sentences(text, lang) for word in sentence.words] for text in rows[name]]
        for name in ("text", "context")
    )
    return context_shift.context_shift(lm.model, comments, contexts)


def format_signature(lm: LoadedModel) -> str:
    """Name what made a score."""
    return f"{METRIC}|{lm.model.signature}|divergence:hellinger|undertone:{__version__}"


def score_day(day: str, ref: str | None = None, run_id: str = "cli", on_progress: OnProgress = lambda _: None) -> int:
    """Score a day's comments in their contexts into `scores`, replacing those by the same models; return the count.

    Each language has its model; a comment without a word has no row.
    """
    started = runs.start()
    columns = [*_KEY, "text_hash", "text", "context", "lang"]
    comments = day_texts.scan_comments(day, warehouse.snapshot("comments"), *columns).collect()
    comments = comments.sort("source", "thread_id", "comment_id")
    models = {lang: masked_lm.load_model(ref, lang, day, CACHE).model_id for lang in masked_lm.LANGS}
    model_ids = sorted(set(models.values()))
    model_by_lang = {lang: models[systems.choose_model_lang(lang)] for lang in comments["lang"].unique()}
    scores = add_context_shift(comments, ref, day, on_progress).filter(pl.col(METRIC).is_not_null())
    scores = scores.with_columns(
        metric=pl.lit(METRIC),
        model_id=pl.col("lang").replace_strict(model_by_lang, return_dtype=pl.String),
        value=METRIC,
    ).select(TABLES["scores"].schema.column_names())
    replaced = (pl.col("metric") == METRIC) & pl.col("model_id").is_in(model_ids)
    replace_rows("scores", warehouse.slice_of(day=day), scores, replaced, run_id)
    runs.record_scores(scores, day, "score_context_shift", METRIC, model_ids, run_id, started)
    return scores.height


def correlate_day(day: str, ref: str | None = None) -> pl.DataFrame:
    """Correlate the shift with implicitness, subtext and length over a day's comments.

    Returns:
        Rows of `studies`: Spearman's correlation with intervals, the same at equal length, and quantiles of the shift.
    """
    from pipeline.score import context_shift

    model_ids = {masked_lm.load_model(ref, lang, day, CACHE).model_id for lang in masked_lm.LANGS}
    comments = join_scores(day, sorted(model_ids))
    rows: list[dict[str, Any]] = []
    by_source = {str(source): part for (source,), part in comments.group_by("source")}
    for subset, part in [("all", comments), *by_source.items()]:
        if part.height < 3:
            continue
        correlations = context_shift.correlate_shift(part, [*COMPARED_METRICS, context_shift.LENGTH])
        for number in correlations.to_dicts():
            for kind, prefix in (("spearman", ""), ("partial", "partial_")):
                if number[kind] is not None:  # null: nothing to compare, or the length with itself
                    ends = {end: number[f"{prefix}{end}"] for end in ("low", "high")}
                    setting = {"other": number["metric"]}
                    rows.append(
                        build_row(METRIC, day, kind, subset, number[kind], number["n"], setting=setting, **ends)
                    )
        for percent in range(0, 101, 5):
            value = part[METRIC].quantile(percent / 100, "linear")
            rows.append(build_row(METRIC, day, f"q{percent:03d}", subset, value, part.height))
    return build_frame(rows)


def join_scores(day: str, model_ids: list[str]) -> pl.DataFrame:
    """Join a day's comments that have a context with their shift and other scores.

    Of a metric by several models the one whose id comes last counts.

    Returns:
        source, thread_id, context_shift, implicitness, subtext, word_count.
    """
    partition = pl.col("day") == parse_day(day)
    scores = warehouse.scan("scores", partition).collect() if warehouse.snapshot("scores") else empty("scores")
    shifts = scores.filter((pl.col("metric") == METRIC) & pl.col("model_id").is_in(model_ids))
    rows = warehouse.scan("comments", partition).filter(pl.col("context").fill_null("") != "").collect()
    rows = rows.join(shifts.select(*_KEY, pl.col("value").alias(METRIC)), on=_KEY)
    for metric in COMPARED_METRICS:
        other = scores.filter(pl.col("metric") == metric).sort("model_id").unique(_KEY, keep="last")
        rows = rows.join(other.select(*_KEY, pl.col("value").alias(metric)), on=_KEY, how="left")
    word_counts = [
        sum(len(sentence.words) for sentence in sentences.split_sentences(text, lang))
        for text, lang in rows.select("text", "lang").iter_rows()
    ]
    rows = rows.with_columns(word_count=pl.Series(word_counts, dtype=pl.Int64))
    return rows.select("source", "thread_id", METRIC, *COMPARED_METRICS, "word_count").sort(pl.all())
