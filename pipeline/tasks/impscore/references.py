"""Build reference corpora, and read scores by them: percentile, band, and the words that carry a score.

The reference `sample` of the shipped model lies in its folder; all others are files in the home, `<name>/<model>.json`.
"""

import re
from collections.abc import Sequence
from functools import partial

import numpy as np
import polars as pl

from pipeline import left_out, logs, sample, settings
from pipeline.collect.importers import read
from pipeline.errors import BadInput, Missing
from pipeline.io.atomic import write_text
from pipeline.io.lines import read_json_lines
from pipeline.metrics.impscore.studies import average_correlations
from pipeline.progress import OnProgress
from pipeline.score import explain
from pipeline.score import reference as scales
from pipeline.score.reference import Reference, Scale
from pipeline.score.signature import drop_earlier_scores
from pipeline.tasks.impscore import scoring
from pipeline.text.language import detect_language

SAMPLE = "sample"
READINGS = {"percentile": pl.Float64, "band": pl.String}
EXPLAINED = 100  # texts explained at once, each by up to 64 shorter ones


def load_reference(ref: str | None, name: str | None = None) -> Reference | None:
    """Load a reference of the model that answers; without a name that of the sample, or None if there is none."""
    _check_name(name or SAMPLE)
    choice = scoring.choose_model(ref)
    file = settings.references() / (name or SAMPLE) / f"{choice.model_id}.json"
    if name in (None, SAMPLE) and choice.is_shipped and not file.is_file():
        file = scales.SHIPPED
    if file.is_file():
        return scales.parse_reference(file.read_text(encoding="utf-8"), str(file))
    if name is None:
        return None
    names = sorted(path.parent.name for path in settings.references().glob(f"*/{choice.model_id}.json"))
    problem = f"model {choice.model_id[:12]} has no reference {name!r}; found {', '.join(names) or 'none'};"
    raise Missing(f"{problem} build it: undertone reference build FILE --name {name}")


def _check_name(name: str) -> None:
    """Check the name of a reference, which is that of its folder."""
    if not re.fullmatch(r"[\w-]{1,60}", name):
        raise BadInput(f"reference {name!r}: expected a name of at most 60 letters, digits, - and _")


def build_reference(
    texts: Sequence[str | None] | None = None,
    name: str = SAMPLE,
    ref: str | None = None,
    on_progress: OnProgress = lambda _: None,
    *,
    source: str = "texts of the shipped sample, without graded groups of the training split",
) -> Reference:
    """Build the reference of some texts, by default of our sample, as the model that answers scores them.

    A language needs at least 100 texts. The bands are those of the model's reference `sample`, if it has one.
    """
    _check_name(name)
    if (texts is None) != (name == SAMPLE):
        raise BadInput(f"the name {SAMPLE!r} is for the shipped sample; give texts and another name, or neither")
    earlier = load_reference(ref) if texts is not None else None
    groups = pl.DataFrame()
    if earlier is None:
        from pipeline.tasks.impscore.train import read_shipped_groups

        # the shipped groups that no shipped model was trained on
        groups = pl.concat([read_shipped_groups(lang).with_columns(lang=pl.lit(lang)) for lang in sample.GROUPS])
        groups = groups.filter(pl.col("split") != "train")
        groups = scoring.add_scores(groups, "text", ref, on_progress, pl.col("lang"))
    group_scales = earlier.scales if earlier else _measure_groups(groups)
    rows = pl.DataFrame({"text": _read_sample() if texts is None else texts}, schema={"text": pl.String})
    scored = scoring.add_scores(rows, "text", ref, on_progress).select(detect_language().alias("lang"), "implicitness")
    left_out.record_rows("reference", {"no_text": scored["implicitness"].null_count()}, name)
    if texts is None:
        scored = pl.concat([scored, groups.select("lang", "implicitness")])
    values = {str(lang): part["implicitness"] for (lang,), part in scored.drop_nulls().group_by("lang")}
    references = {
        lang: group_scales.get(lang, Scale(0, []))._replace(
            text_count=len(part), quantiles=scales.measure_quantiles(part.to_numpy())
        )
        for lang, part in sorted(values.items())
        if len(part) >= scales.MIN_TEXTS and lang != "und"
    }
    counts = ", ".join(f"{lang} {len(part)}" for lang, part in sorted(values.items()) if lang not in references)
    if not references:
        raise BadInput(f"a reference needs {scales.MIN_TEXTS} texts of one language, found {counts or 'none'}")
    if counts:
        text = f"impscore: reference {name!r} lacks languages of fewer than {scales.MIN_TEXTS} texts: {counts}"
        logs.log_answer(text, text)
    return Reference(name, scoring.choose_model(ref).model_id, source, references)


def write_reference(reference: Reference) -> str:
    """Write a reference into the home; return the path."""
    path = settings.references() / reference.name / f"{reference.model_id}.json"
    write_text(path, scales.format_reference(reference))
    return str(path)


def _measure_groups(groups: pl.DataFrame) -> dict[str, Scale]:
    """Fit the thresholds on the groups of the validation split, and measure them on those of the test split."""
    group_scales = {}
    for (lang,), part in groups.with_columns(value="implicitness").group_by("lang"):
        parts = [part.filter(split=split) for split in ("validation", "test")]
        validation, test = ((rows["value"].to_numpy(), rows["level"].to_numpy()) for rows in parts)
        thresholds = scales.fit_thresholds(*validation)
        agreement, correlations = scales.measure_agreement(*test, thresholds), average_correlations(parts[1])
        numbers = (correlations.kendall_tau, correlations.group_count)
        group_scales[str(lang)] = Scale(0, [], thresholds, agreement, *numbers)
    return group_scales


