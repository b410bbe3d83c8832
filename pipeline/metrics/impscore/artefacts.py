"""Surface baselines that a measure of implicitness must beat, and how far a scorer orders texts next to them.

On public pairs the longer sentence is the implicit one in 85% of cases and more. Each baseline sees one kind of surface
feature of one sentence and is fitted on the training part; a comparison that it cannot decide counts half.

A scorer is measured on rows of group (drawn as a whole for intervals), item (within it values are compared), level and
text, and a value of each text. The items are graded groups or pairs; of labelled texts all values are compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from pipeline.metrics import resample
from pipeline.metrics.impscore.studies import average_correlations, kendall_tau
from pipeline.metrics.ndd.predicates import auc
from pipeline.metrics.resample import DRAWS, SEED, Floats, bounds, draw_counts, iterate_counts, number_units

Texts = Sequence[str]
MARKS = "?？!！…,，.。;；:：\"“”'‘’()（）-—~～"
BASELINES = ("length", "punctuation", "words", "source")
FOLDS = 5
WORD = r"[\u4e00-\u9fff]|\w+"  # a Chinese character, or a word of letters


def _build_features(name: str) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

    def measure_length(texts: Texts) -> Floats:  # characters and words, plain and as logarithms: [n, 4]
        sizes = np.array([(len(text), len(text.split())) for text in texts], float).reshape(-1, 2)
        return np.hstack([sizes / 100, np.log1p(sizes)])

    def count_marks(texts: Texts) -> Floats:  # [n, marks]
        return np.array([[text.count(mark) for mark in MARKS] for text in texts], float).reshape(-1, len(MARKS))

    return {
        "length": FunctionTransformer(measure_length),
        "punctuation": FunctionTransformer(count_marks),
        "words": TfidfVectorizer(token_pattern=WORD, ngram_range=(1, 2), sublinear_tf=True, max_features=200_000),
        "source": OneHotEncoder(handle_unknown="ignore"),
    }[name]


def _fit_baseline(name: str, inputs: Any, target: Floats, estimator: Any) -> Any:
    from sklearn.pipeline import make_pipeline

    return make_pipeline(_build_features(name), estimator).fit(inputs, target)


def score_pairs(train: pl.DataFrame, test: pl.DataFrame, name: str) -> tuple[Floats, Floats, Floats]:
    """Score the implicit, explicit and negative sentences of `test` with a baseline fitted on `train`: [n] each."""
    from sklearn.linear_model import LogisticRegression

    def list_inputs(rows: pl.DataFrame, *sides: str) -> Any:
        texts = [text for side in sides for text in rows[side]]
        return np.array([*rows["source"]] * len(sides), object).reshape(-1, 1) if name == "source" else texts

    inputs, target = list_inputs(train, "implicit", "explicit"), np.repeat([1.0, 0.0], train.height)
    score = _fit_baseline(name, inputs, target, LogisticRegression(max_iter=1000)).decision_function
    sides = ("implicit", "explicit", "negative")
    i1, i2, i3 = (np.asarray(score(list_inputs(test, side)), float) for side in sides)
    return i1, i2, i3


def audit(pairs: pl.DataFrame) -> pl.DataFrame:
    """Measure the implicitness accuracy of each baseline, by source and overall.

    Fitted on the split `train` and measured on `test`, else crosswise over five parts with near duplicates
    (`cluster_id`) in one. Returns subset (`all` or a source), baseline, accuracy in [0, 1], pair_count (measured
    triples).
    """
    if "split" in pairs.columns and {"train", "test"} <= set(pairs["split"]):
        parts = [(pairs.filter(split="train"), pairs.filter(split="test"))]
    else:
        parts = [*_split_crosswise(pairs, "cluster_id" if "cluster_id" in pairs.columns else "implicit")]
    rows: list[tuple[str, str, float, int]] = []
    for name in BASELINES if parts else ():
        scored_parts = [(test, *score_pairs(train, test, name)) for train, test in parts]
        sources = np.concatenate([test["source"].to_numpy() for test, *_ in scored_parts])
        i1, i2, i3 = (np.concatenate([part[side] for part in scored_parts]) for side in (1, 2, 3))
        for subset in ("all", *sorted(set(sources))):
            rows_of_subset = np.flatnonzero((sources == subset) | (subset == "all"))
            implicit, explicit = np.tile(i1[rows_of_subset], 2), np.r_[i2[rows_of_subset], i3[rows_of_subset]]
            share = float(np.mean(np.sign(implicit - explicit) + 1) / 2)  # a tie counts half
            rows.append((subset, name, round(share, 6), len(rows_of_subset)))
    schema = {"subset": pl.String, "baseline": pl.String, "accuracy": pl.Float64, "pair_count": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _split_crosswise(rows: pl.DataFrame, column: str) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield training and test parts; equal values are in one part, and row order does not matter."""
    _, inverse = np.unique(rows[column].fill_null("").to_numpy().astype(str), return_inverse=True)
    fold = (np.random.default_rng(SEED).permutation(inverse.max(initial=-1) + 1) % FOLDS)[inverse]
    for part in range(FOLDS):
        train, test = rows.filter(fold != part), rows.filter(fold == part)
        if train.height and test.height:
            yield train, test


