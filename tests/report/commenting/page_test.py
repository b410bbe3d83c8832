"""The page of article commenting: every number given is on it, names are text, and what was not measured is said."""

from html import unescape
from typing import Any

import polars as pl
import pytest

from pipeline.report.commenting.page import EXAMPLES, LONG, PARTS, render
from tests.report.commenting import rows as data
from tests.support.pages import HOSTILE, check_sections, tables, texts

DAY = "2026-11-22"


def make_frame(columns: str, *rows: tuple[Any, ...]) -> pl.DataFrame:
    """Make a frame of rows, whose columns are separated by blanks."""
    return pl.DataFrame(rows, schema=columns.split(), orient="row", infer_schema_length=None)


STATISTICS = make_frame(
    "split metric value paper",
    ("train", "article_count", 120.0, 191_502.0), ("validation", "article_count", 240.0, 5000.0),
    ("test", "article_count", 360.0, 1610.0), ("train", "upvotes_per_comment", 3.456, 5.9),
    ("validation", "upvotes_per_comment", 6.912, 4.9), ("test", "upvotes_per_comment", 10.368, 3.4),
    ("train", "title_words", 14.5, None), ("validation", "title_words", 29.0, None),
    ("test", "title_words", 43.5, None),
)  # fmt: skip
KAPPA = make_frame(
    "weights value low high n", ("quadratic", 0.642, 0.6, 0.68, 4000), ("linear", 0.511, 0.48, 0.54, 4000)
)
COMMENTS = (
    ("地铁新线周末开通", "终于不用换乘两次了,给施工队点赞!", 4.0, 0.47, 4.2, 0.38, 2.7, 0.4, 4.1),
    ("地铁新线周末开通", "好。", 2.0, 0.1, 2.1, 0.8, 4.6, 0.05, 2.0),
    ("A library opens on a ferry", "My children will never want to get off. " * 10, 3.5, 0.62, 4.8, 0.5, 3.2, 0.3, 3.4),
    ("A library opens on a ferry", "Books, books, I love you.", 3.0, 0.4, 3.9, 0.45, 3.5, 0.19, 3.2),
    (HOSTILE[0], "Is this a title?", 1.0, 0.2, 2.5, 0.2, 2.5, 0.1, 2.5),
)
METRICS = (("meteor", False), ("bleu_1", False), ("meteor", True))
EXAMPLE_ROWS = make_frame(
    "title text grade metric is_weighted value normalised",
    *[(*row[:3], *metric, *row[3 + 2 * i : 5 + 2 * i]) for row in COMMENTS for i, metric in enumerate(METRICS)],
)
ERRATA = make_frame(
    "system place claim found holds",
    ("commenting", "table 4", "weights help each metric", "BLEU-1 falls from 0.2145 to 0.2076", False),
    ("commenting", None, "IR-TC leads in 4 of 9 rows", "4 of 9", True),
)
SIGNATURE = "meteor|preset:2005|weights:s/5|undertone:0.6"
DATA: dict[str, Any] = {
    "statistics": STATISTICS, "categories": data.CATEGORIES, "grades": data.GRADES, "kappa": KAPPA,
    "correlations": data.CORRELATIONS, "scatter": data.SCATTER, "sensitivity": data.SENSITIVITY,
    "systems": data.SYSTEM_ROWS, "examples": EXAMPLE_ROWS,
    "errata": ERRATA, "signatures": [SIGNATURE],
}  # fmt: skip

TITLES = {name: part.title for name, part in PARTS.items()}


def read_table(html: str, part: str) -> list[list[str]]:
    return tables(html)[TITLES[part]]


@pytest.fixture(scope="module")
def html() -> str:
    return render(DAY, **DATA)


def test_every_part_is_there(html: str) -> None:
    """Parts stand in their order with four figures, metrics are named; rows in another order change nothing."""
    check_sections(html, list(TITLES.values()), 4)
    assert "Not measured" not in texts(html)
    assert SIGNATURE in texts(html)
    assert "40 graded comments 10 metrics compared with people 5 commenters" in texts(html)
    names = TITLES.keys() - {"statistics", "errata"}
    frames = {name: DATA[name].sample(fraction=1, shuffle=True, seed=2) for name in names}
    assert render(DAY, **{**DATA, **frames}) == html


MEANS = data.GRADES.group_by("item_id").agg(pl.col("grade").mean())["grade"]


@pytest.mark.parametrize(
    ("part", "first", "last"),
    [
        # splits stand in their order, each measure's paper row below it where the paper has one
        ("statistics", ["article count", "here", "120", "240", "360"], ["title words", "here", "14.5", "29", "43.5"]),
        ("categories", ["社会", "900", "10.6"], ["not known", "100", "1.2"]),
        # mean and deviation are of comments; 13 of the 40 have a 5 of one rater at least
        (
            "grades",
            ["here", "40", "80", f"{MEANS.mean():.2f}", f"{MEANS.std():.2f}", "32.5"],
            ["in the paper", "43,470", "86,940", "3.6", "0.6", "20"],
        ),
        # each kappa has the paper's beside it (AAC-09)
        (
            "kappa",
            ["linear", "0.511 0.480 to 0.540", "0.59", "4,000"],
            ["quadratic", "0.642 0.600 to 0.680", "0.59", "4,000"],
        ),
    ],
)
def test_numbers_stand_in_their_rows(html: str, part: str, first: list[str], last: list[str]) -> None:
    """The first and the last row of a table hold what was measured, beside the paper's."""
    rows = read_table(html, part)
    assert (rows[0], rows[-1]) == (first, last)


