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
    drops: tuple[float, float]  # the least and the largest from home to away


LEADERBOARDS: dict[str, list[tuple[str, float, float | None]]] = {
    "imperceptibility": [
        ("GA Reader", 25.1, None), ("SRC-B-roc", 95.1, 91.8), ("PINGAN-Omini-Sinitic", 93.0, 91.7),
        ("ECNU-ICA-1", 90.5, 88.6), ("tt123", 90.0, 86.2), ("cxn", 88.7, None), ("nxc", 88.6, 74.2),
        ("ZJUKLAB", 87.9, None), ("IIE-NLP-Eyas", 87.5, 82.1), ("hzxx1997", 86.7, None), ("XRJL", 86.7, 81.8),
        ("noobs", 86.2, 78.6), ("godrevl", 83.1, None), ("ReCAM@IITK", 82.1, 80.7), ("DeepBlueAI", 81.8, 76.3),
        ("LRG", 75.3, 61.8), ("xuliang", 74.7, None), ("Llf1206571288", 72.8, None), ("Qing", 71.4, None),
        ("NEUer", 56.6, 51.8), ("CCLAB", 46.3, 35.2), ("UoR", 42.0, 39.4), ("munia", 19.3, None),
        ("BaoShanCollege", 19.0, None),
    ],
    "nonspecificity": [
        ("GA Reader", 24.3, None), ("PINGAN-Omini-Sinitic", 95.3, 94.2), ("SRC-B-roc", 94.9, 93.9),
        ("tt123", 93.4, 85.8), ("ECNU-ICA-1", 93.0, 92.8), ("cxn", 92.9, None), ("ZJUKLAB", 92.8, None),
        ("nxc", 92.7, None), ("hzxx1997", 90.2, None), ("XRJL", 90.0, 87.6), ("IIE-NLP-Eyas", 89.6, 84.1),
        ("ReCAM@IITK", 87.6, 85.2), ("noobs", 87.1, 82.4), ("DeepBlueAI", 86.2, 80.7), ("xuliang", 81.0, None),
        ("LRG", 77.8, 65.6), ("Yotta", 71.6, None), ("sayazzad", 68.3, None), ("itanhisada", 67.7, None),
        ("NEUer", 66.9, 45.0), ("YaA@JUST", 66.1, None), ("NLP-IIS@UT", 64.4, None), ("CCLAB", 48.1, 31.8),
        ("K-FUT", 47.6, None), ("owlmx", 44.8, 31.0), ("UIT-ISE-NLP", 42.0, 27.3), ("UoR", 39.1, 34.2),
        ("Noor", 19.9, None), ("BaoShanCollege", 17.6, None),
    ],
}  # fmt: skip
"""Tables 6 and 7: team, accuracy in percent, and that of its reader trained on the other subtask (REC-29)."""
TABLES_6_7 = {
    "imperceptibility": Published(0.251, (0.013, 0.144)),
    "nonspecificity": Published(0.243, (0.002, 0.219)),
}
"""Tables 6 and 7, by the subtask whose test set it is. Section 4.3 says all drop substantially; 0.002 is one of them
(REC-30)."""
