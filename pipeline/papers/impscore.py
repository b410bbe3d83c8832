"""What the paper on ImpScore prints (section 5.3, table 2)."""

from itertools import product

METRICS = (("cosine", "euclidean"), ("cosine", "cosine"), ("euclidean", "cosine"), ("euclidean", "euclidean"))
SPACES = {"p2s": "pragmatic → semantic", "s2p": "semantic → pragmatic", "third": "both → a third"}
_PRINTED = [
    (0.953, 0.962), (0.947, 0.962), (0.946, 0.963), (0.952, 0.973), (0.953, 0.967), (0.947, 0.971),
    (0.927, 0.964), (0.928, 0.974), (0.929, 0.974), (0.926, 0.963), (0.927, 0.962), (0.924, 0.963),
]  # fmt: skip
TABLE_2 = dict(zip(((*both, space) for both, space in product(METRICS, SPACES)), _PRINTED, strict=True))
"""Implicitness and pragmatics accuracy by metric of I, metric of ΔP and space, as the paper has them (IMP-29)."""
