"""What the paper on reading comprehension of abstract meaning prints (ReCAM, tables 3 to 7)."""

from typing import NamedTuple

TABLES_3_4 = {
    1: {"gated": (0.245, 0.175, 0.314, 0.378), "attentive": (0.235, 0.167, 0.300, 0.363),
        "gloss": (0.179, 0.123, 0.227, 0.276)},
    2: {"gated": (0.343, 0.268, 0.422, 0.484), "attentive": (0.348, 0.273, 0.424, 0.490),
        "gloss": (0.228, 0.166, 0.286, 0.345)},
}  # fmt: skip
"""(MRR, R@1, R@5, R@10) by subtask, on XSum pairs that were not published (REC-22)."""

SIZES = {
    "imperceptibility": {"train": 3227, "validation": 837, "test": 2025},
    "nonspecificity": {"train": 3318, "validation": 851, "test": 2017},
}
"""Items by subtask and split (table 5; REC-27)."""


class Published(NamedTuple):
    """What the paper has of one subtask, on a test set that is not public; of people it has no accuracy."""

    gated: float  # the GA Reader, its baseline
    best: float
    best_away: float  # the best of those trained on the other subtask
    drops: tuple[float, float]  # the least and the largest from home to away


TABLES_6_7 = {
    "imperceptibility": Published(0.251, 0.951, 0.918, (0.013, 0.144)),
    "nonspecificity": Published(0.243, 0.953, 0.942, (0.002, 0.219)),
}
"""Tables 6 and 7, by the subtask whose test set it is. Section 4.3 says all drop substantially; 0.002 is one of them
(REC-30)."""
