"""Labels of eight comments by three raters and a fourth, and what metrics make of them."""

import polars as pl

from pipeline.label.schema import NO, UNSURE, YES
from pipeline.metrics.labelling import agreement, agreement_study, label_analysis

WIDE = pl.DataFrame(
    {"subtext": [YES, YES, YES, NO, NO, UNSURE, NO, NO], "sarcasm": [YES, YES, NO, NO, NO, NO, NO, NO],
     "metaphor": [NO, YES, NO, NO, YES, NO, NO, NO], "sentiment": [YES, NO, NO, UNSURE, UNSURE, UNSURE, UNSURE, YES],
     "emotion": ["joy", "sad", "anger", "None", "None", "None", "None", "None"], "other": [NO] * 8}
)  # fmt: skip
"""Of eight comments three have subtext, two of them with sarcasm; one of two metaphors is among them; no other."""
NAMES = ["subtext", "sarcasm", "metaphor", "sentiment", "emotion", "other"]
RATED = WIDE.with_row_index("task_id").unpivot(index="task_id", variable_name="field", value_name="a").with_columns(
    pl.col("task_id").cast(pl.String), b="a", fourth="a",
    c=pl.when((pl.col("task_id") == 3) & ~pl.col("field").is_in(["emotion", "other"])).then(pl.lit(YES)).otherwise("a"),
)  # fmt: skip
AGREEMENT = agreement.tabulate(RATED, resamples=50)
RATIOS, OVERLAPS = label_analysis.class_ratios(WIDE), label_analysis.overlaps(WIDE)
CORRELATIONS = label_analysis.correlations(WIDE)
STUDY = agreement_study.study((0.5, 0.9, 1.0), (0.02, 0.5), items=400)
PREDICTABILITY = pl.DataFrame(
    {"field": ["subtext", "emotion", "other"], "svm_f1": [0.61, 0.35, None], "majority_f1": [0.4375, 0.3125, None],
     "row_count": [1234, 1200, 7], "class_count": [3, 9, 1], "left_out_count": [0, 5, 2]}
)  # fmt: skip
