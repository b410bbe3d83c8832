"""The paper's own tables on article commenting and its claims, and the view that holds them."""

import numpy as np
import pytest
from scipy import stats

from pipeline.papers import commenting
from pipeline.papers.commenting import SYSTEMS, TABLE_4, TABLE_7, list_claims


def test_published_numbers() -> None:
    """Tables 4 and 7 are whole; AAC-18's ratios of weighted to plain scores follow from table 7."""
    assert len(TABLE_4) == 15
    assert TABLE_4["human"] == (0.7803, 0.7804)
    assert {len(row) for row in TABLE_7.values()} == {len(SYSTEMS)} == {5}
    ratios = {name: np.divide(TABLE_7[f"w_{name}"], TABLE_7[name]) for name in ("meteor", "bleu_1", "rouge_l")}
    assert {round(ratio, 2) for ratio in ratios["meteor"]} == {0.95}
    assert round(ratios["bleu_1"].min(), 2) == 0.85
    assert (round(ratios["rouge_l"].min(), 2), round(ratios["rouge_l"].max(), 2)) == (0.69, 0.75)


def test_claims() -> None:
    """Errata E12: BLEU-1 falls, IR-TC leads 4 rows of 9 and shares one; and not all p are below .01 (E24)."""
    claims = {row["claim"]: row for row in list_claims().to_dicts()}
    assert list_claims().columns == ["system", "place", "claim", "found", "holds"]
    wrong = {row["place"]: row["found"] for row in claims.values() if row["holds"] is False}
    assert len(wrong) == 5
    assert "section 5 and appendix C.1" in wrong
    assert wrong["abstract and table 2"] == "198,112 articles of 27 comments have 5,349,024"
    assert wrong["appendix C.2"].endswith("bleu_1 spearman 0.2145 to 0.2076; bleu_1 pearson 0.1790 to 0.1604")
    assert wrong["appendix C.3"] == "it leads 4 of 9 rows and shares the lead of 1"
    assert "bleu_4 pearson 0.0099, p 0.33" in wrong["tables 3 and 4"]
    assert [row["holds"] for row in claims.values()].count(True) == 4
    assert claims["the weights are properly normalised grades, the same for all metrics"]["holds"] is None


def test_p_of_a_printed_coefficient_is_scipys() -> None:
    """Student's t of a coefficient alone gives the p of the data it came from."""
    rng = np.random.default_rng(1)
    grades = rng.integers(1, 6, 300)
    expected = stats.pearsonr(grades + rng.normal(size=300), grades)
    assert commenting._compute_p(expected.statistic, 300) == pytest.approx(expected.pvalue, rel=1e-6)
    assert commenting._compute_p(0.1, 50) == pytest.approx(0.4896, abs=1e-4)


def test_the_view_says_the_same(tables: object) -> None:
    """`paper_errata` holds the claims, row by row."""
    from pipeline import warehouse

    claims = warehouse.query("select system, place, claim, found, holds from paper_errata")
    assert claims.rows() == list_claims().rows()
