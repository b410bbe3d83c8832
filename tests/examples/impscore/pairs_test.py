"""Pairs: positives from labels and completions, negatives from the same source, statistics, balance, users' files."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.examples.impscore import pairs as examples
from pipeline.llm import prompt as prompts
from pipeline.tables import TABLES
from tests.examples.sources.writing import jsonl, text

meanings = st.sampled_from(
    ["Close the door.", "close the Door.", "I am tired.", "It is cold.", "You are late.", "The food is bad."]
)
hints = st.sampled_from(["Brr.", "Is there a draught?", "Well, well.", "It is cold."])
drawn_rows = st.lists(st.tuples(st.sampled_from(["one", "two"]), hints, meanings), max_size=30, unique=True)
seeds = st.integers(0, 2**32 - 1)


def triples(rows: Sequence[tuple[str, str, str]]) -> pl.DataFrame:
    """Positive pairs of (source, implicit, explicit)."""
    pairs = [(f"{i:032x}", source, "en", *texts, None) for i, (source, *texts) in enumerate(rows)]
    return pl.DataFrame(pairs, schema=examples.PAIR, orient="row")


def positives(rows: Sequence[tuple[str, str]]) -> pl.DataFrame:
    """Positive pairs of (source, explicit), each with an implicit sentence of its own."""
    return triples([(source, f"hint {i}", explicit) for i, (source, explicit) in enumerate(rows)])


def answers(*rows: tuple[str, str, str], model: str = "m", attempts: Sequence[int] = ()) -> pl.DataFrame:
    """Completions of (implicit, response, prompt)."""
    tries, completions = attempts or [0] * len(rows), []
    for i, (implicit, response, prompt) in enumerate(rows):
        messages = json.dumps(prompts.build_messages(implicit, prompt))
        completions.append((f"{i:064x}", "own", response, prompt, "v1", model, tries[i], "stop", messages))
    columns = ["completion_id", "source", "response", "prompt", "prompt_version", "model", "attempt", "finish_reason"]
    return pl.DataFrame(completions, schema=[*columns, "messages"], orient="row")


def sentences(*rows: tuple[str, str, str | None]) -> pl.DataFrame:
    """Sentences of (text, label, explicit)."""
    items = [("labelled", f"i{i}", "en", *row, None) for i, row in enumerate(rows)]
    columns = ("source", "item_id", "lang", "text", "label", "explicit", "prompt")
    return pl.DataFrame(items, schema=dict.fromkeys(columns, pl.String), orient="row")


def test_positives_and_the_dropped_by_hand() -> None:
    """Answers become pairs with their language; those that give none are dropped by completion with a reason."""
    pairs, dropped = examples.pair_completions(
        answers(
            ("Nice hat.", "Explicit: I dislike the hat.", "explicit_en"), ("你可真准时。", "你迟到了。", "explicit_zh"),
            ("Nice weather.", "I'm sorry, but I can't assist with that request.", "explicit_en"),
            ("Bless him.", "bless him.", "explicit_en"), ("Nice hat.", "I dislike the hat.", "irony_en"),
        )
    )  # fmt: skip
    assert pairs.select("source", "lang", "implicit", "explicit", "completion_id").rows() == [
        ("own", "en", "Nice hat.", "I dislike the hat.", f"{0:064x}"),
        ("own", "zh", "你可真准时。", "你迟到了。", f"{1:064x}"),
    ]
    reasons = {2: "refusal", 3: "echo", 4: "same_pair"}
    assert dropped.rows() == [("own", reason, f"{number:064x}") for number, reason in reasons.items()]


def test_first_attempt_that_parses_counts() -> None:
    """Of the attempts at a question the first good one is the pair, whatever the order of the rows; the rest drop."""
    items = [("Nice hat.", answer, "explicit_en") for answer in ("It suits you badly.", "", "I dislike the hat.")]
    completions = answers(*items, attempts=[2, 0, 1])
    for rows in (completions, completions.reverse()):
        pairs, dropped = examples.pair_completions(rows)
        assert pairs.select("explicit", "completion_id").rows() == [("I dislike the hat.", f"{2:064x}")]
        assert dropped.rows() == [("own", "empty", f"{1:064x}"), ("own", "later_attempt", f"{0:064x}")]


def test_answers_to_the_wording_in_force_come_first() -> None:
    """A question reworded and asked again counts once, by its answer to the wording in force, if that parses."""
    items = [("Nice hat.", answer, "explicit_en") for answer in ("I dislike the hat.", "The hat is ugly.")]
    completions = answers(*items).with_columns(prompt_version=pl.Series(["v1", "v2"]))
    for current, expected in (({"explicit_en": "v1"}, 0), ({"explicit_en": "v2"}, 1), ({}, 0), (None, 0)):
        pairs, dropped = examples.pair_completions(completions, current)
        assert pairs["completion_id"].to_list() == [f"{expected:064x}"]
        assert dropped["reason"].to_list() == ["later_attempt"]
    unparsed = completions.with_columns(response=pl.Series(["I dislike the hat.", ""]))
    assert examples.pair_completions(unparsed, {"explicit_en": "v2"})[0]["explicit"].to_list() == ["I dislike the hat."]


def test_answers_that_were_cut_off_are_dropped() -> None:
    """An answer that a limit of tokens ended half-way is no explicit sentence; the next attempt counts.

    What another model or prompt answers is a question of its own.
    """
    items = [("Nice hat.", answer, "explicit_en") for answer in ("I dislike", "I dislike the hat.")]
    completions = answers(*items, attempts=[0, 1]).with_columns(finish_reason=pl.Series(["length", "stop"]))
    pairs, dropped = examples.pair_completions(completions)
    assert pairs["explicit"].to_list() == ["I dislike the hat."]
    assert dropped.rows() == [("own", "cut_off", f"{0:064x}")]
    other_model = answers(*items[1:], model="n").with_columns(completion_id=pl.lit("f" * 64))
    both = pl.concat([completions.with_columns(prompt=pl.lit("irony_en")), other_model, completions[1:]])
    assert examples.pair_completions(both)[1]["reason"].to_list() == ["cut_off", "same_pair", "same_pair"]


def test_positives_of_labels() -> None:
    """Only implicit sentences with an explicit form are pairs; the same pair again is dropped by its item (IMP-14)."""
    pairs, dropped = examples.pair_sentences(
        sentences(
            ("Nice hat.", "implicit", "I dislike the hat."), ("Nice hat.", "implicit", "The hat is ugly."),
            ("Well, well.", "implicit", None), ("Go away.", "explicit", "Leave me alone."),
            ("Hm.", "neither", "I doubt it."), ("Nice hat.", "implicit", "I dislike the hat."),
        )
    )  # fmt: skip
    assert pairs.select("source", "lang", "implicit", "explicit", "completion_id").rows() == [
        ("labelled", "en", "Nice hat.", "I dislike the hat.", None),
        ("labelled", "en", "Nice hat.", "The hat is ugly.", None),
    ]
    assert dropped.rows() == [("labelled", "same_pair", "i5")]
    assert pairs["pair_id"][0] == examples.make_pair_id("labelled", "Nice hat.", "I dislike the hat.")


@settings(deadline=None)
@given(drawn_rows, seeds)
def test_negatives_are_foreign_and_of_the_same_source(rows: list[tuple[str, str, str]], seed: int) -> None:
    """A negative is another pair's explicit text of the source, and no meaning of the sentence where there are others.

    Never the pair's own text even under another id; as many as positives (IMP-19), which they leave as they are.
    """
    pairs = triples(rows)
    result, dropped = examples.add_negatives(pairs, seed)
    assert result.height + dropped.height == pairs.height
    assert result.drop("negative").sort("pair_id").equals(pairs.join(result, on="pair_id", how="semi"))  # IMP-02
    for row in result.to_dicts():
        same_source = pairs.with_columns(pl.col("implicit", "explicit").str.to_lowercase()).filter(source=row["source"])
        implicit = row["implicit"].lower()
        foreign = set(same_source["explicit"]) - {row["explicit"].lower()}
        meanings = {*same_source.filter(implicit=implicit)["explicit"], implicit}
        assert row["negative"].lower() in (foreign - meanings or foreign)
    for source, reason, _ in dropped.iter_rows():
        assert reason == "no_negative"
        assert pairs.filter(source=source)["explicit"].str.to_lowercase().n_unique() == 1


@settings(deadline=None)
@given(drawn_rows, seeds, st.booleans())
def test_negatives_follow_from_rows_and_seed(rows: list[tuple[str, str, str]], seed: int, hard: bool) -> None:
    """The same pairs, in any order and chunks, and the same seed give the same negatives (IMP-19), hard ones too."""
    order = np.random.default_rng(seed).permutation(len(rows))
    vectors = np.random.default_rng(0).normal(size=(len(rows), 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = triples(rows)
    in_order = examples.add_negatives(pairs, seed, vectors if hard else None)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(examples, "_CHUNK", 7)
        shuffled = examples.add_negatives(pairs[order.tolist()], seed, vectors[order] if hard else None)[0]
    assert in_order.equals(shuffled)


def test_negatives_are_equally_likely() -> None:
    """Every allowed row is drawn about equally often, though some draws are made again: 4 of 6, within 5 sigma."""
    rows = triples([("one", "hint", "a"), ("one", "hint", "b"), *[("one", f"other {c}", c) for c in "cdef"]])
    first = [examples.add_negatives(rows, seed)[0]["negative"][0] for seed in range(400)]
    assert set(first) == set("cdef")
    assert all(abs(first.count(c) - 100) < 5 * (400 * 0.25 * 0.75) ** 0.5 for c in "cdef")


def point(*degrees: float) -> np.ndarray:
    """Vectors of length 1 in these directions."""
    angles = np.deg2rad(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_hard_negatives_are_near_but_not_the_same() -> None:
    """The nearest of those drawn is taken, unless its cosine reaches 0.95, and no meaning of the same sentence.

    Where all are as near as that the farthest is taken; vectors must be as many as pairs.
    """
    degrees = (0, 10, 30, 60, 100)  # 18.2 degrees are a cosine of 0.95
    vectors = point(*degrees)
    rows = triples([("one", f"hint {i}", f"at {angle}") for i, angle in enumerate(degrees)])
    nearest = ["at 30", "at 30", "at 10", "at 30", "at 60"]
    assert examples.add_negatives(rows, 1, vectors)[0]["negative"].to_list() == nearest
    same = rows.with_columns(implicit=pl.Series(["hint", "hint 1", "hint", "hint 3", "hint 4"]))
    assert examples.add_negatives(same, 1, vectors)[0]["negative"][0] == "at 60"
    alike, _ = examples.add_negatives(positives([("one", "a"), ("one", "b"), ("one", "c")]), 1, point(0, 4, 12))
    assert alike["negative"].to_list() == ["c", "c", "a"]
    with pytest.raises(ValueError, match="a vector for each of 5 pairs, got 1"):
        examples.add_negatives(rows, 1, vectors[:1])


def test_build_joins_labels_and_completions() -> None:
    """A pair that the labels give and a model writes too is the labels', and the model's is dropped as the same."""
    labelled = sentences(("Nice hat.", "implicit", "I dislike the hat."), ("Brr.", "implicit", "Close the door."))
    written = (("Nice hat.", "I dislike the hat.", "irony_en"), ("Well, well.", "You are late.", "explicit_en"))
    completions = answers(*written).with_columns(source=pl.lit("labelled"))
    rows, dropped = examples.build(labelled, completions)
    expected = [("Brr.", None), ("Nice hat.", None), ("Well, well.", f"{1:064x}")]
    assert sorted(rows.select("implicit", "completion_id").rows()) == expected
    assert dropped.rows() == [("labelled", "same_pair", f"{0:064x}")]


def test_statistics_by_hand() -> None:
    """Counts, mean and sample sd of characters, and the share of longer implicit sentences (IMP-20)."""
    rows = triples([("a", "1234", "12"), ("a", "12345678", "1234"), ("b", "我们", "12345")])
    result = examples.compute_statistics(rows.with_columns(negative=pl.lit("x")))
    assert " ".join(result.columns) == (
        "source positives negatives implicit_mean implicit_sd explicit_mean explicit_sd implicit_longer"
    )
    a, b, total = result.rows()
    assert a == ("a", 2, 2, 6.0, pytest.approx(8**0.5), 3.0, pytest.approx(2**0.5), 1.0)
    assert b == ("b", 1, 1, 2.0, None, 5.0, None, 0.0)
    assert total[:3] == ("all", 3, 3)
    assert total[3:] == pytest.approx((14 / 3, (28 / 3) ** 0.5, 11 / 3, (7 / 3) ** 0.5, 2 / 3))


def accuracy(rows: pl.DataFrame, other: str) -> float:
    """Accuracy of calling the longer sentence implicit, a tie counted half."""
    difference = rows["implicit"].str.len_chars().cast(int) - rows[other].str.len_chars().cast(int)
    return float((difference.sign() / 2 + 0.5).mean()) if len(rows) else 0.5  # type: ignore[arg-type]


sized = st.lists(st.tuples(st.sampled_from(["one", "two"]), *[st.integers(1, 12)] * 3), max_size=60)


def of_sizes(rows: list[tuple[str, int, int, int]]) -> pl.DataFrame:
    """Pairs of (source, length of implicit, of explicit, of negative)."""
    pairs = triples([(source, "i" * implicit, "e" * explicit) for source, implicit, explicit, _ in rows])
    return pairs.with_columns(negative=pl.Series(["n" * size for *_, size in rows], dtype=pl.String))


@settings(deadline=None)
@given(sized, seeds)
def test_length_tells_nothing_of_a_balanced_set(rows: list[tuple[str, int, int, int]], seed: int) -> None:
    """'The longer is implicit' is right in half the pairs of every source, of the negative pairs as well."""
    result = examples.balance_lengths(of_sizes(rows), seed)
    for part in [result, *result.partition_by("source")]:
        assert accuracy(part, "explicit") == accuracy(part, "negative") == 0.5
    assert result.equals(examples.balance_lengths(of_sizes(rows).reverse(), seed))
    assert result.join(of_sizes(rows), on=result.columns, how="anti", nulls_equal=True).is_empty()


@settings(deadline=None)
@given(sized)
def test_a_balanced_set_is_as_large_as_can_be(rows: list[tuple[str, int, int, int]]) -> None:
    """Without negatives all ties and, of each source and bin, twice the smaller side are kept."""
    pairs = of_sizes(rows).drop("negative")
    expected = 0
    for source in ("one", "two"):
        bins: dict[int, list[int]] = {}
        for _, implicit, explicit, _ in (row for row in rows if row[0] == source):
            counts = bins.setdefault(int(abs(implicit - explicit) / max(implicit, explicit) * 8), [0, 0, 0])
            counts[(implicit > explicit) - (implicit < explicit) + 1] += 1
        expected += sum(2 * min(shorter, longer) + ties for shorter, ties, longer in bins.values())
    result = examples.balance_lengths(pairs, tolerance=0.125)
    assert result.height == expected
    assert accuracy(result, "explicit") == 0.5


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_a_users_pairs(tmp_path: Path, ending: str) -> None:
    """Implicit and explicit are enough in every format: ids, language, negatives, clusters and split are made."""
    pairs = [(f"It is {i} past nine.", f'You are {i} minutes late, "again".', "x") for i in range(9)]
    pairs.append(("你可真准时。", "你迟到了。", "x"))
    frame = pl.DataFrame(pairs, schema=["implicit", "explicit", "remark"], orient="row")
    path = tmp_path / f"pairs.{ending}"
    write_tsv = partial(frame.write_csv, separator="\t")
    writers = {"csv": frame.write_csv, "tsv": write_tsv, "jsonl": frame.write_ndjson, "parquet": frame.write_parquet}
    writers[ending](path)
    rows = examples.read(path)
    assert TABLES["pairs"].schema.is_valid(rows)
    assert rows["source"].unique().to_list() == ["own"]
    assert dict(rows.select("implicit", "explicit").iter_rows()) == dict(frame.drop("remark").iter_rows())
    assert rows.filter(pl.col("lang") == "zh")["implicit"].to_list() == ["你可真准时。"]
    assert sorted(rows["split"].value_counts()["count"].to_list()) == [1, 1, 8]
    assert rows.equals(examples.read(path))


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
    ("change", "message"),
    [
        ({"implicit": None}, "field 'implicit' is empty"),
        ({"explicit": " "}, "field 'explicit' is empty"),
        ({"explicit": "Brr."}, "field 'explicit' should differ from"),
        ({"negative": "It is cold."}, "field 'negative' should differ from"),
        ({"negative": 7}, "field 'negative' should be text, found "),
        ({"source": "My Source"}, "field 'source' should be a name in small letters"),
        ({"split": "dev"}, "field 'split' should be one of train, validation, test, found 'dev'"),
        ({"implicit": "Hm.", "split": None}, "field 'split' is absent, though other rows have one"),
        ({"source": "alone", "negative": ""}, "field 'negative' is absent, and its source has no other"),
    ],
)
def test_faults_name_file_row_and_field(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    """A bad value is BadInput that names file, row and field."""
    path = jsonl(tmp_path / "p.jsonl", FULL, FULL | change)
    with pytest.raises(BadInput) as caught:
        examples.read(path)
    assert str(caught.value).startswith(f"{path}, row 2: {message}")
    with pytest.raises(BadInput, match="row 2: field 'explicit' is absent"):  # a header is row 1
        examples.read(text(tmp_path / "p.csv", "implicit,meaning\nBrr.,It is cold.\n"))
