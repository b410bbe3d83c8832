"""The page of a cloze set: every number given is on it, names are text, and what was not measured is named."""

import polars as pl
import pytest

from pipeline.metrics.recam import reading
from pipeline.papers.recam import SIZES
from pipeline.report.recam.page import PARTS, PASSAGE, render
from tests.report.recam.rows import AUDIT, BREAKDOWN, FIRST, FUNNEL, MATRIX, READERS, RETRIEVAL, SECOND
from tests.support.pages import check_sections, tables, texts

ITEMS = pl.DataFrame(
    [(subtask, split, count) for subtask in (FIRST, SECOND)
     for split, count in (("test", 300), ("train", 1450), ("new", 7))],
    schema=["subtask", "split", "count"], orient="row",
)  # fmt: skip
DROPPED = pl.DataFrame(
    {"subtask": [FIRST, SECOND], "reason": ["too_few_choices", "same_options"], "count": [41, 1022]}
)  # fmt: skip
QUALITY = pl.DataFrame(
    {"subtask": [FIRST, FIRST], "flag": ["is_unanswerable", "is_ambiguous"], "count": [6, 9], "n": [60, 60]}
)  # fmt: skip
SAMPLE = pl.DataFrame(
    {"subtask": [FIRST, SECOND],
     "question": ["After the long winter all she wanted was @placeholder .", "They @placeholder a house by the sea ."],
     "options": [["noise", "peace", "rain", "dust", "mud"], ["made", "sold", "built", "found", "lost"]],
     "label": [1, 2], "article": ["The kettle sang and nobody came. " * 40, "It was of stone."]}
)  # fmt: skip
SIGNATURE = "reader|model:0123|undertone:0.5"
DAY = "2026-11-22"
FRAMES = {
    "items": ITEMS, "dropped": DROPPED, "funnel": FUNNEL, "retrieval": RETRIEVAL, "audit": AUDIT, "readers": READERS,
    "matrix": MATRIX, "breakdown": BREAKDOWN, "quality": QUALITY, "sample": SAMPLE,
}  # fmt: skip

TITLES = {name: part.title for name, part in PARTS.items()}


@pytest.fixture(scope="module")
def whole() -> str:
    return render(DAY, [SIGNATURE], **FRAMES)


def test_every_part_is_there(whole: str) -> None:
    """Parts stand in their order with three figures, models are named; rows in another order change nothing."""
    check_sections(whole, list(TITLES.values()), 3)
    assert "Not measured" not in texts(whole)
    assert SIGNATURE in texts(whole)
    assert "Accuracy by part of speech and words of the passage" in texts(whole)
    frames = {name: rows.sample(fraction=1, shuffle=True, seed=2) for name, rows in FRAMES.items() if name != "sample"}
    assert render(DAY, [SIGNATURE], **frames, sample=SAMPLE) == whole


def test_sizes_and_retrieval_stand_beside_the_papers(whole: str) -> None:
    """Sizes stand beside those of table 5 (REC-27), ranks beside those of tables 3 and 4."""
    rows = tables(whole)[TITLES["items"]]
    assert rows[0] == [FIRST, "here", "1,450", "300", "7", "1,757"]
    assert rows[1] == [FIRST, "in the paper", "3,227", "2,025", "–", "6,089"]
    assert rows[3] == [SECOND, "in the paper", "3,318", "2,017", "–", "6,186"]
    assert sum(sum(sizes.values()) for sizes in SIZES.values()) == 12_275
    assert "85 targets 3,514 items 1,063 dropped items" in texts(whole)
    rows = tables(whole)[TITLES["retrieval"]]
    numbers = ["0.230", "0.245", "0.150", "0.175", "0.300", "0.314", "0.370", "0.378"]
    assert rows[0] == [FIRST, "gated", *numbers, "5,311"]
    assert [row[1] for row in rows] == ["gated", "gloss", "ours"] * 2
    assert rows[2][3] == "–"


