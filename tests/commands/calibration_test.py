"""`undertone calibrate` as a script meets it."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.commands.conftest import Result, Run

RNG = np.random.default_rng(6)
TRUTH = RNG.integers(0, 5, 80)
WORDS = ["rain", "soup", "door", "late", "hat"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A file with a good measure, two raters, and a judge that always says 2, or once nothing."""
    texts = [" ".join(RNG.choice(WORDS, RNG.integers(2, 9))) for _ in TRUTH]
    columns = {"text": texts, "mine": TRUTH + RNG.normal(size=80) / 2, "ana": TRUTH, "ben": np.maximum(TRUTH - 1, 0)}
    path = tmp_path / "scored.csv"
    pl.DataFrame(columns).with_columns(two=pl.when(pl.int_range(pl.len()) > 0).then(2)).write_csv(path)
    return path


def test_columns_of_a_file(run: Run, table: Path) -> None:
    """Two columns of a file are compared; a judge that always says the same is a failed check."""
    words = ["calibrate", "--file", table, "-c", "mine", "ana", "--rater", "ana", "--rater", "ben"]
    plain = run(*words).check()
    heads = ["by", "subset", "from"]
    assert [word for line in plain.out.splitlines() if (word := line.split()[0]) in heads] == heads
    assert "alternative-annotator test: mine may replace a rater (as good as one on" in plain.err
    result = run(*words, "--json").json
    assert [row["by"] for row in result["rows"]] == ["mine", "constant", "length", "punctuation", "words"]
    assert result["replacement"]["passes"] is True
    assert result["maps"]["all"]["y"] == sorted(result["maps"]["all"]["y"])
    result = run("calibrate", "--file", table, "-c", "mine", "two").check(1, "two is constant: 2 for 100% of 79 texts")
    assert "no_value" in result.err


def test_raters_without_a_test_are_named(run: Run, table: Path) -> None:
    """A rater who shares no two texts is named, and why there is no test; one column has one part."""
    is_early = pl.int_range(pl.len()) < 40
    columns = {"cy": None, "early": pl.when(is_early).then("ana"), "late": pl.when(~is_early).then("ana")}
    pl.read_csv(table).with_columns(**columns).write_csv(table)

    def calibrate(*raters: str, a: str = "mine") -> Result:
        return run(
            "calibrate", "--file", table, "-c", a, "ana", *(word for name in raters for word in ("--rater", name))
        )

    note = "raters without two texts that another one rated:"
    calibrate("ana", "ben", "cy").check(0, "wins 100% of 2 raters", f"{note} cy; the test leaves them out")
    assert "wins" not in calibrate("early", "late").check(0, f"{note} early, late; there is no test of raters").err
    for result in (calibrate("ben", "BEN"), calibrate("ana", "ben", a="ben"), calibrate(a="ana")):
        result.check(2, "expected different columns as measures and raters, found '", "' twice")


@pytest.mark.parametrize(
    "words", ["scorer", "scorer judge --rater x", "a b --file x", "--file x", "--file x -c a b --rater x"]
)
def test_a_file_or_two_measures(run: Run, words: str) -> None:
    """Two measures of the tables, or two columns of a file; raters are two or more."""
    run("calibrate", *words.split()).check(2, "two ")
