"""Pairs: positives from labels and completions, negatives from the same source, statistics, balance, users' files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.examples.impscore import negatives
from pipeline.examples.impscore import pairs as examples
from pipeline.llm import cassette
from pipeline.llm.questions import explicit
from pipeline.sample import COMPLETIONS
from pipeline.tables import TABLES, empty

said = st.sampled_from(["Close the door.", "I am tired.", "It is cold.", "You are late.", "The food is bad."])
hints = st.sampled_from(["Brr.", "Is there a draught?", "Well, well.", "It is cold."])
drawn = st.lists(st.tuples(st.sampled_from(["one", "two"]), hints, said), max_size=30, unique=True)
seeds = st.integers(0, 2**32 - 1)


def triples(rows: Sequence[tuple[str, str, str]]) -> pl.DataFrame:
    """Positive pairs of (source, implicit, explicit)."""
    return pl.DataFrame(
        [(f"{i:032x}", source, "en", hint, told, None) for i, (source, hint, told) in enumerate(rows)],
        schema=examples.PAIR,
        orient="row",
    )


def positives(rows: Sequence[tuple[str, str]]) -> pl.DataFrame:
    """Positive pairs of (source, explicit), each with an implicit sentence of its own."""
    return triples([(source, f"hint {i}", told) for i, (source, told) in enumerate(rows)])


def answers(*rows: tuple[str, str, str], model: str = "m", attempts: Sequence[int] = ()) -> pl.DataFrame:
    """Completions of (implicit, response, prompt)."""
    tries = attempts or [0] * len(rows)
    return pl.DataFrame(
        [
            {"completion_id": f"{i:064x}", "source": "own", "response": response, "prompt": prompt, "model": model,
             "attempt": attempt, "prompt_version": "v1",
             "finish_reason": "stop", "messages": json.dumps(explicit.messages(implicit, prompt))}
            for i, ((implicit, response, prompt), attempt) in enumerate(zip(rows, tries, strict=True))
        ],
        schema=dict.fromkeys(("completion_id", "source", "response", "prompt", "prompt_version", "model"), pl.String)
        | {"attempt": pl.Int64, "messages": pl.String, "finish_reason": pl.String},
    )  # fmt: skip


def sentences(*rows: tuple[str, str, str | None]) -> pl.DataFrame:
    """Sentences of (text, label, explicit)."""
    return pl.DataFrame(
        [
            {"source": "labelled", "item_id": f"i{i}", "lang": "en", "text": text, "label": label, "explicit": told}
            for i, (text, label, told) in enumerate(rows)
        ],
        schema_overrides={"explicit": pl.String},
    ).with_columns(prompt=pl.lit(None, pl.String))


def test_positives_and_the_dropped_by_hand() -> None:
    """Answers become pairs with their language; those that give none are dropped by completion with a reason."""
    kept, gone = examples.pair_completions(
        answers(
            ("Nice hat.", "Explicit: I dislike the hat.", "explicit_en"),
            ("你可真准时。", "你迟到了。", "explicit_zh"),
            ("Nice weather.", "I'm sorry, but I can't assist with that request.", "explicit_en"),
            ("Bless him.", "bless him.", "explicit_en"),
            ("Nice hat.", "I dislike the hat.", "irony_en"),
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


def test_first_attempt_that_parses_counts() -> None:
    """Of the attempts at a question the first good one is the pair, whatever the order of the rows; the rest drop."""
    asked = [("Nice hat.", answer, "explicit_en") for answer in ("It suits you badly.", "", "I dislike the hat.")]
    completions = answers(*asked, attempts=[2, 0, 1])
    for rows in (completions, completions.reverse()):
        kept, gone = examples.pair_completions(rows)
        assert kept.select("explicit", "completion_id").rows() == [("I dislike the hat.", f"{2:064x}")]
        assert gone.rows() == [("own", "empty", f"{1:064x}"), ("own", "later_attempt", f"{0:064x}")]


def test_answers_to_the_wording_in_force_come_first() -> None:
    """A question reworded and asked again counts once, by its answer to the wording in force, if that parses."""
    asked = [("Nice hat.", answer, "explicit_en") for answer in ("I dislike the hat.", "The hat is ugly.")]
    both = answers(*asked).with_columns(prompt_version=pl.Series(["v1", "v2"]))
    for current, expected in (({"explicit_en": "v1"}, 0), ({"explicit_en": "v2"}, 1), ({}, 0), (None, 0)):
        kept, gone = examples.pair_completions(both, current)
        assert kept["completion_id"].to_list() == [f"{expected:064x}"]
        assert gone["reason"].to_list() == ["later_attempt"]
    unparsed = both.with_columns(response=pl.Series(["I dislike the hat.", ""]))
    assert examples.pair_completions(unparsed, {"explicit_en": "v2"})[0]["explicit"].to_list() == ["I dislike the hat."]


def test_answers_that_were_cut_off_are_dropped() -> None:
    """An answer that a limit of tokens ended half-way is no explicit sentence; the next attempt counts."""
    asked = [("Nice hat.", answer, "explicit_en") for answer in ("I dislike", "I dislike the hat.")]
    both = answers(*asked, attempts=[0, 1]).with_columns(finish_reason=pl.Series(["length", "stop"]))
    kept, gone = examples.pair_completions(both)
    assert kept["explicit"].to_list() == ["I dislike the hat."]
    assert gone.rows() == [("own", "cut_off", f"{0:064x}")]


def test_two_models_are_two_questions() -> None:
    """What another model or prompt answers is a pair of its own."""
    one = answers(("Nice hat.", "I dislike the hat.", "explicit_en"), ("Nice hat.", "The hat is ugly.", "irony_en"))
    other = answers(("Nice hat.", "Take the hat off.", "explicit_en"), model="n")
    other = other.with_columns(completion_id=pl.lit("f" * 64))
    assert examples.pair_completions(pl.concat([one, other]))[0].height == 3


def test_dialogues_keep_their_question() -> None:
    """The explicit form of a dialogue is the same question with the explicit answer (IMP-17)."""
    kept, _ = examples.pair_completions(
        answers(("- Coming along? - My tent leaks.", "B: No, I am not.", "dialogue_en"))
    )
    assert kept.select("implicit", "explicit").rows() == [
        ("- Coming along? - My tent leaks.", "- Coming along? - No, I am not.")
    ]


def test_positives_of_labels() -> None:
    """Only implicit sentences with an explicit form are pairs; the same pair again is dropped by its item (IMP-14)."""
    kept, gone = examples.pair_sentences(
        sentences(
            ("Nice hat.", "implicit", "I dislike the hat."),
            ("Nice hat.", "implicit", "The hat is ugly."),
            ("Well, well.", "implicit", None),
            ("Go away.", "explicit", "Leave me alone."),
            ("Hm.", "neither", "I doubt it."),
            ("Nice hat.", "implicit", "I dislike the hat."),
        )
    )
    assert kept.select("source", "lang", "implicit", "explicit", "completion_id").rows() == [
        ("labelled", "en", "Nice hat.", "I dislike the hat.", None),
        ("labelled", "en", "Nice hat.", "The hat is ugly.", None),
    ]
    assert gone.rows() == [("labelled", "same_pair", "i5")]
    assert kept["pair_id"][0] == examples.make_pair_id("labelled", "Nice hat.", "I dislike the hat.")


@settings(deadline=None)
@given(drawn, seeds)
def test_negatives_are_foreign_and_of_the_same_source(rows: list[tuple[str, str, str]], seed: int) -> None:
    """A negative is another pair's explicit text of the source, and no meaning of the sentence where there are others.

    Never the pair's own text even under another id; as many as positives (IMP-19), which they leave as they are.
    """
    given_pairs = triples(rows)
    found, gone = examples.add_negatives(given_pairs, seed)
    assert found.height + gone.height == given_pairs.height
    kept = given_pairs.join(found, on="pair_id", how="semi")
    assert found.drop("negative").sort("pair_id").equals(kept)  # IMP-02
    for row in found.iter_rows(named=True):
        foreign = {told for source, _, told in rows if source == row["source"]} - {row["explicit"]}
        own = {told for source, hint, told in rows if (source, hint) == (row["source"], row["implicit"])}
        assert row["negative"] in (foreign - own - {row["implicit"]} or foreign)
    for source, reason, _ in gone.iter_rows():
        assert reason == "no_negative"
        assert len({told for where, _, told in rows if where == source}) == 1


@settings(deadline=None)
@given(drawn, seeds, st.booleans())
def test_negatives_follow_from_rows_and_seed(rows: list[tuple[str, str, str]], seed: int, hard: bool) -> None:
    """The same pairs, in any order, and the same seed give the same negatives (IMP-19), hard ones too."""
    order = np.random.default_rng(seed).permutation(len(rows))
    vectors = np.random.default_rng(0).normal(size=(len(rows), 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    given_pairs = triples(rows)
    one = examples.add_negatives(given_pairs, seed, vectors if hard else None)[0]
    other = examples.add_negatives(given_pairs[order.tolist()], seed, vectors[order] if hard else None)[0]
    assert one.equals(other)


def test_another_seed_gives_other_negatives() -> None:
    """Negatives are drawn, not dealt: of 40 pairs another seed changes some."""
    rows = positives([("one", f"I mean {i}.") for i in range(40)])
    one, other = (examples.add_negatives(rows, seed)[0]["negative"] for seed in (1, 2))
    assert one.to_list() != other.to_list()


def test_negatives_are_equally_likely() -> None:
    """Every allowed row is drawn about equally often, though some draws are made again: 4 of 6, within 5 sigma."""
    rows = triples([("one", "hint", "a"), ("one", "hint", "b"), *[("one", f"other {c}", c) for c in "cdef"]])
    first = [examples.add_negatives(rows, seed)[0]["negative"][0] for seed in range(2_000)]
    assert set(first) == set("cdef")
    assert all(abs(first.count(c) - 500) < 5 * (2_000 * 0.25 * 0.75) ** 0.5 for c in "cdef")


def test_source_of_one_text_has_no_negative() -> None:
    """A source whose pairs all say the same, or that has one pair, is dropped as `no_negative`, the others stay."""
    rows = positives([("alone", "It is cold."), ("same", "I am tired."), ("same", "I am tired."),
                      ("fine", "You are late."), ("fine", "The food is bad.")])  # fmt: skip
    found, gone = examples.add_negatives(rows)
    assert found.select("source", "explicit", "negative").rows() == [
        ("fine", "You are late.", "The food is bad."),
        ("fine", "The food is bad.", "You are late."),
    ]
    assert gone.rows() == [("alone", "no_negative", f"{0:032x}")] + [
        ("same", "no_negative", f"{i:032x}") for i in (1, 2)
    ]


def test_hard_negatives_are_near_but_not_the_same() -> None:
    """The nearest of those drawn is taken, unless its cosine reaches 0.95, and no meaning of the same sentence."""
    angles = np.deg2rad([0, 10, 30, 60, 100])  # 18.2 degrees are a cosine of 0.95
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    rows = triples([("one", f"hint {i}", f"at {int(d)}") for i, d in enumerate((0, 10, 30, 60, 100))])
    assert examples.add_negatives(rows, 1, vectors)[0]["negative"].to_list() == [
        "at 30", "at 30", "at 10", "at 30", "at 60",
    ]  # fmt: skip
    same = rows.with_columns(implicit=pl.Series(["hint", "hint 1", "hint", "hint 3", "hint 4"]))
    assert examples.add_negatives(same, 1, vectors)[0]["negative"][0] == "at 60"


def test_hard_negatives_where_all_are_alike() -> None:
    """Where every foreign sentence is as near as 0.95 the farthest is taken."""
    angles = np.deg2rad([0, 4, 12])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    found, _ = examples.add_negatives(positives([("one", "a"), ("one", "b"), ("one", "c")]), 1, vectors)
    assert found["negative"].to_list() == ["c", "c", "a"]


def test_vectors_must_fit() -> None:
    """Fewer vectors than pairs are an error and not a wrong choice."""
    with pytest.raises(ValueError, match="a vector for each of 2 pairs, got 1"):
        examples.add_negatives(positives([("one", "a"), ("one", "b")]), 1, np.zeros((1, 3), np.float32))


def test_hard_negatives_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cutting the work into chunks changes nothing."""
    rows = positives([("one", f"I mean {i}.") for i in range(50)])
    vectors = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    whole = examples.add_negatives(rows, 1, vectors)[0]
    monkeypatch.setattr(negatives, "_CHUNK", 7)
    assert examples.add_negatives(rows, 1, vectors)[0].equals(whole)


