"""Labels of eight comments by three raters and a fourth, what metrics make of them, and facts of a release."""

import datetime

import polars as pl

from pipeline.label.schema import NO, UNSURE, YES
from pipeline.metrics.labelling import agreement, label_analysis
from pipeline.report.labelling.data_card import Facts

WIDE = pl.DataFrame(
    {"subtext": [YES, YES, YES, NO, NO, UNSURE, NO, NO], "sarcasm": [YES, YES, NO, NO, NO, NO, NO, NO],
     "metaphor": [NO, YES, NO, NO, YES, NO, NO, NO], "sentiment": [YES, NO, NO, UNSURE, UNSURE, UNSURE, UNSURE, YES],
     "emotion": ["joy", "sad", "anger", "None", "None", "None", "None", "None"], "other": [NO] * 8}
)  # fmt: skip
"""Of eight comments three have subtext, two of them with sarcasm; one of two metaphors is among them; no other."""
NAMES = ["subtext", "sarcasm", "metaphor", "sentiment", "emotion", "other"]
RATED = WIDE.with_row_index("task_id").unpivot(index="task_id", variable_name="field", value_name="a").with_columns(
    pl.col("task_id").cast(pl.String), b="a", fourth="a",
    is_waiting=pl.lit(False), last_a="a", last_b="a",
    c=pl.when((pl.col("task_id") == 3) & ~pl.col("field").is_in(["emotion", "other"])).then(pl.lit(YES)).otherwise("a"),
)  # fmt: skip
RATED = RATED.with_columns(last_c="c")
AGREEMENT = agreement.tabulate(RATED, resamples=50)
RATIOS, OVERLAPS = label_analysis.class_ratios(WIDE), label_analysis.overlaps(WIDE)
CORRELATIONS = label_analysis.correlations(WIDE)
STUDY = agreement.study((0.5, 0.9, 1.0), (0.02, 0.5), items=400)
PREDICTABILITY = pl.DataFrame(
    {"field": ["subtext", "emotion", "other"], "svm_f1": [0.61, 0.35, None], "majority_f1": [0.4375, 0.3125, None],
     "row_count": [1234, 1200, 7], "class_count": [3, 9, 1], "left_out_count": [0, 5, 2]}
)  # fmt: skip
FACTS = Facts(
    release="teahouse_1", created=datetime.date(2026, 11, 19),
    rows=pl.DataFrame({"source": ["weibo", "zhihu"], "lang": ["zh", "en"], "row_count": [1200, 34]}),
    funnel=pl.DataFrame(
        {"step": ["select", "release"], "read_count": [70211, 1301], "kept_count": [1301, 1234],
         "dropped_count": [68910, 67]}
    ),
    classes=RATIOS, agreement=AGREEMENT,
    deletions=pl.DataFrame({"reason": ["specious_twice", "all_different"], "row_count": [41, 2626]}),
    tools=pl.DataFrame({"tool": ["label_studio", "file"], "row_count": [31111, 222]}), rater_count=17,
    licence="CC BY 4.0", data_hash="ab" * 32,
)  # fmt: skip
