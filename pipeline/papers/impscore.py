"""What the paper on ImpScore prints (sections 5.3, 6.3 and 7.1, tables 2 and 5, appendix A.5)."""

from itertools import product

METRICS = (("cosine", "euclidean"), ("cosine", "cosine"), ("euclidean", "cosine"), ("euclidean", "euclidean"))
SPACES = {"p2s": "pragmatic → semantic", "s2p": "semantic → pragmatic", "third": "both → a third"}
_PRINTED = [
    (0.953, 0.962), (0.947, 0.962), (0.946, 0.963), (0.952, 0.973), (0.953, 0.967), (0.947, 0.971),
    (0.927, 0.964), (0.928, 0.974), (0.929, 0.974), (0.926, 0.963), (0.927, 0.962), (0.924, 0.963),
]  # fmt: skip
TABLE_2 = dict(zip(((*both, space) for both, space in product(METRICS, SPACES)), _PRINTED, strict=True))
"""Implicitness and pragmatics accuracy by metric of I, metric of ΔP and space, as the paper has them (IMP-29)."""

TABLE_5 = {
    1: {"kendall_tau": (0.53, 0.93, 0.93, 0.73, 0.93, 0.73), "spearman_rho": (0.64, 0.96, 0.96, 0.80, 0.96, 0.80),
        "accuracy": (0.80, 0.80, 0.80, 0.80, 0.80, 0.80)},
    2: {"kendall_tau": (0.80, 0.73, 0.93, 0.67, 1.00, 0.80), "spearman_rho": (0.88, 0.72, 0.96, 0.80, 1.00, 0.88),
        "accuracy": (1.00, 1.00, 0.80, 0.60, 1.00, 1.00)},
}  # fmt: skip
"""Five people, then ImpScore, by set of five groups and five questions, against the given order (IMP-34)."""

TABLE_11 = {"groups": 10, "pragmatics": 4, "implicitness": 6}
"""The ratings that a linguist gave to each group, 0 to 4 and 0 to 6 (appendix A.5; IMP-37)."""

RECRUITING = {"people": 10, "people_per_set": 5, "sets": 2, "items_per_set": 5, "pilots": 2, "surveys": 10}
"""Whom to recruit: native or proficient speakers with a bachelor's degree, more than `surveys` surveys and all
of their work approved; `pilots` try it out first (appendix A.5; IMP-38)."""

BENCHMARKS = {
    "ishate": (31_830, 24_823), "latent_hatred": (8_189, 7_100), "sbic": (24_019, None), "dghsd": (22_175, 3_439),
    "toxigen": (125_672, 125_672), "davidson": (20_620, None),
}  # fmt: skip
"""Problematic texts of section 7.1, and the implicit ones among them, by source (IMP-40)."""