@pytest.mark.parametrize("profile", ["paper", "official", "grouped"])
def test_build_adds_up_on_the_sample(profile: str) -> None:
    """Every completion of the shipped cassette is a pair or dropped, the same twice over, and the contract holds."""
    completions = cassette.read(COMPLETIONS)
    rows, gone = examples.build(empty("sentences"), completions, profile)
    again, _ = examples.build(empty("sentences"), completions.reverse(), profile)
    assert rows.height + gone.height == completions.height
    assert rows.equals(again)
    assert TABLES["pairs"].schema.is_valid(rows)
    assert rows["cluster_id"].null_count() == 0
    assert rows.columns == TABLES["pairs"].schema.column_names()


def test_build_joins_labels_and_completions() -> None:
    """A pair that the labels give and a model writes too is the labels', and the model's is dropped as the same."""
    labelled = sentences(("Nice hat.", "implicit", "I dislike the hat."), ("Brr.", "implicit", "Close the door."))
    completions = answers(
        ("Nice hat.", "I dislike the hat.", "irony_en"), ("Well, well.", "You are late.", "explicit_en"),
    ).with_columns(source=pl.lit("labelled"))  # fmt: skip
    rows, gone = examples.build(labelled, completions)
    assert sorted(rows.select("implicit", "completion_id").rows()) == [
        ("Brr.", None), ("Nice hat.", None), ("Well, well.", f"{1:064x}"),
    ]  # fmt: skip
    assert gone.rows() == [("labelled", "same_pair", f"{0:064x}")]