def test_the_funnel_and_the_audit(whole: str) -> None:
    """Reasons have counts and shares, the sentence says how many are targets; the best way on each set is named."""
    rows = tables(whole)
    assert [FIRST, "too concrete", "300", "30.0", "200"] in rows[TITLES["funnel"]]
    assert [SECOND, "is a target", "10", "1.0", "10"] in rows[TITLES["funnel"]]
    assert f"75 of 1,000 words of the summaries are targets for {FIRST}" in texts(whole)
    assert rows[TITLES["dropped"]] == [[SECOND, "same_options", "1,022"], [FIRST, "too_few_choices", "41"]]
    text = texts(whole)
    assert f"on {FIRST} often_right reaches 0.310, and 1 of 3 baselines are within 2 points of chance" in text
    assert [FIRST, "longest", "0.190", "0.012", "0.200", "837"] in tables(whole)[TITLES["audit"]]


def test_a_reader_never_stands_alone(whole: str) -> None:
    """Each accuracy has its interval, chance, the best way not to read on the same items, and what it is above it."""
    rows = tables(whole)[TITLES["readers"]]
    numbers = ["0.500 0.470 to 0.530", "0.200", "0.310 often_right", "+0.190", "0.251", "851"]
    assert rows[0] == ["masked_lm", FIRST, FIRST, *numbers]
    numbers = ["0.240 0.210 to 0.270", "0.200", "0.310 often_right", "−0.070", "0.243", "851"]
    assert rows[-1] == ["gated", FIRST, SECOND, *numbers]
    assert len(rows) == READERS.height


def test_the_matrix(whole: str) -> None:
    """Away from home a reader is compared with home and the paper."""
    assert tables(whole)[TITLES["matrix"]] == [
        [FIRST, FIRST, "0.351 0.331 to 0.372", "–", "–", "1,204"],
        [SECOND, FIRST, "0.361 0.340 to 0.380", "+0.010", "−0.013 to −0.144", "1,204"],
        [FIRST, SECOND, "0.299 0.280 to 0.320", "−0.103", "−0.002 to −0.219", "1,300"],
        [SECOND, SECOND, "0.402 0.380 to 0.420", "–", "–", "1,300"],
    ]
    assert f"on {SECOND}, a reader trained on {FIRST} is 0.103 below a reader trained on {SECOND}" in texts(whole)


def test_breakdown_quality_and_sample(whole: str) -> None:
    """Groups stand in their order; flags have their share; the right word is apart, and the passage is cut."""
    rows = tables(whole)
    groups = ["NOUN", "VERB", "not known", "0–120", "121–250", "1001+"]
    assert [row[1] for row in rows[TITLES["breakdown"]]][::2] == groups
    assert rows[TITLES["quality"]] == [
        [FIRST, "several options are right", "9", "60", "0.150"],
        [FIRST, "no answer in the passage", "6", "60", "0.100"],
    ]
    first, second = rows[TITLES["sample"]]
    assert first[1:4] == ["After the long winter all she wanted was ____ .", "peace", "noise, rain, dust, mud"]
    assert first[4].endswith("…")
    assert len(first[4]) <= PASSAGE + 1
    assert second[4] == "It was of stone."


def test_measured_numbers_fit_the_page() -> None:
    """What `metrics.recam.reading` gives goes on the page as it is: accuracies, whole and by part."""
    right, articles = [True, True, False, True], ["x", "x", "y", "z"]
    accuracy = reading.accuracy(right, articles, draws=50)
    row = {"accuracy": accuracy.value, "low": accuracy.low, "high": accuracy.high, "n": accuracy.n}
    readers = {"reader": "gated", "trained_on": FIRST, "tested_on": FIRST, **row}
    groups = reading.measure_groups(right, pl.Series(["NOUN", "NOUN", None, "VERB"]), articles)
    breakdown = groups.with_columns(trained_on=pl.lit(FIRST), by=pl.lit("upos"))
    html = render(DAY, readers=pl.DataFrame([readers]), breakdown=breakdown)
    assert "the best is gated at 0.750, no baseline was measured" in texts(html)
    assert [row[1] for row in tables(html)[TITLES["breakdown"]]] == ["NOUN", "VERB", "not known"]
