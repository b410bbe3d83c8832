"""One head of a model: ImpScore fitted on an encoder, its numbers for the training texts, and their evaluation."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import torch
from torch import Tensor

from pipeline.errors import BadInput
from pipeline.examples.impscore.groups import OPTIONS, build_questions
from pipeline.examples.impscore.pairs import add_negatives, balance_lengths
from pipeline.metrics.impscore import artefacts
from pipeline.metrics.impscore.studies import average_correlations, tabulate_figure_3
from pipeline.models.encoder import Encoder, describe_encoder
from pipeline.models.impscore import Meaning, Metric, distance, pragmatic_distance
from pipeline.models.vectors import load_or_encode
from pipeline.training.impscore import fit as impscore
from pipeline.training.impscore.fit import Embedding, Frozen, Recipe, Tuned, make_corpus

log = logging.getLogger(__name__)


class Head(NamedTuple):
    """A fitted head and its numbers, row by row."""

    tensors: dict[str, Tensor]
    config: dict[str, Any]
    history: pl.DataFrame  # epoch, value, count
    triples: pl.DataFrame  # pair_id, source, split, i1, i2, i3, near, far: a row a pair
    graded: pl.DataFrame  # group, level, text, split, value, and pragmatic: its features


def fit(
    pairs: pl.DataFrame,
    groups: pl.DataFrame | None,
    recipe: Recipe,
    encoder: Encoder,
    embeddings: Path,
    state: Path | None = None,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Head:
    """Fit one head on rows of `pairs` and, if there is a training on groups, on groups: group, level, text, split.

    The encoder has the recipe's pooling; `embeddings` is the folder of embedding files. An interrupted training resumes
    from the file `state`. `on_progress` gets the number of sentences of each encoded batch.
    """
    full_corpus = make_corpus(pairs, groups)
    embedding: Embedding
    if recipe.tune == "none":
        embedding = Frozen(load_or_encode(embeddings, encoder, full_corpus.texts, on_progress), encoder.last)
    else:
        embedding = Tuned(encoder, full_corpus.texts, recipe.tune, torch.Generator().manual_seed(recipe.seed))
    train = train_pairs = pairs.filter(pl.col("split") == "train")
    if recipe.is_balanced:
        train = balance_lengths(train, recipe.seed)
        log.info("learning from %d of %d length-matched pairs", len(train), len(train_pairs))
    if recipe.has_hard_negatives:  # near to their pairs' explicit sentences, by the encoder before its training
        vectors = load_or_encode(embeddings, encoder, train["explicit"].to_list())[:, -encoder.last :]
        train = add_negatives(train.drop("negative"), recipe.seed, vectors)[0].select(train.columns)
    if not len(train) and not (recipe.group_sharpness and full_corpus.select_groups("train")):
        reason = "; none is left once lengths are matched (is_balanced)" if len(train_pairs) else ""
        raise BadInput(f"there is nothing to train on: no pair has the split train{reason}")
    train_corpus = full_corpus if train is train_pairs else full_corpus.replace_train(train)
    result = impscore.fit(train_corpus, embedding, recipe, state)
    meanings = impscore.compute_meanings(torch.arange(len(full_corpus.texts)), result.model, embedding)
    meanings = Meaning(*(field.cpu() for field in meanings))
    config = {**describe_encoder(encoder), "recipe": result.recipe}
    graded = full_corpus.groups.with_columns(
        value=pl.Series(meanings.implicitness[full_corpus.graded].double().numpy()),
        pragmatic=pl.Series(meanings.pragmatic[full_corpus.graded].numpy()),
    )
    sides = [meanings.select(full_corpus.triples[:, side]) for side in range(3)]
    numbers = {f"i{n}": side.implicitness.double().numpy() for n, side in enumerate(sides, 1)}
    for name, side in (("near", sides[1]), ("far", sides[2])):
        numbers[name] = pragmatic_distance(sides[0], side, result.model.design.pragmatics).double().numpy()
    triples = pairs.select("pair_id", "source", "split").with_columns(**numbers)
    return Head(result.tensors, config, result.history, triples, graded)


COLUMNS = pl.Schema({
    **dict.fromkeys(("metric", "split", "subset"), pl.String), "epoch": pl.Int64, "value": pl.Float64,
    "baseline": pl.Float64, "baseline_name": pl.String, "pair_count": pl.Int64,
})  # fmt: skip


def evaluate(pairs: pl.DataFrame, triples: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Return every number of figure 3 by split and source: rows of `evaluate_heads` without their keys.

    The implicitness accuracy of the test part has the best surface baseline (`metrics.impscore.artefacts`) beside it,
    with its name; each baseline has rows of its own as well (`words_baseline`, …). `matched` subsets contain pairs
    among which length tells nothing, with baselines fitted on such pairs; `seed` draws them.
    """
    splits = pairs.partition_by("split", maintain_order=True)
    matched = pl.concat([balance_lengths(part, seed) for part in splits] or [pairs])
    parts = []
    for prefix, rows in (("", pairs), ("matched:", matched)):
        part_triples = triples.join(rows.select("pair_id"), on="pair_id", how="semi")
        total = tabulate_figure_3(part_triples, "split").with_columns(subset=pl.lit("all"))
        by_source = tabulate_figure_3(part_triples, "split", "source").rename({"source": "subset"})
        numbers = _join_baselines(pl.concat([total, by_source], how="diagonal"), rows)
        parts.append(numbers.with_columns(subset=prefix + pl.col("subset"), epoch=pl.lit(0, pl.Int64)))
    return pl.concat(parts).select(list(COLUMNS)).with_columns(pl.col("value", "baseline").round(6))


