"""The paper's own tables on article commenting (Automatic Article Commenting, section 3, tables 2 to 9).

What it claims of them is in the view `paper_errata` (errata E11 and E12; AAC-30, AAC-33).
"""

from typing import NamedTuple


class Coefficients(NamedTuple):
    """Of one row of table 4."""

    spearman: float
    pearson: float


_CORRELATIONS = {
    "meteor": (0.5595, 0.5109), "w_meteor": (0.5902, 0.5747), "rouge_l": (0.1948, 0.1951),
    "w_rouge_l": (0.2558, 0.2572), "cider": (0.3426, 0.1157), "w_cider": (0.3539, 0.1261),
    "bleu_1": (0.2145, 0.1790), "w_bleu_1": (0.2076, 0.1604), "bleu_2": (0.2224, 0.0758),
    "w_bleu_2": (0.2255, 0.0778), "bleu_3": (0.1868, 0.0150), "w_bleu_3": (0.1882, 0.0203),
    "bleu_4": (0.0983, 0.0099), "w_bleu_4": (0.0998, 0.0124), "human": (0.7803, 0.7804),
}  # fmt: skip
TABLE_4 = {name: Coefficients(*row) for name, row in _CORRELATIONS.items()}
"""Tables 3 and 4, which has more rows: correlation with grades of 9,660 comments, six of each of 1,610 articles."""

SYSTEMS = {"ir_t": "IR-T", "ir_tc": "IR-TC", "seq2seq": "Seq2seq", "att": "Att", "att_tc": "Att-TC"}
TABLE_7 = {
    "meteor": (0.137, 0.138, 0.061, 0.084, 0.078), "w_meteor": (0.130, 0.131, 0.058, 0.080, 0.074),
    "rouge_l": (0.230, 0.229, 0.197, 0.232, 0.298), "w_rouge_l": (0.173, 0.172, 0.137, 0.165, 0.206),
    "cider": (0.007, 0.007, 0.006, 0.009, 0.009), "w_cider": (0.005, 0.006, 0.004, 0.006, 0.006),
    "bleu_1": (0.373, 0.374, 0.298, 0.368, 0.227), "w_bleu_1": (0.318, 0.320, 0.258, 0.324, 0.203),
    "human": (2.859, 2.879, 1.350, 1.678, 2.191),
}  # fmt: skip
"""Scores and grades of what the five SYSTEMS made, in that order (appendix C.3)."""


class Part(NamedTuple):
    """What the paper states of a part of its corpus; None for what it does not."""

    articles: int
    comments_per_article: float
    likes_per_comment: float | None = None
    title_words: float | None = None
    content_words: float | None = None
    comment_words: float | None = None

    @property
    def comments(self) -> float:
        """Comments there would be, which the abstract counts otherwise."""
        return self.articles * self.comments_per_article


TABLE_2 = {
    "train": Part(191_502, 27, 5.9),
    "validation": Part(5_000, 27, 4.9),
    "test": Part(1_610, 27, 3.4),
    "all": Part(198_112, 27, None, 15, 554, 17),
}
"""Table 2, and the lengths of section 3 (AAC-05, AAC-06)."""
WINDOW = ("2017-04-01", "2017-08-31")
"""First and last day of its collection from Tencent News, which section 3 gives as April to August 2017 (AAC-02)."""
COMMENTS_TOLD = 4_500_000
"""Comments there are by the abstract's count; 27 of each article would be 5,349,024 (errata E12)."""
VOCABULARY = 1_858_452
CATEGORIES = 44  # of which Figure 2 shows 15 (AAC-31)


class Grades(NamedTuple):
    """What grades of the test set come to."""

    items: int
    mean: float
    sd: float
    five_share: float  # of the comments, those with at least one 5


GRADES = Grades(1_610 * 27, 3.6, 0.6, 0.2)
"""The test set (section 3; AAC-10)."""
KAPPA = 0.59
"""Its weighted kappa; the paper does not name the weights: linear or quadratic (AAC-09)."""
