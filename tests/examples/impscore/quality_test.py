"""The reader's judgement of pairs: what is shown, and the scale (ImpScore, appendix A.2)."""

import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import left_out
from pipeline.errors import BadInput
from pipeline.examples.impscore.quality import PUBLISHED, rate_sources, read_judgements, sample
from pipeline.examples.sources import SOURCES
from tests.examples.sources.writing import text


def pairs(**counts: int) -> pl.DataFrame:
    """So many triples of each source."""
    numbers = [(source, i) for source, count in counts.items() for i in range(count)]
    rows = [(f"{source}{i}", source, f"hint {i}", f"say {i}", f"foreign {i}") for source, i in numbers]
    columns = ("pair_id", "source", "implicit", "explicit", "negative")
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")


def test_ten_and_ten_of_each_source() -> None:
    """A source gives ten positive and ten negative pairs, each of another triple, all of them shuffled (IMP-21)."""
    rows = sample(pairs(a=50, b=30))
    assert rows.columns == ["item", "source", "first", "second", "kind"]
    assert rows["item"].to_list() == list(range(1, 41))
    counts = [(source, kind, 10) for source in "ab" for kind in ("negative", "positive")]
    assert sorted(rows.group_by("source", "kind").len().rows()) == counts
    assert rows.select("source", "first").n_unique() == 40
    assert rows["source"].to_list() != sorted(rows["source"])
    assert rows["kind"].to_list() != sorted(rows["kind"], reverse=True)
    assert not rows.equals(sample(pairs(a=50, b=30), seed=1))


@settings(deadline=None)
@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 2**32 - 1))
def test_sample_is_stratified_and_repeats(count: int, size: int, seed: int) -> None:
    """Half are positive however many there are, and the order of the rows does not matter."""
    all_pairs = pairs(a=count, b=3)
    rows = sample(all_pairs, size, seed)
    kinds = rows.filter(pl.col("source") == "a")["kind"].to_list()
    assert kinds.count("positive") == kinds.count("negative") == min(count, size) // 2
    assert rows.equals(sample(all_pairs.reverse(), size, seed))


@pytest.mark.parametrize(
    ("count", "rating"),
    [(0, 1), (19, 1), (20, 2), (39, 2), (40, 3), (59, 3), (60, 4), (79, 4), (80, 5), (100, 5)],
)
def test_scale(count: int, rating: int) -> None:
    """1 below 20 %, 2 from 20 %, 3 from 40 %, 4 from 60 %, 5 from 80 % (IMP-21)."""
    answers = pl.DataFrame({"source": "own", "appropriate": [True] * count + [False] * (100 - count)})
    assert rate_sources(answers)["rating"].to_list() == [rating]


def test_rate_by_hand() -> None:
    """Shares and ratings by source count what was judged; only `kind` tells which sentence is which."""
    sources, is_appropriate = ["absa"] * 5 + ["own"] * 3, [True, True, True, False, None, True, False, False]
    answers = pl.DataFrame({"source": sources, "appropriate": is_appropriate})
    assert rate_sources(answers).rows() == [("absa", 4, 0.75, 4, 4), ("own", 3, pytest.approx(1 / 3), 2, None)]
    assert rate_sources(answers.clear()).columns == ["source", "n", "share", "rating", "published"]
    assert PUBLISHED.keys() == SOURCES.keys()
    for row in sample(pairs(a=20)).iter_rows(named=True):
        number = row["first"].removeprefix("hint ")
        assert row["second"] == {"positive": f"say {number}", "negative": f"foreign {number}"}[row["kind"]]


ANSWERS = "item,same_meaning,first_more_implicit"
KEY = "item,source,kind\n1,a,positive\n2,a,negative\n3,b,positive\n4,b,negative\n5,b,positive\n"


def test_a_judges_file(tmp_path: Path) -> None:
    """A pair is appropriate if the first is more implicit and both mean the same just if it is positive."""
    key = text(tmp_path / "key.csv", KEY)
    path = text(tmp_path / "judge.csv", f"{ANSWERS}\n1,1,1\n2,0,Yes\n3,no,1\n4,1,TRUE\n5, ,1\n")
    assert read_judgements(path, key).rows() == [("a", True), ("a", True), ("b", False), ("b", False), ("b", None)]
    assert read_judgements(text(path, f"{ANSWERS}\n2,0,0\n"), key).rows() == [("a", False)]
    assert [(row["reason"], row["row_count"]) for row in left_out.summarise()["dropped"]] == [("unjudged", 4)]
    with pytest.raises(BadInput, match="row 2: field 'kind' should be positive or negative, found None"):
        read_judgements(path, path)  # no key


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (f"{ANSWERS}\n1,2,1\n", "row 2: field 'same_meaning' should be 1 or 0, found '2'"),
        ("item,same_meaning\n1,1\n", "row 2: field 'first_more_implicit' should be 1 or 0, found None"),
        (f"{ANSWERS}\n9,1,1\n", "row 2: field 'item' is '9', expected"),
        (f"{ANSWERS}\n1,1,1\n1,1,1\n", "row 3: field 'item' should be one that no other row has, found '1'"),
    ],
)
def test_a_bad_verdict_is_named(tmp_path: Path, answers: str, message: str) -> None:
    """An answer or item that is none is named by row and field."""
    with pytest.raises(BadInput, match=re.escape(message)):
        read_judgements(text(tmp_path / "judge.csv", answers), text(tmp_path / "key.csv", KEY))
