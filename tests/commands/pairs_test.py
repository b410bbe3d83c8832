"""Commands about pairs: data sets in, answers in, pairs out; statistics, audit, leakage, judgement."""

from pathlib import Path

import polars as pl
import pytest

from pipeline import warehouse
from tests.commands.conftest import Run, write_file


@pytest.fixture
def own_file(tmp_path: Path, pairs_file: Path) -> Path:
    """Forty sentences of one's own with their explicit form."""
    path = tmp_path / "own.csv"
    pl.read_csv(pairs_file).rename({"implicit": "text"}).write_csv(path)
    return path


def test_sentences_to_pairs(run: Run, tables: Path, own_file: Path, tmp_path: Path) -> None:
    """`pairs import` and `pairs build` make pairs of one's own sentences; built again they are the same."""
    done = run("pairs", "import", "mine", own_file, "--own", "--day", "2026-11-19")
    assert (done.code, done.err.strip()) == (0, "mine: 40 sentences")
    out = tmp_path / "pairs.parquet"
    seen = []
    for _ in range(2):
        done = run("pairs", "build", "--split", "grouped", "--day", "2026-11-19", "--out", out)
        assert "mine: 40 pairs" in done.err
        seen.append(pl.read_parquet(out))
    assert seen[0].equals(seen[1])
    assert seen[0].columns == warehouse.scan("pairs").collect_schema().names()


def test_nothing_to_pair(run: Run, tables: Path, tmp_path: Path) -> None:
    """Sentences without explicit forms make no pair: exit code 1, and why."""
    path = write_file(tmp_path / "mine.csv", "text\nBrr.\nSo what.\n")
    run("pairs", "import", "mine", path, "--own")
    run("pairs", "build").check(1, "no pairs: a pair needs an implicit sentence with an explicit form")


def test_counts_beside_the_papers(run: Run, tables: Path, data: Path, tmp_path: Path) -> None:
    """A published data set is counted beside the paper's pairs: 150 of R3 (table 6), none of Davidson."""
    done = run("pairs", "import", "r3", data / "r3_sarcasm_en")
    assert "150 of them implicit; expected 150 (the paper's table 6)" in done.err
    (tmp_path / "labeled_data.csv").write_text("class,tweet\n2,Owls.\n", encoding="utf-8")
    done = run("pairs", "import", "davidson", tmp_path)
    assert (done.code, done.err.strip()) == (0, "davidson: 1 sentence")


def test_audit(run: Run, pairs_file: Path, tmp_path: Path) -> None:
    """`pairs audit` says what length, punctuation, words and source alone reach, and draws it if asked."""
    told = run("pairs", "audit", "--pairs", pairs_file, "--figure", tmp_path / "a.svg", "--json").rows
    assert {row["baseline"] for row in told} == {"length", "punctuation", "words", "source"}
    assert {row["subset"] for row in told} == {"all", "own"}
    source = next(row for row in told if row["baseline"] == "source" and row["subset"] == "all")
    assert source["accuracy"] == 0.5  # within one source it tells nothing
    assert "<svg" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_judgement(run: Run, pairs_file: Path, tmp_path: Path) -> None:
    """`pairs sample` writes 20 pairs to judge and a key apart; judged as the key says, a source has a 5 (IMP-21)."""
    judge, key = tmp_path / "judge.csv", tmp_path / "key.csv"
    assert run("pairs", "sample", judge, key, "--pairs", pairs_file).code == 0
    asked, kinds = pl.read_csv(judge), pl.read_csv(key)
    assert asked.columns == ["item", "first", "second", "same_meaning", "first_more_implicit"]
    assert sorted(kinds["kind"].value_counts()["count"]) == [10, 10]
    same = asked.join(kinds, on="item", maintain_order="left")["kind"].replace_strict({"positive": 1, "negative": 0})
    asked.with_columns(same_meaning=same, first_more_implicit=pl.lit(1)).write_csv(judge)
    told = run("pairs", "ratings", judge, key, "--json").rows
    assert [(row["source"], row["rating"]) for row in told] == [("own", 5)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("import", "latent_hatred", "nowhere"), "nowhere"),
        (("import", "no_such_set", "."), "no source 'no_such_set'; there are toxigen, latent_hatred"),
        (("build", "--source", "mine", "--split", "thirds"), "no split profile 'thirds'"),
        (("ask", "--llm", "m", "--params", "{"), "--params: broken JSON"),
        (("ask", "--llm", "m", "--params", "[]"), "--params should be a JSON object"),
        (("ask", "--llm", "m", "--source", "mine"), "nothing to ask about mine"),
        *(((name,), "undertone pairs build") for name in ("stats", "audit", "leakage")),
    ],
)
def test_what_is_refused(run: Run, tables: Path, words: tuple[str, ...], said: str) -> None:
    """Bad input exits with 2 and an empty table with 4; the message says what is wrong, and nothing is written."""
    run("pairs", *words).check(4 if len(words) == 1 else 2, said)
    assert all(warehouse.get_snapshot_id(name) is None for name in ("sentences", "completions", "pairs", "runs"))
