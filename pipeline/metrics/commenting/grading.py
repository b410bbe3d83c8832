"""Quality of a scorer of comments: against people's grades, within an article, beyond the comment's length.

In: rows with `article_id`, `target` (a grade, or log(1 + likes)) and `score`. Out: a row a number, with the interval of
a bootstrap over articles, as comments of one article are not independent. Longer comments get better grades, so beside
every scorer stand baselines (`report_baselines`), and pairs of comments of about the same length.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.errors import BadInput
from pipeline.metrics.resample import bounds, iterate_counts

DRAWS = 1000
SEED = 42
NEAR = 1.1  # times as long the longer of two comments may be that count as of one length
SCHEMA = {"metric": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64}

_MARKS = "?？!！…,，.。;；:：\"“”'‘’()（）\n"
_WORD = r"[\u4e00-\u9fff]|\w+"  # a Chinese character, or a word of letters
_BLOCK = 1 << 22  # comparisons held at a time

Floats = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]


class PairCounts(NamedTuple):
    """Pairs of comments of one article with different grades, counted by article."""

    right: Floats  # [articles] that the score orders as the grades do, a tie of scores half
    total: IndexArray  # [articles]


def count_pairs(groups: IndexArray, target: Floats, score: Floats, lengths: Floats | None = None) -> PairCounts:
    """Count the pairs within an article that the score orders as the grades do.

    Args:
        groups: number of the article of each comment, from 0, [n].
        target: grades, [n].
        score: [n].
        lengths: if given, only pairs whose lengths are the same but for a factor `NEAR`, [n].
    """
    count = int(groups.max()) + 1 if len(groups) else 0
    right, total = np.zeros(count), np.zeros(count, np.int64)
    for group, article_rows in enumerate(
        np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
    ):
        for block in np.array_split(
            article_rows, math.ceil(len(article_rows) ** 2 / _BLOCK) or 1
        ):  # a block of rows against the article
            grade_signs = np.sign(np.subtract.outer(target[block], target[article_rows]))
            is_counted = grade_signs > 0  # each pair once: from its better comment
            if lengths is not None:
                ratio = (lengths[block] + 1)[:, None] / (lengths[article_rows] + 1)[None]
                is_counted &= (ratio <= NEAR) & (ratio >= 1 / NEAR)
            score_signs = np.sign(np.subtract.outer(score[block], score[article_rows]))[is_counted]
            right[group] += float((score_signs + 1).sum()) / 2
            total[group] += len(score_signs)
    return PairCounts(right, total)


def report(rows: pl.DataFrame, *, cutoff: int | None = None, draws: int = DRAWS, seed: int = SEED) -> pl.DataFrame:
    """Measure a scorer, with percentile bootstrap intervals of 95 % over articles.

    Spearman and Pearson over all comments; the mean absolute error, which means something only if the score is in the
    unit of the target; the share of pairs of comments of one article with different grades that are ordered rightly, a
    tie of scores half, over all pairs; the same of pairs of about the same length, where there is a text.

    Args:
        rows: article_id, target, score; text for pairs of one length. A null article_id is a separate article.
        cutoff: k of NDCG@k, the mean over articles with two or more comments and a grade above 0 (the gain is the
            grade); none by default.
        draws: samples drawn with replacement; with 0 no interval, null.
        seed: of the draws.

    Returns:
        metric, value, low, high, n (comments, pairs or articles that it is of); value null where nothing is measured:
        a correlation with what is constant, or no pairs.

    Raises:
        BadInput: a column is missing, there are no rows, or a target or score is no number.
    """
    groups, target, score = _read_columns(rows)
    lengths = rows["text"].str.len_chars().to_numpy().astype(np.float64) if "text" in rows.columns else None
    ranks = _Ranks(target), _Ranks(score)
    error = np.bincount(groups, np.abs(target - score)).astype(np.float64)
    sizes = np.bincount(groups).astype(np.int64)
    measures: dict[str, tuple[Callable[[Floats], float], int]] = {
        "spearman": (lambda times: _spearman(*ranks, times[groups]), len(target)),
        "pearson": (lambda times: _weighted_pearson(target, score, times[groups]), len(target)),
        "mae": (_build_ratio(error, sizes), len(target)),
    }
    for name, pair_lengths in (("pairwise_accuracy", None), ("pairwise_accuracy_near", lengths)):
        if pair_lengths is not None or name == "pairwise_accuracy":
            right, count = count_pairs(groups, target, score, pair_lengths)
            measures[name] = _build_ratio(right, count), int(count.sum())
    if cutoff is not None:
        gains = ndcg(groups, target, score, cutoff)
        is_defined = ~np.isnan(gains)
        measures[f"ndcg@{cutoff}"] = (
            _build_ratio(np.nan_to_num(gains), is_defined.astype(np.int64)),
            int(is_defined.sum()),
        )
    samples = iterate_counts(int(groups.max()) + 1, draws, seed)
    values = np.array([[measure(weights) for measure, _ in measures.values()] for weights in samples])
    metric_rows = [
        (name, column[0], *bounds(column[1:]), count)
        for (name, (_, count)), column in zip(measures.items(), values.T, strict=True)
    ]
    return pl.DataFrame(metric_rows, schema=SCHEMA, orient="row").fill_nan(None)


def _read_columns(rows: pl.DataFrame) -> tuple[IndexArray, Floats, Floats]:
    """Return article numbers, targets and scores."""
    if absent := [name for name in ("article_id", "target", "score") if name not in rows.columns]:
        raise BadInput(f"expected columns article_id, target and score; missing {', '.join(absent)}")
    if not rows.height:
        raise BadInput("found no rows; expected comments with a target and a score")
    for name in ("target", "score"):
        is_wrong = ~rows[name].cast(pl.Float64).is_finite().fill_null(value=False)
        if is_wrong.any():
            row = int(is_wrong.arg_true()[0])
            raise BadInput(f"row {row + 1}: field {name!r} is {rows[name][row]!r}; expected a number")
    row_names = pl.format("\0{}", pl.int_range(pl.len()))
    names = rows.select(pl.coalesce(pl.col("article_id").cast(pl.String), row_names))["article_id"]
    target, score = (rows[name].cast(pl.Float64).to_numpy() for name in ("target", "score"))
    return names.rank("dense").to_numpy().astype(np.int64) - 1, target, score


class _Ranks:
    """Ranks of values in samples that hold each value some times; sorted once."""

    def __init__(self, values: Floats) -> None:
        _, self.place = np.unique(values, return_inverse=True)

    def __call__(self, weights: Floats) -> Floats:
        """Compute mean ranks of equal values, as `scipy.stats.rankdata` does for the repeated values: [n]."""
        equal = np.bincount(self.place, weights)
        ranks: Floats = (np.cumsum(equal) - (equal - 1) / 2)[self.place]
        return ranks


def _spearman(first: _Ranks, second: _Ranks, weights: Floats) -> float:
    return _weighted_pearson(first(weights), second(weights), weights)


def _weighted_pearson(first: Floats, second: Floats, weights: Floats) -> float:
    """Compute Pearson's r of weighted values; NaN where one side is constant."""
    total = weights.sum()
    first_centred, second_centred = first - weights @ first / total, second - weights @ second / total
    spread = math.sqrt((weights @ first_centred**2) * (weights @ second_centred**2))
    return float((weights * first_centred) @ second_centred / spread) if spread > 1e-12 * total else math.nan


