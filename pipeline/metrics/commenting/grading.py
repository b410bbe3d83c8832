"""Quality of a scorer of comments: against people's grades, within an article, beyond the comment's length.

Longer comments get better grades, so beside every scorer stand baselines (`report_baselines`), and pairs of comments of
about the same length. Intervals are of a bootstrap over articles, whose comments depend on each other.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from pipeline.metrics.impscore.artefacts import WORD
from pipeline.metrics.resample import DRAWS, SEED, Floats, bounds, iterate_counts, number_units
from pipeline.metrics.resample import Ints as IndexArray

NEAR = 1.1  # times as long the longer of two comments may be that count as of one length
SCHEMA = {"metric": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64}
_MARKS = "?？!！…,，.。;；:：\"“”'‘’()（）\n"
_BLOCK = 1 << 22  # comparisons held at a time


def count_pairs(
    groups: IndexArray, target: Floats, score: Floats, lengths: Floats | None = None
) -> tuple[Floats, IndexArray]:
    """Count the pairs of comments of one article with different grades, and those that the score orders as the grades.

    `groups` are the numbers of the articles, from 0, `target` the grades, [n] each. With lengths, [n], only pairs count
    whose lengths are the same but for a factor `NEAR`.

    Returns pairs in the order of the grades, a tie of scores half, and all pairs: [articles] each.
    """
    parts = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1]) if len(groups) else []
    right, total = np.zeros(len(parts)), np.zeros(len(parts), np.int64)
    for group, article_rows in enumerate(parts):
        block_count = math.ceil(len(article_rows) ** 2 / _BLOCK) or 1
        for block in np.array_split(article_rows, block_count):  # a block of rows against the article
            is_counted = np.subtract.outer(target[block], target[article_rows]) > 0  # from the better comment of a pair
            if lengths is not None:
                ratio = (lengths[block] + 1)[:, None] / (lengths[article_rows] + 1)[None]
                is_counted &= (ratio <= NEAR) & (ratio >= 1 / NEAR)
            score_signs = np.sign(np.subtract.outer(score[block], score[article_rows]))[is_counted]
            right[group] += float((score_signs + 1).sum()) / 2
            total[group] += len(score_signs)
    return right, total


def report(rows: pl.DataFrame, *, draws: int = DRAWS) -> pl.DataFrame:
    """Measure a scorer, with percentile bootstrap intervals of 95 % over articles.

    Spearman and Pearson over all comments; the mean absolute error; the share of pairs of `count_pairs` that are
    ordered rightly; the same of pairs of about the same length, where there is a text.

    Rows have article_id, target, score, maybe text. A null article_id is a separate article. Without draws the
    intervals are null.

    Returns metric, value, low, high, n (comments or pairs that it is of); value null where nothing is measured: a
    correlation with what is constant, or no pairs.
    """
    row_names = pl.format("\0{}", pl.int_range(pl.len()))
    articles = rows.select(pl.coalesce(pl.col("article_id").cast(pl.String), row_names)).to_series()
    groups = number_units(articles, rows.height)
    target, score = (rows[name].cast(pl.Float64).to_numpy() for name in ("target", "score"))
    levels = [np.unique(values, return_inverse=True)[1] for values in (target, score)]
    error, sizes = np.bincount(groups, np.abs(target - score)), np.bincount(groups)
    pairs = {"pairwise_accuracy": count_pairs(groups, target, score)}
    if "text" in rows.columns:
        lengths = rows["text"].str.len_chars().to_numpy().astype(np.float64)
        pairs["pairwise_accuracy_near"] = count_pairs(groups, target, score, lengths)

    def measure(times: Floats) -> list[float]:
        weights = times[groups]
        target_ranks, ranks = (_rank(value_levels, weights) for value_levels in levels)
        sides = ((target_ranks, ranks), (target, score))
        correlations = [_weighted_pearson(first, second, weights) for first, second in sides]
        sums = [(float(times @ right), float(times @ total)) for right, total in ((error, sizes), *pairs.values())]
        return correlations + [total / count if count else math.nan for total, count in sums]

    values = np.array([*map(measure, iterate_counts(int(groups.max()) + 1, draws, SEED))])
    counts = [len(target)] * 3 + [int(total.sum()) for _, total in pairs.values()]
    columns = zip(("spearman", "pearson", "mae", *pairs), values.T, counts, strict=True)
    metric_rows = [(name, column[0], *bounds(column[1:]), count) for name, column, count in columns]
    return pl.DataFrame(metric_rows, schema=SCHEMA, orient="row").fill_nan(None)


def _rank(levels: IndexArray, weights: Floats) -> Floats:
    """Compute mean ranks, as `scipy.stats.rankdata` does where each value stands `weights` times: [n]."""
    equal = np.bincount(levels, weights)
    return np.asarray((np.cumsum(equal) - (equal - 1) / 2)[levels])


def _weighted_pearson(first: Floats, second: Floats, weights: Floats) -> float:
    """Compute Pearson's r of weighted values; NaN where one side is constant."""
    total = weights.sum()
    first_centred, second_centred = first - weights @ first / total, second - weights @ second / total
    spread = math.sqrt((weights @ first_centred**2) * (weights @ second_centred**2))
    return float((weights * first_centred) @ second_centred / spread) if spread > 1e-12 * total else math.nan


