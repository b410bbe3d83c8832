"""Test the distance, as rows of `studies`: edits, overlap, pruned trees, predicates (NDD, sections 3 and 5)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl

from pipeline import left_out, sample, settings
from pipeline.errors import BadInput
from pipeline.examples.ndd import pairs as examples
from pipeline.metrics.ndd import distance, pruning, similarity
from pipeline.metrics.ndd import predicates as detection
from pipeline.metrics.ndd.distance import Floats, Sentence
from pipeline.score.compress.search import LONGEST, Search
from pipeline.tasks.ndd import masked_lm, systems
from pipeline.tasks.studies.rows import build_frame, build_rows
from pipeline.text import tagging, trees

TESTS = ("similarity", "pruning", "predicates")  # studies of `run_study`
THRESHOLDS = (1.0, 2.0)  # of table 7
DECIMALS = 6


def measure_distances(
    sentences: Sequence[Sentence], other_sentences: Sequence[Sentence], lm: masked_lm.LoadedModel, **options: Any
) -> dict[str, Floats]:
    """Measure NDD (with options of `distances`) between pairs of sentences, and what it is compared with."""
    values = {
        "ndd": distance.distances(lm.model, sentences, other_sentences, **options),
        "ndd_kl": distance.distances(lm.model, sentences, other_sentences, divergence="kl"),
        "perplexity": np.abs(distance.perplexity_change(lm.model, sentences, other_sentences)),
    }
    if not masked_lm.is_count_model(lm):
        values["cosine"] = distance.cosine(lm.model, sentences, other_sentences)  # type: ignore[arg-type]
        values["ensemble"] = similarity.ensemble(pl.Series(values["ndd"]), pl.Series(values["cosine"])).to_numpy()
    return values


def build_test_pairs(data: str | None, syntax: str | None, limit: int) -> pl.DataFrame:
    """Build the pairs of all tests (section 3), and record how many sentences gave none.

    The test `supervised` has the graded pairs in English, by default the sample's; the others edit `limit` of their
    sentences with words of all of them. Returns test, pair_id, sentence_id, one, other (words), is_positive,
    similarity, overlap.
    """
    dataset = examples.read_graded(Path(data) if data else sample.SIMILAR)
    graded = examples.add_overlap(dataset.rows).filter(pl.col("lang") == "en")
    if unusable_count := dataset.rows.height - graded.height + dataset.dropped.height:
        step = f"read {Path(data).name if data else 'the pairs of the sample'}"
        left_out.record_rows(step, {"without_words_or_not_english": unusable_count})
    texts = pl.concat([graded["one"], graded["other"]]).unique(maintain_order=True)
    treebank = Path(syntax) if syntax else None
    tagger = tagging.load_tagger(settings.resources() / "stanza", treebank, settings.scratch("tagging"))
    parts = ((f"{n}.{i}", tokens) for n, text in enumerate(texts) for i, tokens in enumerate(tagger.analyse(text)))
    sentences = [examples.convert_tokens(*part) for part in parts]
    edited_ids = [sentence.sentence_id for sentence in sentences[:limit]]
    tests = []
    for test in examples.TESTS:
        pairs = examples.generate(sentences, test)
        left_out.record_rows(f"test {test}", dict(pairs.dropped["reason"].value_counts().iter_rows()))
        tests.append(pairs.rows.filter(pl.col("sentence_id").is_in(edited_ids)).drop("places"))
    graded = graded.drop("one", "other", "lang").rename({"one_words": "one", "other_words": "other"})
    supervised = graded.with_columns(test=pl.lit("supervised"), sentence_id="pair_id")
    return pl.concat([*tests, supervised], how="diagonal")


def measure_similarity(
    pairs: pl.DataFrame, day: str, ref: str | None, divergence: distance.Divergence | None, weights: distance.Weights
) -> pl.DataFrame:
    """Compare the distance with labels and grades of pairs: table 1, figures 3, 7 and 8 (NDD-10 to 13, 38)."""
    lm = masked_lm.load_model(ref, "en", day)
    rows: list[dict[str, Any]] = []
    options: dict[str, Any] = {"divergence": divergence or "hellinger", "weights": weights}
    model = "|".join([lm.model.signature, *(f"{name}:{value}" for name, value in options.items())])
    values = pl.DataFrame(measure_distances(pairs["one"].to_list(), pairs["other"].to_list(), lm, **options))
    directions = {name: 1 if name == "cosine" else -1 for name in values.columns}
    by_test = pairs.hstack(values).partition_by("test", as_dict=True, maintain_order=True)
    for (test,), part in by_test.items():
        setting = {"test": test, "model": model}
        if test == "supervised":
            similar_pairs = part.filter(pl.col("overlap") >= examples.OVERLAP)
            correlations = similarity.correlate_measures(similar_pairs, directions)
            rows += _build_correlation_rows(correlations, day, str(test), setting)
            curve = similarity.correlate_by_overlap(part, directions)
            for (subset,), numbers in curve.partition_by("subset", as_dict=True, maintain_order=True).items():
                rows += _build_correlation_rows(numbers, day, f"overlap{subset}", setting)
            continue
        correlations = similarity.correlate_measures(part, directions, "is_positive", group="sentence_id")
        rows += _build_correlation_rows(correlations, day, str(test), setting)
        separation = similarity.measure_separation(part, directions)
        separation = separation.with_columns(value="share", metric=pl.lit("paired_accuracy"))
        rows += _build_rows(separation, day, str(test), setting)
        metric = "q" + pl.col("quantile").cast(pl.String).str.zfill(3)
        for name in directions:
            quantiles = similarity.list_quantiles(part, name).with_columns(metric=metric, measure=pl.lit(name))
            for label, is_positive in (("negative", False), ("positive", True)):
                rows += _build_rows(quantiles.filter(is_positive=is_positive), day, f"{test}:{label}", setting)
    return build_frame(rows)


def _build_correlation_rows(
    correlations: pl.DataFrame, day: str, subset: str, setting: Mapping[str, Any]
) -> list[dict[str, Any]]:
    numbers = pl.concat(
        correlations.select("measure", "n", value=kind, metric=pl.lit(kind), low=f"{kind}_low", high=f"{kind}_high")
        for kind in ("pearson", "spearman")
    )
    return _build_rows(numbers.drop_nulls("value"), day, subset, setting)


def _build_rows(numbers: pl.DataFrame, day: str, subset: str, setting: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for (measure,), part in numbers.group_by("measure", maintain_order=True):
        rows += build_rows("similarity", day, subset, {**setting, "measure": measure}, part)
    return rows


def load_treebank(syntax: str | None, limit: int) -> list[trees.Tree]:
    """Load the first sentences of 2 to 50 words of a treebank, by default the sample's."""
    treebank = [tree for tree in trees.read(Path(syntax) if syntax else sample.TREES) if 2 <= len(tree.words) <= 50]
    if not treebank:
        raise BadInput(f"{syntax}: no sentence of 2 to 50 words")
    return treebank[:limit]


