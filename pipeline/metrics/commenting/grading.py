"""How good a scorer of comments is: against people's grades, within an article, beyond the comment's length.

In: rows with `article_id`, `target` (a grade, or log(1 + likes)) and `score`. Out: a row a number, with the interval of
a bootstrap over articles, as comments of one article are not independent. Longer comments get better grades, so beside
every scorer stand baselines (`baselines`), and pairs of comments of about the same length.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.errors import BadInput
from pipeline.metrics.resample import bounds, with_whole

DRAWS = 1000
SEED = 42
NEAR = 1.1  # times as long the longer of two comments may be that count as of one length
SCHEMA = {"metric": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64}

_MARKS = "?？!！…,，.。;；:：\"“”'‘’()（）\n"
_WORD = r"[\u4e00-\u9fff]|\w+"  # a Chinese character, or a word of letters
_BLOCK = 1 << 22  # comparisons held at a time

Floats = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]


class Pairs(NamedTuple):
    """Pairs of comments of one article with different grades, counted by article."""

    right: Floats  # [articles] that the score orders as the grades do, a tie of scores half
    total: IndexArray  # [articles]


def pairs(groups: IndexArray, target: Floats, score: Floats, lengths: Floats | None = None) -> Pairs:
    """Which pairs within an article are ordered rightly.

    Args:
        groups: number of the article of each comment, from 0, [n].
        target: grades, [n].
        score: [n].
        lengths: if given, only pairs whose lengths are the same but for a factor `NEAR`, [n].
    """
    count = int(groups.max()) + 1 if len(groups) else 0
    right, total = np.zeros(count), np.zeros(count, np.int64)
    for group, at in enumerate(np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])):
        for one in np.array_split(at, math.ceil(len(at) ** 2 / _BLOCK) or 1):  # a block of rows against the article
            rises = np.sign(np.subtract.outer(target[one], target[at]))
            counted = rises > 0  # each pair once: from its better comment
            if lengths is not None:
                ratio = (lengths[one] + 1)[:, None] / (lengths[at] + 1)[None]
                counted &= (ratio <= NEAR) & (ratio >= 1 / NEAR)
            said = np.sign(np.subtract.outer(score[one], score[at]))[counted]
            right[group] += float((said + 1).sum()) / 2
            total[group] += len(said)
    return Pairs(right, total)


def report(rows: pl.DataFrame, *, at: int | None = None, draws: int = DRAWS, seed: int = SEED) -> pl.DataFrame:
    """All numbers of a scorer with their percentile bootstrap intervals of 95 % over articles.

    Spearman and Pearson over all comments; the mean absolute error, which means something only if the score is in the
    unit of the target; the share of pairs of comments of one article with different grades that are ordered rightly, a
    tie of scores half, over all pairs; the same of pairs of about the same length, where there is a text.

    Args:
        rows: article_id, target, score; text for pairs of one length. A null article_id is an article of its own.
        at: k of NDCG@k, the mean over articles with two or more comments and a grade above 0 (gain the grade); none by
            default.
        draws: samples drawn with replacement; with 0 no interval, null.
        seed: of the draws.

    Returns:
        metric, value, low, high, n (comments, pairs or articles that it is of); value null where nothing is measured:
        a correlation with what is constant, or no pairs.

    Raises:
        BadInput: a column is missing, there are no rows, or a target or score is no number.
    """
    groups, target, score = _columns(rows)
    lengths = rows["text"].str.len_chars().to_numpy().astype(np.float64) if "text" in rows.columns else None
    ranked = _Ranks(target), _Ranks(score)
    error = np.bincount(groups, np.abs(target - score)).astype(np.float64)
    sizes = np.bincount(groups).astype(np.int64)
    measured: dict[str, tuple[Callable[[Floats], float], int]] = {
        "spearman": (lambda times: _spearman(*ranked, times[groups]), len(target)),
        "pearson": (lambda times: _correlation(target, score, times[groups]), len(target)),
        "mae": (_ratio(error, sizes), len(target)),
    }
    for name, by in (("pairwise_accuracy", None), ("pairwise_accuracy_near", lengths)):
        if by is not None or name == "pairwise_accuracy":
            right, count = pairs(groups, target, score, by)
            measured[name] = _ratio(right, count), int(count.sum())
    if at is not None:
        gains = ndcg(groups, target, score, at)
        known = ~np.isnan(gains)
        measured[f"ndcg@{at}"] = _ratio(np.nan_to_num(gains), known.astype(np.int64)), int(known.sum())
    samples = with_whole(int(groups.max()) + 1, draws, seed)
    values = np.array([[measure(times) for measure, _ in measured.values()] for times in samples])
    found = [
        (name, column[0], *bounds(column[1:]), count)
        for (name, (_, count)), column in zip(measured.items(), values.T, strict=True)
    ]
    return pl.DataFrame(found, schema=SCHEMA, orient="row").fill_nan(None)


def _columns(rows: pl.DataFrame) -> tuple[IndexArray, Floats, Floats]:
    """Articles by number, targets and scores."""
    if absent := [name for name in ("article_id", "target", "score") if name not in rows.columns]:
        raise BadInput(f"expected columns article_id, target and score; missing {', '.join(absent)}")
    if not rows.height:
        raise BadInput("there are no rows: expected comments with a target and a score")
    for name in ("target", "score"):
        wrong = ~rows[name].cast(pl.Float64).is_finite().fill_null(value=False)
        if wrong.any():
            row = int(wrong.arg_true()[0])
            raise BadInput(f"row {row + 1}: field {name!r} is {rows[name][row]!r}; expected a number")
    alone = pl.format("\0{}", pl.int_range(pl.len()))
    names = rows.select(pl.coalesce(pl.col("article_id").cast(pl.String), alone))["article_id"]
    target, score = (rows[name].cast(pl.Float64).to_numpy() for name in ("target", "score"))
    return names.rank("dense").to_numpy().astype(np.int64) - 1, target, score


class _Ranks:
    """Ranks of values in samples that hold each value some times; sorted once."""

    def __init__(self, values: Floats) -> None:
        _, self.place = np.unique(values, return_inverse=True)

    def __call__(self, times: Floats) -> Floats:
        """Mean rank of the equal values, as `scipy.stats.rankdata` has it of the repeated values: [n]."""
        equal = np.bincount(self.place, times)
        found: Floats = (np.cumsum(equal) - (equal - 1) / 2)[self.place]
        return found


def _spearman(one: _Ranks, other: _Ranks, times: Floats) -> float:
    return _correlation(one(times), other(times), times)


def _correlation(one: Floats, other: Floats, times: Floats) -> float:
    """Pearson's r of values that stand some times each; NaN where one side is constant."""
    total = times.sum()
    left, right = one - times @ one / total, other - times @ other / total
    spread = math.sqrt((times @ left**2) * (times @ right**2))
    return float((times * left) @ right / spread) if spread > 1e-12 * total else math.nan