def _build_ratio(sums: Floats, counts: IndexArray) -> Callable[[Floats], float]:
    """Build a function that computes a mean from sums and counts by article."""

    def measure(times: Floats) -> float:
        count = float(times @ counts)
        return float(times @ sums) / count if count else math.nan

    return measure


def ndcg(groups: IndexArray, target: Floats, score: Floats, cutoff: int) -> Floats:
    """Compute the normalised discounted cumulative gain of the first `cutoff` comments of each article: [articles].

    The gain of a comment is its grade; ties of scores are averaged over (scikit-learn's `ndcg_score`). NaN where an
    article has one comment, no grade above 0, or one below.
    """
    from sklearn.metrics import ndcg_score

    if cutoff < 1:
        raise ValueError(f"expected k of 1 or more, got {cutoff}")
    parts = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
    gains = np.full(len(parts), np.nan)
    for group, rows in enumerate(parts):
        if len(rows) > 1 and target[rows].max() > 0 and target[rows].min() >= 0:
            gains[group] = ndcg_score(target[rows][None], score[rows][None], k=cutoff)
    return gains


def report_baselines(
    rows: pl.DataFrame, *, cutoff: int | None = None, draws: int = DRAWS, seed: int = SEED
) -> pl.DataFrame:
    """Measure the baselines that a scorer must beat: constant mean, length, log length, surface, bag of words.

    Each is a ridge regression on the split `train`, measured on `test`.

    Args:
        rows: text, article_id, target, split.
        cutoff: as of `report`.
        draws: as of `report`.
        seed: as of `report`.

    Returns:
        baseline, and the columns of `report`.

    Raises:
        BadInput: as of `report`, or one of the two parts is empty.
    """
    train, test = _split_rows(rows)
    reports = [
        report(
            test.with_columns(score=pl.Series(predictions, dtype=pl.Float64)), cutoff=cutoff, draws=draws, seed=seed
        ).select(pl.lit(name).alias("baseline"), pl.all())
        for name, predictions in _predict_baselines(train, test).items()
    ]
    return pl.concat(reports)