def audit_groups(groups: pl.DataFrame, training_groups: pl.DataFrame | None = None) -> pl.DataFrame:
    """Compute mean Kendall tau and Spearman rho of each baseline on graded groups; `longer` counts characters.

    The baselines are fitted on the training groups; without any, crosswise. Returns baseline, kendall_tau,
    spearman_rho, group_count.
    """
    values = {"longer": groups["text"].str.len_chars().to_numpy().astype(float)}
    values |= {name: predict_levels(name, groups, training_groups) for name in BASELINES[:3]}
    rows_by_name = {name: groups.with_columns(value=pl.Series(value.round(9))) for name, value in values.items()}
    rows = [(name, *average_correlations(group_rows)) for name, group_rows in rows_by_name.items()]
    schema = {"baseline": pl.String, "kendall_tau": pl.Float64, "spearman_rho": pl.Float64, "group_count": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def predict_levels(name: str, rows: pl.DataFrame, training_rows: pl.DataFrame | None = None) -> Floats:
    """Predict the levels of texts by a baseline fitted to those of training rows; without any, crosswise: [n].

    Rows have group, level and text. A group is in one part of the crosswise fit. A level counts as its difference from
    the mean of its group, or of its `item` where there is that column.
    """
    values, numbered = np.zeros(rows.height), rows.with_row_index("row")
    parts = _split_crosswise(numbered, "group")
    if training_rows is not None and training_rows.height:
        parts = iter([(training_rows, numbered)])
    for train, test in parts:
        level = pl.col("level") - pl.col("level").mean().over("item" if "item" in train.columns else "group")
        target = train.select(level.cast(pl.Float64)).to_series().to_numpy()
        values[test["row"]] = predict_values(name, train["text"].to_list(), target, test["text"].to_list())
    return values


def predict_values(name: str, training_texts: Texts, target: Floats, texts: Texts) -> Floats:
    """Predict the values of texts by a baseline (`length`, `punctuation`, `words`) fitted to those of others: [n]."""
    from sklearn.linear_model import Ridge

    return np.asarray(_fit_baseline(name, training_texts, target, Ridge()).predict(texts), float)


TAU, SHARE, AUC = "kendall_tau", "pairs_in_order", "auc"
CHANCE: Mapping[str, float] = {TAU: 0.0, SHARE: 0.5, AUC: 0.5}
SURFACE = BASELINES[:3]
TRANSFER = "shipped words"  # words, fitted on the shipped groups as the shipped model is
BASELINE_SCORERS = (*SURFACE, TRANSFER, "chance")
LEAST = 10  # groups for an interval


def measure(rows: pl.DataFrame, values: pl.Series, metric: str) -> dict[str, Any] | None:
    """Measure values of texts: metric, value, low, high (95 %), n (groups, pairs or texts); None with nothing to order.

    - kendall_tau: the mean over items; a tie is neither right nor wrong.
    - pairs_in_order: the share of pairs in which the implicit text has the higher value; a tie is half.
    - auc: the chance that a text labelled 1 has a higher value than one labelled 0; a tie is half.

    An item of which a text has no value is left out. Without ten groups there is no interval.
    """
    has_value = pl.col("value").is_not_null()
    scored = rows.with_columns(value=values.cast(pl.Float64))
    scored = scored.filter(has_value if metric == AUC else has_value.all().over("item"))
    if scored["level"].n_unique() < 2:
        return None
    if metric == AUC:
        units, is_implicit = number_units(scored["group"], scored.height), (scored["level"] > 0).to_numpy()
        ranks, counts = scored["value"].rank("dense").to_numpy(), iterate_counts(int(units.max()) + 1, DRAWS, SEED)
        value, *areas = (auc(ranks, is_implicit, count[units]) for count in counts)
        n, samples = scored.height, np.array(areas)
    else:
        items = scored.group_by("item", maintain_order=True).agg("level", "value", pl.col("group").first())
        numbers = np.array([kendall_tau(*lists) for lists in items.select("level", "value").iter_rows()])
        numbers = (numbers + 1) / 2 if metric == SHARE else numbers
        n, value = items.height, float(numbers.mean())
        sums = resample.sum_units(np.column_stack([numbers, np.ones(n)]), number_units(items["group"], n))
        totals, sizes = resample.sum_samples(sums, draw_counts(len(sums), DRAWS, SEED)).T
        samples = totals / sizes
    low, high = bounds(samples) if scored["group"].n_unique() >= LEAST else (None, None)
    return {"metric": metric, "value": value, "low": low, "high": high, "n": n}


def predict_surface(rows: pl.DataFrame, training_rows: pl.DataFrame | None = None) -> dict[str, pl.Series]:
    """Predict levels by length, punctuation and words, fitted on training rows or crosswise; `chance` is constant."""
    predictions = {name: predict_levels(name, rows, training_rows).round(9) for name in SURFACE}
    return {name: pl.Series(values) for name, values in {**predictions, "chance": np.zeros(rows.height)}.items()}
