"""The paper's own tables on article commenting and its claims, and the view that holds them."""

import numpy as np
from scipy import stats

from pipeline import warehouse
from pipeline.papers.commenting import SYSTEMS, TABLE_2, TABLE_4, TABLE_7

NORMALISED = {
    "meteor": ((4, 4.2, 0.47), (3, 2.7, 0.10), (3, 4.8, 0.62), (3, 3.9, 0.40)),
    "bleu_1": ((4, 2.7, 0.38), (3, 4.5, 0.83)),
    "w_meteor": ((3, 3.8, 0.34), (3, 3.2, 0.19)),
}
"""Tables 5 and 6: grade, normalised score and score of a comment; METEOR has those of both tables (AAC-32)."""


def test_normalised_examples() -> None:
    """METEOR's four are on one line of AAC-29, but for rounding; grades are nearer where the text says so (AAC-32)."""
    _, normalised, scores = np.transpose(NORMALISED["meteor"])
    line = np.polyval(np.polyfit(scores, normalised, 1), scores)
    assert np.abs(line - normalised).max() < 0.05 + 0.005 * 4.1  # places printed; the slope is 4.06
    errors = {name: np.abs(np.diff(rows)[:, 0]) for name, rows in NORMALISED.items()}
    assert (errors["meteor"][:2] < errors["bleu_1"]).all()
    assert (errors["w_meteor"] < errors["meteor"][2:]).all()


def test_claims(tables: object) -> None:
    """Five claims fail on the paper's own numbers, as the view says: errata E12 and E24."""
    claims = {row["claim"]: row for row in warehouse.query("select * from paper_errata").to_dicts()}
    assert len(claims) == 11
    assert [row["holds"] for row in claims.values()].count(True) == 4
    wrong = {row["place"]: row["found"] for row in claims.values() if row["holds"] is False}
    assert len(wrong) == 5
    corpus = TABLE_2["all"]
    sizes = f"{corpus.articles:,} articles of {corpus.comments_per_article} comments have {corpus.comments:,}"
    assert wrong["abstract and table 2"] == sizes
    changes = [(name, of, row[of], TABLE_4[f"w_{name}"][of]) for name, row in TABLE_4.items() for of in (0, 1)
               if f"w_{name}" in TABLE_4]  # fmt: skip
    names = ("spearman", "pearson")
    falls = [f"{name} {names[of]} {a:.4f} to {b:.4f}" for name, of, a, b in changes if b <= a]
    rises = f"{len(changes) - len(falls)} of {len(changes)} coefficients rise"
    assert wrong["appendix C.2"] == f"{rises}; {'; '.join(falls)}"
    assert claims["weighted metrics improve over plain ones in most cases"]["found"] == rises
    cells = [(f"{name} {names[of]} {row[of]:.4f}", row[of]) for name, row in TABLE_4.items() for of in (0, 1)]
    tails = [(cell, 2 * stats.t.sf(abs(r) * np.sqrt(9658 / (1 - r**2)), 9658)) for cell, r in cells]
    by_chance = [f"{cell}, p {p:.2g}" for cell, p in tails if p >= 0.01]
    expected = f"of 9,660 comments {len(by_chance)} of {len(cells)} are not: {'; '.join(by_chance)}"
    assert wrong["tables 3 and 4"] == expected
    leads = [row for row in TABLE_7.values() if row[[*SYSTEMS].index("ir_tc")] == max(row)]
    alone = sum(row.count(max(row)) == 1 for row in leads)
    assert (
        wrong["appendix C.3"] == f"it leads {alone} of {len(TABLE_7)} rows and shares the lead of {len(leads) - alone}"
    )
    highest = claims["all methods receive human scores lower than 3"]
    assert highest["found"] == f"the highest is {max(TABLE_7['human'])}"
    assert claims["the weights are properly normalised grades, the same for all metrics"]["holds"] is None
