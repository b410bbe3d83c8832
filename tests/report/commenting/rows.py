"""Rows of article commenting, small and hand-made."""

import numpy as np
import polars as pl

NAMES = (
    "社会", "财经", "体育", "娱乐", "科技与互联网", "军事", "国际新闻", "汽车", "房产", "教育", "健康养生", "旅游",
    "历史", "food", "science and nature", "美食", None,
)  # fmt: skip
CATEGORIES = pl.DataFrame(
    [(name, 900 - 50 * i, (900 - 50 * i) / 8500) for i, name in enumerate(NAMES)],
    schema=["category", "n", "share"], orient="row",
)  # fmt: skip
GRADES = pl.DataFrame(
    {"item_id": [str(i) for i in range(40) for _ in range(2)],
     "grade": [float(1 + (i * 7 + k * (i % 3)) % 5) for i in range(40) for k in range(2)]}
)  # fmt: skip
PLAIN = {"meteor": 0.56, "rouge_l": 0.19, "cider": 0.34, "bleu_1": 0.21, "bleu_4": 0.1, "human": 0.78}
CORRELATIONS = pl.DataFrame(
    [(metric, weighted, kind, value + shift + gain, value + shift + gain - 0.02, value + shift + gain + 0.02,
      1e-7 if metric == "meteor" else 0.004, 9660, *((gain, gain - 0.01, gain + 0.01) if weighted else (None,) * 3))
     for metric, value in PLAIN.items() for kind, shift in (("spearman", 0.0), ("pearson", -0.05))
     for weighted, gain in ((False, 0.0), (True, -0.007 if metric == "bleu_1" else 0.03))
     if not (metric == "human" and weighted)],
    schema=["metric", "is_weighted", "coefficient", "value", "low", "high", "p", "n",
            "difference", "difference_low", "difference_high"],
    orient="row", infer_schema_length=None,
)  # fmt: skip
SENSITIVITY = pl.DataFrame(
    [(preset, metric, kind, value + 0.01 * i, ratio)
     for i, (preset, ratio) in enumerate({"s/5": 0.72, "(s−1)/4": 0.65, "s/max": 0.9}.items())
     for metric, value in PLAIN.items() if metric != "human" for kind in ("spearman", "pearson")],
    schema=["preset", "metric", "coefficient", "value", "ratio"], orient="row",
)  # fmt: skip
POINTS_OF = np.random.default_rng(3)
SCATTER = pl.DataFrame(
    [(metric, weighted, 0.1 * slope * grade + 0.05 * noise, grade)
     for metric, weighted, slope in (("bleu_1", False, 0.2), ("meteor", False, 0.8), ("meteor", True, 1.0),
                                     ("cider", False, 0.1))
     for grade, noise in zip(POINTS_OF.integers(1, 6, 60).astype(float), POINTS_OF.normal(size=60), strict=True)],
    schema=["metric", "is_weighted", "value", "grade"], orient="row",
)  # fmt: skip
ROWS: dict[tuple[str, bool], list[float | None]] = {
    ("meteor", False): [0.137, 0.138, 0.061, 0.084, 0.078], ("meteor", True): [0.13, 0.131, 0.058, 0.08, 0.074],
    ("rouge_l", False): [0.23, 0.229, 0.197, 0.232, 0.298], ("bleu_1", False): [0.373, None, 0.298, 0.373, 0.227],
    ("human", False): [2.8, 2.9, 1.4, 1.7, 2.2],
}  # fmt: skip
SYSTEM_ROWS = pl.DataFrame(
    [(metric, weighted, system, value, 1610 - (system == "att_tc"))
     for (metric, weighted), values in ROWS.items()
     for system, value in zip(("ir_t", "ir_tc", "seq2seq", "att", "att_tc"), values, strict=True)],
    schema=["metric", "is_weighted", "system", "value", "n"], orient="row", infer_schema_length=None,
)  # fmt: skip
