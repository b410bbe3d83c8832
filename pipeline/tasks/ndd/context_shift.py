"""How much a comment's context changes what its words lead to expect, as a column beside implicitness and subtext.

CSD, section 1: a comment has subtext where its meaning alone, f(s), is not that in its context, f(c + s). NDD gives a
measure of that without labels. By a model of counts it shows that the mechanics work and no more.
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
from pipeline.tasks.ndd.masked_lm import Opened
from pipeline.tasks.record import day_texts, runs
from pipeline.tasks.studies.rows import framed, row
from pipeline.text import sentences
from pipeline.text.language import detect_language

Done = Callable[[int], None]

METRIC = "context_shift"
OTHERS = ("implicitness", "subtext")  # metrics of `scores` that it is held against
CACHE = 0.1  # of counts: without the words that a context repeats they would see its last word alone
DECIMALS = 6
_ROWS = 2000  # comments that are gone through at once


def frame(
    rows: pl.DataFrame, ref: str | None = None, day: str | None = None, done: Done = lambda _: None
) -> pl.DataFrame:
    """Any frame of text and context with `context_shift`, the mean of Hellinger's distances in [0, 1], and `signature`.

    Both are null where there is no text; the shift is 0 where there is no context.
    """
    said = rows.select(pl.col("text").fill_null(""), pl.col("context").fill_null(""), lang=detect_language())
    value, signed = np.full(len(rows), np.nan), np.full(len(rows), None, object)
    for (lang,), part in said.with_row_index("at").partition_by("lang", as_dict=True, maintain_order=True).items():
        opened = masked_lm.opened(ref, systems.spoken(str(lang)), day, CACHE)
        for some in part.iter_slices(_ROWS):
            value[some["at"].to_numpy()] = _shifts(some, str(lang), opened)
            done(len(some))
        signed[part["at"].to_numpy()] = signature(opened)
    found = pl.Series(METRIC, value.round(DECIMALS)).fill_nan(None)
    told = pl.DataFrame({METRIC: found, "signature": pl.Series(signed.tolist(), dtype=pl.String)})
    told = told.with_columns(signature=pl.when(pl.col(METRIC).is_not_null()).then("signature"))
    return rows.drop(told.columns, strict=False).hstack(told)


def _shifts(rows: pl.DataFrame, lang: str, opened: Opened) -> npt.NDArray[np.float64]:
    from pipeline.score import context_shift

    comments, contexts = (
        [[word for each in sentences.split_sentences(text, lang) for word in each.words] for text in rows[name]]
        for name in ("text", "context")
    )
    return context_shift.context_shift(opened.model, comments, contexts)


def signature(opened: Opened) -> str:
    """What made a score, as text."""
    return f"{METRIC}|{opened.model.signature}|divergence:hellinger|undertone:{__version__}"


def score_day(day: str, ref: str | None = None, run_id: str = "cli", done: Done = lambda _: None) -> int:
    """Score a day's comments in their contexts into `scores`, those by the same models anew; return the count.

    Each language has its model; a comment without a word has no row.
    """
    began = runs.start()
    columns = ("source", "day", "thread_id", "comment_id", "text_hash", "text", "context", "lang")
    comments = day_texts.scan_comments(day, warehouse.snapshot("comments"), *columns).collect()
    comments = comments.sort("source", "thread_id", "comment_id")
    models = {lang: masked_lm.opened(ref, lang, day, CACHE).model_id for lang in masked_lm.LANGS}
    langs = comments["lang"].unique().to_list()
    by = pl.col("lang").replace_strict({lang: models[systems.spoken(lang)] for lang in langs}, return_dtype=pl.String)
    told = frame(comments, ref, day, done).filter(pl.col(METRIC).is_not_null()).select(
        "source", "day", "thread_id", "comment_id", "text_hash", "signature", metric=pl.lit(METRIC), model_id=by,
        value=METRIC,
    )  # fmt: skip
    rows = told.select(TABLES["scores"].schema.column_names())

    def with_others(present: pl.LazyFrame) -> pl.LazyFrame:
        ours = (pl.col("metric") == METRIC) & pl.col("model_id").is_in(sorted(set(models.values())))
        return pl.concat([present.filter(~ours).select(rows.columns), rows.lazy()])

    warehouse.replace("scores", warehouse.slice_of(day=day), with_others, run_id)
    runs.record_scores(rows, day, "score_context_shift", METRIC, sorted(set(models.values())), run_id, began)
    return rows.height


def related(day: str, ref: str | None = None) -> pl.DataFrame:
    """How the shift goes with implicitness, subtext and length over a day's comments, as rows of `studies`.

    Spearman's correlation with intervals, and the same at equal length; quantiles of the shift.
    """
    from pipeline.score import context_shift

    models = {masked_lm.opened(ref, lang, day, CACHE).model_id for lang in masked_lm.LANGS}
    rows = beside(day, sorted(models))
    found: list[dict[str, Any]] = []
    for name, part in [("all", rows), *((str(source), part) for (source,), part in rows.group_by("source"))]:
        if part.height < 3:
            continue
        for each in context_shift.correlate_shift(part, [*OTHERS, context_shift.LENGTH], group="thread_id").to_dicts():
            for kind, ends in (("spearman", ""), ("partial", "partial_")):
                if each[kind] is None:  # nothing to compare, or the length with itself
                    continue
                low, high = each[f"{ends}low"], each[f"{ends}high"]
                number = row("context_shift", day, kind, name, each[kind], each["n"], low=low, high=high,
                             setting={"other": each["metric"]})  # fmt: skip
                found.append(number)
        for share in range(0, 101, 5):
            value = part[METRIC].quantile(share / 100, "linear")
            found.append(row("context_shift", day, f"q{share:03d}", name, value, part.height))
    return framed(found)


def beside(day: str, models: list[str]) -> pl.DataFrame:
    """A day's comments with their shift and other scores: source, thread_id, context_shift, …, word_count.

    Of a metric by several models the one whose id comes last counts; those without a context are left out.
    """
    where = pl.col("day") == parse_day(day)
    key = ["source", "day", "thread_id", "comment_id"]
    scores = warehouse.scan("scores", where).collect() if warehouse.snapshot("scores") else empty("scores")
    mine = scores.filter((pl.col("metric") == METRIC) & pl.col("model_id").is_in(models))
    comments = warehouse.scan("comments", where).filter(pl.col("context").fill_null("") != "").collect()
    found = comments.join(mine.select(*key, pl.col("value").alias(METRIC)), on=key)
    for name in OTHERS:
        theirs = scores.filter(pl.col("metric") == name).sort("model_id").unique(key, keep="last")
        found = found.join(theirs.select(*key, pl.col("value").alias(name)), on=key, how="left")
    cut = (sentences.split_sentences(text, lang) for text, lang in found.select("text", "lang").iter_rows())
    words = pl.Series([sum(len(each.words) for each in some) for some in cut], dtype=pl.Int64)
    return found.select("source", "thread_id", METRIC, *OTHERS, word_count=words).sort(pl.all())
