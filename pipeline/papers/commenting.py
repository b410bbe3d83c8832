"""The paper's own tables on article commenting, and what it claims of them (Automatic Article Commenting, section 3,
tables 2 to 4 and 7 to 9, errata E11 and E12; AAC-30).
"""

from typing import NamedTuple

import numpy as np
import polars as pl


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

SYSTEMS = ("IR-T", "IR-TC", "Seq2seq", "Att", "Att-TC")
TABLE_7 = {
    "meteor": (0.137, 0.138, 0.061, 0.084, 0.078), "w_meteor": (0.130, 0.131, 0.058, 0.080, 0.074),
    "rouge_l": (0.230, 0.229, 0.197, 0.232, 0.298), "w_rouge_l": (0.173, 0.172, 0.137, 0.165, 0.206),
    "cider": (0.007, 0.007, 0.006, 0.009, 0.009), "w_cider": (0.005, 0.006, 0.004, 0.006, 0.006),
    "bleu_1": (0.373, 0.374, 0.298, 0.368, 0.227), "w_bleu_1": (0.318, 0.320, 0.258, 0.324, 0.203),
    "human": (2.859, 2.879, 1.350, 1.678, 2.191),
}  # fmt: skip
"""Scores and grades of what the five SYSTEMS made, in that order (appendix C.3)."""
N = 9660


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
CATEGORIES, CATEGORIES_SHOWN = 44, 15
"""Categories there are, and those of Figure 2 (AAC-31)."""


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

EXAMPLES = {
    "table_8": (3, 3, 4, 4, 4, 2, 4, 4, 4, 3, 3, 3, 4, 4, 4, 2, 4, 3, 3, 4, 4, 4, 3, 3, 3, 3),
    "table_9": (4, 4, 4, 3, 2, 5, 2, 3, 2, 5, 4, 3, 4, 3, 4, 4, 3, 3, 3, 4, 4, 3, 2, 3, 3, 4),
}
"""Grades of the comments on two articles of the paper's test set, 26 as printed (AAC-32).

Whole numbers, though each comment has two grades, and 26, though each article has 27 comments.
"""


Claim = tuple[str, str, str, bool | None]  # place, claim, found, holds


def list_claims() -> pl.DataFrame:
    """List what the paper says of tables 4 and 7, and whether its own numbers bear it out (errata E11, E12; AAC-30).

    Columns: system (the paper, AAC), place, claim, found, holds (null where the numbers cannot decide).
    """
    rows = [("AAC", *row) for row in (*_check_table_4(), *_check_table_7(), *_check_text())]
    texts = dict.fromkeys(("system", "place", "claim", "found"), pl.String)
    return pl.DataFrame(rows, schema=texts | {"holds": pl.Boolean}, orient="row")


def _check_text() -> list[Claim]:
    """Where the text contradicts itself (errata E12; AAC-05, AAC-22, AAC-33)."""
    corpus = TABLE_2["all"]
    return [
        ("abstract and table 2", "there are 4.5 million comments",
         f"{corpus.articles:,} articles of {corpus.comments_per_article} comments have {corpus.comments:,}",
         round(corpus.comments / 1e6, 1) == 4.5),
        ("section 5 and appendix C.1", "comments of more than 50 words are discarded", "the appendix truncates them",
         False),
        ("section 5", "table 4 has the correlations that the text discusses", "table 3 also has the text's numbers",
         None),
    ]  # fmt: skip


def _check_table_4() -> list[Claim]:
    changes = {
        (name, coefficient): (value, getattr(TABLE_4[f"w_{name}"], coefficient))
        for name, row in TABLE_4.items()
        for coefficient, value in row._asdict().items()
        if f"w_{name}" in TABLE_4
    }
    falling = {" ".join(key): values for key, values in changes.items() if values[1] <= values[0]}
    falls = [f"{name} {plain:.4f} to {weighted:.4f}" for name, (plain, weighted) in falling.items()]
    cells = [(name, of, value) for name, row in TABLE_4.items() for of, value in row._asdict().items()]
    p_values = [(f"{name} {of} {value:.4f}", _compute_p(value, N)) for name, of, value in cells]
    by_chance = [f"{cell}, p {p:.2g}" for cell, p in p_values if p >= 0.01]
    best = [sorted(set(TABLE_4) - {"human"}, key=lambda name: -TABLE_4[name][i])[:2] for i in (0, 1)]
    stated = changes["meteor", "pearson"], changes["rouge_l", "spearman"]
    rises = f"{len(changes) - len(falls)} of {len(changes)} coefficients rise"
    return [
        ("appendix C.2", "weighted metrics improve consistently over plain ones",
         f"{rises}; {'; '.join(falls)}", not falls),
        ("section 5", "weighted metrics improve over plain ones in most cases", rises, len(falls) < len(changes) / 2),
        ("section 5", "weights raise METEOR's Pearson from 0.51 to 0.57 and ROUGE-L's Spearman from 0.19 to 0.26",
         "; ".join(f"{plain:.4f} to {weighted:.4f}" for plain, weighted in stated),
         [(round(plain, 2), round(weighted, 2)) for plain, weighted in stated] == [(0.51, 0.57), (0.19, 0.26)]),
        ("section 5", "the METEOR family correlates best with people, W-METEOR above all",
         f"best by Spearman {' and '.join(best[0])}, by Pearson {' and '.join(best[1])}",
         best == [["w_meteor", "meteor"]] * 2),
        ("tables 3 and 4", "all p are below 0.01",
         f"of {N:,} comments {len(by_chance)} of {len(cells)} are not: {'; '.join(by_chance)}", not by_chance),
    ]  # fmt: skip


def _check_table_7() -> list[Claim]:
    place = SYSTEMS.index("IR-TC")
    best_rows = [row for row in TABLE_7.values() if row[place] == max(row)]
    lead_count = sum(row.count(max(row)) == 1 for row in best_rows)
    ratios = {name: np.divide(TABLE_7[f"w_{name}"], row) for name, row in TABLE_7.items() if f"w_{name}" in TABLE_7}
    ranges = "; ".join(f"{name} {parts.min():.2f} to {parts.max():.2f}" for name, parts in ratios.items())
    return [
        ("appendix C.3", "IR-TC performs best under most metrics",
         f"it leads {lead_count} of {len(TABLE_7)} rows and shares the lead of {len(best_rows) - lead_count}",
         lead_count > len(TABLE_7) / 2),
        ("appendix C.3", "all methods receive human scores lower than 3", f"the highest is {max(TABLE_7['human'])}",
         max(TABLE_7["human"]) < 3),
        ("section 4", "the weights are properly normalised grades, the same for all metrics",
         f"the paper does not show how; ratios of weighted to plain scores in table 7: {ranges}", None),
    ]  # fmt: skip


def _compute_p(coefficient: float, count: int) -> float:
    """Two-sided p of a correlation of so many items, by Student's t."""
    from scipy import stats

    t = coefficient * np.sqrt((count - 2) / (1 - coefficient**2))
    return float(2 * stats.t.sf(abs(t), count - 2))
