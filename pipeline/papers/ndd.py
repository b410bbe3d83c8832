"""What the paper on NDD prints, and how its systems and measures are called on the page."""

from collections.abc import Mapping, Sequence

QUALITY = ("f1_macro", "rouge_1", "rouge_2", "rouge_l")
BLEU = ("bleu_1", "bleu_2", "bleu_3", "bleu_4")
RATIO = ("ratio", "ratio_delta")
METRICS = {
    "f1_macro": "F1", "rouge_1": "R-1", "rouge_2": "R-2", "rouge_l": "R-L",
    **{f"bleu_{n}": f"B-{n}" for n in range(1, 5)}, "ratio": "CR", "ratio_delta": "ΔC",
    "map": "mAP", "auc": "AUC", "auc_pooled": "AUC of all words", "auc_mean": "AUC, mean of sentences",
    "pearson": "Pearson's\u00a0r", "spearman": "Spearman's\u00a0ρ", "partial": "ρ at equal length",
    "paired_accuracy": "paired accuracy", "syntax": "syntax", "semantics": "semantics",
    "depth_1": "depth 1", "depth_2": "2", "depth_3": "3", "depth_4_or_more": "4 or more",
    "subtree_1": "1 word", "subtree_2": "2 words", "subtree_3_or_more": "3 or more",
}  # fmt: skip
TESTS = {
    "synonym_antonym": "Syn–Ant", "part_of_speech": "POS", "tense": "Term (tense)", "lemma": "Lemma",
    "supervised": "Supervised",
}  # fmt: skip
MEASURES = {
    "ndd": "NDD", "ndd_kl": "NDD (KL)", "perplexity": "ΔPPL", "cosine": "S_C", "ensemble": "NDD and S_C",
}  # fmt: skip
EDITS = {"delete": "delete", "mask": "mask", "stop_word": "stop word", "ensemble": "ensemble"}
SCORERS = {
    "ndd": "NDD", "fast_ndd": "Fast NDD", "ppl_deleter": "PPL Deleter", "cosine": "S_C", "bertscore": "BERTScore",
}  # fmt: skip
BASELINES = {"unedited": "Unedited", "head": "Drop head", "tail": "Drop tail", "random": "Random"}
SYSTEMS = {
    **{f"{key}{sc}": f"{name}{'+SC' if sc else ''}" for key, name in SCORERS.items() for sc in ("", "_sc")},
    **BASELINES, "gold": "gold",
}  # fmt: skip
"""Names of compressors as the paper has them, in the order of the page; others come after them."""


def _name_columns(
    metrics: Sequence[str], rows: Mapping[str, Sequence[float | None]]
) -> dict[str, dict[str, float | None]]:
    return {system: dict(zip(metrics, row, strict=True)) for system, row in rows.items()}