def test_build_of_nothing_is_nothing() -> None:
    """No sentences and completions give no pairs and nothing dropped, with the same columns."""
    for profile in ("paper", "grouped"):
        rows, gone = examples.build(empty("sentences"), empty("completions"), profile)
        assert (rows.height, gone.height) == (0, 0)
        assert rows.schema == examples.build(empty("sentences"), cassette.read(COMPLETIONS))[0].schema


def test_statistics_by_hand() -> None:
    """Counts, mean and sample sd of characters, and the share of longer implicit sentences (IMP-20)."""
    rows = triples([("a", "1234", "12"), ("a", "12345678", "1234"), ("b", "我们", "12345")])
    found = examples.compute_statistics(rows.with_columns(negative=pl.lit("x")))
    assert found.columns == ["source", "positives", "negatives", "implicit_mean", "implicit_sd", "explicit_mean",
                             "explicit_sd", "implicit_longer"]  # fmt: skip
    a, b, both = found.rows()
    assert a == ("a", 2, 2, 6.0, pytest.approx(8**0.5), 3.0, pytest.approx(2**0.5), 1.0)
    assert b == ("b", 1, 1, 2.0, None, 5.0, None, 0.0)
    assert both[:3] == ("all", 3, 3)
    assert both[3:] == pytest.approx((14 / 3, (28 / 3) ** 0.5, 11 / 3, (7 / 3) ** 0.5, 2 / 3))