def _join_baselines(numbers: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Join the best baseline to the implicitness accuracies of test, or else the largest split; append all as rows."""
    no_baseline = {"baseline": pl.lit(None, pl.Float64), "baseline_name": pl.lit(None, pl.String)}
    if not pairs.height:
        return numbers.with_columns(**no_baseline)
    counts = pairs["split"].value_counts(sort=True)
    split = "test" if "test" in counts["split"] else counts["split"][0]
    audit = artefacts.audit(pairs).with_columns(split=pl.lit(split))
    best = audit.sort("accuracy", "baseline", descending=[True, False]).unique("subset", keep="first")
    columns = ("subset", "split", pl.lit("implicitness_accuracy").alias("metric"))
    best = best.select(*columns, baseline="accuracy", baseline_name="baseline")
    compared = numbers.join(best, on=["subset", "split", "metric"], how="left")
    metric = pl.format("{}_baseline", "baseline")
    rows = audit.select("split", "subset", "pair_count", metric=metric, value="accuracy", **no_baseline)
    return pl.concat([compared, rows.select(compared.columns)])


def list_epochs(history: pl.DataFrame, subset: str) -> pl.DataFrame:
    """List the validation accuracy of each epoch, as rows of `evaluate_heads`."""
    keys = {"metric": pl.lit("implicitness_accuracy"), "split": pl.lit("validation"), "subset": pl.lit(subset)}
    return _fill_columns(history.select("epoch", pl.col("value").round(6), pair_count="count", **keys))


def evaluate_groups(graded: pl.DataFrame, subset: str, seed: int, metric: Metric = "euclidean") -> pl.DataFrame:
    """Measure rank correlations and choice accuracy on graded groups (`Head.graded`) by split.

    The baseline of Kendall's tau is a bag of words, fitted on the groups of the other splits. The seed draws the
    options of the choice questions, which the metric of the pragmatic distance answers.
    """
    rows = []
    for (split,), part in graded.partition_by("split", as_dict=True, maintain_order=True).items():
        other_groups = graded.filter(pl.col("split") != split)
        words = artefacts.audit_groups(part, other_groups).filter(baseline="words")["kendall_tau"][0]
        tau, rho, count = average_correlations(part)
        row = {"split": split, "subset": subset, "epoch": 0, "pair_count": count}
        rows.append({**row, "metric": "kendall_tau", "value": tau, "baseline": words, "baseline_name": "words"})
        rows.append({**row, "metric": "spearman_rho", "value": rho})
        if count >= OPTIONS:
            rows.append({**row, "metric": "choice_accuracy", "value": _measure_choices(part, seed, metric)})
    return _fill_columns(pl.DataFrame(rows, schema_overrides=COLUMNS, infer_schema_length=None))


def _measure_choices(graded: pl.DataFrame, seed: int, metric: Metric) -> float:
    """Measure the share of questions from the groups whose right option is the nearest (IMP-33)."""
    row_of = {text: row for row, text in enumerate(graded["text"])}
    features = torch.from_numpy(graded["pragmatic"].to_numpy().copy())
    is_right = []
    for question in build_questions(graded, OPTIONS, seed).iter_rows(named=True):
        options = features[[row_of[text] for text in question["options"]]]
        reference = features[row_of[question["reference"]]].expand_as(options)
        is_right.append(int(distance(reference, options, metric).argmin()) == question["answer"])
    return float(np.mean(is_right).round(6))


def _fill_columns(frame: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=COLUMNS), frame], how="diagonal_relaxed").cast(COLUMNS)


def evaluate_heads(pairs: pl.DataFrame, heads: Sequence[tuple[str, Head]], seed: int) -> pl.DataFrame:
    """Return all numbers of a model's heads."""
    parts = [evaluate(pairs, pl.concat([head.triples for _, head in heads]), seed)]
    for name, head in heads:
        parts.append(list_epochs(head.history, "all" if len(heads) == 1 else f"head:{name}"))
        if head.graded.height:
            metric = head.config["recipe"]["pragmatics"]
            parts.append(evaluate_groups(head.graded, f"groups:{name}", seed, metric))
    return pl.concat(parts)
