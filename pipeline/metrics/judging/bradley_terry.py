"""Bradley-Terry values of compared items, with ties and an effect of the order, and which pairs to compare next.

With x = (value_i - value_j + bias) / 2 for items i (first) and j, the first is chosen in proportion to exp(x), the
second to exp(-x), and neither to exp(log_tie) (Davidson 1970; the effect of the order is that of Davidson and Beaver
1977). Values are log-odds with mean 0. Their prior N(0, sd) keeps those finite that won or lost every comparison; its
sd maximises the marginal likelihood, as pairs chosen by outcomes inflate differences (Bramley and Vitello 2019). The
next pairs are those whose outcome is least certain, each in an order that keeps the sides balanced.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy import optimize, stats

from pipeline.metrics.resample import Floats, Ints

PRIOR_SD = 2.0  # of the values while pairs are being chosen
PRIOR_RANGE = (0.05, 10.0)  # of the sd that is estimated
Z = 1.959963984540054  # of a normal distribution's middle 95 %
_TINY = 1e-9  # information about a bias or ties that nothing was observed of


class Comparisons(NamedTuple):
    """Indices of the items shown first and second, and the outcome: 1 the first, -1 the second, 0 a tie: [m] each."""

    first: Ints
    second: Ints
    outcome: Ints


class Fit(NamedTuple):
    """Values [n] with mean 0, what being first adds to a value, and the logarithm of the weight of a tie."""

    values: Floats
    bias: float
    log_tie: float  # -inf where there are no ties
    prior_sd: float


class Estimates(NamedTuple):
    """Values with their standard errors, [n] each, the bias with its own, and the p of no difference between items."""

    values: Floats
    errors: Floats
    bias: float
    bias_error: float
    p_equal: float


def fit_values(comparisons: Comparisons, count: int, prior_sd: float = PRIOR_SD) -> Fit:
    """Fit the values of `count` items by penalised maximum likelihood."""
    outcome = comparisons.outcome
    tie_count = int((outcome == 0).sum())

    def evaluate(params: Floats) -> tuple[float, Floats]:
        fit = Fit(params[:count], params[count], params[count + 1] if tie_count else -np.inf, prior_sd)
        lead, tie, _ = _compute_probabilities(comparisons, fit)
        slope = (outcome - lead) / 2
        gradient = np.empty_like(params)
        gradient[:count] = _sum_items(comparisons, slope, count) - fit.values / prior_sd**2
        gradient[count:] = (slope.sum(), tie_count - tie.sum())[: len(params) - count]
        return -_compute_log_posterior(comparisons, fit), -gradient

    start = np.zeros(count + 1 + bool(tie_count))
    options = {"maxiter": 2_000, "maxfun": 4_000, "ftol": 1e-12, "gtol": 1e-7}
    params = optimize.minimize(evaluate, start, jac=True, method="L-BFGS-B", options=options).x
    values, log_tie = params[:count], float(params[count + 1]) if tie_count else -np.inf
    return Fit(values - values.mean(), float(params[count]), log_tie, prior_sd)


def estimate(comparisons: Comparisons, count: int) -> Estimates:
    """Estimate the values of `count` items, with errors from the Fisher information and the prior.

    The p of no difference is that of the ratio of marginal likelihoods; half of its distribution is at 0, since the
    prior's sd cannot be below 0 (Self and Liang 1987).
    """

    def evaluate(log_sd: float) -> float:  # Laplace's approximation of the marginal likelihood, negative
        fit = fit_values(comparisons, count, float(np.exp(log_sd)))
        log_determinant = float(np.linalg.slogdet(_compute_information(comparisons, fit))[1])
        return count * log_sd + log_determinant / 2 - _compute_log_posterior(comparisons, fit)

    bounds = tuple(np.log(PRIOR_RANGE))
    best = optimize.minimize_scalar(evaluate, bounds=bounds, method="bounded", options={"xatol": 0.02})
    ratio = max(0.0, 2 * (evaluate(float(bounds[0])) - float(best.fun)))
    fit = fit_values(comparisons, count, float(np.exp(best.x)))
    covariance = np.linalg.inv(_compute_information(comparisons, fit))
    of_values = covariance[:count, :count]
    variances = np.diag(of_values) - 2 * of_values.mean(axis=0) + of_values.mean()  # of values less their mean
    bias_error = float(np.sqrt(covariance[count, count]))
    p_equal = float(stats.chi2.sf(ratio, 1)) / 2 if ratio else 1.0
    return Estimates(fit.values, np.sqrt(variances), fit.bias, bias_error, p_equal)


def approximate_errors(comparisons: Comparisons, fit: Fit) -> Floats:
    """Approximate the errors of the values by the diagonal of the information, fast enough for each round: [n]."""
    weights = _compute_weights(comparisons, fit)[0]
    first, second = (np.bincount(side, weights, len(fit.values)) for side in comparisons[:2])
    information: Floats = first + second + fit.prior_sd**-2.0
    errors: Floats = 1 / np.sqrt(information)
    return errors


def _sum_items(comparisons: Comparisons, numbers: Floats, count: int) -> Floats:
    """Sum numbers of comparisons over each item, those where it is second with the other sign: [m] -> [n]."""
    sums = np.zeros(count)
    np.add.at(sums, comparisons.first, numbers)
    np.subtract.at(sums, comparisons.second, numbers)
    return sums


def _compute_probabilities(comparisons: Comparisons, fit: Fit) -> tuple[Floats, Floats, float]:
    """Compute P(first) - P(second) and P(tie), [m] each, and the logarithm of the likelihood."""
    first, second, outcome = comparisons
    x = (fit.values[first] - fit.values[second] + fit.bias) / 2
    log_sum = np.logaddexp(np.logaddexp(x, -x), fit.log_tie)
    tie_count = int((outcome == 0).sum())
    log_likelihood = float((outcome * x - log_sum).sum()) + (fit.log_tie * tie_count if tie_count else 0.0)
    return np.exp(x - log_sum) - np.exp(-x - log_sum), np.exp(fit.log_tie - log_sum), log_likelihood


def _compute_log_posterior(comparisons: Comparisons, fit: Fit) -> float:
    return _compute_probabilities(comparisons, fit)[2] - float((fit.values**2).sum()) / (2 * fit.prior_sd**2)


def _compute_weights(comparisons: Comparisons, fit: Fit) -> tuple[Floats, Floats, Floats]:
    """Compute the information of each comparison on a difference of values, on both, and on the ties: [m] each."""
    lead, tie, _ = _compute_probabilities(comparisons, fit)
    return (1 - tie - lead**2) / 4, -lead * tie / 2, tie * (1 - tie)


def _compute_information(comparisons: Comparisons, fit: Fit) -> Floats:
    """Compute the Fisher information of the values, the bias and, where there are ties, `log_tie`."""
    first, second, _ = comparisons
    of_values, of_both, of_ties = _compute_weights(comparisons, fit)
    n = len(fit.values)
    information = np.zeros((n + 2, n + 2))
    np.add.at(information, (first, second), -of_values)
    np.add.at(information, (second, first), -of_values)
    sums = [np.bincount(side, of_values, n) for side in (first, second)]
    information[np.arange(n), np.arange(n)] += sums[0] + sums[1] + fit.prior_sd**-2.0
    for place, weights in ((n, of_values), (n + 1, of_both)):
        information[:n, place] = information[place, :n] = _sum_items(comparisons, weights, n)
    information[n:, n:] = [[of_values.sum() + _TINY, of_both.sum()], [of_both.sum(), of_ties.sum() + _TINY]]
    return information if np.isfinite(fit.log_tie) else information[: n + 1, : n + 1]


Pair = tuple[int, int]  # the item shown first, and the second


def draw_first_pairs(count: int, seed: int) -> list[Pair]:
    """Draw a random partner for each of `count` items, and compare each pair in both orders.

    The answers show whether the judge looks at the texts or at their places (`reliability`).
    """
    items = np.random.default_rng(seed).permutation(count).tolist()
    if count % 2 and count > 2:
        items.append(items[0])
    pairs = list(zip(items[::2], items[1::2], strict=False))
    return [pair for a, b in pairs for pair in ((a, b), (b, a))]


def choose_pairs(values: Floats, errors: Floats, compared: Iterable[Pair], count: int, seed: int) -> list[Pair]:
    """Choose up to `count` further pairs by Swiss rounds.

    For each round of n / 2 pairs all values are drawn from what is known of them, N(value, error); neighbours in the
    drawn order meet. So close items meet often, and uncertain ones meet many. The item that was first less often is
    first. No ordered pair is chosen twice, and no pair in both orders while there are others.
    """
    rng = np.random.default_rng(seed)
    used = set(compared)
    lead = [0] * len(values)  # how much more often an item was first than second
    for a, b in used:
        lead[a] += 1
        lead[b] -= 1
    new_pairs: list[Pair] = []
    while len(new_pairs) < count:
        order = np.argsort(values + errors * rng.standard_normal(len(values)), kind="stable").tolist()
        matched = _match(order, used, is_strict=True) or _match(order, used, is_strict=False)
        if not matched:
            break
        for a, b in matched:
            is_swapped = (a, b) in used or ((b, a) not in used and (lead[a], rng.random()) > (lead[b], 0.5))
            pair = (b, a) if is_swapped else (a, b)
            used.add(pair)
            lead[pair[0]] += 1
            lead[pair[1]] -= 1
            new_pairs.append(pair)
    return new_pairs[:count]


def _match(order: list[int], used: set[Pair], *, is_strict: bool) -> list[Pair]:
    """Match each item with the nearest after it that is free and not used up; strictly, in neither order."""
    free = dict.fromkeys(order)
    pairs = []
    for item in order:
        if item not in free:
            continue
        del free[item]
        for partner in free:  # in order
            is_used = ((item, partner) in used) + ((partner, item) in used)
            if is_used < (1 if is_strict else 2):
                del free[partner]
                pairs.append((item, partner))
                break
    return pairs