def accuracy(rows: pl.DataFrame, other: str) -> float:
    """Accuracy of calling the longer sentence implicit, a tie counted half."""
    difference = rows["implicit"].str.len_chars().cast(int) - rows[other].str.len_chars().cast(int)
    return float((difference.sign() / 2 + 0.5).mean()) if len(rows) else 0.5  # type: ignore[arg-type]


sized = st.lists(st.tuples(st.sampled_from(["one", "two"]), *[st.integers(1, 12)] * 3), max_size=60)


def of_sizes(rows: list[tuple[str, int, int, int]]) -> pl.DataFrame:
    """Pairs of (source, length of implicit, of explicit, of negative)."""
    return triples([(source, "i" * one, "e" * other) for source, one, other, _ in rows]).with_columns(
        negative=pl.Series(["n" * size for *_, size in rows], dtype=pl.String)
    )


@settings(deadline=None)
@given(sized, seeds)
def test_length_tells_nothing_of_a_balanced_set(rows: list[tuple[str, int, int, int]], seed: int) -> None:
    """'The longer is implicit' is right in half the pairs of every source, of the negative pairs as well."""
    found = examples.balance_lengths(of_sizes(rows), seed)
    for part in [found, *found.partition_by("source")]:
        assert accuracy(part, "explicit") == accuracy(part, "negative") == 0.5
    assert found.equals(examples.balance_lengths(of_sizes(rows).reverse(), seed))
    assert found.join(of_sizes(rows), on=found.columns, how="anti", nulls_equal=True).is_empty()


