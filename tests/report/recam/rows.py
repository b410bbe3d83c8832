"""Rows of a cloze set and its readers, small and hand-made."""

import polars as pl

FIRST, SECOND = "imperceptibility", "nonspecificity"
FUNNEL = pl.DataFrame(
    [(FIRST, "concrete", 300), (FIRST, "not_content", 500), (FIRST, "in_passage", 100), (FIRST, "new_filter", 25),
     (FIRST, None, 75), (SECOND, "not_content", 700), (SECOND, "specific", 290), (SECOND, "target", 10)],
    schema=["subtask", "reason", "count"], orient="row",
)  # fmt: skip
AUDIT = pl.DataFrame(
    [(subtask, baseline, 0.2 + shift, 0.012, 0.2, 837) for subtask in (FIRST, SECOND)
     for baseline, shift in (("often_right", 0.11), ("absent", 0.03), ("longest", -0.01))],
    schema=["subtask", "baseline", "accuracy", "error", "chance", "n"], orient="row",
)  # fmt: skip
RETRIEVAL = pl.DataFrame(
    [(subtask, reader, 0.2 + 0.03 * i, 0.15, 0.3, 0.37, 5312 - i)
     for subtask in (FIRST, SECOND) for i, reader in enumerate(("gloss", "gated", "ours"))],
    schema=["subtask", "reader", "mrr", "recall_1", "recall_5", "recall_10", "n"], orient="row",
)  # fmt: skip
READERS = pl.DataFrame(
    [(reader, trained_on, tested_on, value, value - 0.03, value + 0.03, 851)
     for tested_on, away in ((FIRST, SECOND), (SECOND, FIRST))
     for reader, trained_on, value in (
         ("gated", tested_on, 0.27), ("gated", away, 0.24), ("masked_lm", tested_on, 0.5))],
    schema=["reader", "trained_on", "tested_on", "accuracy", "low", "high", "n"], orient="row",
)  # fmt: skip
MATRIX = pl.DataFrame(
    [(FIRST, FIRST, 0.351, 0.331, 0.372, 1204), (SECOND, FIRST, 0.361, 0.34, 0.38, 1204),
     (FIRST, SECOND, 0.299, 0.28, 0.32, 1300), (SECOND, SECOND, 0.402, 0.38, 0.42, 1300)],
    schema=["trained_on", "tested_on", "accuracy", "low", "high", "n"], orient="row",
)  # fmt: skip
BREAKDOWN = pl.DataFrame(
    [(trained_on, kind, group, 60, 0.3, 0.2, 0.41)
     for trained_on in (FIRST, SECOND)
     for kind, groups in (("upos", ("NOUN", "VERB", None)), ("words", ("121–250", "0–120", "1001+")))
     for group in groups],
    schema=["trained_on", "by", "group", "n", "accuracy", "low", "high"], orient="row",
)  # fmt: skip