def _ratio(sums: Floats, counts: IndexArray) -> Callable[[Floats], float]:
    """A mean of what is summed and counted by article."""

    def measure(times: Floats) -> float:
        count = float(times @ counts)
        return float(times @ sums) / count if count else math.nan

    return measure


def ndcg(groups: IndexArray, target: Floats, score: Floats, at: int) -> Floats:
    """Normalised discounted cumulative gain of the first `at` comments of each article: [articles].

    The gain of a comment is its grade; ties of scores are averaged over (scikit-learn's `ndcg_score`). NaN where an
    article has one comment, no grade above 0, or one below.
    """
    from sklearn.metrics import ndcg_score

    if at < 1:
        raise ValueError(f"expected k of 1 or more, got {at}")
    parts = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
    found = np.full(len(parts), np.nan)
    for group, rows in enumerate(parts):
        if len(rows) > 1 and target[rows].max() > 0 and target[rows].min() >= 0:
            found[group] = ndcg_score(target[rows][None], score[rows][None], k=at)
    return found


def baselines(
    rows: pl.DataFrame, *, at: int | None = None, draws: int = DRAWS, seed: int = SEED,
) -> pl.DataFrame:  # fmt: skip
    """What a scorer has to beat: the constant mean, length, its logarithm, the surface alone, and a bag of words alone.

    Each is a ridge regression on the split `train`, measured on `test`.

    Args:
        rows: text, article_id, target, split.
        at: as of `report`.
        draws: as of `report`.
        seed: as of `report`.

    Returns:
        baseline, and the columns of `report`.

    Raises:
        BadInput: as of `report`, or one of the two parts is empty.
    """
    train, test = _split(rows)
    found = [
        report(test.with_columns(score=pl.Series(said, dtype=pl.Float64)), at=at, draws=draws, seed=seed).select(
            pl.lit(name).alias("baseline"), pl.all()
        )
        for name, said in _said(train, test).items()
    ]
    return pl.concat(found)


def _split(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    if absent := [name for name in ("text", "article_id", "target", "split") if name not in rows.columns]:
        raise BadInput(f"expected columns text, article_id, target and split; missing {', '.join(absent)}")
    known = pl.col("target").cast(pl.Float64).is_finite() & pl.col("text").is_not_null()
    wrong = rows.select(wrong=~known.fill_null(value=False) & pl.col("split").is_in(["train", "test"]))["wrong"]
    if wrong.any():
        raise BadInput(f"row {int(wrong.arg_true()[0]) + 1}: expected a text and a number as its target")
    train, test = (rows.filter(pl.col("split") == name) for name in ("train", "test"))
    if not train.height or not test.height:
        raise BadInput(f"expected rows of the splits train and test, found {train.height} and {test.height}")
    return train, test


def _said(train: pl.DataFrame, test: pl.DataFrame) -> dict[str, Floats]:
    """What each baseline says of the test part."""
    from sklearn.dummy import DummyRegressor
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    words = TfidfVectorizer(token_pattern=_WORD, sublinear_tf=True, max_features=50_000)
    models: dict[str, Any] = {
        "mean": make_pipeline(FunctionTransformer(_length), DummyRegressor()),
        "length": make_pipeline(FunctionTransformer(_length), StandardScaler(), Ridge(1e-6)),
        "log_length": make_pipeline(FunctionTransformer(_log_length), StandardScaler(), Ridge(1e-6)),
        "surface": make_pipeline(FunctionTransformer(_surface), StandardScaler(), Ridge()),
        "words": make_pipeline(words, Ridge(solver="sparse_cg")),
    }
    texts, target, others = train["text"].to_list(), train["target"].to_numpy(), test["text"].to_list()
    return {name: np.asarray(model.fit(texts, target).predict(others)) for name, model in models.items()}


def _length(texts: Sequence[str]) -> Floats:
    """Characters: [n, 1]."""
    return np.array([[len(text)] for text in texts], np.float64).reshape(-1, 1)


def _log_length(texts: Sequence[str]) -> Floats:
    return np.log1p(_length(texts))


def _surface(texts: Sequence[str]) -> Floats:
    """Length, its logarithm, words, and how often each mark, digits and capitals stand: [n, d]."""
    counts = [
        [text.count(" "), sum(map(str.isdigit, text)), sum(map(str.isupper, text)), *map(text.count, _MARKS)]
        for text in texts
    ]
    rest = np.log1p(np.array(counts, np.float64).reshape(len(texts), -1))
    return np.hstack([_length(texts), _log_length(texts), rest])