@settings(deadline=None)
@given(sized)
def test_a_balanced_set_is_as_large_as_can_be(rows: list[tuple[str, int, int, int]]) -> None:
    """Without negatives all ties and, of each source and bin, twice the smaller side are kept."""
    pairs = of_sizes(rows).drop("negative")
    expected = 0
    for source in ("one", "two"):
        bins: dict[int, list[int]] = {}
        for where, one, other, _ in rows:
            if where == source:
                near = bins.setdefault(int(abs(one - other) / max(one, other) * 8), [0, 0, 0])
                near[(one > other) - (one < other) + 1] += 1
        expected += sum(2 * min(shorter, longer) + ties for shorter, ties, longer in bins.values())
    found = examples.balance_lengths(pairs, tolerance=0.125)
    assert found.height == expected
    assert accuracy(found, "explicit") == 0.5


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_a_users_pairs(tmp_path: Path, ending: str) -> None:
    """Implicit and explicit are enough in every format: ids, language, negatives, clusters and split are made."""
    frame = pl.DataFrame({
        "implicit": [*[f"It is {i} past nine." for i in range(9)], "你可真准时。"],
        "explicit": [*[f"You are {i} minutes late, \"again\"." for i in range(9)], "你迟到了。"],
        "remark": ["x"] * 10,
    })  # fmt: skip
    path = tmp_path / f"pairs.{ending}"
    write = {"csv": frame.write_csv, "tsv": lambda p: frame.write_csv(p, separator="\t"),
             "jsonl": frame.write_ndjson, "parquet": frame.write_parquet}[ending]  # fmt: skip
    write(path)
    rows = examples.read(path)
    assert TABLES["pairs"].schema.is_valid(rows)
    assert rows["source"].unique().to_list() == ["own"]
    assert dict(rows.select("implicit", "explicit").iter_rows()) == dict(frame.drop("remark").iter_rows())
    assert rows.filter(pl.col("lang") == "zh")["implicit"].to_list() == ["你可真准时。"]
    assert sorted(rows["split"].value_counts()["count"].to_list()) == [1, 1, 8]
    assert rows.equals(examples.read(path))


def jsonl(path: Path, *entries: dict[str, Any]) -> Path:
    """A file with a line for each entry."""
    path.write_text("".join(json.dumps(e, ensure_ascii=False) + "\n" for e in entries), encoding="utf-8")
    return path


FULL = {"implicit": " Brr. ", "explicit": "It is cold.", "negative": "Go home.", "source": "mine", "lang": "en",
        "split": "test"}  # fmt: skip


def test_what_a_user_gives_is_kept(tmp_path: Path) -> None:
    """Negative, source, language and split of the file stand; a missing negative is drawn there; copies count once."""
    late = {"implicit": "Well, well.", "explicit": "You are late.", "source": "mine", "split": "train"}
    slow = late | {"implicit": "Any day now.", "explicit": "You are slow."}
    rows = examples.read(jsonl(tmp_path / "p.jsonl", FULL, late, slow, FULL | {"negative": "No."}))
    assert sorted(rows.select("implicit", "negative", "source", "lang", "split").rows()) == [
        ("Any day now.", "You are late.", "mine", "en", "train"),
        ("Brr.", "Go home.", "mine", "en", "test"),
        ("Well, well.", "You are slow.", "mine", "en", "train"),
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"implicit": None}, "field 'implicit' is empty"),
        ({"explicit": " "}, "field 'explicit' is empty"),
        ({"explicit": "Brr."}, "field 'explicit' should differ from"),
        ({"negative": "It is cold."}, "field 'negative' should differ from"),
        ({"negative": 7}, "field 'negative' should be text, found int"),
        ({"source": "My Source"}, "field 'source' should be a name in small letters"),
        ({"split": "dev"}, "field 'split' should be one of train, validation, test, found 'dev'"),
        ({"implicit": "Hm.", "split": None}, "field 'split' is absent, though other rows have one"),
        ({"source": "alone", "negative": ""}, "field 'negative' is absent, and its source has no other"),
    ],
)
def test_faults_name_file_row_and_field(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    """A bad value is BadInput that names file, row and field."""
    path = jsonl(tmp_path / "p.jsonl", FULL, FULL | change)
    with pytest.raises(BadInput) as caught:
        examples.read(path)
    assert str(caught.value).startswith(f"{path}, row 2: {told}")


def test_an_absent_column_is_named(tmp_path: Path) -> None:
    """A table without the column is told so at its first row, which in a csv file is row 2."""
    path = tmp_path / "p.csv"
    path.write_text("implicit,meaning\nBrr.,It is cold.\n", encoding="utf-8")
    with pytest.raises(BadInput, match="row 2: field 'explicit' is absent"):
        examples.read(path)
