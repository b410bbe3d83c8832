"""Bradley-Terry values of compared items, with ties and an effect of the order, and which pairs to compare next.

With x = (value_i - value_j + bias) / 2 for items i (first) and j, the first is chosen in proportion to exp(x), the
second to exp(-x), and neither to exp(log_tie) (Davidson 1970; the effect of the order is that of Davidson and Beaver
1977). Values are log-odds with mean 0. Their prior N(0, sd) keeps those finite that won or lost every comparison; its
sd maximises the marginal likelihood, as pairs chosen by outcomes inflate differences (Bramley and Vitello 2019). The
next pairs are those whose outcome is least certain, each in an order that keeps the sides balanced.

Up to `EXACT` unknowns the information is inverted; of more it is sparse, and random signs probe it: its determinant by
Lanczos quadrature (Ubaru, Chen and Saad 2017), the diagonal of its inverse as Bekas, Kokiopoulou and Saad (2007) do.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy import optimize, sparse, stats

from pipeline.metrics.resample import Floats, Ints

PRIOR_SD = 2.0  # of the values while pairs are being chosen
PRIOR_RANGE = (0.05, 10.0)  # of the sd that is estimated
Z = 1.959963984540054  # of a normal distribution's middle 95 %
EXACT = 2_000  # unknowns (items, bias, ties) that are inverted; memory grows with their square, time with their cube
PROBES = 32  # vectors of random signs: errors differ from the exact ones by 1 % (sd) where values have an sd of 1.5
LANCZOS_STEPS = 40
_SMALLEST = 1e-300  # in place of 0, where something is divided by it or its logarithm taken
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
    """Values with their standard errors, [n] each, the bias, and the p of no difference between items."""

    values: Floats
    errors: Floats
    bias: float
    p_equal: float


def fit_values(comparisons: Comparisons, count: int, prior_sd: float = PRIOR_SD) -> Fit:
    """Fit the values of `count` items by penalised maximum likelihood, by Newton's method."""
    outcome = comparisons.outcome
    tie_count = int((outcome == 0).sum())

    def read(params: Floats) -> Fit:
        return Fit(params[:count], float(params[count]), float(params[count + 1]) if tie_count else -np.inf, prior_sd)

    def evaluate(params: Floats) -> tuple[float, Floats]:
        fit = read(params)
        lead, tie, _ = _compute_probabilities(comparisons, fit)
        slope = (outcome - lead) / 2
        gradient = np.empty_like(params)
        gradient[:count] = _sum_items(comparisons, slope, count) - fit.values / prior_sd**2
        gradient[count:] = (slope.sum(), tie_count - tie.sum())[: len(params) - count]
        return -_compute_log_posterior(comparisons, fit), -gradient

    def curve(params: Floats) -> sparse.csr_array:
        return _compute_information(comparisons, read(params))

    start = np.zeros(count + 1 + bool(tie_count))
    options = {"xtol": 1e-9, "maxiter": 100}  # a bias has no end if the first always wins
    fit = read(optimize.minimize(evaluate, start, jac=True, hess=curve, method="Newton-CG", options=options).x)
    return fit._replace(values=fit.values - fit.values.mean())


def estimate(comparisons: Comparisons, count: int) -> Estimates:
    """Estimate the values of `count` items, with errors from the Fisher information and the prior.

    The p of no difference is that of the ratio of marginal likelihoods; half of its distribution is at 0, since the
    prior's sd cannot be below 0 (Self and Liang 1987).
    """

    def evaluate(log_sd: float) -> float:  # Laplace's approximation of the marginal likelihood, negative
        fit = fit_values(comparisons, count, float(np.exp(log_sd)))
        log_determinant = _measure_log_determinant(_compute_information(comparisons, fit))
        return count * log_sd + log_determinant / 2 - _compute_log_posterior(comparisons, fit)

    bounds = tuple(np.log(PRIOR_RANGE))
    best = optimize.minimize_scalar(evaluate, bounds=bounds, method="bounded", options={"xatol": 0.02})
    ratio = max(0.0, 2 * (evaluate(float(bounds[0])) - float(best.fun)))
    fit = fit_values(comparisons, count, float(np.exp(best.x)))
    variances = _measure_variances(_compute_information(comparisons, fit), count)
    return Estimates(fit.values, np.sqrt(variances), fit.bias, float(stats.chi2.sf(ratio, 1)) / 2 if ratio else 1.0)


def _measure_log_determinant(information: sparse.csr_array) -> float:
    """Compute the logarithm of the determinant of a positive definite matrix [n, n]; of a large one, estimate it."""
    n = information.shape[0]
    if n <= EXACT:
        return float(np.linalg.slogdet(information.toarray())[1])
    scale, scaled = _scale(information)
    basis, previous, length = _draw_signs(n) / np.sqrt(n), np.zeros((n, PROBES)), np.zeros(PROBES)
    tridiagonal = np.zeros((PROBES, LANCZOS_STEPS, LANCZOS_STEPS))
    for step in range(LANCZOS_STEPS):
        product = scaled @ basis - length * previous
        tridiagonal[:, step, step] = (basis * product).sum(axis=0)
        product -= tridiagonal[:, step, step] * basis
        length = np.linalg.norm(product, axis=0)
        if step + 1 < LANCZOS_STEPS:
            tridiagonal[:, step, step + 1] = tridiagonal[:, step + 1, step] = length
        previous, basis = basis, product / np.maximum(length, _SMALLEST)  # 0 if nothing is left, as of a unit matrix
    roots, vectors = np.linalg.eigh(tridiagonal)
    logs = (vectors[:, 0] ** 2 * np.log(np.maximum(roots, _SMALLEST))).sum(axis=1)
    return float(n * logs.mean() - 2 * np.log(scale).sum())


