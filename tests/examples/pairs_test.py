"""Pairs: positives from completions, negatives from the same source, splits."""

import json
from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.examples import pairs as examples
from pipeline.llm import cassette, explicit
from pipeline.sample import COMPLETIONS

texts = st.sampled_from(["Close the door.", "I am tired.", "It is cold.", "You are late.", "The food is bad."])
drawn = st.lists(st.tuples(st.sampled_from(["one", "two"]), texts), max_size=30)


def positives(rows: Sequence[tuple[str, str]]) -> pl.DataFrame:
    """Positive pairs of (source, explicit), each with an implicit sentence of its own."""
    return pl.DataFrame(
        [(f"{i:032x}", source, "en", f"hint {i}", said, f"{i:064x}") for i, (source, said) in enumerate(rows)],
        schema=dict.fromkeys(("pair_id", "source", "lang", "implicit", "explicit", "completion_id"), pl.String),
        orient="row",
    )


def answers(*rows: tuple[str, str, str], source: str = "own") -> pl.DataFrame:
    """Completions of (implicit, response, prompt)."""
    return pl.DataFrame(
        [
            {"completion_id": f"{i:064x}", "source": source, "response": response, "prompt": prompt,
             "messages": json.dumps(explicit.messages(implicit, prompt))}
            for i, (implicit, response, prompt) in enumerate(rows)
        ]
    )  # fmt: skip


def test_positives_and_the_dropped_by_hand() -> None:
    """Answers become pairs with their language; those that give none are dropped by completion with a reason."""
    kept, gone = examples.positives(
        answers(
            ("Nice hat.", "Explicit: I dislike the hat.", "explicit_en"),
            ("你可真准时。", "你迟到了。", "explicit_zh"),
            ("Nice weather.", "I'm sorry, but I can't assist with that request.", "explicit_en"),
            ("Bless him.", "bless him.", "explicit_en"),
            ("Nice hat.", "I dislike the hat.", "explicit_en"),
        )
    )
    assert kept.select("source", "lang", "implicit", "explicit", "completion_id").rows() == [
        ("own", "en", "Nice hat.", "I dislike the hat.", f"{0:064x}"),
        ("own", "zh", "你可真准时。", "你迟到了。", f"{1:064x}"),
    ]
    assert gone.rows() == [
        ("own", "refusal", f"{2:064x}"),
        ("own", "echo", f"{3:064x}"),
        ("own", "same_pair", f"{4:064x}"),
    ]


@given(drawn, st.integers(0, 2**32 - 1))
def test_negatives_are_foreign_and_of_the_same_source(rows: list[tuple[str, str]], seed: int) -> None:
    """A negative is another pair's explicit text of the same source, never the pair's own even under another id."""
    given_pairs = positives(rows)
    triples, gone = examples.with_negatives(given_pairs, seed)
    assert triples.height + gone.height == given_pairs.height  # IMP-19: as many as positives
    assert (
        triples.drop("negative").sort("pair_id").equals(given_pairs.join(triples, on="pair_id", how="semi"))
    )  # IMP-02
    said = {source: {s for where, s in rows if where == source} for source, _ in rows}
    for row in triples.iter_rows(named=True):
        assert row["negative"] in said[row["source"]] - {row["explicit"]}


@given(drawn, st.integers(0, 2**32 - 1))
def test_negatives_follow_from_rows_and_seed(rows: list[tuple[str, str]], seed: int) -> None:
    """The same pairs, in any order, and the same seed give the same negatives (IMP-19)."""
    given_pairs = positives(rows)
    mixed = given_pairs.sample(fraction=1, shuffle=True, seed=seed)
    assert examples.with_negatives(given_pairs, seed)[0].equals(examples.with_negatives(mixed, seed)[0])


def test_another_seed_gives_other_negatives() -> None:
    """Negatives are drawn, not dealt: of 40 pairs another seed changes some."""
    rows = positives([("one", f"I mean {i}.") for i in range(40)])
    one, other = (examples.with_negatives(rows, seed)[0]["negative"] for seed in (1, 2))
    assert one.to_list() != other.to_list()


def test_source_of_one_text_has_no_negative() -> None:
    """A source whose pairs all say the same, or that has one pair, is dropped as `no_negative`, the others stay."""
    rows = positives([("alone", "It is cold."), ("same", "I am tired."), ("same", "I am tired."),
                      ("fine", "You are late."), ("fine", "The food is bad.")])  # fmt: skip
    triples, gone = examples.with_negatives(rows)
    assert triples.select("source", "explicit", "negative").rows() == [
        ("fine", "You are late.", "The food is bad."),
        ("fine", "The food is bad.", "You are late."),
    ]
    assert gone.rows() == [("alone", "no_negative", f"{0:032x}")] + [
        ("same", "no_negative", f"{i:032x}") for i in (1, 2)
    ]


@pytest.mark.parametrize(
    ("count", "shares", "expected"),
    [
        (100, examples.SPLIT, (80, 10, 10)),
        (56_290, examples.SPLIT, (45_032, 5_629, 5_629)),  # the paper's pairs (IMP-12, IMP-23) at 8:1:1
        (170, examples.SPLIT, (136, 17, 17)),
        (7, examples.SPLIT, (6, 0, 1)),  # bounds round(5.6) = 6, round(6.3) = 6, 7
        (1, examples.SPLIT, (1, 0, 0)),
        (100, (0.9, 0.05, 0.05), (90, 5, 5)),  # the released code's (errata E3)
        (0, examples.SPLIT, (0, 0, 0)),
    ],
)
def test_split_shares_are_exact(count: int, shares: tuple[float, float, float], expected: tuple[int, ...]) -> None:
    """Splits have exactly the rounded shares of 8:1:1, or of other shares (IMP-22)."""
    rows = pl.DataFrame({"pair_id": [f"{i:032x}" for i in range(count)]}, schema={"pair_id": pl.String})
    split = examples.with_split(rows, shares)["split"]
    assert tuple((split == name).sum() for name in ("train", "validation", "test")) == expected


@given(st.integers(0, 200), st.integers(0, 2**32 - 1))
def test_split_follows_from_rows_and_seed(count: int, seed: int) -> None:
    """The order the rows come in does not matter, and every row is in one split (IMP-22)."""
    rows = pl.DataFrame({"pair_id": [f"{i:032x}" for i in range(count)]}, schema={"pair_id": pl.String})
    one = examples.with_split(rows, seed=seed)
    assert one.equals(examples.with_split(rows.reverse(), seed=seed))
    assert one["pair_id"].to_list() == rows["pair_id"].to_list()
    assert one["split"].is_in(["train", "validation", "test"]).all()


def test_build_adds_up_on_the_sample() -> None:
    """Every completion of the shipped cassette is a pair or dropped, the same twice over."""
    completions = cassette.read(COMPLETIONS)
    rows, gone = examples.build(completions)
    again, _ = examples.build(completions.reverse())
    assert rows.height + gone.height == completions.height
    assert rows.drop("completion_id").equals(again.drop("completion_id"))
    assert rows.filter(pl.col("negative") == pl.col("explicit")).is_empty()


def test_build_of_nothing_is_nothing() -> None:
    """No completions give no pairs and nothing dropped, with the same columns."""
    completions = cassette.read(COMPLETIONS)
    rows, gone = examples.build(completions.clear())
    assert (rows.height, gone.height) == (0, 0)
    assert rows.schema == examples.build(completions)[0].schema