def _split_rows(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    if absent := [name for name in ("text", "article_id", "target", "split") if name not in rows.columns]:
        raise BadInput(f"expected columns text, article_id, target and split; missing {', '.join(absent)}")
    is_usable = pl.col("target").cast(pl.Float64).is_finite() & pl.col("text").is_not_null()
    is_wrong = rows.select(wrong=~is_usable.fill_null(value=False) & pl.col("split").is_in(["train", "test"]))["wrong"]
    if is_wrong.any():
        raise BadInput(f"row {int(is_wrong.arg_true()[0]) + 1}: expected a text and a number as its target")
    train, test = (rows.filter(pl.col("split") == name) for name in ("train", "test"))
    if not train.height or not test.height:
        raise BadInput(f"expected rows of the splits train and test, found {train.height} and {test.height}")
    return train, test


def _predict_baselines(train: pl.DataFrame, test: pl.DataFrame) -> dict[str, Floats]:
    """Predict the targets of the test rows with each baseline."""
    from sklearn.dummy import DummyRegressor
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    words = TfidfVectorizer(token_pattern=_WORD, sublinear_tf=True, max_features=50_000)
    models: dict[str, Any] = {
        "mean": make_pipeline(FunctionTransformer(_measure_length), DummyRegressor()),
        "length": make_pipeline(FunctionTransformer(_measure_length), StandardScaler(), Ridge(1e-6)),
        "log_length": make_pipeline(FunctionTransformer(_measure_log_length), StandardScaler(), Ridge(1e-6)),
        "surface": make_pipeline(FunctionTransformer(_measure_surface), StandardScaler(), Ridge()),
        "words": make_pipeline(words, Ridge(solver="sparse_cg")),
    }
    texts, target, test_texts = train["text"].to_list(), train["target"].to_numpy(), test["text"].to_list()
    return {name: np.asarray(model.fit(texts, target).predict(test_texts)) for name, model in models.items()}


def _measure_length(texts: Sequence[str]) -> Floats:
    """Count characters: [n, 1]."""
    return np.array([[len(text)] for text in texts], np.float64).reshape(-1, 1)


def _measure_log_length(texts: Sequence[str]) -> Floats:
    return np.log1p(_measure_length(texts))


def _measure_surface(texts: Sequence[str]) -> Floats:
    """Compute length, its logarithm, and log counts of words, digits, capitals and marks: [n, d]."""
    counts = [
        [text.count(" "), sum(map(str.isdigit, text)), sum(map(str.isupper, text)), *map(text.count, _MARKS)]
        for text in texts
    ]
    log_counts = np.log1p(np.array(counts, np.float64).reshape(len(texts), -1))
    return np.hstack([_measure_length(texts), _measure_log_length(texts), log_counts])
