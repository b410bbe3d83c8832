"""What the distance is worth, as rows of `studies`: edits, overlap, pruned trees, predicates (NDD, sections 3, 5)."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import polars as pl

from pipeline import left_out, sample, settings
from pipeline.errors import BadInput
from pipeline.examples.ndd import edits, similar
from pipeline.metrics.ndd import pruning, similarity
from pipeline.tasks.ndd import masked_lm, systems
from pipeline.tasks.studies.rows import framed, rows_of
from pipeline.text import tagging, trees

if TYPE_CHECKING:
    from pipeline.metrics.ndd.model import Floats, Sentence

log = logging.getLogger(__name__)

TESTS = ("similarity", "pruning", "predicates")  # studies that `study_rows` makes
SENTENCES = 200  # of a treebank that are gone through, and that are edited for the tests
THRESHOLDS = (1.0, 2.0)  # of table 7
DECIMALS = 6


def distances(
    ones: "Sequence[Sentence]", others: "Sequence[Sentence]", opened: masked_lm.Opened
) -> "dict[str, Floats]":
    """NDD and what it is compared with, of pairs: all are distances but `cosine`."""
    from pipeline.metrics.ndd import comparisons, distance

    found = {
        "ndd": distance.distances(opened.model, ones, others),
        "ndd_kl": distance.distances(opened.model, ones, others, divergence="kl"),
        "perplexity": np.abs(comparisons.perplexity_change(opened.model, ones, others)),
    }
    if not masked_lm.is_counts(opened):
        found["cosine"] = comparisons.cosine(opened.model, ones, others)  # type: ignore[arg-type]
        found["ensemble"] = similarity.ensemble(pl.Series(found["ndd"]), pl.Series(found["cosine"])).to_numpy()
    return found


def pairs(data: str | None = None, syntax: str | None = None, limit: int = SENTENCES) -> pl.DataFrame:
    """Pairs of all tests: test, pair_id, sentence_id, one, other (words), is_positive, similarity, overlap.

    Those of test `supervised` are the graded pairs in English; the others are made of their sentences, as in section 3,
    with words of all of them. Parts of speech and lemmas are stanza's where its models are, else of the tagger that
    learns from the treebank, else WordNet's counts. How many sentences gave no pair is logged with the reasons.

    Args:
        data: graded pairs; the sample's without.
        syntax: a treebank to learn tagging from.
        limit: sentences that are edited.
    """
    read = similar.read(Path(data) if data else sample.SIMILAR)
    graded = similar.with_overlap(read.rows).filter(pl.col("lang") == "en")
    if others := read.rows.height - graded.height + read.dropped.height:
        left_out.record_rows("read", {"without_words_or_not_english": others}, str(data))
    texts = pl.concat([graded["one"], graded["other"]]).unique(maintain_order=True)
    tag = tagging.load_tagger(
        settings.resources() / "stanza", Path(syntax) if syntax else None, settings.scratch("tagging")
    )
    said = [
        edits.from_tokens(f"{number}.{part}", tokens)
        for number, text in enumerate(texts) for part, tokens in enumerate(tag.analyse(text))
    ]  # fmt: skip
    edited, columns = {each.sentence_id for each in said[:limit]}, ["test", "pair_id", "sentence_id", "one", "other"]
    made = []
    for test in edits.TESTS:
        found = edits.generate(said, test)
        reasons = dict(found.dropped["reason"].value_counts().iter_rows())
        left_out.record_rows(f"test {test}", reasons)
        made.append(found.rows.filter(pl.col("sentence_id").is_in(edited)).select(*columns, "is_positive"))
    supervised = graded.select(
        "pair_id", "similarity", "overlap", one="one_words", other="other_words", test=pl.lit("supervised"),
        sentence_id="pair_id",
    )  # fmt: skip
    return pl.concat([*made, supervised], how="diagonal")


def similarities(rows: pl.DataFrame, day: str, ref: str | None = None) -> pl.DataFrame:
    """Table 1 and figures 3, 7 and 8 (NDD-10 to 13, 38): rows of `studies`."""
    opened = masked_lm.opened(ref, "en", day)
    found: list[dict[str, Any]] = []
    ones, others = rows["one"].to_list(), rows["other"].to_list()
    told = rows.hstack(pl.DataFrame(distances(ones, others, opened)))
    directions = {name: 1 if name == "cosine" else -1 for name in told.columns if name not in rows.columns}
    for (test,), part in told.partition_by("test", as_dict=True, maintain_order=True).items():
        about = {"test": test, "model": opened.model.signature}
        if test == "supervised":
            near = part.filter(pl.col("overlap") >= similar.OVERLAP)
            found += _correlated(similarity.correlate_measures(near, directions), day, str(test), about)
            curve = similarity.correlate_by_overlap(part, directions)
            for (subset,), some in curve.partition_by("subset", as_dict=True, maintain_order=True).items():
                found += _correlated(some, day, f"overlap{subset}", about)
            continue
        numbers = similarity.correlate_measures(part, directions, "is_positive", group="sentence_id")
        found += _correlated(numbers, day, str(test), about)
        for each in similarity.measure_separation(part, directions).to_dicts():
            number = {**each, "metric": "paired_accuracy", "value": each["share"]}
            found += rows_of("similarity", day, str(test), {**about, "measure": each["measure"]}, [number])
        for name in directions:
            for each in similarity.list_quantiles(part, name).to_dicts():
                subset = f"{test}:{'positive' if each['is_positive'] else 'negative'}"
                number = {**each, "metric": f"q{each['quantile']:03d}"}
                found += rows_of("similarity", day, subset, {**about, "measure": name}, [number])
    return framed(found)


def _correlated(numbers: pl.DataFrame, day: str, subset: str, about: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = []
    for each in numbers.to_dicts():
        told = [
            {"metric": kind, "value": each[kind], "n": each["n"],
             "low": each[f"{kind}_low"], "high": each[f"{kind}_high"]}
            for kind in ("pearson", "spearman") if each[kind] is not None
        ]  # fmt: skip
        found += rows_of("similarity", day, subset, {**about, "measure": each["measure"]}, told)
    return found


def treebank(syntax: str | None = None, limit: int = SENTENCES) -> list[trees.Tree]:
    """The first sentences of a treebank that have from 2 to 50 words; the sample's without a file."""
    found = [tree for tree in trees.read(Path(syntax) if syntax else sample.TREES) if 2 <= len(tree.words) <= 50]
    if not found:
        raise BadInput(f"{syntax}: no sentence of 2 to 50 words")
    return found[:limit]