def test_statistics_stand_beside_table_2(html: str) -> None:
    """The paper's row is below ours; all categories are in the table, also those that are not drawn."""
    rows = read_table(html, "statistics")
    assert rows[1] == ["article count", "in the paper", "191,502", "5,000", "1,610"]
    assert rows[2:4] == [
        ["upvotes per comment", "here", "3.46", "6.91", "10.37"],
        ["upvotes per comment", "in the paper", "5.9", "4.9", "3.4"],
    ]
    assert len(rows) == 5
    assert len(read_table(html, "categories")) == data.CATEGORIES.height


def test_correlations_stand_with_weights_and_without(html: str) -> None:
    """Plain and weighted share a row with their difference and the paper's two; the sentence counts gains."""
    rows = read_table(html, "correlations")
    assert [unescape(cell).replace("\u00a0", " ") for cell in rows[0]] == [
        "METEOR", "Spearman's ρ", "0.560 0.540 to 0.580", "< 0.0001", "0.590 0.570 to 0.610", "< 0.0001",
        "0.030 0.020 to 0.040", "0.5595", "0.5902", "9,660"
    ]  # fmt: skip
    assert rows[3][6] == "−0.007 −0.017 to 0.003"
    assert rows[5][0] == "human grades"
    assert rows[5][4:7] == ["–", "–", "–"]
    assert len(rows) == 12
    gains = "Spearman's ρ of 4 of 5 metrics (4 significantly) and lower it significantly for 0."
    assert f"Weights raise {gains} Weights raise Pearson's r" in texts(html).replace("\u00a0", " ")


def test_weights_stand_beside_the_papers_ratios(html: str) -> None:
    """Ratios of table 7 are 0.95 for METEOR and 0.69 to 0.75 for ROUGE-L; BLEU-4 is not in it (AAC-18)."""
    rows = read_table(html, "sensitivity")
    assert rows[:3] == [
        ["METEOR", "(s−1)/4", "0.570", "0.570", "0.650", "0.95"],
        ["METEOR", "s/5", "0.560", "0.560", "0.720", "0.95"],
        ["METEOR", "s/max", "0.580", "0.580", "0.900", "0.95"],
    ]
    assert rows[3][5] == "0.69 to 0.75"
    assert rows[-1][::5] == ["BLEU-4", "–"]


def test_systems_are_ranked(html: str) -> None:
    """The best of a row is starred, ties both; the paper's row is below ours; the sentence says who wins how often."""
    rows = read_table(html, "systems")
    assert rows[0] == ["METEOR", "here", "0.137", "★ 0.138", "0.061", "0.084", "0.078", "+0.80", "1,609 to 1,610"]
    assert rows[1] == ["METEOR", "in the paper", "0.137", "★ 0.138", "0.061", "0.084", "0.078", "+0.80", "–"]
    assert rows[6][2:6] == ["★ 0.373", "–", "0.298", "★ 0.373"]
    assert rows[8][:4] == ["human grades", "here", "2.800", "★ 2.900"]
    assert rows[8][7] == "–"
    assert "first by 4 metrics: IR-TC (2), IR-T (1), Att (1), Att-TC (1). Ranked first by people: IR-TC." in texts(html)


def test_examples_are_those_furthest_apart(html: str) -> None:
    """Pairs stand in the order of tables 5 and 6, the widest gap first; a long comment is cut."""
    rows = read_table(html, "examples")
    assert [row[0] for row in rows] == ["METEOR / BLEU-1"] * EXAMPLES + ["METEOR / W-METEOR"] * EXAMPLES
    assert rows[0][1:] == ["地铁新线周末开通", "好。", "2.0", "2.1 (0.10)", "2.0 (0.05)", "4.6 (0.80)", "2.5"]
    assert rows[EXAMPLES][2].endswith("…")
    assert len(rows[EXAMPLES][2]) <= LONG + 1
    assert rows[EXAMPLES][-1] == "1.4"


def test_errata(html: str) -> None:
    """A claim holds or does not, or the numbers do not decide."""
    assert [row[1::3] for row in read_table(html, "errata")] == [["table 4", "no"], ["–", "yes"]]
    assert "1 of 2 claims hold, 1 do not" in texts(html)
    errata = ERRATA.with_columns(holds=pl.lit(None, pl.Boolean))
    assert {row[4] for row in read_table(render(DAY, errata=errata), "errata")} == {"undecided"}
