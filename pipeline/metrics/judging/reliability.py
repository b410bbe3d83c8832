"""Whether a judge's answers come from the texts: a judge that guesses or always says the same is named.

Each function returns a row for each check: check, value, low, high (95 %), n, and the fault that it shows, or null.
"""

from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import scipy

from pipeline.metrics.judging.bradley_terry import Comparisons
from pipeline.metrics.resample import Floats, Ints, wilson

FAIR = (0.4, 0.6)  # share of answers for the first text; an interval outside it is a bias
CONSTANT = 0.9  # share of one answer above which a judge says nothing else
LEAST = 20  # answers about as many texts, below which nothing is concluded
ALPHA = 0.01  # p above which the answers are those of a judge that guesses
RELIABLE = 0.1  # reliability below which they are too
POSITION = "position bias"
RANDOM = "random: the answers do not depend on the texts"
SCHEMA = pl.Schema(
    {"check": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64, "fault": pl.String}
)


def check_comparisons(comparisons: Comparisons, p_equal: float) -> pl.DataFrame:
    """Check the outcomes of comparisons: share of the first text, of ties, and agreement of the two orders of a pair.

    Agreement is over pairs that were compared in both orders, with a choice in both. A judge that guesses is known by
    `p_equal` (`bradley_terry.Estimates`), which uses all comparisons.
    """
    choices = comparisons.outcome[comparisons.outcome != 0]
    first = _build_row("first text chosen", int((choices == 1).sum()), len(choices))
    ties = _build_row("ties", len(comparisons.outcome) - len(choices), len(comparisons.outcome))
    outcomes = dict(zip(zip(*comparisons[:2], strict=True), comparisons.outcome.tolist(), strict=True))
    pairs = [(outcome, outcomes[b, a]) for (a, b), outcome in outcomes.items() if a < b and (b, a) in outcomes]
    decided = [pair for pair in pairs if 0 not in pair]
    agreed = sum(outcome == -reverse for outcome, reverse in decided)
    same = _build_row("same choice in both orders", agreed, len(decided))
    text_count = len(np.unique(np.concatenate(comparisons[:2])))
    has_enough = min(len(choices), text_count) >= LEAST
    if has_enough:
        if max(first["value"], 1 - first["value"]) > CONSTANT:
            first["fault"] = f"always chooses the {'first' if first['value'] > 0.5 else 'second'} text"
        elif first["low"] > FAIR[1] or first["high"] < FAIR[0]:
            first["fault"] = POSITION
    if min(ties["n"], text_count) >= LEAST and ties["value"] > CONSTANT:
        ties["fault"] = "always answers with a tie"
    is_constant = bool(ties["fault"] or first["fault"] not in (None, POSITION))
    if has_enough and not is_constant and p_equal > ALPHA:
        same["fault"] = RANDOM
    return pl.DataFrame([first, ties, same], schema=SCHEMA)


def check_grades(items: Ints, grades: Floats, variances: Floats | None = None) -> pl.DataFrame:
    """Check grades: the share of the most frequent one, and the reliability of a single grade (ICC(1)).

    The reliability is the share of the variance that lies between items, from repeated grades of one item; or, where
    each grade is the mean of a distribution, from the `variances` of these. It is null where each item has one grade.
    """
    counts = Counter(np.round(grades).astype(int).tolist())
    grade, count = counts.most_common(1)[0] if counts else (0, 0)
    frequent = _build_row("most frequent grade", count, len(grades))
    item_count = len(np.unique(items))
    if item_count >= LEAST and frequent["value"] > CONSTANT:
        frequent["fault"] = f"always answers {grade}"
    reliability = {"check": "reliability of one answer", "n": len(grades)}
    if variances is not None and len(grades) > 1:
        between, within = float(np.var(grades, ddof=1)), float(variances.mean())
        value = between / (between + within) if between + within else 0.0
        is_random = value < RELIABLE
        reliability["value"] = round(value, 6)
    elif len(grades) > item_count > 1:
        value, low, high, p = _analyse_variance(items, grades)
        is_random = p > ALPHA or value < RELIABLE
        reliability |= {"value": value, "low": low, "high": high}
    else:
        is_random = False
    if is_random and item_count >= LEAST and not frequent["fault"]:
        reliability["fault"] = RANDOM
    return pl.DataFrame([frequent, reliability], schema=SCHEMA)


def is_useless(checks: pl.DataFrame) -> bool:
    """Return whether a fault makes the values worthless; a bias that balanced orders cancel does not."""
    return bool((checks["fault"].is_not_null() & (checks["fault"] != POSITION)).any())


def _build_row(check: str, count: int, total: int) -> dict[str, Any]:
    if not total:
        return {"check": check, "value": None, "low": None, "high": None, "n": 0, "fault": None}
    low, high = wilson(np.array([count / total]), np.array([total]))
    shares = {"value": count / total, "low": float(low[0]), "high": float(high[0])}
    return {"check": check, **{name: round(share, 6) for name, share in shares.items()}, "n": total, "fault": None}


def _analyse_variance(items: Ints, grades: Floats) -> tuple[float, float, float, float]:
    """Compute ICC(1) of Shrout and Fleiss (1979) with its interval, and the p of no difference between items."""
    units = np.unique(items, return_inverse=True)[1]
    sizes, sums = np.bincount(units), np.bincount(units, grades)
    means, total, n = sums / sizes, len(grades), len(sizes)
    between = float((sizes * (means - grades.mean()) ** 2).sum()) / (n - 1)
    within = float(((grades - means[units]) ** 2).sum()) / (total - n)
    k = (total - float((sizes**2).sum()) / total) / (n - 1)
    if not within:
        return (1.0, 1.0, 1.0, 0.0) if between else (0.0, 0.0, 0.0, 1.0)
    ratio, degrees = between / within, (n - 1, total - n)
    bounds = ratio / scipy.stats.f.ppf(0.975, *degrees), ratio * scipy.stats.f.ppf(0.975, *degrees[::-1])
    value, low, high = ((x - 1) / (x + k - 1) for x in (ratio, *bounds))
    return round(value, 6), round(low, 6), round(high, 6), float(scipy.stats.f.sf(ratio, *degrees))
