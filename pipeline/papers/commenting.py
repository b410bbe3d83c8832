"""The paper's own tables on article commenting, and what it claims of them (Automatic Article Commenting, tables 3, 4
and 7, errata E11 and E12; AAC-30).
"""

from typing import NamedTuple

import numpy as np
import polars as pl
from scipy import stats


class Coefficients(NamedTuple):
    """Of one row of table 4."""

    spearman: float
    pearson: float


TABLE_4 = {
    "meteor": Coefficients(0.5595, 0.5109), "w_meteor": Coefficients(0.5902, 0.5747),
    "rouge_l": Coefficients(0.1948, 0.1951), "w_rouge_l": Coefficients(0.2558, 0.2572),
    "cider": Coefficients(0.3426, 0.1157), "w_cider": Coefficients(0.3539, 0.1261),
    "bleu_1": Coefficients(0.2145, 0.1790), "w_bleu_1": Coefficients(0.2076, 0.1604),
    "bleu_2": Coefficients(0.2224, 0.0758), "w_bleu_2": Coefficients(0.2255, 0.0778),
    "bleu_3": Coefficients(0.1868, 0.0150), "w_bleu_3": Coefficients(0.1882, 0.0203),
    "bleu_4": Coefficients(0.0983, 0.0099), "w_bleu_4": Coefficients(0.0998, 0.0124),
    "human": Coefficients(0.7803, 0.7804),
}  # fmt: skip
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
PARTS = ((191_502, 27), (5_000, 27), (1_610, 27))
"""Articles of train, dev and test, and comments of each (table 2)."""


def claims() -> pl.DataFrame:
    """What the paper says of tables 4 and 7, and whether its own numbers bear it out (errata E11, E12; AAC-30).

    Returns:
        system (the paper, AAC), place, claim, found, holds (null where the numbers cannot tell), a row a claim.
    """
    rows = [("AAC", *row) for row in (*_of_table_4(), *_of_table_7(), *_of_text())]
    texts = dict.fromkeys(("system", "place", "claim", "found"), pl.String)
    return pl.DataFrame(rows, schema=texts | {"holds": pl.Boolean}, orient="row")


Claim = tuple[str, str, str, bool | None]  # place, claim, found, holds


def _of_text() -> list[Claim]:
    """Where the text contradicts itself (errata E12; AAC-05, AAC-22, AAC-33)."""
    articles, each = (sum(part[name] for part in PARTS) for name in (0, 1))
    every = sum(count * comments for count, comments in PARTS)
    return [
        ("abstract and table 2", "there are 4.5 million comments",
         f"{articles:,} articles of {each // len(PARTS)} comments have {every:,}", round(every / 1e6, 1) == 4.5),
        ("section 5 and appendix C.1", "comments of more than 50 words are discarded", "the appendix truncates them",
         False),
        ("section 5", "table 4 has the correlations that are told of", "the text's numbers are in table 3, too", None),
    ]  # fmt: skip


def _of_table_4() -> list[Claim]:
    cells = [
        (name, coefficient, value)
        for name, row in TABLE_4.items()
        for coefficient, value in zip(row._fields, row, strict=True)
    ]
    weighted = {(name, coefficient): value for name, coefficient, value in cells if name.startswith("w_")}
    pairs = [(*cell, after) for cell in cells if (after := weighted.get((f"w_{cell[0]}", cell[1]))) is not None]
    fallen = [f"{name} {of} {before:.4f} to {after:.4f}" for name, of, before, after in pairs if after <= before]
    chance = [f"{name} {of} {value:.4f}, p {p:.2g}" for name, of, value in cells if (p := _p(value, N)) >= 0.01]
    best = [sorted(set(TABLE_4) - {"human"}, key=lambda name: -TABLE_4[name][i])[:2] for i in (0, 1)]
    said = {("meteor", "pearson"), ("rouge_l", "spearman")}
    told = [(before, after) for name, of, before, after in pairs if (name, of) in said]
    risen = f"{len(pairs) - len(fallen)} of {len(pairs)} coefficients rise"
    return [
        ("appendix C.2", "weighted metrics improve consistently over plain ones",
         f"{risen}; {'; '.join(fallen)}", not fallen),
        ("section 5", "weighted metrics improve over plain ones in most cases", risen, len(fallen) < len(pairs) / 2),
        ("section 5", "weights raise METEOR's Pearson from 0.51 to 0.57 and ROUGE-L's Spearman from 0.19 to 0.26",
         "; ".join(f"{before:.4f} to {after:.4f}" for before, after in told),
         [(round(before, 2), round(after, 2)) for before, after in told] == [(0.51, 0.57), (0.19, 0.26)]),
        ("section 5", "the METEOR family correlates best with people, W-METEOR above all",
         f"best by Spearman {' and '.join(best[0])}, by Pearson {' and '.join(best[1])}",
         best == [["w_meteor", "meteor"]] * 2),
        ("tables 3 and 4", "all p are below 0.01",
         f"of {N:,} comments {len(chance)} of {len(cells)} are not: {'; '.join(chance)}", not chance),
    ]  # fmt: skip


def _of_table_7() -> list[Claim]:
    place = SYSTEMS.index("IR-TC")
    first = [row for row in TABLE_7.values() if row[place] == max(row)]
    alone = [row for row in first if row.count(max(row)) == 1]
    ratios = [
        f"{name} {min(parts):.2f} to {max(parts):.2f}"
        for name, row in TABLE_7.items()
        if f"w_{name}" in TABLE_7 and (parts := np.divide(TABLE_7[f"w_{name}"], row)).size
    ]
    return [
        ("appendix C.3", "IR-TC performs best under most metrics",
         f"it leads {len(alone)} of {len(TABLE_7)} rows and shares the lead of {len(first) - len(alone)}",
         len(alone) > len(TABLE_7) / 2),
        ("appendix C.3", "all methods receive human scores lower than 3", f"the highest is {max(TABLE_7['human'])}",
         max(TABLE_7["human"]) < 3),
        ("section 4", "the weights are properly normalised grades, the same for all metrics",
         f"how is not told; weighted scores are to plain ones in table 7 as {'; '.join(ratios)}", None),
    ]  # fmt: skip


def _p(coefficient: float, count: int) -> float:
    """Two-sided p of a correlation of so many items, by Student's t."""
    t = coefficient * np.sqrt((count - 2) / (1 - coefficient**2))
    return float(2 * stats.t.sf(abs(t), count - 2))