def measure_pruning(
    treebank: Sequence[trees.Tree], day: str, ref: str | None = None, divergence: distance.Divergence | None = None
) -> pl.DataFrame:
    """Compare what NDD, PPL Deleter and chance drop of a treebank's sentences, without its trees (table 7; NDD-34).

    PPL Deleter keeps as many words as NDD does under each threshold; chance drops as many spans of the same lengths.
    The `subset` of the rows of `studies` is the reading of a subtree in `metrics.ndd.pruning`.
    """
    lm = masked_lm.load_model(ref, "en", day)
    words, heads = [tree.words for tree in treebank], [tree.heads for tree in treebank]
    lengths = [len(sentence) for sentence in words]
    rows: list[dict[str, Any]] = []
    for threshold in THRESHOLDS:
        ratio = None
        for system in ("ndd", "ppl_deleter"):
            search = Search(threshold=threshold, longest=LONGEST, ratio=ratio)
            options = systems.DistanceOptions(divergence=divergence or "kl")
            method = systems.Method(system=system, search=search, distance=options)
            answers = systems.compress_sentences(words, method, lm)
            ratio = round(sum(int(answer.is_kept.sum()) for answer in answers) / sum(lengths), DECIMALS)
            spans = [pruning.list_dropped_spans(answer.rounds.tolist()) for answer in answers]
            setting = {"threshold": threshold, "ratio": ratio, "model": options.format_signature(lm)}
            by_name = {system: spans, f"random_like_{system}": pruning.draw_random_spans(lengths, spans)}
            for name, dropped in by_name.items():
                for reading in get_args(pruning.Subtree):
                    numbers = pruning.evaluate(heads, dropped, subtree=reading)
                    rows += build_rows("pruning", day, reading, {"system": name, **setting}, numbers)
    return build_frame(rows)