def _read_sample() -> list[str]:
    """Read the comments of the sample's pages and threads, and its sentences from pairs of similar ones."""
    paths = [path for site in sample.list_sites() for path in sample.list_pages(site)]
    batches = [batch for path in paths for batch in read(path, None, {}, None)]
    batches += read(sample.THREADS, "sample_news", sample.THREAD_COLUMNS, None)
    similar = [row[side] for _, row in read_json_lines(sample.SIMILAR) for side in ("one", "other")]
    return similar + [comment.text for batch in batches for comment in batch.page.comments]


def add_readings(
    rows: pl.DataFrame,
    column: str,
    ref: str | None,
    reference: Reference | None,
    on_progress: OnProgress = lambda _: None,
) -> pl.DataFrame:
    """Add `implicitness`, `percentile`, `band` and `signature` of a text column to any frame.

    Percentile and band are null without a reference of the language. A warning names where the model is weak.
    """
    rows = drop_earlier_scores(rows, "implicitness", ("implicitness", *READINGS, "signature"))
    scores = scoring.add_scores(rows, column, ref, on_progress)
    langs = pl.DataFrame({"text": scores[column]}).select(detect_language()).to_series()
    warn_weak(ref, reference, langs.filter(scores["implicitness"].is_not_null()).unique().to_list())
    reference = reference or Reference("", "", "", {})
    pairs = [reference.read(*pair) for pair in zip(scores["implicitness"], langs, strict=True)]
    readings = pl.DataFrame(pairs, READINGS, orient="row")
    return scores.drop("signature").hstack(readings).hstack([scores["signature"]])


def add_percentiles(
    rows: pl.DataFrame, reference: Reference | None, value: str = "implicitness", name: str = "percentile"
) -> pl.DataFrame:
    """Add the percentiles of a column of scores, each in its `lang`; null without a reference of the language."""
    percentiles, values = np.full(rows.height, np.nan), rows[value].cast(pl.Float64).to_numpy()
    for lang in rows["lang"].unique() if reference else ():
        is_lang = (rows["lang"] == lang).to_numpy()
        percentiles[is_lang] = reference.measure_percentiles(values[is_lang], lang) if reference else np.nan
    return rows.with_columns(pl.Series(name, percentiles).fill_nan(None))


def add_words(
    scores: pl.DataFrame, column: str, ref: str | None, on_progress: OnProgress = lambda _: None
) -> pl.DataFrame:
    """Add `words` to scored rows: position, word, and how the score would change without it; null for one word."""

    def score(texts: list[str], lang: str) -> list[float]:
        rows = pl.DataFrame({"text": texts}, schema={"text": pl.String})
        return scoring.score_texts(rows.with_columns(text_hash=pl.lit(""), lang=pl.lit(lang)), ref)["value"].to_list()

    drop_earlier_scores(scores, "words", ("words", "position", "word", "change"))
    rows = scores.select(text=pl.col(column).str.strip_chars(), value="implicitness").with_row_index("row")
    words: dict[int, list[tuple[int, str, float]]] = {}
    for (lang,), same in rows.with_columns(lang=detect_language()).drop_nulls().group_by("lang"):
        cut, score_shorter = explain.choose_cut(str(lang)), partial(score, lang=str(lang))
        for part in same.iter_slices(EXPLAINED):
            texts, values = part["text"].to_list(), part["value"].to_list()
            words.update(zip(part["row"], explain.explain(texts, values, cut, score_shorter), strict=True))
            on_progress(part.height)
    fields = {"position": pl.Int64, "word": pl.String, "change": pl.Float64}
    parts = (words.get(row, ()) for row in range(scores.height))
    lists = [[dict(zip(fields, word, strict=True)) for word in part] or None for part in parts]
    return scores.with_columns(words=pl.Series(lists, dtype=pl.List(pl.Struct(fields))))


def describe_weakness(reference: Reference | None, langs: Sequence[str] | None = None) -> str:
    """Describe for a page in which of the languages, by default all, the model is weak; empty if in none."""
    text = scales.describe_weakness(reference.list_weak(langs)) if reference else ""
    advice = "Read percentiles over many comments, and do not decide by one value."
    return text and f"{text[0].upper()}{text[1:]}. {advice}"


def warn_weak(ref: str | None, reference: Reference | None, langs: Sequence[str] | None = None) -> None:
    """Log once in which of the languages, by default all, the model is weak, and where percentiles are missing."""
    if reference is None:
        text = "impscore: the model has no reference, so no percentiles; build it: undertone reference build"
        return logs.log_answer(text, f"{text} --model {ref}" if ref else text)
    if absent := ", ".join(sorted({*(langs or ())} - {*reference.scales})):
        text = f"impscore: reference {reference.name!r} has no texts in {absent}, so no percentiles there"
        logs.log_answer(text, text)
    if weakness := scales.describe_weakness(reference.list_weak(langs)):
        logs.log_answer(weakness, f"impscore: {weakness}; read percentile and band, not the value alone")
    return None