def report_baselines(rows: pl.DataFrame, *, draws: int = DRAWS) -> pl.DataFrame:
    """Measure the baselines that a scorer must beat: constant mean, length, log length, surface, bag of words.

    Each is a ridge regression on the split `train`, measured on `test`. Rows have text, article_id, target, split.

    Returns baseline, and the columns of `report`.
    """
    train, test = (rows.filter(pl.col("split") == name) for name in ("train", "test"))
    reports = []
    for name, predictions in predict_baselines(train, test).items():
        numbers = report(test.with_columns(score=pl.Series(predictions)), draws=draws)
        reports.append(numbers.select(pl.lit(name).alias("baseline"), *SCHEMA))
    return pl.concat(reports)


def predict_baselines(train: pl.DataFrame, test: pl.DataFrame) -> dict[str, Floats]:
    """Predict the targets of the test rows with each baseline."""
    from sklearn.dummy import DummyRegressor
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    def measure_length(texts: Sequence[str]) -> Floats:
        return np.array([[len(text)] for text in texts], np.float64).reshape(-1, 1)

    def measure_surface(texts: Sequence[str]) -> Floats:
        """Compute length, its logarithm, and log counts of words, digits, capitals and marks: [n, d]."""
        kinds = ([text.count(" "), sum(map(str.isdigit, text)), sum(map(str.isupper, text))] for text in texts)
        counts = [[*row, *map(text.count, _MARKS)] for row, text in zip(kinds, texts, strict=True)]
        lengths, numbers = measure_length(texts), np.array(counts, np.float64).reshape(len(texts), -1)
        return np.hstack([lengths, np.log1p(np.hstack([lengths, numbers]))])

    words = TfidfVectorizer(token_pattern=WORD, sublinear_tf=True, max_features=50_000)
    length, log = FunctionTransformer(measure_length), FunctionTransformer(np.log1p)
    models: dict[str, Any] = {
        "mean": make_pipeline(length, DummyRegressor()),
        "length": make_pipeline(length, StandardScaler(), Ridge(1e-6)),
        "log_length": make_pipeline(length, log, StandardScaler(), Ridge(1e-6)),
        "surface": make_pipeline(FunctionTransformer(measure_surface), StandardScaler(), Ridge()),
        "words": make_pipeline(words, Ridge(solver="sparse_cg")),
    }
    texts, target, test_texts = train["text"].to_list(), train["target"].to_numpy(), test["text"].to_list()
    return {name: np.asarray(model.fit(texts, target).predict(test_texts)) for name, model in models.items()}
