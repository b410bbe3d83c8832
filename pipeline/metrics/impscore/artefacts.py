"""What a text's surface alone gives away: baselines that a measure of implicitness must beat to have learnt more.

On public pairs the longer sentence is the implicit one in 85% of cases and more, so that a model can look right by
reading length and topic. Each baseline sees one kind of surface feature of one sentence and is fitted like a model, on
the training part; a comparison it cannot decide counts half.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.metrics.impscore.ranking import mean_correlations

Floats = npt.NDArray[np.float64]
Texts = Sequence[str]

MARKS = "?？!！…,，.。;；:：\"“”'‘’()（）-—~～"
FOLDS = 5
SEED = 42
WORD = r"[\u4e00-\u9fff]|\w+"  # a Chinese character, or a word of letters


def _length(texts: Texts) -> Floats:
    """Characters and words, plain and as logarithms: [n, 4]."""
    sizes = np.array([(len(text), len(text.split())) for text in texts], float).reshape(-1, 2)
    return np.hstack([sizes / 100, np.log1p(sizes)])


def _punctuation(texts: Texts) -> Floats:
    """How often each mark stands: [n, marks]."""
    return np.array([[text.count(mark) for mark in MARKS] for text in texts], float).reshape(-1, len(MARKS))


def _features(name: str) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

    match name:
        case "length":
            return FunctionTransformer(_length)
        case "punctuation":
            return FunctionTransformer(_punctuation)
        case "words":
            return TfidfVectorizer(token_pattern=WORD, ngram_range=(1, 2), sublinear_tf=True, max_features=200_000)
        case _:
            return OneHotEncoder(handle_unknown="ignore")


BASELINES = ("length", "punctuation", "words", "source")


def _fitted(name: str, texts: Texts, sources: Texts, target: Floats, estimator: Any) -> Callable[[Texts, Texts], Any]:
    """A baseline fitted to `target`, and what it then says of other texts."""
    from sklearn.pipeline import make_pipeline

    def seen(texts: Texts, sources: Texts) -> Any:
        return np.array(sources, dtype=object).reshape(-1, 1) if name == "source" else list(texts)

    model = make_pipeline(_features(name), estimator).fit(seen(texts, sources), target)
    says = model.decision_function if hasattr(model, "decision_function") else model.predict
    return lambda texts, sources: says(seen(texts, sources))


def pair_values(train: pl.DataFrame, test: pl.DataFrame, name: str) -> tuple[Floats, Floats, Floats]:
    """What a baseline fitted on `train` says of the implicit, explicit and negative sentences of `test`: [n] each.

    Args:
        train: rows with source, implicit, explicit.
        test: rows with source, implicit, explicit, negative.
        name: one of `BASELINES`.
    """
    from sklearn.linear_model import LogisticRegression

    texts = [*train["implicit"], *train["explicit"]]
    target = np.repeat([1.0, 0.0], train.height)
    says = _fitted(name, texts, [*train["source"]] * 2, target, LogisticRegression(max_iter=1000))
    found = [np.asarray(says([*test[side]], [*test["source"]]), float) for side in ("implicit", "explicit", "negative")]
    return found[0], found[1], found[2]


def wins(implicit: Floats, explicit: Floats) -> float:
    """Share of comparisons that the implicit side wins, a tie counting half."""
    return float(np.mean(np.sign(implicit - explicit) + 1) / 2)


def audit(pairs: pl.DataFrame) -> pl.DataFrame:
    """Implicitness accuracy of each baseline, by source and over all.

    Fitted on the split `train` and measured on `test`; where there is no test split, crosswise over five parts, near
    duplicates together.

    Args:
        pairs: rows with source, implicit, explicit, negative; split and cluster_id where there are any.

    Returns:
        subset (`all` or a source), baseline, accuracy in [0, 1], pair_count (triples measured on).
    """
    rows: list[tuple[str, str, float, int]] = []
    for name in BASELINES:
        measured = [(test, *pair_values(train, test, name)) for train, test in _parts(pairs)]
        if not measured:
            continue
        sources = np.concatenate([test["source"].to_numpy() for test, *_ in measured])
        i1, i2, i3 = (np.concatenate([one[side] for one in measured]) for side in (1, 2, 3))
        for subset in ("all", *sorted(set(sources))):
            at = np.ones(len(sources), bool) if subset == "all" else sources == subset
            accuracy = wins(np.r_[i1[at], i1[at]], np.r_[i2[at], i3[at]])
            rows.append((subset, name, round(accuracy, 6), int(at.sum())))
    schema = {"subset": pl.String, "baseline": pl.String, "accuracy": pl.Float64, "pair_count": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _parts(pairs: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """(train, test): as the pairs say, else crosswise."""
    if "split" in pairs.columns and (pairs["split"] == "test").any() and (pairs["split"] == "train").any():
        yield pairs.filter(pl.col("split") == "train"), pairs.filter(pl.col("split") == "test")
        return
    groups = pairs["cluster_id"] if "cluster_id" in pairs.columns else pairs["implicit"]
    fold = _folds(groups)
    for part in range(FOLDS):
        train, test = pairs.filter(fold != part), pairs.filter(fold == part)
        if train.height and test.height:
            yield train, test


def _folds(groups: pl.Series) -> npt.NDArray[np.int64]:
    """A fold for each row, the same for equal values; drawn from sorted values, so that row order does not matter."""
    _, inverse = np.unique(groups.fill_null("").to_numpy().astype(str), return_inverse=True)
    drawn = np.random.default_rng(SEED).permutation(inverse.max(initial=-1) + 1) % FOLDS
    return np.asarray(drawn[inverse], np.int64)


def audit_groups(groups: pl.DataFrame, learnt: pl.DataFrame | None = None) -> pl.DataFrame:
    """Mean Kendall tau and Spearman rho of each baseline on graded groups.

    Args:
        groups: rows of `examples.impscore.groups.read`: group, level, text.
        learnt: other groups that the baselines are fitted on; without any, they are fitted crosswise.

    Returns:
        baseline, kendall_tau, spearman_rho, group_count; `longer` is the plain number of characters.
    """
    rows = []
    for name in ("longer", *BASELINES[:3]):
        if name == "longer":
            value = groups["text"].str.len_chars().to_numpy().astype(float)
        elif learnt is not None and learnt.height:
            value = _graded(name, learnt, groups)
        else:
            value, fold = np.zeros(groups.height), _folds(groups["group"])
            for part in sorted(set(fold.tolist())) if len(set(fold.tolist())) > 1 else ():
                at = np.flatnonzero(fold == part)
                value[at] = _graded(name, groups.filter(fold != part), groups[at])
        rows.append((name, *mean_correlations(groups.with_columns(value=pl.Series(np.round(value, 9))))))
    schema = {"baseline": pl.String, "kendall_tau": pl.Float64, "spearman_rho": pl.Float64, "group_count": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _graded(name: str, learnt: pl.DataFrame, groups: pl.DataFrame) -> Floats:
    """What a baseline fitted to the levels of some groups says of the sentences of others."""
    from sklearn.linear_model import Ridge

    level = learnt.select(pl.col("level") - pl.col("level").mean().over("group"))["level"].cast(pl.Float64).to_numpy()
    says = _fitted(name, learnt["text"].to_list(), [""] * learnt.height, level, Ridge())
    return np.asarray(says(groups["text"].to_list(), [""] * groups.height), float)