def prunings(some: Sequence[trees.Tree], day: str, ref: str | None = None) -> pl.DataFrame:
    """Table 7: what NDD, PPL Deleter and chance drop of a treebank's sentences, without its trees (NDD-34).

    PPL Deleter keeps as many words as NDD does under each threshold, since the same number means something else to it;
    chance drops as many spans of the same lengths. A span is a subtree in either reading of `metrics.ndd.pruning`,
    which is the `subset`: only `several` can give the paper's shares by chance.
    """
    from pipeline.score.compress.search import LONGEST, Search

    opened = masked_lm.opened(ref, "en", day)
    words, heads = [tree.words for tree in some], [tree.heads for tree in some]
    found: list[dict[str, Any]] = []
    for threshold in THRESHOLDS:
        kept = None
        for system in ("ndd", "ppl_deleter"):
            search = Search(threshold=threshold, longest=LONGEST, ratio=kept)
            answers = systems.compressed(words, system, opened, search)
            kept = round(sum(int(each.is_kept.sum()) for each in answers) / sum(map(len, words)), DECIMALS)
            spans = [pruning.list_dropped_spans(each.rounds.tolist()) for each in answers]
            beside = pruning.draw_random_spans([*map(len, words)], spans)
            about = {"threshold": threshold, "ratio": kept, "model": opened.model.signature}
            for name, dropped in ((system, spans), (f"random_like_{system}", beside)):
                for reading in get_args(pruning.Subtree):
                    numbers = pruning.evaluate(heads, dropped, subtree=reading)
                    found += rows_of("pruning", day, reading, {"system": name, **about}, numbers)
    return framed(found)


def predicates(some: Sequence[trees.Tree], day: str, ref: str | None = None) -> pl.DataFrame:
    """Table 8 with verbs in place of predicates (NDD-35): NDD of three edits and their ensemble, and perplexity."""
    from pipeline.metrics.ndd import predicates as detection

    opened = masked_lm.opened(ref, "en", day)
    kept = detection.select_sentences([[upos == "VERB" for upos in tree.upos] for tree in some]).indices.tolist()
    words = [some[at].words for at in kept]
    is_verb = [[upos == "VERB" for upos in some[at].upos] for at in kept]
    mask = getattr(opened.model, "mask_word", detection.MASK)
    kinds: tuple[detection.Edit, ...] = get_args(detection.Edit)
    by_ndd = {edit: detection.score_words(opened.model, words, edit, mask_word=mask) for edit in kinds}
    every = {("ndd", str(edit)): values for edit, values in by_ndd.items()}
    every["ndd", "ensemble"] = detection.ensemble(list(by_ndd.values()))
    every |= {
        ("perplexity", str(edit)): detection.score_perplexity(opened.model, words, edit, mask_word=mask)
        for edit in kinds if edit != "stop_word"
    }  # fmt: skip
    every["chance", "none"] = [np.zeros(len(each)) for each in words]
    found: list[dict[str, Any]] = []
    for (measure, edit), scores in every.items():
        about = {"measure": measure, "edit": edit, "model": opened.model.signature}
        found += rows_of("predicates", day, "verbs", about, detection.evaluate(scores, is_verb))
    return framed(found)


def study_rows(
    study: str, day: str, ref: str | None = None, pairs_file: str | None = None, syntax: str | None = None,
    limit: int = SENTENCES,
) -> pl.DataFrame:  # fmt: skip
    """Rows of one of the studies `similarity`, `pruning` and `predicates`."""
    if study == "similarity":
        return similarities(pairs(pairs_file, syntax, limit), day, ref)
    some = treebank(syntax, limit)
    return prunings(some, day, ref) if study == "pruning" else predicates(some, day, ref)


def tests_shown(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of `study_rows` as people read them: neither quantiles nor curves, of subtrees the printed reading."""
    about = pl.Struct({"measure": pl.String, "edit": pl.String, "system": pl.String, "threshold": pl.Float64})
    told = rows.filter(~pl.col("metric").str.contains(r"^q\d{3}$"), pl.col("subset") != "several")
    told = told.filter(pl.col("metric") != "spearman", ~pl.col("subset").str.starts_with("overlap"))
    told = told.with_columns(pl.col("setting").str.json_decode(about)).unnest("setting")
    wide = told.select("subset", *about.to_schema(), "metric", "value", "low", "high", n="row_count")
    empty_columns = [name for name in about.to_schema() if not wide[name].count()]
    return wide.drop(empty_columns).with_columns(pl.col("value", "low", "high").round(3))