def measure_predicates(
    treebank: Sequence[trees.Tree], day: str, ref: str | None = None, divergence: distance.Divergence | None = None
) -> pl.DataFrame:
    """Find verbs, in place of predicates, by NDD of three edits, their ensemble and perplexity (table 8; NDD-35)."""
    lm, divergence = masked_lm.load_model(ref, "en", day), divergence or "kl"
    is_verb = [[upos == "VERB" for upos in tree.upos] for tree in treebank]
    selected, dropped = detection.select_sentences(is_verb)
    left_out.record_rows("predicates", dict(dropped["reason"].value_counts().iter_rows()))
    indices = selected.tolist()
    words, is_verb = [treebank[i].words for i in indices], [is_verb[i] for i in indices]
    mask = getattr(lm.model, "mask_word", detection.MASK)
    kinds: tuple[detection.Edit, ...] = get_args(detection.Edit)
    scores: dict[tuple[str, str], list[Floats]] = {}
    for edit in kinds:
        scores["ndd", edit] = detection.score_words(lm.model, words, edit, divergence=divergence, mask_word=mask)
    scores["ndd", "ensemble"] = detection.ensemble(list(scores.values()))
    for edit in kinds:
        if edit != "stop_word":
            scores["perplexity", edit] = detection.score_perplexity(lm.model, words, edit, mask_word=mask)
    scores["chance", "none"] = [np.zeros(len(sentence)) for sentence in words]
    rows: list[dict[str, Any]] = []
    for (measure, edit_name), values in scores.items():
        model = f"{lm.model.signature}|divergence:{divergence}|weights:mean"
        setting = {"measure": measure, "edit": edit_name, "model": model}
        rows += build_rows("predicates", day, "verbs", setting, detection.evaluate(values, is_verb))
    return build_frame(rows)


def check_params(params: Mapping[str, Any]) -> None:
    """Raise BadInput or Missing if graded pairs or the treebank cannot be read."""
    if params["pairs"]:
        examples.read_graded(Path(params["pairs"]))
    load_treebank(params["treebank"], params["limit"])


def run_study(
    study: str,
    day: str,
    ref: str | None,
    data: str | None,
    syntax: str | None,
    limit: int,
    divergence: distance.Divergence | None = None,
    weights: distance.Weights = "mean",
) -> pl.DataFrame:
    """Run one of `TESTS` on graded pairs or a treebank, by default the sample's; return its rows of `studies`.

    `limit` is the number of the treebank's sentences, and of those that are edited. The divergence is by default that
    of the paper: Hellinger's of pairs (section 3), Kullback and Leibler's of treebanks (section 5).
    """
    if study == "similarity":
        return measure_similarity(build_test_pairs(data, syntax, limit), day, ref, divergence, weights)
    measure = measure_pruning if study == "pruning" else measure_predicates
    return measure(load_treebank(syntax, limit), day, ref, divergence)


def summarize_tests(rows: pl.DataFrame) -> pl.DataFrame:
    """Select what people read of `run_study`: no quantiles and curves, and the printed reading of subtrees."""
    setting = pl.Struct({"measure": pl.String, "edit": pl.String, "system": pl.String, "threshold": pl.Float64})
    metric, subset = pl.col("metric"), pl.col("subset")
    rows = rows.filter(~metric.str.contains(r"^q\d{3}$"), metric != "spearman")
    rows = rows.filter(subset != "several", ~subset.str.starts_with("overlap"))
    rows = rows.with_columns(pl.col("setting").str.json_decode(setting)).unnest("setting")
    wide = rows.select("subset", *setting.to_schema(), "metric", "value", "low", "high", n="row_count")
    empty_columns = [name for name in setting.to_schema() if not wide[name].count()]
    return wide.drop(empty_columns).with_columns(pl.col("value", "low", "high").round(3))