def _measure_variances(information: sparse.csr_array, count: int) -> Floats:
    """Compute the variance of each of `count` values less their mean: [count]."""
    n = information.shape[0]
    if n <= EXACT:
        covariance = np.linalg.inv(information.toarray())
        diagonal, means = np.diag(covariance), covariance[:, :count].mean(axis=1)
    else:
        scale, scaled = _scale(information)
        rest = sparse.eye_array(n) - scaled  # R of S⁻¹ = 1 + R + R² + R³ S⁻¹, of which only the last term is probed
        common = (np.arange(n) < count) / scale  # all values alike, which the prior alone holds: not probed, either
        common /= np.linalg.norm(common)
        remainder = common * _multiply_remainder(scaled, rest, common)
        for sign in _draw_signs(n).T:
            side = sign - common * (common @ sign)
            remainder += sign * _multiply_remainder(scaled, rest, side) / PROBES
        diagonal = scale**2 * (1 + rest.diagonal() + rest.multiply(rest).sum(axis=1) + remainder)
        means = scale * _solve(scaled, scale * (np.arange(n) < count)) / count
    return np.asarray(diagonal[:count] - 2 * means[:count] + means[:count].mean())


def _scale(information: sparse.csr_array) -> tuple[Floats, sparse.csr_array]:
    """Scale a matrix to a diagonal of ones; return what its rows and columns were multiplied by, too."""
    scale: Floats = information.diagonal() ** -0.5
    return scale, sparse.csr_array(information.multiply(scale[:, None]).multiply(scale))


def _multiply_remainder(scaled: sparse.csr_array, rest: sparse.csr_array, side: Floats) -> Floats:
    """Compute R³ S⁻¹ · x: [n]."""
    return np.asarray(rest @ (rest @ (rest @ _solve(scaled, side))))


def _solve(matrix: sparse.csr_array, side: Floats) -> Floats:
    """Solve matrix · x = side, for a positive definite matrix: [n]."""
    return np.asarray(sparse.linalg.cg(matrix, side, rtol=1e-8)[0])


def _draw_signs(count: int) -> Floats:
    """Draw the same random signs each time, [count, PROBES]: what is estimated by them varies smoothly."""
    return np.random.default_rng(0).choice([-1.0, 1.0], (count, PROBES))


def approximate_errors(comparisons: Comparisons, fit: Fit) -> Floats:
    """Approximate the errors of the values by the diagonal of the information, fast enough for each round: [n]."""
    weights = _compute_weights(comparisons, fit)[0]
    first, second = (np.bincount(side, weights, len(fit.values)) for side in comparisons[:2])
    return np.asarray(1 / np.sqrt(first + second + fit.prior_sd**-2.0))


def _sum_items(comparisons: Comparisons, numbers: Floats, count: int) -> Floats:
    """Sum numbers of comparisons over each item, those where it is second with the other sign: [m] -> [n]."""
    first, second = (np.bincount(side, numbers, count) for side in comparisons[:2])
    return np.asarray(first - second, np.float64)


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


def _compute_information(comparisons: Comparisons, fit: Fit) -> sparse.csr_array:
    """Compute the Fisher information of the values, the bias and, where there are ties, `log_tie`."""
    first, second, _ = comparisons
    of_values, of_both, of_ties = _compute_weights(comparisons, fit)
    n = len(fit.values)
    between = sparse.coo_array((-of_values, (first, second)), (n, n))
    sums = sum(np.bincount(side, of_values, n) for side in (first, second))
    values = between + between.T + sparse.diags_array(sums + fit.prior_sd**-2.0)
    borders = np.column_stack([_sum_items(comparisons, weights, n) for weights in (of_values, of_both)])
    corner = [[of_values.sum() + _TINY, of_both.sum()], [of_both.sum(), of_ties.sum() + _TINY]]
    information = sparse.block_array([[values, borders], [borders.T, np.array(corner)]], format="csr")
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
    count, pairs = len(order), []
    is_free, following = [True] * count, [*range(1, count + 1)]  # of each place, the next that is free
    for place, item in enumerate(order):
        if not is_free[place]:
            continue
        before, candidate = place, following[place]
        while candidate < count:
            partner = order[candidate]
            if ((item, partner) in used) + ((partner, item) in used) < (1 if is_strict else 2):
                is_free[candidate], following[before] = False, following[candidate]
                pairs.append((item, partner))
                break
            before, candidate = candidate, following[candidate]
    return pairs