TABLE_3 = _name_columns(
    (*QUALITY, *RATIO),
    {
        "unedited": (58.2, 63.8, 53.4, 63.3, 1.00, 0.56),
        "LSTM, supervised": (80.0, None, None, None, 0.39, -0.05),
        "LSTM-Dep, supervised": (81.0, None, None, None, 0.38, -0.06),
        "Evaluator-SLM, supervised": (85.1, None, None, None, 0.39, -0.05),
        "Tagger+BERT, supervised": (85.0, 78.1, 69.9, 77.9, 0.40, -0.04),
        "SLAHAN, supervised": (85.5, 79.3, 71.4, 79.1, 0.42, -0.02),
        "head": (31.7, 23.6, 14.7, 22.7, 0.39, -0.05), "tail": (56.0, 58.2, 47.4, 57.7, 0.39, -0.05),
        "random": (42.3, 41.7, 13.6, 40.4, 0.40, -0.04),
        "PPL Deleter of its authors": (50.0, None, None, None, 0.39, -0.05),
        "ppl_deleter": (50.9, 51.3, 36.7, 50.9, 0.42, -0.02), "ndd": (61.2, 60.3, 43.2, 59.6, 0.41, -0.03),
        "ndd_sc": (62.3, 62.6, 45.9, 61.9, 0.42, -0.02), "fast_ndd": (59.7, 55.5, 40.3, 54.8, 0.43, -0.01),
        "fast_ndd_sc": (67.1, 62.0, 46.6, 61.4, 0.43, -0.01),
    },
)  # fmt: skip
"""The paper's compressors of Google's 1,000 sentences: measures in percent, CR and ΔC as shares (section 4.2)."""
TABLE_5 = _name_columns(
    ("f1_macro", *BLEU, *QUALITY[1:], *RATIO),
    {
        "unedited": (81.7, 74.4, 73.7, 71.4, 68.5, 70.4, 55.3, 70.2, 1.00, 0.32),
        "Tagger+BERT, supervised": (85.8, 73.4, 64.3, 58.3, 53.9, None, None, None, 0.83, 0.15),
        "SOM-NCSCM, supervised": (89.7, 84.0, 78.2, 74.8, 70.1, None, None, None, 0.68, 0.0),
        "ppl_deleter": (56.3, 51.8, 47.3, 43.5, 40.5, 55.7, 25.3, 55.4, 0.70, 0.02),
        "ndd": (74.8, 66.4, 57.1, 50.5, 44.6, 67.8, 47.0, 67.8, 0.65, -0.03),
        "ndd_sc": (76.4, 68.5, 59.3, 52.8, 47.2, 69.3, 49.9, 69.2, 0.68, 0.0),
        "NDD+SC (wwm)": (76.7, 68.6, 59.6, 53.5, 47.9, 70.5, 50.8, 70.2, 0.70, 0.02),
        "fast_ndd": (73.9, 64.1, 56.6, 51.2, 45.6, 65.9, 48.4, 65.7, 0.67, -0.02),
        "fast_ndd_sc": (75.5, 66.9, 58.5, 52.4, 47.2, 67.2, 47.7, 66.8, 0.69, 0.01),
        "Fast NDD+SC (wwm)": (74.7, 66.0, 57.7, 51.7, 45.7, 67.7, 48.4, 67.5, 0.70, 0.02),
    },
)  # fmt: skip
"""The same of Colloquial-SC's 150 Chinese sentences; the ΔC of Fast NDD does not go with its CR (NDD-30)."""
TABLE_12 = _name_columns(
    (*QUALITY, *RATIO),
    {
        "ppl_deleter_sc": (53.1, 54.7, 40.3, 54.5, 0.42, -0.02), "cosine": (46.5, 45.0, 16.9, 43.9, 0.37, -0.07),
        "cosine_sc": (49.5, 50.5, 23.0, 49.7, 0.42, -0.02), "bertscore": (48.0, 48.6, 15.8, 47.4, 0.41, -0.03),
        "bertscore_sc": (47.2, 49.5, 18.8, 48.6, 0.39, -0.05),
        "NDD, KL the other way": (60.1, 59.8, 41.7, 59.2, 0.41, -0.03),
        "NDD+SC, KL the other way": (60.8, 61.9, 44.5, 61.3, 0.45, 0.01),
    },
)  # fmt: skip
"""What table 12 has beyond table 3, of the same sentences (appendix E)."""
TABLE_4 = _name_columns(
    ("f1_macro", "rouge_1", "rouge_2", *RATIO),
    {"SLAHAN, supervised": (57.7, 40.1, 30.6, 0.35, -0.36), "fast_ndd_sc": (76.5, 69.8, 55.1, 0.70, -0.01)},
)
"""The same of broadcast news (BNC), without ROUGE-L."""
_BROADCAST = ("table 4, on broadcast news", TABLE_4)
PAPER_COMPRESSORS = {
    "google": ("tables 3 and 12, on Google's sentences", {**TABLE_3, **TABLE_12}),
    "broadcast": _BROADCAST, "bnc": _BROADCAST, "colloquial": ("table 5, on Colloquial-SC", TABLE_5),
}  # fmt: skip
"""What the paper prints of a data set, by the name in that of the source."""
TABLE_6 = {
    key: dict(zip((*QUALITY, *RATIO), row, strict=True))
    for key, row in {
        (4.0, 5): (44.6, 35.8, 15.4, 35.7, 0.16, -0.28), (2.0, 5): (58.5, 52.4, 34.9, 52.1, 0.27, -0.17),
        (1.0, 5): (67.1, 62.0, 46.6, 61.4, 0.43, -0.01), (0.5, 5): (67.7, 64.6, 51.2, 64.1, 0.57, 0.13),
        (0.25, 5): (66.0, 65.1, 53.0, 64.6, 0.69, 0.25), (1.0, 2): (66.8, 63.0, 47.5, 62.4, 0.48, 0.04),
        (1.0, 1): (64.7, 64.2, 49.3, 63.7, 0.62, 0.18),
    }.items()
}  # fmt: skip
"""The paper's numbers by (N_max, L_max), of Google's sentences. (1, 5) has those of Fast NDD+SC, whose L_max the text
has as 9 (errata E20)."""
TABLE_1 = {
    (test, measure): value / 100
    for measure, row in {
        "perplexity": (5.3, 2.8, 8.7, 7.9, 11.2), "cosine": (7.8, 8.1, 9.1, 0.0, 20.8),
        "ndd": (19.1, 22.7, 11.2, 17.8, 24.0), "ensemble": (12.5, 14.5, 10.8, 6.8, 28.2),
    }.items()
    for test, value in zip(TESTS, row, strict=True)
}  # fmt: skip
"""The paper's Pearson correlations by (test, measure), on STS-B with RoBERTa base (section 3)."""
TABLE_7 = {
    ("random", 1.0): (4, 21, 22, 54, 55, 31, 27), ("random", 2.0): (4, 24, 23, 48, 52, 29, 23),
    ("ppl_deleter", 1.0): (3, 20, 21, 56, 79, 57, 48), ("ppl_deleter", 2.0): (3, 23, 24, 50, 71, 45, 37),
    ("ndd", 1.0): (1, 19, 20, 60, 90, 81, 66), ("ndd", 2.0): (2, 23, 23, 52, 82, 70, 63),
}  # fmt: skip
"""The paper's percentages by (system, N_max), in the order of `DEPTHS` and `SUBTREES`, on PTB-3 (section 5.1)."""
TABLE_8 = {
    ("perplexity", "delete"): ((36.8, 56.8), (44.5, 60.4), (26.6, 54.5)),
    ("perplexity", "mask"): ((35.9, 56.7), (33.1, 48.5), (25.1, 50.4)),
    ("ndd", "delete"): ((53.1, 77.0), (62.5, 80.8), (48.8, 77.1)),
    ("ndd", "mask"): ((48.0, 74.4), (57.3, 80.6), (44.2, 75.0)),
    ("ndd", "stop_word"): ((49.9, 76.4), (56.4, 78.5), (45.2, 77.2)),
    ("ndd", "ensemble"): ((54.3, 79.7), (63.1, 83.3), (54.7, 82.8)),
}
"""The paper's (mAP, AUC) in percent on CoNLL-2009: English in domain, English out of domain, Spanish.

The text has the ensemble above 80 in AUC, which its first number is not.
"""
TABLE_13 = {
    "ppl_deleter": (3.69, 2.56), "ppl_deleter_sc": (3.93, 2.88), "cosine": (1.87, 1.51), "cosine_sc": (2.35, 2.08),
    "bertscore": (1.96, 1.83), "bertscore_sc": (2.38, 2.17), "ndd": (3.87, 3.46), "ndd_sc": (4.08, 3.62),
    "fast_ndd": (3.73, 3.18), "fast_ndd_sc": (4.01, 3.43),
}  # fmt: skip
"""The paper's means of syntax and semantics, of 100 sentences of Google's test set; it states no agreement."""
PAPER_HUMAN = {key: dict(zip(("syntax", "semantics"), row, strict=True)) for key, row in TABLE_13.items()}


def find_compressors(source: str) -> tuple[str, Mapping[str, Mapping[str, float | None]]]:
    """Find the tables of the data set that a source is named for, and their numbers; empty for any other source."""
    return next((printed for name, printed in PAPER_COMPRESSORS.items() if name in source.lower()), ("", {}))
